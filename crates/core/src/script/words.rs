//! A shell line as words and operators: quotes, escapes, comments, variables and the splitting of
//! their values, as POSIX has them (Shell Command Language, 2.2, 2.3, 2.6.2, 2.6.5), and arrays as
//! bash has them. Nothing is executed: a command substitution stays as it is written.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

/// What the file has assigned so far.
pub type Variables = BTreeMap<String, String>;

/// Words that may stand before an assignment.
pub const DECLARING: [&str; 9] =
    ["export", "readonly", "local", "declare", "typeset", "then", "do", "else", "{"];

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// A word, its quotes removed and its variables replaced.
    Word(String),
    /// `;`, `&&`, `|`, `>`, `>>`, ...
    Operator(String),
}

/// All variables of a line expand to at most this much: one that goes beyond stays as it is
/// written.
const EXPANSION_BYTES_MAX: usize = 1 << 16;

struct Reader<'a, 'v> {
    rest: Peekable<Chars<'a>>,
    variables: &'v Variables,
    tokens: Vec<Token>,
    word: Option<String>,
    /// All words of the command so far assign, or may stand before who does.
    may_assign: bool,
    /// How much the variables still to come may stand for.
    room_bytes: usize,
}

/// The commands of a logical line, read one by one, as each may set a variable for those behind it.
pub struct Commands<'a> {
    rest: Peekable<Chars<'a>>,
    room_bytes: usize,
}

/// What a `$` stands for.
enum Value {
    /// A variable's value, which is split where it is not quoted.
    Known(String),
    /// An array's elements: each is a word, quoted or not.
    Elements(String),
    /// What was written, because its value is not in the file.
    Unknown(String),
}

/// `word` sets a variable: `NAME=value` or `NAME+=value`.
pub fn is_assignment(word: &str) -> bool {
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    word.split_once('=').is_some_and(|(left, _)| {
        let left = left.strip_suffix('+').unwrap_or(left);
        !left.is_empty() && left.chars().all(name) && !left.starts_with(|c: char| c.is_numeric())
    })
}

/// The pieces of one logical line.
pub fn tokens(line: &str, variables: &Variables) -> Vec<Token> {
    let mut reader = Reader::new(line.chars().peekable(), variables, EXPANSION_BYTES_MAX);
    while reader.piece() {}
    reader.end_word();
    reader.tokens
}

impl<'a> Commands<'a> {
    pub fn of(line: &'a str) -> Commands<'a> {
        Commands { rest: line.chars().peekable(), room_bytes: EXPANSION_BYTES_MAX }
    }

    /// The next command, which may be empty, and the operator that ends it. Redirections stay
    /// within.
    pub fn next(&mut self, variables: &Variables) -> Option<(Vec<Token>, String)> {
        self.rest.peek()?;
        let rest = std::mem::replace(&mut self.rest, "".chars().peekable());
        let mut reader = Reader::new(rest, variables, self.room_bytes);
        let mut goes_on = true;
        while goes_on && reader.ending().is_none() {
            goes_on = reader.piece();
        }
        let end = reader.ending().map(String::from);
        if end.is_some() {
            reader.tokens.pop();
        }
        reader.end_word();
        if goes_on {
            (self.rest, self.room_bytes) = (reader.rest, reader.room_bytes);
        }
        Some((reader.tokens, end.unwrap_or_default()))
    }
}

impl<'a, 'v> Reader<'a, 'v> {
    fn new(
        rest: Peekable<Chars<'a>>,
        variables: &'v Variables,
        room_bytes: usize,
    ) -> Reader<'a, 'v> {
        Reader { rest, variables, tokens: Vec::new(), word: None, may_assign: true, room_bytes }
    }

    /// Reads on; says whether there may be more.
    fn piece(&mut self) -> bool {
        match self.rest.next() {
            None => return false,
            Some('#') if self.word.is_none() => return false,
            Some(c) if c.is_whitespace() => self.end_word(),
            Some('(') if self.is_assigned() => self.elements(),
            Some(c @ (';' | '&' | '|' | '>' | '<' | '(' | ')')) => self.operator(c),
            Some(c) => self.part(c),
        }
        true
    }

    /// The operator just read, if it ends a command.
    fn ending(&self) -> Option<&str> {
        match self.tokens.last() {
            Some(Token::Operator(text)) if self.word.is_none() && !text.contains(['>', '<']) => {
                Some(text)
            }
            _ => None,
        }
    }

    /// What a variable stands for.
    fn value(&mut self, name: &str) -> Option<String> {
        let value = self.variables.get(name).filter(|value| value.len() <= self.room_bytes)?;
        self.room_bytes -= value.len();
        Some(value.clone())
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        self.may_assign &= is_assignment(&word) || DECLARING.contains(&word.as_str());
        self.tokens.push(Token::Word(word));
    }

    fn push(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }

    fn operator(&mut self, first: char) {
        // `<DEVICE>` and `<device>` are placeholders of manuals: no file is read in such a line.
        if first == '<' && self.word.is_none() {
            let name = |c: &char| c.is_ascii_alphanumeric() || *c == '_' || *c == '-';
            let ahead: String = self.rest.clone().take_while(name).collect();
            let closed = self.rest.clone().nth(ahead.len()) == Some('>');
            if closed && !ahead.is_empty() {
                self.rest.nth(ahead.len());
                self.push(&format!("<{ahead}>"));
                return;
            }
        }
        // `2>` and the like: the number belongs to the operator.
        if first == '>' && self.word.as_ref().is_some_and(|word| matches!(word.as_str(), "1" | "2"))
        {
            let number = self.word.take().unwrap_or_default();
            self.may_assign = true;
            self.tokens.push(Token::Operator(format!("{number}>")));
            return;
        }
        self.end_word();
        let mut text = first.to_string();
        while self.rest.next_if_eq(&first).is_some() {
            text.push(first);
        }
        self.may_assign = true;
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
            '`' => {
                let text: String = self.rest.by_ref().take_while(|c| *c != '`').collect();
                self.push(&format!("`{text}`"));
            }
            '$' => match self.dollar() {
                Value::Known(text) if self.is_assigned() => self.push(&text),
                Value::Known(text) | Value::Elements(text) => self.split(&text),
                Value::Unknown(text) => self.push(&text),
            },
            c => self.push(&c.to_string()),
        }
    }

    /// The word at hand is an assignment, whose value is not split (2.9.1).
    fn is_assigned(&self) -> bool {
        self.may_assign && self.word.as_deref().is_some_and(is_assignment)
    }

    /// `NAME=(a b)`: the elements, with a space between them, because they are split again.
    fn elements(&mut self) {
        let text: String = self.rest.by_ref().take_while(|c| *c != ')').collect();
        // An array holds no other: an opening parenthesis here is just a space.
        let text = text.replace('(', " ");
        let mut inner = Reader::new(text.chars().peekable(), self.variables, self.room_bytes);
        while inner.piece() {}
        inner.end_word();
        self.room_bytes = inner.room_bytes;
        for token in inner.tokens {
            if let Token::Word(word) = token {
                self.push(&format!("{word} "));
            }
        }
    }

    fn split(&mut self, text: &str) {
        for c in text.chars() {
            match c.is_whitespace() {
                true => self.end_word(),
                false => self.push(&c.to_string()),
            }
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
                '$' => match self.dollar() {
                    Value::Elements(text) => self.split(text.trim_end()),
                    Value::Known(text) | Value::Unknown(text) => self.push(&text),
                },
                c => self.push(&c.to_string()),
            }
        }
    }

    fn dollar(&mut self) -> Value {
        let unknown = |name: &str| Value::Unknown(format!("${name}"));
        match self.rest.peek() {
            Some('{') => {
                self.rest.next();
                let text: String = self.rest.by_ref().take_while(|c| *c != '}').collect();
                let name = text.split([':', '-', '=', '[']).next().unwrap_or(&text);
                let rest = &text[name.len()..];
                let default = rest.strip_prefix(':').unwrap_or(rest);
                let value = match default.strip_prefix(['-', '=']) {
                    Some(default) if !self.variables.contains_key(name) => {
                        Some(Value::Known(default.into()))
                    }
                    Some(_) => self.value(name).map(Value::Known),
                    None if rest.starts_with("[@") || rest.starts_with("[*") => {
                        self.value(name).map(Value::Elements)
                    }
                    None => self.value(&text).map(Value::Known),
                };
                value.unwrap_or_else(|| unknown(&text))
            }
            Some('(') => Value::Unknown(self.substitution()),
            _ => {
                let mut name = String::new();
                while let Some(c) = self.rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    name.push(c);
                }
                self.value(&name).map_or_else(|| unknown(&name), Value::Known)
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
