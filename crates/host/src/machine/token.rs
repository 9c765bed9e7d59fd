//! A random name: nobody else's, and nobody's guess.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};

const BYTES: usize = 8;

/// Sixteen hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Token(String);

impl Token {
    /// A new one: random(4).
    pub fn random() -> io::Result<Token> {
        let mut bytes = [0; BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// `text`, if it is one.
    pub fn parse(text: &str) -> Option<Token> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_token = text.len() == 2 * BYTES && text.bytes().all(is_digit);
        is_token.then(|| Token(text.into()))
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Token {
    type Error = String;

    fn try_from(text: String) -> Result<Token, String> {
        Token::parse(&text).ok_or_else(|| format!("{text:?} is not a token"))
    }
}

impl From<Token> for String {
    fn from(token: Token) -> String {
        token.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sixteen_digits_and_another_each_time() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_ne!(one, other);
        assert_eq!(Token::parse(&one.to_string()), Some(one));
        for odd in
            ["", "0123456789abcde", "0123456789ABCDEF", "../3456789abcdef", "é23456789abcdef"]
        {
            assert_eq!(Token::parse(odd), None, "{odd}");
        }
    }
}
