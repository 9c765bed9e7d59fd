//! Paths of the machine that made a record, taken out of it.
//!
//! Which these are is not guessed: the fields below hold them. But a field's value is also in
//! command lines, errors and reports, so the text of every file is searched for it.

use std::path::Path;

use fsverdict_core::model::Run;
use serde::Deserialize;

/// Paths, and what is written in place of each; the longest first.
#[derive(Debug, Default)]
pub struct Places(Vec<(Vec<u8>, &'static str)>);

const FOLDER: &str = "RUN";
const CACHE: &str = "CACHE";
const HOME: &str = "~";
const PLAN: &str = "PLAN";

/// The fields of a trial's document that are paths in the folder that the run had when it ran.
#[derive(Deserialize)]
struct OfTrial {
    number: u32,
    raw: String,
    series: String,
}

impl Places {
    /// Those that any machine has: the user's home and cache, from the environment.
    pub fn of_user(environment: &dyn Fn(&str) -> Option<String>) -> Places {
        let mut places = Places::default();
        places.add("/root", HOME);
        for home in ["HOME", "SUDO_HOME"].iter().filter_map(|name| environment(name)) {
            places.add(&home, HOME);
        }
        if let Some(cache) = environment("XDG_CACHE_HOME") {
            places.add(&format!("{}/fsverdict", cache.trim_end_matches('/')), CACHE);
        }
        places
    }

    /// Adds the folder that a run is in now.
    pub fn add_folder(&mut self, folder: &Path) {
        self.add(&folder.display().to_string(), FOLDER);
    }

    /// Adds the folder that a run had, by a trial's document.
    pub fn add_trial(&mut self, document: &[u8]) -> serde_json::Result<()> {
        let trial: OfTrial = serde_json::from_slice(document)?;
        for (path, file) in [(trial.raw, "raw"), (trial.series, "series.csv")] {
            let end = format!("/trials/{}/{file}", trial.number);
            path.strip_suffix(&end).into_iter().for_each(|folder| self.add(folder, FOLDER));
        }
        Ok(())
    }

    /// Adds what the run's facts name: the folder that was asked for and the plan's file; and as
    /// `kernel 6.1` is `Linux 6.1.0 #1 SMP (PATH), NVMe disks`, and fetched ones are cached, the
    /// cache of the run's user.
    pub fn add_facts(&mut self, run: &Run) {
        for words in run.command.windows(2).filter(|words| words[0] == "--output") {
            self.add(&words[1], FOLDER);
        }
        let kernels = run.host.iter().filter(|(name, _)| name.starts_with("kernel "));
        let paths = kernels.filter_map(|(_, it)| it[it.find(" (/")? + 2..].rsplit_once(')'));
        for (cache, _) in paths.filter_map(|it| it.0.split_once("/fsverdict/kernels/")) {
            match cache.strip_suffix("/.cache") {
                Some(home) => self.add(home, HOME),
                None => self.add(&format!("{cache}/fsverdict"), CACHE),
            }
        }
        for plan in run.command.iter().filter(|word| word.ends_with(".toml")) {
            // One that lies in a home is named by that.
            if self.taken_out(plan.as_bytes()) == plan.as_bytes() {
                self.add(plan, PLAN);
            }
        }
    }

    /// A path of the whole machine's says nothing of who ran it.
    fn add(&mut self, path: &str, word: &'static str) {
        let path = path.trim_end_matches('/');
        if !path.starts_with('/') || ["/tmp", "/var", "/var/tmp"].contains(&path) {
            return;
        }
        // As it stands in text, in JSON and TOML, and in HTML.
        let quoted = serde_json::Value::from(path).to_string();
        let html = path.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        for spelling in [path, &quoted[1..quoted.len() - 1], &html] {
            if !self.0.iter().any(|(known, _)| known == spelling.as_bytes()) {
                self.0.push((spelling.into(), word));
            }
        }
        self.0.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    }

    /// The text without them.
    pub fn taken_out(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(before) = rest.iter().position(|byte| *byte == b'/') {
            let (text, path) = rest.split_at(before);
            out.extend_from_slice(text);
            let found = self.at(path, out.last().copied());
            let (bytes, word) = found.unwrap_or((1, "/"));
            out.extend_from_slice(word.as_bytes());
            rest = &path[bytes..];
        }
        out.extend_from_slice(rest);
        out
    }

    /// The length of the path that the text begins with, and the word for it.
    fn at(&self, text: &[u8], before: Option<u8>) -> Option<(usize, &'static str)> {
        let is_whole = |path: &[u8]| text.starts_with(path) && is_end(&text[path.len()..]);
        // `/proc/1/root/x` is in nobody's home; `-I/home/me` is.
        let is_part = before.is_some_and(is_of_name);
        let may_be = |path: &[u8]| is_whole(path) && !(is_part && path == b"/root");
        let known = self.0.iter().find(|(path, _)| may_be(path));
        known.map(|(path, word)| (path.len(), *word)).or_else(|| {
            // Other users with a home where homes are.
            let name = text.strip_prefix(b"/home/")?;
            let length = name.iter().take_while(|byte| is_of_name(**byte)).count();
            (length > 0).then_some((b"/home/".len() + length, HOME))
        })
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"_-.".contains(&byte)
}

/// A path ends here: at a slash, a quote, or the full stop of a sentence.
fn is_end(rest: &[u8]) -> bool {
    match rest {
        [b'.', next, ..] => !is_of_name(*next),
        [next, ..] => *next == b'.' || !is_of_name(*next),
        [] => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        let environment = |name: &str| match name {
            "HOME" => Some("/srv/people/a & \"b\"/".to_string()),
            "XDG_CACHE_HOME" => Some("/var/cache/mine".into()),
            _ => None,
        };
        let mut places = Places::of_user(&environment);
        places.add_folder(Path::new("/mnt/new/run 1"));
        let trial = r#"{"number": 7, "raw": "/tmp/old/trials/7/raw", "series": "/x/series.csv"}"#;
        places.add_trial(trial.as_bytes()).unwrap();
        let facts = r#"{"schema": 1, "program_version": "", "name": "",
            "command": ["fsverdict", "run", "/srv/shop.toml", "--output", "/data/first"],
            "started": "", "seed": 1, "place": "vm", "tools": {}, "host": {
                "kernel": "6.1 (/ours)",
                "kernel 6.1": "Linux 6.1.0 (/tmp/guest/.cache/fsverdict/kernels/6.1.0/vmlinuz)",
                "kernel 6.12": "Linux 6.12.0 (#1) (/scratch/fsverdict/kernels/6.12.0/vmlinuz), IDE",
                "kernel own": "Linux 7 (/boot/vmlinuz)"}}"#;
        places.add_facts(&serde_json::from_str(facts).unwrap());
        places
    }

    #[test]
    fn paths_of_a_machine_are_taken_out_and_others_stay() {
        let places = places();
        for (text, expected) in [
            ("/tmp/old/trials/7/raw", "RUN/trials/7/raw"),
            ("\"/mnt/new/run 1\"", "\"RUN\""),
            ("/tmp/old: full", "RUN: full"),
            ("--output /data/first", "--output RUN"),
            ("run /srv/shop.toml, /srv/x", "run PLAN, /srv/x"),
            ("/tmp/older /tmp/old-1 /tmp/old.img", "/tmp/older /tmp/old-1 /tmp/old.img"),
            ("it is in /tmp/old.", "it is in RUN."),
            ("/tmp/guest/.cache/fsverdict/kernels", "~/.cache/fsverdict/kernels"),
            ("/scratch/fsverdict/kernels/6", "CACHE/kernels/6"),
            ("/scratch/other", "/scratch/other"),
            ("/var/cache/mine/fsverdict/kvm", "CACHE/kvm"),
            ("/srv/people/a & \"b\"/x", "~/x"),
            (r#""/srv/people/a & \"b\"/x""#, "\"~/x\""),
            ("/srv/people/a &amp; \"b\"", "~"),
            ("--tree=/root/t,/rooted /proc/1/root/t", "--tree=~/t,/rooted /proc/1/root/t"),
            ("-I/home/anna/inc /home/\u{f6}mer. /home/ x", "-I~/inc ~ /home/ x"),
            (
                "/dev/vda /run/fsverdict/mnt /boot/vmlinuz",
                "/dev/vda /run/fsverdict/mnt /boot/vmlinuz",
            ),
        ] {
            let out = places.taken_out(text.as_bytes());
            assert_eq!(String::from_utf8_lossy(&out), expected, "{text}");
            assert_eq!(places.taken_out(&out), out, "{text}");
        }
    }

    #[test]
    fn what_every_machine_has_is_no_place() {
        let mut places = Places::default();
        for path in ["/", "", "relative/x", "/tmp", "/var/tmp/"] {
            places.add(path, HOME);
        }
        assert!(places.0.is_empty(), "{places:?}");
    }
}
