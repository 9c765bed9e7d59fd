//! The timelines of a trial: `series.csv`, read back.

use thiserror::Error;

use super::{Key, MOST, Unit};

/// What a timeline tells, as a plot shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gauge {
    /// Bytes written to the devices, a second.
    Written,
    /// Bytes read from the devices, a second.
    Read,
    /// The share of all processors' time that was busy.
    Cpu,
    /// Requests under way at the devices, on average.
    Queue,
    /// Bytes in memory that are to be written yet.
    Dirty,
    /// Flushes of the devices' caches, a second.
    Flushes,
    /// Bits that came in over the network, a second.
    Received,
    /// Packets that came in, a second.
    ReceivedPackets,
    /// Bits that went out over the network, a second.
    Sent,
    /// Packets that went out, a second.
    SentPackets,
}

impl Gauge {
    /// All of them, in the order in which they are drawn.
    pub const ALL: [Gauge; 10] = [
        Gauge::Written,
        Gauge::Read,
        Gauge::Cpu,
        Gauge::Queue,
        Gauge::Dirty,
        Gauge::Flushes,
        Gauge::Received,
        Gauge::ReceivedPackets,
        Gauge::Sent,
        Gauge::SentPackets,
    ];

    /// It is of a network, which only some work has.
    pub fn is_of_a_network(self) -> bool {
        use Gauge::{Received, ReceivedPackets, Sent, SentPackets};
        matches!(self, Received | ReceivedPackets | Sent | SentPackets)
    }

    /// What it is called.
    pub fn title(self) -> &'static str {
        match self {
            Gauge::Written => "Written to the device",
            Gauge::Read => "Read from the device",
            Gauge::Cpu => "CPU busy, of all processors",
            Gauge::Queue => "Requests in the device's queue",
            Gauge::Dirty => "Dirty memory",
            Gauge::Flushes => "Flushes of the device",
            Gauge::Received => "Received over the network",
            Gauge::ReceivedPackets => "Packets received",
            Gauge::Sent => "Sent over the network",
            Gauge::SentPackets => "Packets sent",
        }
    }

    /// The unit of its values.
    pub fn unit(self) -> Unit {
        match self {
            Gauge::Written | Gauge::Read => Unit::BytesPerSecond,
            Gauge::Cpu | Gauge::Queue => Unit::Ratio,
            Gauge::Dirty => Unit::Bytes,
            Gauge::Flushes | Gauge::ReceivedPackets | Gauge::SentPackets => Unit::PerSecond,
            Gauge::Received | Gauge::Sent => Unit::BitsPerSecond,
        }
    }

    /// `value` for a person, with its unit.
    pub fn shown(self, value: f64) -> String {
        match self {
            Gauge::Cpu => format!("{:.0}%", value * 100.0),
            _ => self.unit().format(value),
        }
    }
}

/// From one reading to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Its beginning, in seconds since the timed part's.
    pub from_s: f32,
    /// Its end.
    pub to_s: f32,
    /// By [`Gauge::ALL`]; not a number where the kernel does not tell.
    values: [f32; Gauge::ALL.len()],
}

impl Stretch {
    /// What `gauge` showed; `None` where the kernel does not tell.
    pub fn value(&self, gauge: Gauge) -> Option<f32> {
        Some(self.values[gauge as usize]).filter(|value| !value.is_nan())
    }
}

/// One timed part of one trial, from reading to reading.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Which trial.
    pub key: Key,
    /// The timed part's name; empty for the whole.
    pub phase: String,
    /// Its stretches, in order, without gaps.
    pub stretches: Vec<Stretch>,
}

/// A `series.csv` that can't be read.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum TimelineError {
    #[error(transparent)]
    Csv(#[from] csv::Error),
    #[error("there is no column {0}")]
    Column(&'static str),
    #[error("line {line}: {cell:?} is not a number up to 2^56, in column {column}")]
    Cell { line: u64, column: &'static str, cell: String },
}

/// Counters tick every 10 ms (time(7), "the software clock"): readings closer together than this
/// have no rate.
const SHORTEST_NS: u64 = 25_000_000;

/// The columns that are drawn; the first two are needed, of the others what there is.
const COLUMNS: [&str; 16] = [
    "phase",
    "time_ns",
    "dirty_bytes",
    "cpu_user_ns",
    "cpu_system_ns",
    "cpu_iowait_ns",
    "cpu_steal_ns",
    "cpu_idle_ns",
    "device_read_bytes",
    "device_write_bytes",
    "device_queue_ns",
    "device_flushes",
    "network_received_bytes",
    "network_received_packets",
    "network_sent_bytes",
    "network_sent_packets",
];

/// A row: counters since the phase's start, by [`COLUMNS`]; `None` where the cell is empty.
#[derive(Clone, Copy)]
struct Row([Option<u64>; COLUMNS.len()]);

impl Row {
    fn at_ns(&self) -> u64 {
        self.0[1].unwrap_or(0)
    }

    /// The CPU time of the columns from `from` to `to`; `None` if it is unknown.
    fn cpu_ns(&self, to: usize) -> Option<u64> {
        self.0[3..to].iter().try_fold(0_u64, |all, told| Some(all.saturating_add((*told)?)))
    }

    fn stretch(&self, next: &Row) -> Stretch {
        let seconds = (next.at_ns() - self.at_ns()) as f64 / 1e9;
        let passed =
            |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?) as f64);
        let rate =
            |column: usize| passed(next.0[column], self.0[column]).map(|counted| counted / seconds);
        let all_ns = passed(next.cpu_ns(8), self.cpu_ns(8)).filter(|&ns| ns > 0.0);
        let busy_ns = passed(next.cpu_ns(5), self.cpu_ns(5));
        let values = [
            rate(9),
            rate(8),
            busy_ns.zip(all_ns).map(|(busy_ns, all_ns)| busy_ns / all_ns),
            rate(10).map(|ns| ns / 1e9),
            next.0[2].map(|bytes| bytes as f64),
            rate(11),
            rate(12).map(|bytes| bytes * 8.0),
            rate(13),
            rate(14).map(|bytes| bytes * 8.0),
            rate(15),
        ];
        Stretch {
            from_s: (self.at_ns() as f64 / 1e9) as f32,
            to_s: (next.at_ns() as f64 / 1e9) as f32,
            values: values.map(|value| value.map_or(f32::NAN, |value| value as f32)),
        }
    }
}

impl Timeline {
    /// Reads a trial's `series.csv`: one timeline for each timed part that lasted.
    pub fn parse(key: &Key, text: &str) -> Result<Vec<Timeline>, TimelineError> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers()?.clone();
        let places = COLUMNS.map(|column| header.iter().position(|name| name == column));
        for (column, place) in COLUMNS.into_iter().zip(places).take(2) {
            place.ok_or(TimelineError::Column(column))?;
        }
        let mut phases: Vec<(String, Vec<Row>)> = Vec::new();
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record)? {
            let phase = places[0].and_then(|place| record.get(place)).unwrap_or_default();
            let row = row(&record, &places)?;
            match phases.last_mut().filter(|(name, _)| name == phase) {
                Some((_, rows)) => rows.push(row),
                None => phases.push((phase.into(), vec![row])),
            }
        }
        let timelines = phases.into_iter().map(|(phase, rows)| Timeline {
            key: key.clone(),
            phase,
            stretches: stretches(&rows),
        });
        Ok(timelines.filter(|timeline| !timeline.stretches.is_empty()).collect())
    }
}

fn row(
    record: &csv::StringRecord,
    places: &[Option<usize>; COLUMNS.len()],
) -> Result<Row, TimelineError> {
    let mut cells = [None; COLUMNS.len()];
    for (index, column) in COLUMNS.into_iter().enumerate().skip(1) {
        let cell = places[index].and_then(|place| record.get(place)).unwrap_or_default();
        if !cell.is_empty() {
            let number = cell.parse().ok().filter(|number| *number <= MOST);
            cells[index] = Some(number.ok_or_else(|| TimelineError::Cell {
                line: record.position().map_or(0, csv::Position::line),
                column,
                cell: cell.into(),
            })?);
        }
    }
    Ok(Row(cells))
}

/// Stretches of [`SHORTEST_NS`] or more; the last takes in what is left of a shorter one.
fn stretches(rows: &[Row]) -> Vec<Stretch> {
    let [first, .., last] = rows else { return Vec::new() };
    let mut bounds = vec![first];
    for row in rows {
        if row.at_ns() >= bounds[bounds.len() - 1].at_ns() + SHORTEST_NS {
            bounds.push(row);
        }
    }
    if bounds.len() > 1 {
        bounds.pop();
    }
    bounds.push(last);
    let lasting = |pair: &&[&Row]| pair[1].at_ns() > pair[0].at_ns();
    bounds.windows(2).filter(lasting).map(|pair| pair[0].stretch(pair[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key { round: 3, workload: "work".into(), contender: "ext4".into() }
    }

    const HEAD: &str = "phase,time_ns,cpu_user_ns,cpu_system_ns,cpu_iowait_ns,cpu_steal_ns,\
                        cpu_idle_ns,device_read_bytes,device_write_bytes,device_flushes,\
                        device_queue_ns,dirty_bytes\n";

    #[test]
    fn counters_become_rates_and_shares_from_reading_to_reading() {
        let text = format!(
            "{HEAD}read,0,0,0,0,0,0,0,0,,0,4096\nread,50000000,10,20,10,0,60,1000,0,,25000000,0\n\
             read,100000000,10,20,110,0,60,1000,500,,25000000,8192\nstat,0,,,,,,,,,,7\n"
        );
        let timelines = Timeline::parse(&key(), &text).unwrap();
        let [timeline] = timelines.as_slice() else { panic!("{timelines:?}") };
        assert_eq!((timeline.phase.as_str(), timeline.key.round), ("read", 3));
        let values =
            |gauge| timeline.stretches.iter().map(|it| it.value(gauge)).collect::<Vec<_>>();
        assert_eq!(values(Gauge::Read), [Some(20_000.0), Some(0.0)]);
        assert_eq!(values(Gauge::Written), [Some(0.0), Some(10_000.0)]);
        assert_eq!(values(Gauge::Cpu), [Some(0.3), Some(0.0)]);
        assert_eq!(values(Gauge::Queue), [Some(0.5), Some(0.0)]);
        assert_eq!(values(Gauge::Dirty), [Some(0.0), Some(8192.0)]);
        assert_eq!(values(Gauge::Flushes), [None, None], "a partition counts none");
        assert_eq!(values(Gauge::Received), [None, None], "there is no link");
    }

    #[test]
    fn a_network_has_bits_and_packets_in_each_direction() {
        let text = "phase,time_ns,network_received_bytes,network_received_packets,\
                    network_sent_bytes,network_sent_packets\n\
                    x,0,0,0,0,0\nx,50000000,5000000,4000,6600,100\n";
        let [timeline] = &Timeline::parse(&key(), text).unwrap()[..] else { panic!("one phase") };
        let [stretch] = timeline.stretches[..] else { panic!("one stretch") };
        let of_it = Gauge::ALL.into_iter().filter(|gauge| gauge.is_of_a_network());
        let shown = |gauge: Gauge| Some(gauge.shown(stretch.value(gauge)?.into()));
        let shown: Vec<_> = of_it.filter_map(shown).collect();
        assert_eq!(shown, ["800 Mbit/s", "80,000/s", "1.06 Mbit/s", "2,000/s"]);
        let others = Gauge::ALL.into_iter().filter(|gauge| !gauge.is_of_a_network());
        assert_eq!(others.filter_map(|gauge| stretch.value(gauge)).count(), 0);
    }

    #[test]
    fn a_short_end_belongs_to_the_stretch_before_it() {
        let rows = |times: &[u64]| {
            let rows: Vec<String> = times
                .iter()
                .map(|ms| format!("x,{},0,0,0,0,0,{},0,0,0,0\n", ms * 1_000_000, ms))
                .collect();
            let text = format!("{HEAD}{}", rows.concat());
            let timelines = Timeline::parse(&key(), &text).unwrap();
            timelines.first().map(|it| {
                it.stretches
                    .iter()
                    .map(|it| ((it.from_s * 1e3) as u32, (it.to_s * 1e3) as u32))
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(rows(&[0, 50, 100, 101]), Some(vec![(0, 50), (50, 101)]));
        assert_eq!(rows(&[0, 50, 90]), Some(vec![(0, 50), (50, 90)]));
        assert_eq!(rows(&[0, 3]), Some(vec![(0, 3)]), "shorter than any");
        assert_eq!(rows(&[0]), None);
    }

    #[test]
    fn a_wrong_file_says_where() {
        let wrong = |text: &str| Timeline::parse(&key(), text).unwrap_err().to_string();
        assert_eq!(wrong("phase,x\n"), "there is no column time_ns");
        let said = wrong(&format!("{HEAD}x,0,a,0,0,0,0,0,0,0,0,0\n"));
        assert_eq!(said, "line 2: \"a\" is not a number up to 2^56, in column cpu_user_ns");
        let said = wrong(&format!("{HEAD}x,{},0,0,0,0,0,0,0,0,0,0\n", u64::MAX));
        assert!(said.ends_with("is not a number up to 2^56, in column time_ns"), "{said}");
    }
}
