//! How many requests the devices have at once, over time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::{Entry, Op};

/// Parts of the time that are kept at most; where it gets longer each becomes twice as long.
const PARTS_MAX: usize = 512;
/// How long a part is at first.
const PART_NS: u64 = 1 << 10;
/// So many requests are under way at most: of more, ends were lost.
const UNDER_WAY_MAX: usize = 1 << 16;

/// Requests that were under way at the devices, all devices together. Those without a known start
/// and end do not count.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// The most at once.
    pub most: usize,
    /// How long the devices had each request, added up.
    all_ns: u64,
    /// How long they had any.
    busy_ns: u64,
    /// How long it was from the first to the end of the last, of all timed parts.
    elapsed_ns: u64,
    /// How many timed parts with any have ended.
    parts: usize,
    /// The timed part under way: when its first request was given, and the last of them done.
    span_ns: Option<[u64; 2]>,
    /// When those will be done that the devices have.
    ends: BinaryHeap<Reverse<u64>>,
    /// The first timed part that has any.
    course: Course,
}

/// How many requests the devices had over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// On average in each column, idle time included, by what they do.
    pub depths: BTreeMap<Op, Vec<f64>>,
    /// How long a column is; the last may be shorter.
    pub column_ns: u64,
    /// From the first request to the end of the last.
    pub elapsed_ns: u64,
}

/// How long the devices had requests of each kind, part of the time by part.
#[derive(Clone, Debug)]
struct Course {
    part_ns: u64,
    parts: BTreeMap<Op, Vec<u64>>,
    begin_ns: Option<u64>,
    end_ns: u64,
    is_over: bool,
}

impl Default for Course {
    fn default() -> Course {
        Course {
            part_ns: PART_NS,
            parts: BTreeMap::new(),
            begin_ns: None,
            end_ns: 0,
            is_over: false,
        }
    }
}

impl Queue {
    /// Begins another timed part: its clock has nothing to do with that of the one before.
    pub fn begin(&mut self) {
        if let Some([first_ns, last_ns]) = self.span_ns.take() {
            self.elapsed_ns = self.elapsed_ns.saturating_add(last_ns - first_ns);
            self.course.is_over = true;
            self.parts += 1;
        }
        self.ends.clear();
    }

    /// Adds a request; one that took no time was in no queue. Requests come in the order in which
    /// the devices were given them.
    pub fn take(&mut self, entry: &Entry) {
        let (Some(issue_ns), Some(complete_ns)) = (entry.issue_ns, entry.complete_ns) else {
            return;
        };
        // A stranger's record may have them the other way round.
        if complete_ns <= issue_ns {
            return;
        }
        let [first_ns, busy_until_ns] = self.span_ns.unwrap_or([issue_ns; 2]);
        self.busy_ns =
            self.busy_ns.saturating_add(complete_ns.saturating_sub(busy_until_ns.max(issue_ns)));
        self.all_ns = self.all_ns.saturating_add(complete_ns - issue_ns);
        self.span_ns = Some([first_ns.min(issue_ns), busy_until_ns.max(complete_ns)]);
        while self.ends.peek().is_some_and(|Reverse(end_ns)| *end_ns <= issue_ns) {
            self.ends.pop();
        }
        self.ends.push(Reverse(complete_ns));
        if self.ends.len() > UNDER_WAY_MAX {
            self.ends.pop();
        }
        self.most = self.most.max(self.ends.len());
        self.course.take(entry.op, issue_ns, complete_ns);
    }

    /// How many there were on average while there was any; `None` where nothing is known of times.
    pub fn mean(&self) -> Option<f64> {
        (self.busy_ns > 0).then(|| self.all_ns as f64 / self.busy_ns as f64)
    }

    /// For which share of the time there was any, from the first to the end of the last.
    pub fn busy_share(&self) -> f64 {
        let [first_ns, last_ns] = self.span_ns.unwrap_or_default();
        let elapsed_ns = self.elapsed_ns.saturating_add(last_ns - first_ns);
        if elapsed_ns == 0 { 0.0 } else { self.busy_ns as f64 / elapsed_ns as f64 }
    }

    /// The first timed part that has any, in at most so many columns.
    pub fn course(&self, columns: usize) -> Columns {
        let Course { part_ns, parts, begin_ns, end_ns, .. } = &self.course;
        let elapsed_ns = end_ns.saturating_sub(begin_ns.unwrap_or(*end_ns));
        let used = (elapsed_ns.div_ceil(*part_ns) as usize).min(PARTS_MAX);
        let each = used.div_ceil(columns.max(1)).max(1);
        let mean = |(column, parts): (usize, &[u64])| {
            let begin_ns = (column * each) as u64 * part_ns;
            let length_ns = (each as u64).saturating_mul(*part_ns).min(elapsed_ns - begin_ns);
            parts.iter().map(|ns| *ns as f64).sum::<f64>() / length_ns.max(1) as f64
        };
        let of = |parts: &Vec<u64>| parts[..used].chunks(each).enumerate().map(mean).collect();
        Columns {
            depths: parts.iter().map(|(op, parts)| (*op, of(parts))).collect(),
            column_ns: (each as u64).saturating_mul(*part_ns),
            elapsed_ns,
        }
    }

    /// How many timed parts have any.
    pub fn parts(&self) -> usize {
        self.parts + usize::from(self.span_ns.is_some())
    }
}

impl Course {
    fn take(&mut self, op: Op, issue_ns: u64, complete_ns: u64) {
        if self.is_over {
            return;
        }
        let begin_ns = *self.begin_ns.get_or_insert(issue_ns);
        let [from, to] = [issue_ns, complete_ns].map(|at| at.saturating_sub(begin_ns));
        if to == 0 {
            return;
        }
        self.end_ns = self.end_ns.max(complete_ns);
        while (to - 1) / self.part_ns >= PARTS_MAX as u64 {
            self.parts.values_mut().for_each(|parts| halve(parts));
            self.part_ns *= 2;
        }
        let parts = self.parts.entry(op).or_insert_with(|| vec![0; PARTS_MAX]);
        for place in from / self.part_ns..=(to - 1) / self.part_ns {
            let begin = place * self.part_ns;
            let within = to.min(begin.saturating_add(self.part_ns)) - from.max(begin);
            let part = &mut parts[place as usize];
            *part = part.saturating_add(within);
        }
    }
}

/// Makes one of each two parts.
fn halve(parts: &mut [u64]) {
    for place in 0..PARTS_MAX / 2 {
        parts[place] = parts[2 * place].saturating_add(parts[2 * place + 1]);
    }
    parts[PARTS_MAX / 2..].fill(0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(op: Op, issue_ns: u64, complete_ns: u64) -> Entry {
        let flush: Entry = serde_json::from_str(r#"{"op":"flush"}"#).unwrap();
        let [issue_ns, complete_ns] = [issue_ns, complete_ns].map(Some);
        Entry { op, issue_ns, complete_ns, ..flush }
    }

    fn queue(requests: &[(u64, u64)]) -> Queue {
        let mut queue = Queue::default();
        requests.iter().for_each(|(from, to)| queue.take(&entry(Op::Write, *from, *to)));
        queue
    }

    #[test]
    fn depth_is_a_mean_over_the_time_in_which_there_is_any() {
        let queue = queue(&[(1000, 3000), (2000, 4000), (9000, 10_000)]);
        assert_eq!((queue.most, queue.mean()), (2, Some(5000.0 / 4000.0)));
        assert!((queue.busy_share() - 4.0 / 9.0).abs() < 1e-12, "{}", queue.busy_share());
        let course = queue.course(9);
        assert_eq!((course.elapsed_ns, course.column_ns), (9000, 1024));
        assert_eq!(course.depths[&Op::Write].len(), 9);
    }

    #[test]
    fn each_timed_part_has_a_clock_of_its_own() {
        let mut queue = queue(&[(5_000_000, 5_002_000)]);
        queue.begin();
        queue.take(&entry(Op::Flush, 1000, 2000));
        queue.take(&Entry { complete_ns: None, ..entry(Op::Flush, 1000, 0) });
        queue.take(&entry(Op::Flush, 3000, 4000));
        assert_eq!((queue.most, queue.mean()), (1, Some(1.0)));
        assert!((queue.busy_share() - 4.0 / 5.0).abs() < 1e-12, "{}", queue.busy_share());
        let course = queue.course(10);
        assert_eq!(course.depths.keys().collect::<Vec<_>>(), [&Op::Write]);
        assert_eq!((course.elapsed_ns, queue.parts()), (2000, 2));
        assert_eq!(Queue::default().course(10).elapsed_ns, 0);
    }

    #[test]
    fn a_strangers_times_do_no_harm() {
        let strange = queue(&[(0, u64::MAX), (5, u64::MAX), (u64::MAX, 0), (7, 9)]);
        assert!(strange.mean().is_some() && strange.busy_share() <= 1.0);
        assert!(strange.course(60).depths[&Op::Write].len() <= 60);
        let late = queue(&[(0, 1000), (10_000_000, 10_000_000), (20_000_000, 9)]);
        assert_eq!(late.course(60).elapsed_ns, 1000, "what takes no time is in no queue");
        let at_once: Vec<_> = (0..UNDER_WAY_MAX as u64 + 9).map(|at| (at, u64::MAX)).collect();
        assert_eq!(queue(&at_once).most, UNDER_WAY_MAX);
    }

    proptest! {
        /// The parts of the time add up to the whole, however long it gets; and the most at once is
        /// what a look at each moment gives.
        #[test]
        fn the_course_adds_up_to_the_whole(
            steps in prop::collection::vec((0u64..1 << 24, 1u64..1 << 26), 1..60),
            columns in 1usize..100,
        ) {
            let mut at_ns = 1_000_000_000;
            let requests: Vec<(u64, u64)> = steps
                .iter()
                .map(|(step_ns, length_ns)| {
                    at_ns += step_ns;
                    (at_ns, at_ns + length_ns)
                })
                .collect();
            let queue = queue(&requests);
            let all_ns: u64 = requests.iter().map(|(from, to)| to - from).sum();
            let Columns { depths, elapsed_ns, .. } = queue.course(columns);
            prop_assert!(depths[&Op::Write].len() <= columns);
            let parts = &queue.course.parts[&Op::Write];
            prop_assert_eq!(parts.iter().sum::<u64>(), all_ns);
            prop_assert_eq!(elapsed_ns, requests.iter().map(|it| it.1).max().unwrap()
                - requests[0].0);
            let depth = |at: &u64| requests.iter().filter(|it| (it.0..it.1).contains(at)).count();
            let most = requests.iter().map(|(from, _)| depth(from)).max();
            prop_assert_eq!(Some(queue.most), most);
            let mean = queue.mean().unwrap() * queue.busy_share();
            prop_assert!((mean / (all_ns as f64 / elapsed_ns as f64) - 1.0).abs() < 1e-9);
        }
    }
}
