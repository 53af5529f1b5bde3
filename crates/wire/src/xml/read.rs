//! The XML reader; it refuses document types and entities other than XML's own.

use std::borrow::Cow;
use std::fmt;

use quick_xml::events::{BytesStart, Event};

/// How deep elements may nest. The deepest document, the CORS rules, has four levels.
const DEPTH_MAX: usize = 8;
/// How many elements a document may have that is parsed into a tree. Block lists are not, and have their own limit.
const NODES_MAX: usize = 2_000;

/// What is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XmlError {
    /// Not XML, not the expected document, or with a part that is refused: `InvalidXmlDocument`.
    Malformed,
    /// A required element is missing: `MissingRequiredXmlNode`.
    Missing(&'static str),
    /// An element whose text is invalid or out of range: `InvalidXmlNodeValue`.
    BadValue { node: &'static str, value: String },
    /// More elements of a kind than allowed. The operation chooses the error; the default is `InvalidXmlDocument`.
    TooMany { node: &'static str, limit: usize },
}

impl XmlError {
    /// The error code; the status is 400 for all of them.
    pub fn code(&self) -> &'static str {
        match self {
            XmlError::Malformed | XmlError::TooMany { .. } => "InvalidXmlDocument",
            XmlError::Missing(_) => "MissingRequiredXmlNode",
            XmlError::BadValue { .. } => "InvalidXmlNodeValue",
        }
    }

    pub(crate) fn bad(node: &'static str, value: impl Into<String>) -> XmlError {
        XmlError::BadValue { node, value: value.into() }
    }
}

impl fmt::Display for XmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XmlError::Malformed => f.write_str("the document is not of the expected shape"),
            XmlError::Missing(node) => write!(f, "the element {node} is missing"),
            XmlError::BadValue { node, value } => write!(f, "the element {node} cannot be {value:?}"),
            XmlError::TooMany { node, limit } => write!(f, "there are more than {limit} elements {node}"),
        }
    }
}

impl std::error::Error for XmlError {}

/// One event of the reader.
pub(crate) enum Step<'a> {
    Open(BytesStart<'a>),
    Text(Cow<'a, str>),
    Close,
    End,
}

/// Reads a document event by event. The document is well-formed: balanced, one root, only white space around it.
pub(crate) struct Steps<'a> {
    events: quick_xml::Reader<&'a [u8]>,
    depth: usize,
    roots: usize,
}

impl<'a> Steps<'a> {
    pub(crate) fn through(document: &'a [u8]) -> Result<Steps<'a>, XmlError> {
        let text = std::str::from_utf8(document).map_err(|_| XmlError::Malformed)?;
        let mut events = quick_xml::Reader::from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
        events.config_mut().expand_empty_elements = true;
        Ok(Steps { events, depth: 0, roots: 0 })
    }

    pub(crate) fn next(&mut self) -> Result<Step<'a>, XmlError> {
        loop {
            let text = match self.events.read_event().map_err(|_| XmlError::Malformed)? {
                Event::Start(tag) => return self.open(tag),
                Event::End(_) => {
                    self.depth -= 1;
                    return Ok(Step::Close);
                }
                Event::Text(text) => text.xml10_content(),
                Event::CData(text) => text.xml10_content(),
                Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                    Ok(Some(c)) => c.to_string().into(),
                    Ok(None) => predefined(&reference.xml10_content()).ok_or(XmlError::Malformed)?.into(),
                    Err(_) => return Err(XmlError::Malformed),
                },
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => continue,
                // Does not occur: empty elements are expanded, and a document type is refused.
                Event::Empty(_) | Event::DocType(_) => return Err(XmlError::Malformed),
                Event::Eof if self.depth == 0 && self.roots == 1 => return Ok(Step::End),
                Event::Eof => return Err(XmlError::Malformed),
            };
            if self.depth > 0 {
                return Ok(Step::Text(text));
            }
            if !is_blank(&text) {
                return Err(XmlError::Malformed);
            }
        }
    }

    fn open(&mut self, tag: BytesStart<'a>) -> Result<Step<'a>, XmlError> {
        self.roots += usize::from(self.depth == 0);
        self.depth += 1;
        let allowed = self.depth <= DEPTH_MAX && self.roots == 1;
        allowed.then_some(Step::Open(tag)).ok_or(XmlError::Malformed)
    }
}

fn predefined(entity: &str) -> Option<&'static str> {
    Some(match entity {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        _ => return None,
    })
}

pub(crate) fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_whitespace())
}

/// An element of a parsed document. It has either children or text, not both.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) children: Vec<Node>,
}

/// Parses a document whose root has the given name.
pub(crate) fn parse(document: &[u8], root: &str) -> Result<Node, XmlError> {
    let mut steps = Steps::through(document)?;
    let mut above = vec![Node::default()];
    let mut nodes = 0;
    loop {
        match steps.next()? {
            Step::Open(tag) => {
                nodes += 1;
                if nodes > NODES_MAX {
                    return Err(XmlError::Malformed);
                }
                above.push(Node { name: tag.local_name().as_ref().to_owned(), ..Node::default() });
            }
            Step::Text(text) => above.last_mut().ok_or(XmlError::Malformed)?.text.push_str(&text),
            Step::Close => {
                let mut node = above.pop().ok_or(XmlError::Malformed)?;
                if !node.children.is_empty() {
                    if !is_blank(&node.text) {
                        return Err(XmlError::Malformed);
                    }
                    node.text.clear();
                }
                above.last_mut().ok_or(XmlError::Malformed)?.children.push(node);
            }
            Step::End => break,
        }
    }
    let found = above.pop().and_then(|mut top| top.children.pop()).ok_or(XmlError::Malformed)?;
    (found.name == root).then_some(found).ok_or(XmlError::Malformed)
}

impl Node {
    /// Refuses children that are not in the list, and children that occur twice.
    pub(crate) fn only(&self, names: &[&str]) -> Result<&Node, XmlError> {
        let known = |node: &Node| names.contains(&node.name.as_str());
        let twice = |(at, node): (usize, &Node)| self.children[..at].iter().any(|other| other.name == node.name);
        if !self.children.iter().all(known) || self.children.iter().enumerate().any(twice) || !self.is_container() {
            return Err(XmlError::Malformed);
        }
        Ok(self)
    }

    /// Refuses children of any other name than this one, which may occur any number of times.
    pub(crate) fn many(&self, name: &str, node: &'static str, limit: usize) -> Result<&[Node], XmlError> {
        if !self.children.iter().all(|child| child.name == name) || !self.is_container() {
            return Err(XmlError::Malformed);
        }
        if self.children.len() > limit {
            return Err(XmlError::TooMany { node, limit });
        }
        Ok(&self.children)
    }

    fn is_container(&self) -> bool {
        !self.children.is_empty() || is_blank(&self.text)
    }

    pub(crate) fn child(&self, name: &str) -> Option<&Node> {
        self.children.iter().find(|child| child.name == name)
    }

    pub(crate) fn required(&self, name: &'static str) -> Result<&Node, XmlError> {
        self.child(name).ok_or(XmlError::Missing(name))
    }

    /// The text of this leaf without the white space around it.
    pub(crate) fn leaf(&self) -> Result<&str, XmlError> {
        self.children.is_empty().then(|| self.text.trim_ascii()).ok_or(XmlError::Malformed)
    }

    /// The text of a child, `None` if the child is absent or empty.
    pub(crate) fn text_if(&self, name: &str) -> Result<Option<&str>, XmlError> {
        let Some(child) = self.child(name) else { return Ok(None) };
        Ok(Some(child.leaf()?).filter(|text| !text.is_empty()))
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<&str, XmlError> {
        self.required(name)?.leaf()
    }

    pub(crate) fn flag(&self, name: &'static str) -> Result<bool, XmlError> {
        parse_flag(name, self.text(name)?)
    }

    pub(crate) fn flag_if(&self, name: &'static str) -> Result<Option<bool>, XmlError> {
        self.text_if(name)?.map(|text| parse_flag(name, text)).transpose()
    }
}

fn parse_flag(node: &'static str, text: &str) -> Result<bool, XmlError> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ if text.eq_ignore_ascii_case("true") => Ok(true),
        _ if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(XmlError::bad(node, text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(document: &str) -> Result<String, XmlError> {
        parse(document.as_bytes(), "R").map(|node| node.text)
    }

    #[test]
    fn text_is_put_together() {
        assert_eq!(text("<R>a&amp;b&#x41;&#66;<![CDATA[<c>]]><!-- no -->d</R>"), Ok("a&bAB<c>d".into()));
        assert_eq!(text("\u{feff}<?xml version='1.0' encoding='utf-8'?>\n<R/>\n"), Ok("".into()));
        assert_eq!(text("<x:R xmlns:x='u' a='b'>t</x:R>"), Ok("t".into()));
    }

    #[test]
    fn what_is_not_one_balanced_document_is_refused() {
        for document in [
            "",
            "   ",
            "R",
            "<R>",
            "</R>",
            "<R></S>",
            "<R/><R/>",
            "x<R/>",
            "<R/>x",
            "<S/>",
            "<R>&</R>",
            "<R>a<b/></R>",
            "<R",
            "<R><",
            "<R>&#0;</R>",
            "<R>&#xD800;</R>",
        ] {
            let refused = parse(document.as_bytes(), "R").map(|node| node.text);
            assert_eq!(refused, Err(XmlError::Malformed), "{document:?}");
        }
        assert!(matches!(parse(b"<R>\xff</R>", "R"), Err(XmlError::Malformed)));
    }

    #[test]
    fn entities_and_document_types_are_refused() {
        for document in [
            "<!DOCTYPE R><R/>",
            "<!DOCTYPE R [<!ENTITY a 'b'>]><R>&a;</R>",
            "<!DOCTYPE R SYSTEM 'file:///etc/passwd'><R/>",
            "<R>&a;</R>",
            "<R>&nbsp;</R>",
        ] {
            assert_eq!(text(document), Err(XmlError::Malformed), "{document:?}");
        }
    }

    #[test]
    fn depth_and_size_have_limits() {
        let deep = |n: usize| "<R>".repeat(n) + &"</R>".repeat(n);
        assert!(parse(deep(DEPTH_MAX).as_bytes(), "R").is_ok());
        assert!(parse(deep(DEPTH_MAX + 1).as_bytes(), "R").is_err());
        let wide = |n: usize| format!("<R>{}</R>", "<a/>".repeat(n));
        assert!(parse(wide(NODES_MAX - 1).as_bytes(), "R").is_ok());
        assert!(parse(wide(NODES_MAX).as_bytes(), "R").is_err());
    }
}
