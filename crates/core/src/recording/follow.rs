//! System calls that change processes: those that start and end them, that change their working
//! directories, and that make and close descriptors.

use super::Watch;
use super::line::{Ended, Returned, descriptor, number, quoted};
use super::processes::{Descriptor, Open};

impl Watch {
    /// Calls by which processes change: whether this was one of them.
    pub(super) fn follow(&mut self, thread: u32, call: &Ended) -> bool {
        let times_ns = call.times_ns();
        let value = match call.returned {
            Returned::Value(value, _) => value,
            _ => -1,
        };
        match call.name {
            "clone" | "clone3" | "fork" | "vfork" => {
                if value > 0 {
                    let Watch { processes, births, handles, mappings, order, .. } = self;
                    processes.started(value as u32, births, &mut Open { handles, mappings }, order);
                }
            }
            "wait4" | "waitpid" if value > 0 => self.processes.waited(thread, value as u32),
            "waitid" => {
                let child = call.argument(2).split("si_pid=").nth(1);
                let child = child.and_then(|rest| rest.split([',', '}']).next()?.parse().ok());
                child.into_iter().for_each(|child| self.processes.waited(thread, child));
            }
            "execve" | "execveat" if value == 0 => {
                let closed = self.processes.close(thread, |_, it| it.closes_on_exec);
                self.close(thread, times_ns, closed);
                let gone = self.processes.leave_memory(thread);
                self.let_go(thread, times_ns, gone);
            }
            "chdir" if value == 0 => {
                let to = quoted(call.argument(0)).unwrap_or_default();
                let to = self.absolute(thread, &to);
                // Where its links lead later, the thread stays.
                let real = self.space.real_directory(&to);
                self.processes.change_folder(thread, real.unwrap_or(to));
            }
            "fchdir" if value == 0 => {
                let of = descriptor(call.argument(0));
                let to = of.and_then(|(fd, path)| path.or_else(|| self.long_path(thread, fd)));
                if let Some(path) = to {
                    self.processes.change_folder(thread, path);
                }
            }
            "umask" => {
                let umask = number(call.argument(0)).unwrap_or_default();
                self.processes.change_umask(thread, umask as u32);
            }
            "fcntl" if call.argument(1) == "F_SETFL" => return false,
            "dup" | "dup2" | "dup3" | "fcntl" | "close_range" if value >= 0 => {
                self.descriptors(thread, call, value as i32);
            }
            "wait4" | "waitpid" | "execve" | "execveat" | "chdir" | "fchdir" | "dup" | "dup2"
            | "dup3" | "fcntl" | "close_range" => {}
            _ => return false,
        }
        true
    }

    /// Calls that made or took away descriptors, and gave `value`.
    fn descriptors(&mut self, thread: u32, call: &Ended, value: i32) {
        let times_ns = call.times_ns();
        let at = |place: usize| descriptor(call.argument(place)).map_or(-1, |(number, _)| number);
        let command = call.argument(1);
        let closed = match call.name {
            "close_range" => {
                let most = |place| number(call.argument(place)).unwrap_or(u64::MAX);
                let range = most(0)..=most(1);
                let within = |it: i32| u64::try_from(it).is_ok_and(|it| range.contains(&it));
                if call.argument(2).contains("CLOEXEC") {
                    self.processes.close_on_exec(thread, within, true);
                    return;
                }
                self.processes.close(thread, |it, _| within(it))
            }
            "fcntl" if command.starts_with("F_DUPFD") => {
                self.duplicate(thread, at(0), value, command == "F_DUPFD_CLOEXEC")
            }
            "fcntl" if command == "F_SETFD" => {
                let of = at(0);
                self.processes.close_on_exec(thread, |it| it == of, call.has(2, "FD_CLOEXEC"));
                return;
            }
            "fcntl" => return,
            _ if at(0) == value => return,
            _ => self.duplicate(thread, at(0), value, call.has(2, "O_CLOEXEC")),
        };
        self.close(thread, times_ns, closed);
    }

    /// `to` becomes a descriptor of the same open file as `from`; the one it was of before.
    fn duplicate(&mut self, thread: u32, from: i32, to: i32, closes_on_exec: bool) -> Vec<u32> {
        match self.processes.descriptor(thread, from) {
            Some(Descriptor { handle, .. }) => {
                self.handles[handle as usize].descriptors += 1;
                let it = Descriptor { handle, closes_on_exec };
                self.processes.open(thread, to, it).into_iter().collect()
            }
            None => self.processes.close(thread, |number, _| number == to),
        }
    }
}
