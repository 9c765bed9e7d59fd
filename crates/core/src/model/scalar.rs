//! A value of a setting, whatever its type.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A TOML value that is passed on as its text: `"none"`, `64`, `true`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Whole(i64),
    /// A number.
    Real(f64),
    /// A text.
    Text(String),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Flag(value) => write!(f, "{value}"),
            Scalar::Whole(value) => write!(f, "{value}"),
            Scalar::Real(value) => write!(f, "{value}"),
            Scalar::Text(value) => f.write_str(value),
        }
    }
}
