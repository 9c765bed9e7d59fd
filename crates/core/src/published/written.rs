//! A table written down in TOML, from an article or a report. FORMAT.md describes it.
//!
//! Figures may be bare numbers: they are read from the text itself, so that `16.0` keeps the digit
//! that a parsed number would lose.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{TableError, wrong};
use super::{dd, figure, heading, options};
use crate::model::{
    Bytes, Command, Conclusion, Job, Limit, Machine, Part, Printed, Quantity, Row, Table, Test,
};
use crate::printed::programs;

type Value<'a> = Spanned<DeValue<'a>>;

/// Keys of a test that are no rows.
const TEST_KEYS: [&str; 11] = [
    "name",
    "fio",
    "columns",
    "bytes",
    "operations",
    "processes",
    "runs",
    "synced",
    "protocol",
    "preparation",
    "command",
];
/// Keys of a test that describe files, for its readers.
const TEST_TEXTS: [&str; 3] = ["files", "file_size", "cache"];
const CLAIM_KEYS: [&str; 7] =
    ["text", "test", "contender", "against", "figures", "changes", "better"];
/// What a device is specified for.
const LIMITS: [(&str, Quantity, Part); 6] = [
    ("device_iops", Quantity::Iops, Part::All),
    ("device_read_iops", Quantity::Iops, Part::Read),
    ("device_write_iops", Quantity::Iops, Part::Write),
    ("device_bandwidth", Quantity::Bandwidth, Part::All),
    ("device_read_bandwidth", Quantity::Bandwidth, Part::Read),
    ("device_write_bandwidth", Quantity::Bandwidth, Part::Write),
];

/// Reads the text.
pub fn read(text: &str) -> Result<Table, TableError> {
    let document = DeTable::parse(text).map_err(|error| wrong(error.to_string().trim_end()))?;
    let reader = Reader { text };
    let root = document.get_ref();
    let environment = root.get("environment").and_then(|it| it.get_ref().as_table());
    let empty = DeTable::new();
    let environment = environment.unwrap_or(&empty);
    let contenders: Vec<String> = list(environment.get("contenders")).map(plain).collect();
    let runs = environment.get("runs_of_each_test");
    let runs = runs.map(|runs| reader.whole(runs, "runs_of_each_test")).transpose()?;
    let mut tests = Vec::new();
    for test in list(root.get("test")) {
        tests.push(reader.test(test, &contenders, runs)?);
    }
    let mut claims = Vec::new();
    for claim in list(root.get("claim")) {
        claims.push(reader.claim(claim)?);
    }
    let title = root.get("title").map_or("a table".into(), plain);
    let machine = reader.machine(environment, &contenders)?;
    let kind = "a table in TOML".to_string();
    let table = Table { title, kind, machine, is_written: true, tests, claims, ..Table::default() };
    reader.check_names(&table)?;
    Ok(table)
}

struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    /// What is wrong with the value, with its line.
    fn wrong(&self, at: &Value, what: &str) -> TableError {
        let line = self.text[..at.span().start].matches('\n').count() + 1;
        wrong(format!("line {line}: {what}"))
    }

    fn whole(&self, value: &Value, name: &str) -> Result<u64, TableError> {
        let number = plain(value).replace('_', "").parse();
        number.map_err(|_| self.wrong(value, &format!("{name} is a whole number")))
    }

    /// A figure, with the digits it has in the text.
    fn figure(&self, value: &Value) -> Result<Option<Printed>, TableError> {
        let written = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(_) | DeValue::Float(_) => self.text[value.span()].to_string(),
            _ => return Err(self.wrong(value, "a figure is a number, or text as printed")),
        };
        let missing = matches!(written.trim(), "" | "-" | "n/a");
        let figure = figure::printed(&written).or_else(|| figure::said(&written));
        match figure.is_none() && !missing {
            true => {
                let what = format!("{written:?} is not a figure; for none write \"-\"");
                Err(self.wrong(value, &what))
            }
            false => Ok(figure),
        }
    }

    fn machine(&self, table: &DeTable, contenders: &[String]) -> Result<Machine, TableError> {
        let size = |name: &str| -> Result<Option<Bytes>, TableError> {
            let Some(value) = table.get(name) else { return Ok(None) };
            let bytes = options::bytes(&plain(value));
            let what = format!("{name} is a size: write \"8G\"");
            bytes.map(|it| Some(Bytes(it))).ok_or_else(|| self.wrong(value, &what))
        };
        let each = |name: &str| match table.get(name) {
            Some(value) => match value.get_ref().as_table() {
                Some(table) => pairs(table).map(|(name, value)| (name, plain(value))).collect(),
                None => contenders.iter().map(|it| (it.clone(), plain(value))).collect(),
            },
            None => BTreeMap::new(),
        };
        let mut limits = Vec::new();
        for (name, quantity, part) in LIMITS {
            let Some(value) = table.get(name) else { continue };
            let limit = match quantity {
                Quantity::Iops => self.whole(value, name)?,
                _ => size(name)?.map_or(0, |it| it.0),
            };
            limits.push(Limit { quantity, part, value: limit as f64 });
        }
        let options = |line: &String| line.split(',').map(|it| it.trim().to_string()).collect();
        Ok(Machine {
            memory: size("memory")?,
            device: table.get("device").map(plain),
            limits,
            device_cache: size("device_cache")?,
            mount: each("mount").iter().map(|(name, line)| (name.clone(), options(line))).collect(),
            kernel: each("kernel"),
        })
    }

    fn test(
        &self,
        it: &Value,
        contenders: &[String],
        runs: Option<u64>,
    ) -> Result<Test, TableError> {
        let table = it.get_ref().as_table().ok_or_else(|| self.wrong(it, "[[test]] is a table"))?;
        let name =
            table.get("name").map(plain).ok_or_else(|| self.wrong(it, "a test has a name"))?;
        let headings: Vec<String> = list(table.get("columns")).map(plain).collect();
        if headings.is_empty() {
            return Err(self.wrong(it, &format!("test {name:?} has no columns")));
        }
        let mut rows = Vec::new();
        for (key, value) in pairs(table) {
            let known = TEST_KEYS.contains(&key.as_str()) || TEST_TEXTS.contains(&key.as_str());
            let is_row = contenders.contains(&key) || contenders.is_empty() && !known;
            match (is_row, known) {
                (true, _) => rows.push(self.row(key, value, headings.len())?),
                (_, true) => {}
                _ => {
                    let what = format!("{key} is not a key of a test, and none of the contenders");
                    return Err(self.wrong(value, &what));
                }
            }
        }
        rows.sort_by_key(|row| contenders.iter().position(|name| *name == row.contender));
        let own_runs = table.get("runs").map(|runs| self.whole(runs, "runs")).transpose()?;
        let command = table.get("command").map(|command| Command::Shell(plain(command)));
        let programs = command.as_ref().map(programs).unwrap_or_default();
        let files = table.get("files").map(|files| self.whole(files, "files")).transpose()?;
        let bytes =
            match table.get("bytes") {
                Some(value) => Some(options::bytes(&plain(value)).ok_or_else(|| {
                    self.wrong(value, "bytes is what the work moves: write \"10G\"")
                })?),
                None => None,
            };
        let mut job = self.job(table, &programs)?;
        job.size_bytes = job.size_bytes.or(bytes.filter(|_| !job.is_fio));
        let words = ["protocol", "preparation", "command"].iter().filter_map(|key| table.get(*key));
        let mut operations: BTreeMap<String, u64> = BTreeMap::new();
        let of_files = headings.iter().filter(|heading| heading.ends_with("files/s"));
        operations.extend(of_files.filter_map(|heading| Some((heading.clone(), files?))));
        operations.extend(self.counts(table.get("operations"), &headings)?);
        Ok(Test {
            name,
            job,
            columns: headings.iter().map(|heading| heading::column(heading)).collect(),
            rows,
            runs: own_runs.or(runs).and_then(|runs| u32::try_from(runs).ok()),
            bytes,
            files,
            file_bytes: table.get("file_size").and_then(|size| options::bytes(&plain(size))),
            cache: table.get("cache").map(plain),
            words: words.map(plain).collect(),
            programs: programs.into_iter().filter_map(|words| words.into_iter().next()).collect(),
            operations,
            processes: self.counts(table.get("processes"), &headings)?,
            clock_s: None,
        })
    }

    /// What was run, by fio's options or the words of a dd.
    fn job(&self, table: &DeTable, programs: &[Vec<String>]) -> Result<Job, TableError> {
        let fio = table.get("fio").and_then(|fio| fio.get_ref().as_table());
        if let Some((slip, at)) =
            fio.into_iter().flat_map(pairs).find_map(|(it, at)| Some((options::slip(&it)?, at)))
        {
            return Err(self.wrong(at, &slip));
        }
        let options = |fio| pairs(fio).map(|(name, value)| (name, plain(value))).collect();
        let fio = fio.map(|fio| options::job(&options(fio)));
        let mut job = fio.or_else(|| dd::job(programs)).unwrap_or_default();
        if let Some(synced) = table.get("synced") {
            job.synced = Some(plain(synced) == "true");
            job.mode.get_or_insert("write".into());
        }
        Ok(job)
    }

    fn row(&self, contender: String, value: &Value, columns: usize) -> Result<Row, TableError> {
        let figures: Vec<&Value> = list(Some(value)).collect();
        if figures.len() != columns {
            let what = format!("{contender} has {} figures for {columns} columns", figures.len());
            return Err(self.wrong(value, &what));
        }
        let cells = figures.into_iter().map(|it| self.figure(it)).collect::<Result<_, _>>()?;
        Ok(Row { contender, cells, ..Row::default() })
    }

    /// Numbers by heading.
    fn counts(
        &self,
        value: Option<&Value>,
        headings: &[String],
    ) -> Result<BTreeMap<String, u64>, TableError> {
        let table = value.and_then(|value| value.get_ref().as_table()).into_iter().flat_map(pairs);
        let mut counts = BTreeMap::new();
        for (heading, value) in table {
            if !headings.contains(&heading) {
                return Err(self.wrong(value, &format!("no column of the test is {heading:?}")));
            }
            let count = self.whole(value, &heading)?;
            counts.insert(heading, count);
        }
        Ok(counts)
    }

    fn claim(&self, it: &Value) -> Result<Conclusion, TableError> {
        let table =
            it.get_ref().as_table().ok_or_else(|| self.wrong(it, "[[claim]] is a table"))?;
        if let Some((key, value)) = pairs(table).find(|(it, _)| !CLAIM_KEYS.contains(&it.as_str()))
        {
            return Err(self.wrong(value, &format!("{key} is not a key of a claim")));
        }
        let get = |name: &str| table.get(name).map(plain);
        let text = get("text").ok_or_else(|| self.wrong(it, "a claim has a text"))?;
        let named = |name: &str| table.get(name).and_then(|it| it.get_ref().as_table());
        let mut claim = Conclusion {
            text,
            test: get("test"),
            contender: get("contender"),
            against: get("against"),
            ..Conclusion::default()
        };
        for (heading, value) in named("figures").into_iter().flat_map(pairs) {
            let figure =
                self.figure(value)?.ok_or_else(|| self.wrong(value, "a claim's figure"))?;
            claim.figures.insert(heading, figure);
        }
        for (heading, value) in named("changes").into_iter().flat_map(pairs) {
            let what = "a change is written +9%, -12%, ~8-12%, 6.9x or 3-4x";
            let change = figure::change(&plain(value)).ok_or_else(|| self.wrong(value, what))?;
            claim.changes.insert(heading, change);
        }
        claim.better = match table.get("better").map(Spanned::get_ref) {
            Some(DeValue::String(heading)) => vec![heading.to_string()],
            _ => list(table.get("better")).map(plain).collect(),
        };
        let headings = claim.figures.keys().chain(claim.changes.keys()).chain(&claim.better);
        claim.columns = headings.map(|it| (it.clone(), heading::column(it))).collect();
        Ok(claim)
    }

    /// A claim that names what is not there would never be found wrong.
    fn check_names(&self, table: &Table) -> Result<(), TableError> {
        let rows = |name: &String| {
            table.tests.iter().flat_map(|it| &it.rows).any(|r| r.contender == *name)
        };
        for claim in &table.claims {
            let test =
                claim.test.iter().find(|name| !table.tests.iter().any(|it| it.name == **name));
            let contender = [&claim.contender, &claim.against].into_iter().flatten();
            let unknown = test.or(contender.into_iter().find(|name| !rows(name)));
            if let Some(name) = unknown {
                let text = &claim.text;
                return Err(wrong(format!(
                    "the claim {text:?} names {name:?}, which is not there"
                )));
            }
        }
        match table.tests.iter().find(|test| test.rows.is_empty()) {
            Some(test) => Err(wrong(format!("test {:?} has no rows", test.name))),
            None => Ok(()),
        }
    }
}

fn list<'a, 'b>(value: Option<&'a Value<'b>>) -> impl Iterator<Item = &'a Value<'b>> {
    value.and_then(|value| value.get_ref().as_array()).into_iter().flatten()
}

fn pairs<'a, 'b>(table: &'a DeTable<'b>) -> impl Iterator<Item = (String, &'a Value<'b>)> {
    table.iter().map(|(name, value)| (name.get_ref().to_string(), value))
}

fn plain(value: &Value) -> String {
    match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        _ => String::new(),
    }
}
