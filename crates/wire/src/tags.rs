//! Blob index tags, from a body (`<Tags><TagSet>...`) or from the `x-ms-tags` header (`k1=v1&k2=v2`).

use std::fmt;

use concurrency::tag_expression::{KEY_CHARS_MAX, VALUE_CHARS_MAX, is_tag_char};

use crate::percent;
use crate::xml::{self, XmlError, XmlWriter};

pub const TAGS_PER_BLOB_MAX: usize = 10;

/// Valid tags with distinct keys, in the order in which they were sent. They are case-sensitive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(Vec<(String, String)>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagsError {
    /// The body is malformed.
    Xml(XmlError),
    /// The header is malformed, or a character is not allowed.
    InvalidTag,
    /// A key or a value is too long, or there are too many tags.
    TagsTooLarge,
    EmptyTagName,
    DuplicateTagNames,
}

impl TagsError {
    /// The error code; the status is 400 for all of them.
    pub fn code(&self) -> &'static str {
        match self {
            TagsError::Xml(error) => error.code(),
            TagsError::InvalidTag => "InvalidTag",
            TagsError::TagsTooLarge => "TagsTooLarge",
            TagsError::EmptyTagName => "EmptyTagName",
            TagsError::DuplicateTagNames => "DuplicateTagNames",
        }
    }
}

impl TagsError {
    /// The error message.
    pub fn text(&self) -> &'static str {
        match self {
            TagsError::Xml(_) => "XML specified is not syntactically valid.",
            TagsError::InvalidTag => "The tags specified are invalid. It contains characters that are not permitted.",
            TagsError::TagsTooLarge => "The tags specified exceed the maximum permissible limit.",
            TagsError::EmptyTagName => "The name of one of the tag key-value pairs is empty.",
            TagsError::DuplicateTagNames => "The tags specified contain duplicate names.",
        }
    }
}

impl fmt::Display for TagsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl std::error::Error for TagsError {}

impl From<XmlError> for TagsError {
    fn from(error: XmlError) -> TagsError {
        TagsError::Xml(error)
    }
}

impl Tags {
    /// Reads the body of Set Blob Tags.
    pub fn parse_xml(document: &[u8]) -> Result<Tags, TagsError> {
        let root = xml::parse(document, "Tags")?;
        let set = root.only(&["TagSet"])?.required("TagSet")?;
        let mut tags = Tags::default();
        for tag in set.many("Tag", "Tag", usize::MAX)? {
            tag.only(&["Key", "Value"])?;
            // White space is part of a tag, so the text is not trimmed.
            let text = |name| tag.required(name).and_then(|node| node.leaf().map(|_| node.text.clone()));
            tags.add(text("Key")?, text("Value")?)?;
        }
        Ok(tags)
    }

    /// Reads the `x-ms-tags` header; an empty one means no tags.
    pub fn parse_header(text: &str) -> Result<Tags, TagsError> {
        let mut tags = Tags::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or(TagsError::InvalidTag)?;
            let decode = |text| percent::decode_query(text).map_err(|_| TagsError::InvalidTag);
            tags.add(decode(key)?.into_owned(), decode(value)?.into_owned())?;
        }
        Ok(tags)
    }

    /// `<Tags><TagSet>...</TagSet></Tags>`, as in the answer of Get Blob Tags and in listings.
    pub fn write(&self, xml: &mut XmlWriter) {
        write(xml, self.iter());
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, key: String, value: String) -> Result<(), TagsError> {
        if key.is_empty() {
            return Err(TagsError::EmptyTagName);
        }
        if !key.chars().chain(value.chars()).all(is_tag_char) {
            return Err(TagsError::InvalidTag);
        }
        // All characters are ASCII by now, so bytes are characters.
        if key.len() > KEY_CHARS_MAX || value.len() > VALUE_CHARS_MAX || self.len() == TAGS_PER_BLOB_MAX {
            return Err(TagsError::TagsTooLarge);
        }
        if self.get(&key).is_some() {
            return Err(TagsError::DuplicateTagNames);
        }
        self.0.push((key, value));
        Ok(())
    }
}

/// The element of [`Tags::write`] with tags that were checked when they came.
pub fn write<'a>(xml: &mut XmlWriter, tags: impl Iterator<Item = (&'a str, &'a str)>) {
    xml.open("Tags").open("TagSet");
    for (key, value) in tags {
        xml.open("Tag").leaf("Key", key).leaf("Value", value).close("Tag");
    }
    xml.close("TagSet").close("Tags");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_and_header_say_the_same() {
        let body = Tags::parse_xml(
            b"<Tags><TagSet><Tag><Key>a b</Key><Value>1+1=2</Value></Tag><Tag><Key>A</Key><Value/></Tag></TagSet></Tags>",
        );
        let header = Tags::parse_header("a+b=1%2B1%3D2&A=");
        assert_eq!(body, header);
        let tags = body.expect("valid");
        assert_eq!((tags.get("a b"), tags.get("A"), tags.get("a")), (Some("1+1=2"), Some(""), None));
        let mut xml = XmlWriter::document();
        tags.write(&mut xml);
        assert_eq!(Tags::parse_xml(&xml.finish()), Ok(tags));
        assert_eq!(Tags::parse_xml(b"<Tags><TagSet/></Tags>"), Ok(Tags::default()));
        assert_eq!(Tags::parse_header(""), Ok(Tags::default()));
    }

    #[test]
    fn refusals() {
        let header = |text: &str| Tags::parse_header(text).expect_err("refused");
        assert_eq!(header("=v"), TagsError::EmptyTagName);
        assert_eq!(header("k"), TagsError::InvalidTag);
        assert_eq!(header("k=a%2Ab"), TagsError::InvalidTag);
        assert_eq!(header("k=%C3%A4"), TagsError::InvalidTag);
        assert_eq!(header("k=1&k=2"), TagsError::DuplicateTagNames);
        assert_eq!(header(&format!("{}=v", "k".repeat(129))), TagsError::TagsTooLarge);
        assert_eq!(header(&format!("k={}", "v".repeat(257))), TagsError::TagsTooLarge);
        let many = |n: usize| (0..n).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join("&");
        assert_eq!(Tags::parse_header(&many(10)).map(|tags| tags.len()), Ok(10));
        assert_eq!(header(&many(11)), TagsError::TagsTooLarge);
        let body = |text: &str| Tags::parse_xml(text.as_bytes()).expect_err("refused");
        assert_eq!(body("<Tags/>"), TagsError::Xml(XmlError::Missing("TagSet")));
        assert_eq!(
            body("<Tags><TagSet><Tag><Key>k</Key></Tag></TagSet></Tags>"),
            TagsError::Xml(XmlError::Missing("Value"))
        );
        assert_eq!(body("<Tags><TagSet><Other/></TagSet></Tags>"), TagsError::Xml(XmlError::Malformed));
    }
}
