//! The lines of `strace -f -y -ttt -T -o`: calls, put together where another thread's line came
//! between their begin and their end, and ends of threads.
//!
//! A line is `THREAD TIME NAME(ARGUMENTS) = RESULT <DURATION>` (strace(1)). Descriptors carry their
//! path, `3</srv/file>`, in which strace writes `<` and `>` as octal numbers.

use std::collections::HashMap;

/// What a call came back with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Returned<'a> {
    /// Success: a number, and of a new descriptor its path.
    Value(i64, Option<String>),
    /// The name of the error.
    Error(&'a str),
    /// It did not come back, or was interrupted and is begun again.
    Nothing,
}

/// A call that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its arguments as strace writes them.
    pub arguments: Vec<&'a str>,
    /// What it came back with.
    pub returned: Returned<'a>,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// What a line tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A call has begun, and lines of others come before its end.
    Begun,
    /// A call has ended: its text is whole, and begins at that time.
    Ended(String, u64),
    /// The thread is gone.
    Gone,
    /// The thread is gone, and this one goes on with its number.
    Superseded(u32),
    /// Nothing of interest: a signal.
    Nothing,
}

/// Puts lines together.
#[derive(Debug, Default)]
pub struct Lines {
    /// The beginnings of calls that have not ended, by thread, with their times.
    begun: HashMap<u32, (u64, String)>,
}

const UNFINISHED: &str = "<unfinished ...>";

/// The same of an execve by a thread that is not the first: `<pid changed to 7 ...>`.
const PID_CHANGED: &str = "<pid changed to ";

impl Lines {
    /// What the line tells, and of which thread; `None` if it is no line of strace.
    pub fn read(&mut self, line: &str) -> Option<(u32, u64, Event)> {
        let (thread, rest) = line.split_once(' ')?;
        let (time, text) = rest.trim_start().split_once(' ')?;
        let (thread, at_ns) = (thread.parse().ok()?, nanoseconds(time)?);
        let event = self.event(thread, at_ns, text.trim());
        Some((thread, at_ns, event))
    }

    fn event(&mut self, thread: u32, at_ns: u64, text: &str) -> Event {
        if text.starts_with("+++ exited") || text.starts_with("+++ killed") {
            self.begun.remove(&thread);
            return Event::Gone;
        }
        if let Some(rest) = text.strip_prefix("+++ superseded by execve in pid ") {
            let other = rest.split(' ').next().and_then(|other| other.parse().ok());
            let Some(other) = other else { return Event::Nothing };
            // Its execve ends with that number.
            if let Some(begun) = self.begun.remove(&other) {
                self.begun.insert(thread, begun);
            }
            return Event::Superseded(other);
        }
        if text.starts_with("+++") || text.starts_with("---") {
            return Event::Nothing;
        }
        let renamed = text.rsplit_once(PID_CHANGED).map(|(begin, _)| begin);
        let renamed = renamed.filter(|_| text.ends_with("...>"));
        if let Some(begin) = text.strip_suffix(UNFINISHED).or(renamed) {
            self.begun.insert(thread, (at_ns, begin.into()));
            return Event::Begun;
        }
        if let Some(resumed) = text.strip_prefix("<... ") {
            // `<... read resumed>"", 5) = 5`; a call that had begun before we looked has no begin.
            let rest = resumed.split_once(" resumed>").map(|(_, rest)| rest);
            return match (self.begun.remove(&thread), rest) {
                (Some((start_ns, begin)), Some(rest)) => Event::Ended(begin + rest, start_ns),
                _ => Event::Nothing,
            };
        }
        Event::Ended(text.into(), at_ns)
    }
}

/// Calls of programs of 32 bits, with those whose arguments strace writes alike: it puts the halves
/// of places and lengths together, and gives mmap2's place in bytes.
const OF_32_BITS: [(&str, &str); 13] = [
    ("fcntl64", "fcntl"),
    ("stat64", "stat"),
    ("lstat64", "lstat"),
    ("fstat64", "fstat"),
    ("fstatat64", "newfstatat"),
    ("truncate64", "truncate"),
    ("ftruncate64", "ftruncate"),
    ("utimensat_time64", "utimensat"),
    ("fadvise64_64", "fadvise64"),
    ("mmap2", "mmap"),
    ("chown32", "chown"),
    ("lchown32", "lchown"),
    ("fchown32", "fchown"),
];

/// When a line was written.
pub fn time_ns(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once(' ')?;
    nanoseconds(rest.trim_start().split(' ').next()?)
}

/// Reads the text of a call that began at `start_ns`; `None` where it can't be understood.
pub fn call(text: &str, start_ns: u64) -> Option<Ended<'_>> {
    let (name, rest) = text.split_once('(')?;
    let of_32_bits = OF_32_BITS.iter().find(|(known, _)| *known == name);
    let name = of_32_bits.map_or(name, |(_, same)| same);
    let (arguments, rest) = split(rest)?;
    let rest = rest.trim_start().strip_prefix('=')?.trim();
    let (rest, took_ns) = match rest.rsplit_once(" <") {
        Some((begin, took)) => (begin, took.strip_suffix('>').and_then(nanoseconds)),
        None => (rest, None),
    };
    let returned = returned(rest.trim())?;
    let end_ns = start_ns + took_ns.unwrap_or(0);
    Some(Ended { name, arguments, returned, start_ns, end_ns })
}

/// `1700000000.123456789`, with as many digits as there are.
fn nanoseconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    let digits = part.len();
    let part: u64 = part.parse().ok()?;
    let part_ns = part * 10_u64.checked_pow(9_u32.checked_sub(digits as u32)?)?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part_ns)
}

/// What stands between the brackets of an array or a structure, each for itself.
pub fn elements(text: &str) -> Option<Vec<&str>> {
    let inner = text.strip_prefix(['[', '{'])?;
    split(inner).map(|(elements, _)| elements)
}

/// The arguments, and what follows the bracket that closes them.
fn split(text: &str) -> Option<(Vec<&str>, &str)> {
    let bytes = text.as_bytes();
    let (mut arguments, mut begin, mut depth, mut at) = (Vec::new(), 0, 0_u32, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_quoted(bytes, at)?,
            b'/' if bytes[at..].starts_with(b"/*") => at += text[at..].find("*/")? + 1,
            b'<' if is_path(bytes, at) => at += text[at..].find('>')?,
            b')' | b']' | b'}' if depth == 0 => {
                let last = text[begin..at].trim();
                arguments.extend((!last.is_empty() || !arguments.is_empty()).then_some(last));
                return Some((arguments, &text[at + 1..]));
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                arguments.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The place of the quote that ends what the one at `at` begins.
fn end_of_quoted(bytes: &[u8], at: usize) -> Option<usize> {
    let mut end = at + 1;
    loop {
        match bytes.get(end)? {
            b'"' => return Some(end),
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
}

/// A path follows a descriptor; `1<<20` is a number.
fn is_path(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map_or(b' ', |before| bytes[before]);
    (before.is_ascii_digit() || before == b'D') && bytes.get(at + 1) != Some(&b'<')
}

fn returned(text: &str) -> Option<Returned<'_>> {
    if text.starts_with('?') {
        return Some(Returned::Nothing);
    }
    if let Some(error) = text.strip_prefix("-1 ") {
        return error.split_whitespace().next().map(Returned::Error);
    }
    let word = text.split([' ', '<']).next()?;
    let value = number(word)?;
    Some(Returned::Value(value.cast_signed(), descriptor(text).and_then(|(_, path)| path)))
}

/// A number as strace writes it: decimal, octal, hexadecimal, or negative.
pub fn number(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    if let Some(digits) = text.strip_prefix('0').filter(|digits| !digits.is_empty()) {
        return u64::from_str_radix(digits, 8).ok();
    }
    text.parse().ok().or_else(|| text.parse::<i64>().ok().map(i64::cast_unsigned))
}

/// A descriptor with the path that it leads to: `3</srv/file>`, `AT_FDCWD</srv>` (which is -100),
/// `5<socket:[9]>` (which has none).
pub fn descriptor(text: &str) -> Option<(i32, Option<String>)> {
    let (digits, path) = match text.split_once('<') {
        Some((digits, rest)) => (digits, rest.split_once('>').map(|(path, _)| path)),
        None => (text, None),
    };
    let number = match digits {
        "AT_FDCWD" => -100,
        digits => digits.split_whitespace().next()?.parse().ok()?,
    };
    let path = path.filter(|path| path.starts_with('/')).map(unescaped);
    Some((number, path))
}

/// What stands between the quotes of an argument; `None` of an address or NULL.
pub fn quoted(text: &str) -> Option<String> {
    let rest = text.strip_prefix('"')?;
    let end = end_of_quoted(text.as_bytes(), 0)?;
    Some(unescaped(&rest[..end - 1]))
}

/// The bytes between the quotes of an argument; `None` where there are none, or not all of them.
pub fn quoted_bytes(text: &str) -> Option<Vec<u8>> {
    let rest = text.strip_prefix('"')?;
    let end = end_of_quoted(text.as_bytes(), 0)?;
    (end + 1 == text.len()).then(|| plain_bytes(&rest[..end - 1]))
}

/// The text that strace has escaped as C does.
fn unescaped(text: &str) -> String {
    text_of(plain_bytes(text))
}

fn plain_bytes(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let (mut plain, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let escape = (bytes[at] == b'\\').then(|| bytes.get(at + 1)).flatten();
        let Some(&escape) = escape else {
            plain.push(bytes[at]);
            at += 1;
            continue;
        };
        let (begin, most, radix) = match escape {
            b'x' => (at + 2, 2, 16),
            b'0'..=b'7' => (at + 1, 3, 8),
            _ => (at + 1, 0, 10),
        };
        let digits = bytes[begin..].iter().take(most);
        let digits = digits.take_while(|&&digit| (digit as char).is_digit(radix)).count();
        match u32::from_str_radix(&text[begin..begin + digits], radix) {
            Ok(value) => plain.push(value as u8),
            Err(_) => plain.push(match escape {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'v' => 11,
                b'f' => 12,
                other => other,
            }),
        }
        at = begin + digits.max(usize::from(most == 0));
    }
    plain
}

/// A name of a file as text: where it is not UTF-8, each byte is taken for a letter of Latin-1.
pub fn text_of(name: Vec<u8>) -> String {
    String::from_utf8(name)
        .unwrap_or_else(|error| error.as_bytes().iter().map(|&byte| byte as char).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(text: &str) -> Ended<'_> {
        call(text, 0).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn a_call_is_its_arguments_and_what_it_came_back_with() {
        let text = concat!(
            r#"openat(AT_FDCWD</srv/a, b>, "c (\"d\"), \303\244\n", O_RDWR|O_CREAT, 0600)"#,
            " = 5</srv/a, b/c> <0.000123>"
        );
        let read = call(text, 7).unwrap();
        assert_eq!((read.name, read.arguments.len()), ("openat", 4));
        assert_eq!(descriptor(read.arguments[0]), Some((-100, Some("/srv/a, b".into()))));
        assert_eq!(quoted(read.arguments[1]).unwrap(), "c (\"d\"), ä\n");
        assert_eq!(number(read.arguments[3]), Some(0o600));
        assert_eq!(read.returned, Returned::Value(5, Some("/srv/a, b/c".into())));
        assert_eq!((read.start_ns, read.end_ns), (7, 123_007));
    }

    #[test]
    fn calls_of_32_bits_are_called_as_others_are() {
        for (text, name) in [
            ("fstatat64(AT_FDCWD</a>, \"b\", {st_size=1}, 0) = 0", "newfstatat"),
            ("mmap2(NULL, 4096, PROT_READ, MAP_SHARED, 3</a>, 0x1000) = 0xf7000000", "mmap"),
            ("_llseek(3</a>, 70, [70], SEEK_SET) = 0", "_llseek"),
        ] {
            assert_eq!(ended(text).name, name);
        }
    }

    #[test]
    fn errors_interruptions_and_calls_that_never_end() {
        let error = "stat(\"x\", 0x7ffc) = -1 ENOENT (No such file or directory) <0.000011>";
        assert_eq!(ended(error).returned, Returned::Error("ENOENT"));
        let again = "fsync(3</a>) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.1>";
        assert_eq!(ended(again).returned, Returned::Nothing);
        assert_eq!(ended("exit_group(0) = ?").returned, Returned::Nothing);
        assert_eq!(ended("sync()                  = 0 <0.5>").arguments, [""; 0]);
        assert_eq!(call("write(1</a>, \"a", 0), None, "cut off");
        assert_eq!(call("fsync(3</a>) = ", 0), None);
        assert_eq!(call("", 0), None);
    }

    #[test]
    fn brackets_comments_shifts_and_sockets_are_no_arguments_of_their_own() {
        for (text, count) in [
            ("mmap(NULL, 2097152, PROT_READ, MAP_HUGETLB|21<<MAP_HUGE_SHIFT, -1, 0) = 0x7f0", 6),
            ("getdents64(3</a>, 0x55d /* 5 entries, or so */, 32768) = 144 <0.1>", 3),
            ("writev(3</a>, [{iov_base=\"a)\", iov_len=2}, {iov_len=9}], 2) = 11", 3),
            ("fstat(3</a/\\74b\\76,c>, {st_mode=S_IFREG|0644, st_size=5, ...}) = 0 <0.1>", 2),
            ("dup2(4<socket:[17]>, 1</b>) = 1</b> <0.1>", 2),
        ] {
            assert_eq!(ended(text).arguments.len(), count, "{text}");
        }
        let path = descriptor("3</a/\\74b\\76,c>(deleted)");
        assert_eq!(path, Some((3, Some("/a/<b>,c".into()))));
        assert_eq!(descriptor("4<socket:[17]>"), Some((4, None)));
        assert_eq!(descriptor("NULL"), None);
    }

    #[test]
    fn names_are_escaped_as_in_c() {
        for (text, plain) in [
            (r#""tab\tquote\"back\\slash""#, "tab\tquote\"back\\slash"),
            (r#""\1771\0""#, "\u{7f}1\0"),
            (r#""\x41\x42c""#, "ABc"),
            (r#""cut"..."#, "cut"),
            (r#""\377a""#, "ÿa"),
        ] {
            assert_eq!(quoted(text).as_deref(), Some(plain), "{text}");
        }
        assert_eq!(quoted("NULL"), None);
        assert_eq!(quoted("0x7ffd"), None);
    }

    #[test]
    fn a_call_whose_end_comes_later_is_put_together() {
        let mut lines = Lines::default();
        let mut read = |line: &str| lines.read(line).unwrap();
        let begin = "12    5.000000001 read(3</a>,  <unfinished ...>";
        assert_eq!(read(begin), (12, 5_000_000_001, Event::Begun));
        let other = read("13 5.1 --- SIGCHLD {si_signo=SIGCHLD} ---");
        assert_eq!(other, (13, 5_100_000_000, Event::Nothing));
        let (12, _, Event::Ended(text, start_ns)) =
            read("12 5.2 <... read resumed>\"x\"..., 4096) = 4096 <0.2>")
        else {
            panic!("it has ended")
        };
        let read_call = call(&text, start_ns).unwrap();
        assert_eq!(read_call.arguments, ["3</a>", "\"x\"...", "4096"]);
        assert_eq!((read_call.start_ns, read_call.end_ns), (5_000_000_001, 5_200_000_001));
        let lost = read("14 5.3 <... read resumed>\"x\"..., 4096) = 4096 <0.2>");
        assert_eq!(lost.2, Event::Nothing);
        assert_eq!(read("12 5.4 +++ exited with 0 +++").2, Event::Gone);
        assert_eq!(read("13 5.4 +++ killed by SIGKILL (core dumped) +++").2, Event::Gone);
        for begins in ["<unfinished ...>", "<pid changed to 13 ...>"] {
            assert_eq!(read(&format!("15 5.4 execve(\"/a\", [\"a\"] {begins}")).2, Event::Begun);
            let superseded = read("13 5.5 +++ superseded by execve in pid 15 +++");
            assert_eq!(superseded.2, Event::Superseded(15));
            let ended = read("13 5.6 <... execve resumed>) = 0 <0.2>").2;
            let text = "execve(\"/a\", [\"a\"] ) = 0 <0.2>";
            assert_eq!(ended, Event::Ended(text.into(), 5_400_000_000));
        }
        assert_eq!(lines.read("strace: something else"), None);
    }
}
