//! The XML writer. The caller closes the elements that it opens.

use std::fmt;

use crate::percent;

/// An XML document being written.
#[derive(Clone, Default)]
pub struct XmlWriter(Vec<u8>);

impl XmlWriter {
    /// Begins a document with its declaration.
    pub fn document() -> XmlWriter {
        XmlWriter(b"<?xml version=\"1.0\" encoding=\"utf-8\"?>".to_vec())
    }

    /// Begins a fragment, without a declaration, that becomes part of another document.
    pub fn fragment() -> XmlWriter {
        XmlWriter::default()
    }

    pub fn reserve(&mut self, bytes: usize) {
        self.0.reserve(bytes);
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    /// How many bytes have been written.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `<name>`
    pub fn open(&mut self, name: &str) -> &mut XmlWriter {
        self.tag(b"<", name, b">")
    }

    /// `<name key="value">`
    pub fn open_with(&mut self, name: &str, attributes: &[(&str, &str)]) -> &mut XmlWriter {
        self.tag(b"<", name, b"");
        for (key, value) in attributes {
            self.tag(b" ", key, b"=\"");
            self.escape(value, EscapedIn::Attribute);
            self.0.push(b'"');
        }
        self.0.push(b'>');
        self
    }

    /// `</name>`
    pub fn close(&mut self, name: &str) -> &mut XmlWriter {
        self.tag(b"</", name, b">")
    }

    /// `<name>text</name>`, or `<name />` for an empty text.
    pub fn leaf(&mut self, name: &str, text: impl AsRef<str>) -> &mut XmlWriter {
        let text = text.as_ref();
        if text.is_empty() {
            return self.empty(name);
        }
        self.open(name).text(text).close(name)
    }

    /// Like `leaf`; writes nothing if there is no text.
    pub fn leaf_if(&mut self, name: &str, text: Option<impl AsRef<str>>) -> &mut XmlWriter {
        match text {
            Some(text) => self.leaf(name, text),
            None => self,
        }
    }

    /// `<name>123</name>`
    pub fn number(&mut self, name: &str, mut value: u64) -> &mut XmlWriter {
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        self.open(name);
        self.0.extend_from_slice(&digits[at..]);
        self.close(name)
    }

    /// `<name>true</name>`
    pub fn flag(&mut self, name: &str, value: bool) -> &mut XmlWriter {
        self.leaf(name, if value { "true" } else { "false" })
    }

    /// `<name />`
    pub fn empty(&mut self, name: &str) -> &mut XmlWriter {
        self.tag(b"<", name, b" />")
    }

    /// `<Name>text</Name>`; a name with characters that XML cannot hold is percent-encoded and marked `Encoded="true"`.
    pub fn name(&mut self, name: &str) -> &mut XmlWriter {
        if name.chars().all(is_xml_char) {
            return self.leaf("Name", name);
        }
        self.open_with("Name", &[("Encoded", "true")]).text(&percent::encode_name(name)).close("Name")
    }

    /// Text inside the element that is open. A character that XML cannot hold becomes U+FFFD.
    pub fn text(&mut self, text: &str) -> &mut XmlWriter {
        self.escape(text, EscapedIn::Text);
        self
    }

    fn tag(&mut self, before: &[u8], name: &str, after: &[u8]) -> &mut XmlWriter {
        self.0.extend_from_slice(before);
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(after);
        self
    }

    fn escape(&mut self, text: &str, place: EscapedIn) {
        let bytes = text.as_bytes();
        let mut written = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if !SUSPECT[usize::from(*byte)] {
                continue;
            }
            let Some((replacement, length)) = replacement(&bytes[at..], place) else { continue };
            self.0.extend_from_slice(&bytes[written..at]);
            self.0.extend_from_slice(replacement.as_bytes());
            written = at + length;
        }
        self.0.extend_from_slice(&bytes[written..]);
    }
}

impl fmt::Debug for XmlWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EscapedIn {
    Text,
    Attribute,
}

/// Bytes that may have to be replaced: controls, markup, and 0xEF, with which U+FFFE and U+FFFF begin.
const SUSPECT: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = byte < 0x20 || matches!(byte as u8, b'&' | b'<' | b'>' | b'"' | 0xef);
        byte += 1;
    }
    table
};

/// The replacement for the character at the beginning of `bytes`, and how many bytes it replaces.
fn replacement(bytes: &[u8], place: EscapedIn) -> Option<(&'static str, usize)> {
    let replacement = match bytes[0] {
        b'&' => "&amp;",
        b'<' => "&lt;",
        b'>' => "&gt;",
        b'"' if place == EscapedIn::Attribute => "&quot;",
        b'"' => return None,
        // A reader would fold these into spaces or line feeds.
        b'\r' => "&#13;",
        b'\n' if place == EscapedIn::Attribute => "&#10;",
        b'\t' if place == EscapedIn::Attribute => "&#9;",
        b'\n' | b'\t' => return None,
        0xef if matches!(bytes, [_, 0xbf, 0xbe | 0xbf, ..]) => return Some(("\u{fffd}", 3)),
        0xef => return None,
        _ => "\u{fffd}",
    };
    Some((replacement, 1))
}

pub(crate) fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut XmlWriter)) -> String {
        let mut xml = XmlWriter::fragment();
        write(&mut xml);
        String::from_utf8(xml.finish()).expect("the writer writes UTF-8")
    }

    #[test]
    fn elements() {
        let mut xml = XmlWriter::document();
        xml.open_with("R", &[("A", "1"), ("B", "x\"<\n")]).leaf("T", "a<b>&\"c'").leaf("E", "").number("N", 0);
        xml.number("N", u64::MAX).flag("F", true).leaf_if("X", None::<&str>).leaf_if("Y", Some("y")).close("R");
        assert_eq!(
            String::from_utf8(xml.finish()).expect("UTF-8"),
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><R A=\"1\" B=\"x&quot;&lt;&#10;\"><T>a&lt;b&gt;&amp;\"c'</T><E />\
             <N>0</N><N>18446744073709551615</N><F>true</F><Y>y</Y></R>"
        );
    }

    #[test]
    fn characters_that_xml_cannot_hold() {
        assert_eq!(
            written(|xml| _ = xml.text("a\u{1}b\u{fffe}c\u{ffff}d\r\n\t")),
            "a\u{fffd}b\u{fffd}c\u{fffd}d&#13;\n\t"
        );
        assert_eq!(written(|xml| _ = xml.text("\u{feff}ﬀ\u{fffd}😀ä")), "\u{feff}ﬀ\u{fffd}😀ä");
        assert_eq!(written(|xml| _ = xml.name("a/ä&b")), "<Name>a/ä&amp;b</Name>");
        assert_eq!(written(|xml| _ = xml.name("a/ \u{ffff}")), "<Name Encoded=\"true\">a/%20%EF%BF%BF</Name>");
        assert_eq!(written(|xml| _ = xml.name("\u{0}+")), "<Name Encoded=\"true\">%00%2B</Name>");
    }
}
