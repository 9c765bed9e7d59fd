//! The `format` files of the kernel's trace events, and `events/header_page`
//! (Documentation/trace/events.rst, "Event formats").

use thiserror::Error;

/// Why a format can't be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum FormatError {
    #[error("the format of event {event} has no {what}")]
    Without { event: String, what: &'static str },
    #[error("events/header_page has no size of its data")]
    HeaderPage,
}

/// Where a field stands in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// From the event's beginning.
    pub offset: usize,
    /// In bytes; 0 where it goes on to the event's end.
    pub size: usize,
}

impl Field {
    /// The unsigned number there. Events are little-endian, as the machines that we run on.
    pub fn number(self, event: &[u8]) -> Option<u64> {
        let bytes = event.get(self.offset..self.offset.checked_add(self.size)?)?;
        let mut word = [0; 8];
        word.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    }

    /// The text there, up to its NUL.
    pub fn text(self, event: &[u8]) -> Option<&[u8]> {
        let rest = event.get(self.offset..)?;
        let field = if self.size == 0 { rest } else { rest.get(..self.size)? };
        Some(field.split(|byte| *byte == 0).next().unwrap_or(field))
    }
}

/// What an event's `format` file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The event's name.
    pub name: String,
    /// Its number on this kernel, since it was booted.
    pub id: u16,
    fields: Vec<(String, Field)>,
}

impl Format {
    /// Reads it.
    pub fn parse(text: &str) -> Result<Format, FormatError> {
        let after = |key: &str| text.lines().find_map(|line| Some(line.strip_prefix(key)?.trim()));
        let name = after("name:").unwrap_or_default().to_string();
        let without = |what| FormatError::Without { event: name.clone(), what };
        let id = after("ID:").and_then(|id| id.parse().ok()).ok_or_else(|| without("number"))?;
        let fields = text.lines().filter_map(field).collect();
        Ok(Format { name, id, fields })
    }

    /// The field of that name, of at most 8 bytes if it is a number.
    pub fn field(&self, name: &'static str) -> Result<Field, FormatError> {
        let found = self.fields.iter().find(|(field, _)| field == name).map(|(_, field)| *field);
        found.ok_or_else(|| FormatError::Without { event: self.name.clone(), what: name })
    }
}

/// `field:char rwbs[10]; offset:34; size:10; signed:0;`, with tabs between.
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declared = parts.next()?.strip_prefix("field:")?;
    let name = declared.rsplit(' ').next()?.split('[').next()?;
    let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();
    let offset = number("offset:")?;
    let size = number("size:")?;
    Some((name.into(), Field { offset, size }))
}

/// The size of a page of the ring buffer, from `events/header_page`: its data begin where they say,
/// and end with the page.
pub fn page_bytes(header_page: &str) -> Result<usize, FormatError> {
    let data = header_page.lines().filter_map(field).find(|(name, _)| name == "data");
    let (_, data) = data.ok_or(FormatError::HeaderPage)?;
    data.offset.checked_add(data.size).filter(|_| data.size > 0).ok_or(FormatError::HeaderPage)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: &str = include_str!("../../tests/trace/block_bio_queue.format");

    #[test]
    fn a_format_says_where_fields_are() {
        let format = Format::parse(QUEUE).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("block_bio_queue", 2097));
        assert_eq!(format.field("sector").unwrap(), Field { offset: 16, size: 8 });
        assert_eq!(format.field("rwbs").unwrap(), Field { offset: 28, size: 10 });
        let error = format.field("nothing").unwrap_err().to_string();
        assert_eq!(error, "the format of event block_bio_queue has no nothing");
    }

    #[test]
    fn a_page_is_as_long_as_its_header_says() {
        let text = include_str!("../../tests/trace/header_page");
        assert_eq!(page_bytes(text).unwrap(), 4096);
        assert_eq!(page_bytes("field: char data;\toffset:16;"), Err(FormatError::HeaderPage));
    }

    #[test]
    fn what_lies_beyond_an_event_is_not_read() {
        let field = Field { offset: 6, size: 4 };
        assert_eq!(field.number(&[1; 10]), Some(0x0101_0101));
        assert_eq!(field.number(&[1; 9]), None);
        assert_eq!(Field { offset: usize::MAX, size: 4 }.number(&[1; 9]), None);
        assert_eq!(Field { offset: 0, size: 9 }.number(&[1; 9]), None, "no such number");
        assert_eq!(Field { offset: 1, size: 0 }.text(b"xab\0c"), Some(&b"ab"[..]));
        assert_eq!(Field { offset: 7, size: 0 }.text(b"xab\0c"), None);
    }
}
