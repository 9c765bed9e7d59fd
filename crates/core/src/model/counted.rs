//! What limits on operations count, where, and in which records.

use super::{Bed, BedKind, Counted, Limits, Place, Plan, Record};

impl Bed {
    /// What its limits count in that place, if it has any. QEMU holds down what a guest's disk
    /// gets, and a bed that is made for limits lies on a second device (ARCHITECTURE, "Decisions").
    pub fn limits_count(&self, place: Place) -> Option<Counted> {
        let counted = match (place, self.kind) {
            (Place::Vm | Place::Uml, _) | (_, BedKind::Loop | BedKind::Ram) => Counted::Requests,
            (_, BedKind::Device | BedKind::Directory) => Counted::Bios,
        };
        self.is_limited().then_some(counted)
    }
}

impl Plan {
    /// What limits counted in its records, if there are any and some hold operations down.
    pub fn limits_counted(&self, records: &[Record]) -> Option<Counted> {
        let limits = self.contenders.iter().map(|it| it.limits).chain([self.bed.limits]);
        let is_met = limits.flatten().any(|Limits { iops, .. }| iops.is_some());
        records.first().filter(|_| is_met).map(Record::limits_counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Guest, Key};

    const CONTENDERS: &str = "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
                              [[workload]]\nname = \"w\"\ncommand = \"x\"\n";

    fn plan(bed: &str) -> Plan {
        Plan::parse(&format!("{bed}\n{CONTENDERS}")).unwrap()
    }

    fn record() -> Record {
        Record::new(1, Key { round: 1, workload: "w".into(), contender: "a".into() }, 1, 1)
    }

    #[test]
    fn images_and_guests_count_requests_and_the_users_disks_bios() {
        let counted = |bed: &str, place| plan(bed).whole_bed().limits_count(place);
        const LIMITED: &str = "bed.limits = { iops = 100 }";
        assert_eq!(counted("", Place::Local), None);
        assert_eq!(counted(LIMITED, Place::Local), Some(Counted::Requests));
        let disk = format!("bed.kind = \"device\"\nbed.path = \"/dev/x\"\n{LIMITED}");
        assert_eq!(counted(&disk, Place::Local), Some(Counted::Bios));
        assert_eq!(counted(LIMITED, Place::Vm), Some(Counted::Requests));
    }

    #[test]
    fn a_record_that_does_not_tell_counted_bios_but_in_a_guest() {
        let (plain, limited) = (plan(""), plan("bed.limits = { iops = 100 }"));
        assert_eq!(plain.limits_counted(&[record()]), None);
        assert_eq!(limited.limits_counted(&[]), None);
        assert_eq!(limited.limits_counted(&[record()]), Some(Counted::Bios));
        let in_guest = Record { guest: Some(Guest::default()), ..record() };
        assert_eq!(limited.limits_counted(&[in_guest]), Some(Counted::Requests));
        let told = Record { limits_count: Some(Counted::Requests), ..record() };
        assert_eq!(limited.limits_counted(&[told]), Some(Counted::Requests));
        let bytes_alone = plan("bed.limits = { bandwidth = \"9M\" }");
        assert_eq!(bytes_alone.limits_counted(&[record()]), None);
    }

    #[test]
    fn what_was_counted_is_kept_by_its_name() {
        let told = Record { limits_count: Some(Counted::Requests), ..record() };
        let text = serde_json::to_string(&told).unwrap();
        assert!(text.contains(r#""limits_count":"requests""#), "{text}");
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), told);
        assert!(!serde_json::to_string(&record()).unwrap().contains("limits_count"));
    }
}
