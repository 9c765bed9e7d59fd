//! What a machine says on its console, and what went wrong with it by that.

/// So much of a console tells what went wrong.
const LINES_KEPT: usize = 6;

/// As much of it is held in memory.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// What a guest said on its console, and how it ended.
#[derive(Debug, Default)]
pub struct Console {
    /// The end of it.
    text: String,
    /// How much of it has been shown.
    told: usize,
    /// Bytes of all of it.
    bytes: u64,
}

impl Console {
    /// Something was heard of it.
    pub fn has_words(&self) -> bool {
        self.bytes > 0
    }

    /// Bytes of all that it said.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes in what was said; gives the lines that are whole now.
    pub fn hear(&mut self, piece: &[u8]) -> Vec<String> {
        self.bytes += piece.len() as u64;
        self.text += &String::from_utf8_lossy(piece);
        let mut lines = Vec::new();
        while let Some(length) = self.text[self.told..].find('\n') {
            lines.push(self.text[self.told..self.told + length].trim().to_string());
            self.told += length + 1;
        }
        if self.text.len() > TEXT_BYTES_MAX {
            let mut end = self.text.len() - TEXT_BYTES_MAX / 2;
            while !self.text.is_char_boundary(end) {
                end += 1;
            }
            self.text.drain(..end);
            self.told = self.told.saturating_sub(end);
        }
        lines
    }

    fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines().map(str::trim).filter(|line| !line.is_empty())
    }

    /// The line by which the kernel panicked, if it did.
    pub fn panic(&self) -> Option<String> {
        self.lines().find(|line| is_panic(line)).map(String::from)
    }

    /// What went wrong, as its last lines tell it: those before a panic, or before the end. A
    /// panic's registers stay in the log.
    pub fn end(&self) -> String {
        let mut lines: Vec<&str> = self.lines().collect();
        let panic = lines.iter().position(|line| is_panic(line));
        let what = match panic {
            Some(at) => {
                lines.truncate(at + 1);
                "the kernel panicked"
            }
            None => "its console ends",
        };
        match lines.split_at(lines.len().saturating_sub(LINES_KEPT)).1 {
            [] => "its console is empty".into(),
            last => format!("{what}: {}", last.join(" | ")),
        }
    }
}

/// What went wrong with a machine that has said this, as [`Console::end`] tells it.
pub fn end_of(said: &str) -> String {
    Console { text: said.into(), ..Console::default() }.end()
}

fn is_panic(line: &str) -> bool {
    line.contains("Kernel panic - ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_guest_that_never_stops_talking_little_is_kept() {
        let mut console = Console::default();
        for piece in 0..3000 {
            let lines = console.hear(format!("{piece}{}ä\n", "x".repeat(1000)).as_bytes());
            assert_eq!(lines.len(), 1, "{piece}");
        }
        assert!(console.text.len() <= TEXT_BYTES_MAX && console.bytes > 3_000_000);
    }

    #[test]
    fn the_end_of_a_console_names_the_panic() {
        let text = |lines: &[&str]| Console { text: lines.join("\r\n"), ..Console::default() };
        let lines = ["[ 1.0] one", "", "[ 1.1] Kernel panic - not syncing: VFS", "RAX: 0", "end"];
        assert_eq!(
            text(&lines).end(),
            "the kernel panicked: [ 1.0] one | [ 1.1] Kernel panic - not syncing: VFS"
        );
        let many = ["a", "b", "c", "d", "e", "f", "g"];
        assert_eq!(text(&many).end(), "its console ends: b | c | d | e | f | g");
        assert_eq!(Console::default().end(), "its console is empty");
        assert_eq!(text(&lines).panic().unwrap(), "[ 1.1] Kernel panic - not syncing: VFS");
        assert_eq!(text(&many).panic(), None);
    }
}
