//! Processes and threads as a trace shows them: their parents, their descriptors, their working
//! directories, and which thread of the replay does their calls.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

use super::line::{self, Event, Lines, Returned};
use super::memory::{Memory, Pieces};
use super::order::{Need, Order};
use super::{Handle, Mapping};

/// A descriptor of an open file in a watched folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    pub handle: u32,
    pub closes_on_exec: bool,
}

type Descriptors = HashMap<i32, Descriptor>;

/// Calls that must be done before, by their lane: the last of each.
type Needs = BTreeMap<u32, Need>;

fn add(needs: &mut Needs, need: Need) {
    let known = needs.entry(need.lane).or_insert(need);
    known.calls = known.calls.max(need.calls);
    known.end_ns = known.end_ns.max(need.end_ns);
}

/// A thread.
#[derive(Debug)]
struct Task {
    table: Rc<RefCell<Descriptors>>,
    memory: Rc<RefCell<Memory>>,
    folder: Rc<RefCell<String>>,
    umask: Rc<Cell<u32>>,
    lane: Option<u32>,
    /// What must be done before its next call: those of its parent before it was started, those
    /// of children that it has waited for.
    needs: Needs,
}

/// How a thread was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Birth {
    parent: u32,
    shares_table: bool,
    shares_memory: bool,
    shares_folder: bool,
}

/// The parents of processes; numbers of threads may be reused.
#[derive(Debug, Default)]
pub struct Births {
    lines: Lines,
    coming: HashMap<u32, VecDeque<Birth>>,
}

impl Births {
    /// Looks at a line that will be read later.
    pub fn foresee(&mut self, line: &str) {
        let Some((parent, _, Event::Ended(text, start_ns))) = self.lines.read(line) else { return };
        if !["clone", "fork", "vfork"].iter().any(|name| text.starts_with(name)) {
            return;
        }
        let Some(call) = line::call(&text, start_ns) else { return };
        let Returned::Value(child @ 1.., _) = call.returned else { return };
        let shares = |flag: &str| call.arguments.iter().any(|it| it.contains(flag));
        let birth = Birth {
            parent,
            shares_table: shares("CLONE_FILES"),
            shares_memory: shares("CLONE_VM") || call.name == "vfork",
            shares_folder: shares("CLONE_FS"),
        };
        self.coming.entry(child as u32).or_default().push_back(birth);
    }

    /// A thread of that number will be started.
    fn is_coming(&self, thread: u32) -> bool {
        self.coming.get(&thread).is_some_and(|births| !births.is_empty())
    }
}

/// What a child that is no thread gets a second of: its parent's open files and mappings.
#[derive(Debug)]
pub struct Open<'a> {
    pub handles: &'a mut [Handle],
    pub mappings: &'a mut [Mapping],
}

/// All threads there are.
#[derive(Debug)]
pub struct Processes {
    first_folder: String,
    first_umask: u32,
    tasks: HashMap<u32, Task>,
    /// What those did that are gone and have not been waited for.
    gone: HashMap<u32, Needs>,
    /// How often a thread of that number was met, and how often its start was read.
    met: HashMap<u32, u64>,
    started: HashMap<u32, u64>,
}

impl Processes {
    /// None yet; the first one begins in `folder`, with that umask.
    pub fn new(folder: &str, umask: u32) -> Processes {
        Processes {
            first_folder: folder.into(),
            first_umask: umask,
            tasks: HashMap::new(),
            gone: HashMap::new(),
            met: HashMap::new(),
            started: HashMap::new(),
        }
    }

    /// Sees to it that the thread is known: one that is not yet was started by another.
    pub fn meet(&mut self, thread: u32, births: &mut Births, open: &mut Open<'_>, order: &Order) {
        if self.tasks.contains_key(&thread) {
            return;
        }
        *self.met.entry(thread).or_default() += 1;
        let birth = births.coming.get_mut(&thread).and_then(VecDeque::pop_front);
        let of = birth.and_then(|birth| Some((birth, self.tasks.get(&birth.parent)?)));
        let task = match of {
            Some((birth, parent)) => parent.child(birth, open, order),
            None => Task {
                table: Rc::default(),
                memory: Rc::default(),
                folder: Rc::new(RefCell::new(self.first_folder.clone())),
                umask: Rc::new(Cell::new(self.first_umask)),
                lane: None,
                needs: Needs::new(),
            },
        };
        self.tasks.insert(thread, task);
    }

    /// The call that has started `child` has come back: the child is met now, unless it was before.
    pub fn started(&mut self, child: u32, births: &mut Births, open: &mut Open<'_>, order: &Order) {
        let started = self.started.entry(child).or_default();
        *started += 1;
        if self.met.get(&child).copied().unwrap_or(0) < *started {
            self.meet(child, births, open, order);
        }
    }

    /// The lane of the replay that does the thread's calls; the next one began at `start_ns`.
    pub fn lane(&mut self, thread: u32, start_ns: u64, order: &mut Order) -> u32 {
        let lane = &mut self.of(thread).lane;
        *lane.get_or_insert_with(|| order.take(start_ns))
    }

    /// What the thread's next call needs, once.
    pub fn take_needs(&mut self, thread: u32) -> Vec<Need> {
        std::mem::take(&mut self.of(thread).needs).into_values().collect()
    }

    /// The thread has waited for the end of `child`.
    pub fn waited(&mut self, thread: u32, child: u32) {
        if let Some(needs) = self.gone.remove(&child) {
            let own = &mut self.of(thread).needs;
            needs.into_values().for_each(|need| add(own, need));
        }
    }

    /// The thread is gone.
    pub fn end(&mut self, thread: u32, order: &mut Order) {
        let Some(task) = self.tasks.remove(&thread) else { return };
        self.gone.insert(thread, task.done(order));
        if let Some(lane) = task.lane {
            order.release(lane);
        }
    }

    /// The thread `other` goes on as `thread`, which is gone: it has called execve(2), which leaves
    /// a process a single thread, with the process's number.
    pub fn supersede(&mut self, thread: u32, other: u32) {
        let Some(mut task) = self.tasks.remove(&other) else { return };
        let before = self.gone.remove(&thread).unwrap_or_default();
        before.into_values().for_each(|need| add(&mut task.needs, need));
        self.tasks.insert(thread, task);
    }

    /// If this is the last thread of its process: the open files of that, which are closed now.
    pub fn open_files_of_last(&mut self, thread: u32) -> Vec<u32> {
        let Some(task) = self.tasks.get(&thread) else { return Vec::new() };
        if Rc::strong_count(&task.table) > 1 {
            return Vec::new();
        }
        sorted(task.table.borrow_mut().drain().map(|(_, it)| it.handle))
    }

    /// The thread is known, or its start will be read.
    pub fn knows(&self, thread: u32, births: &Births) -> bool {
        self.tasks.contains_key(&thread) || births.is_coming(thread)
    }

    /// What is mapped at an address of the thread: the mapping, and the place in it.
    pub fn mapped(&self, thread: u32, address: u64) -> Option<(u32, u64)> {
        self.tasks.get(&thread)?.memory.borrow().at(address)
    }

    /// Does something to the addresses of the thread's process.
    pub fn with_memory<T>(&mut self, thread: u32, change: impl FnOnce(&mut Memory) -> T) -> T {
        change(&mut self.of(thread).memory.borrow_mut())
    }

    /// The thread starts again without its memory: what goes with that, if no other thread has it.
    pub fn leave_memory(&mut self, thread: u32) -> Pieces {
        let Some(task) = self.tasks.get_mut(&thread) else { return Pieces::default() };
        let left = Rc::try_unwrap(std::mem::take(&mut task.memory));
        let pieces = left.map(|memory| memory.into_inner().all()).unwrap_or_default();
        pieces.into_iter().map(|(map, pieces)| (map, -pieces)).collect()
    }

    /// The working directory.
    pub fn folder(&self, thread: u32) -> String {
        self.tasks.get(&thread).map(|task| task.folder.borrow().clone()).unwrap_or_default()
    }

    /// Another working directory.
    pub fn change_folder(&mut self, thread: u32, folder: String) {
        self.of(thread).folder.replace(folder);
    }

    /// What a mode that the thread gives to something new becomes.
    pub fn masked(&self, thread: u32, mode: u32) -> u32 {
        self.tasks.get(&thread).map_or(mode, |task| mode & !task.umask.get())
    }

    /// Another umask.
    pub fn change_umask(&mut self, thread: u32, umask: u32) {
        self.of(thread).umask.set(umask & 0o777);
    }

    /// The descriptor, if it is of an open file in a watched folder.
    pub fn descriptor(&self, thread: u32, number: i32) -> Option<Descriptor> {
        self.tasks.get(&thread)?.table.borrow().get(&number).copied()
    }

    /// Enters a descriptor; the open file that the number was of before, if there was one.
    pub fn open(&mut self, thread: u32, number: i32, it: Descriptor) -> Option<u32> {
        self.of(thread).table.borrow_mut().insert(number, it).map(|before| before.handle)
    }

    /// Takes out the descriptors that `which` holds for; the open files they were of.
    pub fn close(&mut self, thread: u32, which: impl Fn(i32, Descriptor) -> bool) -> Vec<u32> {
        let mut table = self.of(thread).table.borrow_mut();
        let gone = table.extract_if(|number, it| which(*number, *it));
        sorted(gone.map(|(_, it)| it.handle))
    }

    /// The descriptors that `which` holds for are closed by exec, or not.
    pub fn close_on_exec(&mut self, thread: u32, which: impl Fn(i32) -> bool, closes: bool) {
        let mut table = self.of(thread).table.borrow_mut();
        for (_, it) in table.iter_mut().filter(|(number, _)| which(**number)) {
            it.closes_on_exec = closes;
        }
    }

    fn of(&mut self, thread: u32) -> &mut Task {
        self.tasks.get_mut(&thread).expect("a thread is met before its calls are read")
    }
}

impl Task {
    fn child(&self, birth: Birth, open: &mut Open<'_>, order: &Order) -> Task {
        let table = if birth.shares_table {
            Rc::clone(&self.table)
        } else {
            let table = self.table.borrow().clone();
            for descriptor in table.values() {
                open.handles[descriptor.handle as usize].descriptors += 1;
            }
            Rc::new(RefCell::new(table))
        };
        let memory = if birth.shares_memory {
            Rc::clone(&self.memory)
        } else {
            let memory = self.memory.borrow().clone();
            for (map, pieces) in memory.all() {
                open.mappings[map as usize].pieces += pieces;
            }
            Rc::new(RefCell::new(memory))
        };
        // Both are in what CLONE_FS shares.
        let (folder, umask) = match birth.shares_folder {
            true => (Rc::clone(&self.folder), Rc::clone(&self.umask)),
            false => {
                let folder = RefCell::new(self.folder.borrow().clone());
                (Rc::new(folder), Rc::new(Cell::new(self.umask.get())))
            }
        };
        Task { table, memory, folder, umask, lane: None, needs: self.done(order) }
    }

    /// All that it has done, and what it still has to wait for before it does more.
    fn done(&self, order: &Order) -> Needs {
        let mut done = self.needs.clone();
        self.lane.into_iter().for_each(|lane| add(&mut done, order.all_of(lane)));
        done
    }
}

/// The same trace gives the same recording.
fn sorted(handles: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut handles: Vec<u32> = handles.collect();
    handles.sort_unstable();
    handles
}
