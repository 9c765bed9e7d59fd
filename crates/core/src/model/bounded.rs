//! Strangers' documents: no integer in them is so large that a sum could wrap.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The largest integer that is read: as bytes 64 PiB, as nanoseconds two years. 256 of them can be
/// added, and sums over more stop at `u64::MAX`.
pub const MOST: u64 = 1 << 56;

/// Reads a document of JSON, in time linear in its length. The error tells the place and the
/// field, also where an integer is beyond [`MOST`].
pub fn from_json<'de, T: Deserialize<'de>>(text: &'de str) -> serde_json::Result<T> {
    let mut integers = serde_json::Deserializer::from_str(text);
    Integers { of: "it" }.deserialize(&mut integers)?;
    serde_json::from_str(text)
}

/// Looks at all integers of a value: of the field `of`.
#[derive(Clone, Copy)]
struct Integers<'a> {
    of: &'a str,
}

impl Integers<'_> {
    fn bounded<E: Error>(self, magnitude: u64, shown: impl fmt::Display) -> Result<(), E> {
        match magnitude <= MOST {
            true => Ok(()),
            false => Err(E::custom(format!(
                "{} is {shown}: no figure of a trial is beyond {MOST}",
                self.of
            ))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Integers<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Integers<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_u64<E: Error>(self, integer: u64) -> Result<(), E> {
        self.bounded(integer, integer)
    }

    fn visit_i64<E: Error>(self, integer: i64) -> Result<(), E> {
        self.bounded(integer.unsigned_abs(), integer)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<Name>()? {
            fields.next_value_seed(Integers { of: &name.0 })?;
        }
        Ok(())
    }
}

/// A field's name, which is borrowed where nothing in it is escaped.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn an_integer_beyond_all_counters_is_refused_by_its_name() {
        let read = |text: &str| from_json::<Value>(text).map_err(|error| error.to_string());
        for good in [
            r#"{"a":[1,-2,0.5,null,true,"99999999999999999999",{"b":72057594037927936}]}"#,
            "[]",
            r#"{"a\n":1.8446744073709552e19}"#,
        ] {
            assert_eq!(read(good), Ok(serde_json::from_str(good).unwrap()), "{good}");
        }
        for (bad, says) in [
            (
                r#"{"a":{"sum_ns":[1,72057594037927937]}}"#,
                "sum_ns is 72057594037927937: no figure of a trial is beyond 72057594037927936 \
                 at line 1 column 35",
            ),
            (r#"{"b":-9223372036854775808}"#, "b is -9223372036854775808: no figure"),
            (r#"{"b":"#, "EOF while parsing a value at line 1 column 5"),
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
