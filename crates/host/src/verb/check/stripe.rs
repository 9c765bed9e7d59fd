//! Options of mkfs that lay data out for a RAID's stripes, if there is none, or another.

use fsverdict_core::script::{Choice, argv};

use super::sort::Facts;
use super::target::{Stripe, Target};
use super::topology;

/// mkfs.xfs(8), mke2fs(8).
const STRIPES: [&str; 7] =
    ["su", "sw", "sunit", "swidth", "stride", "stripe-width", "stripe_width"];

/// The option is one of them.
pub fn lays_out(it: &Choice) -> bool {
    STRIPES.contains(&it.key())
}

/// What speaks against the stripe that `accepted` ask for, by what `make` makes.
pub fn advice(
    target: Target,
    device: Option<&String>,
    kind: &str,
    accepted: &[Choice],
    make: &dyn Fn(&[Choice]) -> Option<Facts>,
) -> Option<String> {
    let Some(stripe) = target.stripe else {
        let seen = topology::of(device.map_or("", String::as_str));
        let known = target.size_bytes.is_some();
        let name = if known { "the target" } else { &seen.name };
        return (known || seen.optimal_bytes == 0).then(|| {
            format!(
                "it lays out data for a RAID's stripes, and {name} shows none (optimal_io_size 0, \
                 or no --stripe given): leave it out, unless the device is a RAID; then mkfs takes \
                 it from there by itself, and --stripe su=64k,sw=4 tells check of it"
            )
        });
    };
    let fitting = fitting(kind, stripe)?;
    let others = accepted.iter().filter(|it| !lays_out(it));
    let choices: Vec<Choice> = others.cloned().chain(fitting.clone()).collect();
    let fits = layout(make(accepted)?) == layout(make(&choices)?);
    (!fits).then(|| {
        let words = argv(&fitting).join(" ");
        format!("the target's stripe asks for {words}, which mkfs takes from it by itself")
    })
}

/// How data is laid out, of what was made.
fn layout(mut facts: Facts) -> Facts {
    facts.retain(|name, _| {
        let name = name.to_lowercase();
        let is_stripe = ["sunit", "swidth", "stride", "stripe"].iter().any(|it| name.contains(it));
        is_stripe && !name.starts_with("log")
    });
    facts
}

/// What lays data out for `stripe`.
fn fitting(kind: &str, stripe: Stripe) -> Option<Vec<Choice>> {
    // mke2fs counts in blocks; those of 4 KiB are its choice on all disks that have a stripe.
    let blocks = stripe.unit_bytes / 4096;
    let (flag, values) = match kind {
        "xfs" => ("-d", [format!("su={}", stripe.unit_bytes), format!("sw={}", stripe.disks)]),
        "ext" => {
            ("-E", [format!("stride={blocks}"), format!("stripe-width={}", blocks * stripe.disks)])
        }
        _ => return None,
    };
    let choice = |value| Choice {
        group: usize::MAX,
        flag: flag.into(),
        attached: false,
        value: Some(value),
    };
    Some(values.map(choice).into())
}
