//! Whether a trial can have a network: found out by making a link, in network namespaces that end
//! with the commands that make it.

use std::fs;
use std::path::Path;

use fsverdict_core::model::meant;
use fsverdict_core::model::need::Answer;

use crate::machine::answers::not_installed;
use crate::{sys, tool};

/// A link as a trial has it, within one namespace.
const TRY: &str = "ip link add one type veth peer name other && \
                   ethtool -K one tso off gso off gro off && \
                   tc qdisc add dev one root tbf rate 1gbit burst 256k limit 256k";

/// A link between server and clients.
pub(super) fn links() -> Answer {
    let needed = ["unshare", "nsenter", "ip", "ethtool", "tc"];
    if let Some(missing) = needed.into_iter().find(|program| tool::find(program).is_none()) {
        return not_installed(missing);
    }
    if !sys::is_root() {
        return Answer::no("this user may not make network devices").but_root();
    }
    match tool::run_words(&["unshare", "--net", "sh", "-c", TRY]) {
        Ok(_) => Answer::yes("server and clients of a trial can have a network of their own"),
        Err(error) => Answer::no(error.to_string())
            .but("boot a kernel with CONFIG_VETH and CONFIG_NET_SCH_TBF, outside of a container"),
    }
}

/// An interface of the machine's.
pub(super) fn interface(root: &Path, name: &str) -> Answer {
    let text = fs::read_to_string(root.join("proc/net/dev")).unwrap_or_default();
    let known: Vec<&str> =
        text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
    match known.contains(&name) {
        true => Answer::yes("/proc/net/dev has it"),
        false => {
            Answer::no(format!("there is no network interface {name}; {}", meant(name, known)))
        }
    }
}
