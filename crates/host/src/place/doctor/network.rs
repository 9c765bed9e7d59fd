//! Whether a trial can have a network: found out by making a link, in network namespaces that end
//! with the commands that do so.

use std::fs;
use std::path::Path;

use crate::machine::ability::{AS_ROOT, Answer, install};
use crate::{sys, tool};

/// A link as a trial has it, within one namespace.
const TRY: &str = "ip link add one type veth peer name other && \
                   ethtool -K one tso off gso off gro off && \
                   tc qdisc add dev one root tbf rate 1gbit burst 256k limit 256k";

/// A link between server and clients.
pub(super) fn links() -> Answer {
    let needed = ["unshare", "nsenter", "ip", "ethtool", "tc"];
    if let Some(missing) = needed.into_iter().find(|program| tool::find(program).is_none()) {
        return Answer::not_installed(missing);
    }
    if !sys::is_root() {
        return Answer::no("this user may not make network devices", AS_ROOT);
    }
    match tool::run_words(&["unshare", "--net", "sh", "-c", TRY]) {
        Ok(_) => Answer::yes("server and clients of a trial can have a network of their own"),
        Err(error) => Answer::no(
            error.to_string(),
            "boot a kernel with CONFIG_VETH and CONFIG_NET_SCH_TBF, outside of a container",
        ),
    }
}

/// Counters of the network interfaces.
pub(super) fn counters(root: &Path) -> Answer {
    match fs::read(root.join("proc/net/dev")) {
        Ok(_) => Answer::yes("/proc/net/dev"),
        Err(error) => Answer::closed("/proc/net/dev", &error, "run it where /proc is mounted"),
    }
}

/// The server of the uploads. It prints its version nowhere but on its standard input.
pub(super) fn vsftpd() -> Answer {
    match tool::find("vsftpd") {
        Some(path) => Answer::yes(path.display().to_string()),
        None => {
            let no = Answer::not_installed("vsftpd");
            let how = install("vsftpd") + ", and then systemctl disable --now vsftpd";
            Answer { advice: Some(format!("{how}: a trial starts its own")), ..no }
        }
    }
}
