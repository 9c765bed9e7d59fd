//! The link between a workload's server and its clients: a pair of veth devices (veth(4)), one end
//! in the trial's own network namespace, the other in the clients'.
//!
//! Nothing of it outlives the trial: its network namespace is its own, and the clients' is held by
//! a mount in the trial's own mount namespace.

use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Network, Workload};
use fsverdict_core::run::HostError;

use crate::machine::cell;
use crate::probe::Interface;
use crate::tool::Argv;
use crate::{sys, tool, undo};

/// The server's end, which is watched.
const SERVER: &str = "server0";
const CLIENT: &str = "client0";

/// Addresses that are set aside for measuring networks (RFC 2544, appendix C.2.2).
pub const SERVER_ADDRESS: &str = "198.18.0.1";
const CLIENT_ADDRESS: &str = "198.18.0.2";

/// A kernel may be late by so much to send what the rate allows: the period of its slowest usual
/// clock tick, by which tc-tbf(8) says to size the buffer.
const BURST_S: f64 = 0.01;
/// What waits for the link at most; a TCP of this machine sends no more than fits.
const QUEUE_S: f64 = 0.05;
/// Two of the largest packets there are.
const BURST_BYTES_MIN: u64 = 128 << 10;

/// The file by which the clients' network namespace can be entered.
pub fn clients() -> PathBuf {
    undo::registry().join("clients")
}

/// The commands that make the link of `network`, in the server's network namespace, once that and
/// the clients' exist.
///
/// What would merge packets on their way is switched off, so that as many are counted as a wire
/// would carry.
pub fn commands(network: &Network) -> Vec<Argv> {
    let clients = clients().display().to_string();
    let there = format!("nsenter --net={clients} ");
    let mut lines = vec![
        format!("ip link add {SERVER} type veth peer name {CLIENT}"),
        format!("ip link set {CLIENT} netns {clients}"),
    ];
    let mtu_bytes = network.mtu_bytes();
    let ends = [("", SERVER, SERVER_ADDRESS), (there.as_str(), CLIENT, CLIENT_ADDRESS)];
    for (within, end, address) in ends {
        lines.extend([
            format!("{within}ip link set lo up"),
            format!("{within}ip address add {address}/30 dev {end}"),
            format!("{within}ip link set {end} mtu {mtu_bytes} up"),
            format!("{within}ethtool -K {end} tso off gso off gro off"),
        ]);
        let rate = network.rate.map(|rate| rate.0);
        lines.extend(rate.map(|rate| {
            let bytes = |time_s: f64| BURST_BYTES_MIN.max((rate as f64 / 8.0 * time_s) as u64);
            let (burst, limit) = (bytes(BURST_S), bytes(QUEUE_S));
            format!(
                "{within}tc qdisc add dev {end} root tbf rate {rate}bit burst {burst} limit {limit}"
            )
        }));
    }
    lines.iter().map(|line| line.split_whitespace().map(String::from).collect()).collect()
}

/// Makes the link, and has the trial be at the server's end from now on. Both ends belong to
/// `user`, in which the work has its power.
pub fn make(network: &Network, user: Option<&OwnedFd>) -> Result<(), HostError> {
    // Anywhere else it would be the machine's own network.
    if std::process::id() != 1 {
        return Err("a link needs a trial with namespaces of its own: run it as root".into());
    }
    sys::enter_network(cell::network(user)?.as_fd())?;
    let clients_end = cell::network(user)?;
    File::create(clients())?;
    sys::bind(Path::new(&format!("/proc/self/fd/{}", clients_end.as_raw_fd())), &clients())?;
    tool::run_all(&commands(network))?;
    Ok(())
}

/// The interface by which the work of `workload` comes in.
pub fn interface(root: &Path, workload: &Workload) -> Option<Interface> {
    let network = workload.network.as_ref()?;
    let name = network.interface.as_deref().unwrap_or(SERVER);
    let rate = network.rate.map(|rate| rate.0);
    let own = || network.interface.as_ref().and_then(|name| speed_bits_per_s(root, name));
    Some(Interface { name: name.into(), rate_bits_per_s: rate.or_else(own) })
}

/// What the kernel says an interface carries, in Mbit/s; -1 or an error where it does not know
/// (Documentation/ABI/testing/sysfs-class-net, "speed").
fn speed_bits_per_s(root: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(root.join("sys/class/net").join(name).join("speed")).ok()?;
    let mbit_per_s: u64 = text.trim().parse().ok()?;
    (mbit_per_s > 0).then_some(mbit_per_s * 1_000_000)
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::BitRate;

    use super::*;

    fn lines(network: &Network) -> Vec<String> {
        commands(network).iter().map(|argv| argv.join(" ")).collect()
    }

    #[test]
    fn a_link_is_as_fast_as_it_is_to_be_in_both_directions() {
        let network = Network { rate: Some(BitRate(1_000_000_000)), ..Network::default() };
        let lines = lines(&network);
        let shaped: Vec<&String> = lines.iter().filter(|line| line.contains(" tbf ")).collect();
        assert_eq!(shaped.len(), 2);
        let words = "tbf rate 1000000000bit burst 1250000 limit 6250000";
        assert!(shaped.iter().all(|line| line.ends_with(words)), "{shaped:?}");
        assert!(shaped[0].starts_with("tc ") && shaped[1].starts_with("nsenter --net=/"));
        let slow = commands(&Network { rate: Some(BitRate(1_000_000)), ..Network::default() });
        assert!(slow.iter().any(|argv| argv.contains(&BURST_BYTES_MIN.to_string())));
    }

    #[test]
    fn a_link_without_a_rate_is_not_held_down() {
        let lines = lines(&Network { mtu: Some(9000), ..Network::default() });
        assert!(lines.iter().all(|line| !line.contains("tbf")));
        assert_eq!(lines.iter().filter(|line| line.ends_with("mtu 9000 up")).count(), 2);
        assert_eq!(lines.iter().filter(|line| line.ends_with("gro off")).count(), 2);
    }

    #[test]
    fn an_interface_carries_what_the_plan_says_or_the_kernel() {
        let tree = tempfile::tempdir().unwrap();
        let write = |name: &str, speed: &str| {
            let folder = tree.path().join("sys/class/net").join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("speed"), speed).unwrap();
        };
        write("bond0", "20000\n");
        write("tap0", "-1\n");
        let of = |name: &str, rate: Option<u64>| {
            let rate = rate.map(BitRate);
            let network = Network { interface: Some(name.into()), rate, mtu: None };
            let workload = Workload { network: Some(network), ..Workload::default() };
            interface(tree.path(), &workload).unwrap().rate_bits_per_s
        };
        assert_eq!(of("bond0", None), Some(20_000_000_000));
        assert_eq!(of("bond0", Some(10)), Some(10));
        assert_eq!((of("tap0", None), of("none", None)), (None, None));
        assert_eq!(interface(tree.path(), &Workload::default()), None);
        let linked = Workload { network: Some(Network::default()), ..Workload::default() };
        assert_eq!(interface(tree.path(), &linked).unwrap().name, "server0");
    }
}
