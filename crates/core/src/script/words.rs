//! A shell line as words and operators: quotes, escapes, comments and simple variables, as POSIX
//! has them (Shell Command Language, 2.2, 2.3 and 2.6.2). Nothing is executed: a command
//! substitution stays as it is written.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

/// What the file has assigned so far.
pub type Variables = BTreeMap<String, String>;

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// A word, its quotes removed and its variables replaced.
    Word(String),
    /// `;`, `&&`, `|`, `>`, `>>`, ...
    Operator(String),
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    variables: &'a Variables,
    tokens: Vec<Token>,
    word: Option<String>,
}

/// The pieces of one logical line.
pub fn tokens(line: &str, variables: &Variables) -> Vec<Token> {
    let rest = line.chars().peekable();
    let mut reader = Reader { rest, variables, tokens: Vec::new(), word: None };
    while let Some(c) = reader.rest.next() {
        match c {
            '#' if reader.word.is_none() => break,
            c if c.is_whitespace() => reader.end_word(),
            ';' | '&' | '|' | '>' | '<' | '(' | ')' => reader.operator(c),
            c => reader.part(c),
        }
    }
    reader.end_word();
    reader.tokens
}

impl Reader<'_> {
    fn end_word(&mut self) {
        self.tokens.extend(self.word.take().map(Token::Word));
    }

    fn push(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }

    fn operator(&mut self, first: char) {
        // `<DEVICE>` and `<device>` are placeholders of manuals: no file is read in such a line.
        if first == '<' && self.word.is_none() {
            let ahead: String = self.rest.clone().take_while(|c| *c != '>').collect();
            let name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let closed = self.rest.clone().nth(ahead.chars().count()) == Some('>');
            if closed && !ahead.is_empty() && ahead.chars().all(name) {
                self.rest.nth(ahead.chars().count());
                self.push(&format!("<{ahead}>"));
                return;
            }
        }
        // `2>` and the like: the number belongs to the operator.
        if first == '>' && self.word.as_ref().is_some_and(|word| matches!(word.as_str(), "1" | "2"))
        {
            let number = self.word.take().unwrap_or_default();
            self.tokens.push(Token::Operator(format!("{number}>")));
            return;
        }
        self.end_word();
        let mut text = first.to_string();
        while self.rest.next_if_eq(&first).is_some() {
            text.push(first);
        }
        self.tokens.push(Token::Operator(text));
    }

    fn part(&mut self, c: char) {
        match c {
            '\\' => {
                let next = self.rest.next().unwrap_or_default();
                self.push(&next.to_string());
            }
            '\'' => {
                let text: String = self.rest.by_ref().take_while(|c| *c != '\'').collect();
                self.push(&text);
            }
            '"' => self.quoted(),
            '$' => self.dollar(),
            c => self.push(&c.to_string()),
        }
    }

    fn quoted(&mut self) {
        self.push("");
        while let Some(c) = self.rest.next() {
            match c {
                '"' => return,
                '\\' => {
                    let next = self.rest.next().unwrap_or_default();
                    if !matches!(next, '"' | '\\' | '$' | '`') {
                        self.push("\\");
                    }
                    self.push(&next.to_string());
                }
                '$' => self.dollar(),
                c => self.push(&c.to_string()),
            }
        }
    }

    /// A variable's value, or what was written if it has none.
    fn dollar(&mut self) {
        match self.rest.peek() {
            Some('{') => {
                self.rest.next();
                let text: String = self.rest.by_ref().take_while(|c| *c != '}').collect();
                let (name, default) = match text.split_once(":-") {
                    Some((name, default)) => (name, Some(default.to_string())),
                    None => (text.as_str(), None),
                };
                let known = self.variables.get(name).cloned().or(default);
                self.push(&known.unwrap_or(format!("${name}")));
            }
            Some('(') => {
                let text = self.substitution();
                self.push(&text);
            }
            _ => {
                let mut name = String::new();
                while let Some(c) = self.rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    name.push(c);
                }
                let value = self.variables.get(&name).cloned();
                self.push(&value.unwrap_or(format!("${name}")));
            }
        }
    }

    fn substitution(&mut self) -> String {
        let mut text = "$".to_string();
        let mut depth = 0;
        for c in self.rest.by_ref() {
            text.push(c);
            depth += i32::from(c == '(') - i32::from(c == ')');
            if depth == 0 {
                break;
            }
        }
        text
    }
}
