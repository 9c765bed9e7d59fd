//! The Phoronix Test Suite's composite.xml: a test for each result, a row for each run of each
//! system. pts-core/openbenchmarking.org/schemas/result-file.xsd has its tags; `RawString` holds
//! the single runs with a colon between, `Proportion` is HIB or LIB: higher, or lower, is better.

use roxmltree::{Document, Node};

use super::error::{TableError, wrong};
use super::runs;
use crate::model::{Better, Table, Test};

/// Reads the text.
pub fn read(text: &str) -> Result<Table, TableError> {
    let document = Document::parse(text).map_err(|error| wrong(format!("the XML: {error}")))?;
    let root = document.root_element();
    if !root.has_tag_name("PhoronixTestSuite") {
        let name = root.tag_name().name();
        return Err(wrong(format!("the XML begins with {name}: looked for PhoronixTestSuite")));
    }
    let tests: Vec<Test> = children(root, "Result").filter_map(test).collect();
    if tests.is_empty() {
        return Err(wrong("the Phoronix Test Suite's document holds no Result with figures"));
    }
    let title = child(root, "Generated").map_or(String::new(), |it| text_of(it, "Title"));
    let kind = "composite.xml of the Phoronix Test Suite".to_string();
    let title = if title.is_empty() { kind.clone() } else { title };
    let taken = vec![("contender".to_string(), "Identifier of each Entry".to_string())];
    Ok(Table { title, kind, tests, taken, ..Table::default() })
}

fn test(result: Node) -> Option<Test> {
    let better = match text_of(result, "Proportion").as_str() {
        "HIB" => Some(Better::Higher),
        "LIB" => Some(Better::Lower),
        _ => None,
    };
    let words = [text_of(result, "Title"), text_of(result, "Description")];
    let name = words.join(" ").trim().to_string();
    let scale = text_of(result, "Scale");
    let heading = if scale.is_empty() { "result".to_string() } else { scale };
    let entries = children(child(result, "Data")?, "Entry");
    let each = entries.flat_map(|entry| {
        let contender = text_of(entry, "Identifier");
        let raw = text_of(entry, "RawString");
        let all = if raw.is_empty() { text_of(entry, "Value") } else { raw };
        let values: Vec<f64> = all.split(':').filter_map(|it| it.trim().parse().ok()).collect();
        values.into_iter().map(move |value| (contender.clone(), value)).collect::<Vec<_>>()
    });
    Some(runs::test(&name, &heading, better, each)).filter(|test| !test.rows.is_empty())
}

fn children<'a>(node: Node<'a, 'a>, name: &'static str) -> impl Iterator<Item = Node<'a, 'a>> {
    node.children().filter(move |it| it.has_tag_name(name))
}

fn child<'a>(node: Node<'a, 'a>, name: &'static str) -> Option<Node<'a, 'a>> {
    children(node, name).next()
}

fn text_of(node: Node, name: &'static str) -> String {
    let text = node.children().find(|it| it.has_tag_name(name)).and_then(|it| it.text());
    text.unwrap_or_default().trim().to_string()
}
