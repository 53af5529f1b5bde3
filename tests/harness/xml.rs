//! A small strict reader of XML, so that nobody but these tests decides what is well formed.

/// An element with what is in it. Text between child elements is put together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    pub children: Vec<Element>,
    pub text: String,
}

impl Element {
    pub fn parse(document: &[u8]) -> Result<Element, String> {
        let text = std::str::from_utf8(document).map_err(|_| "not UTF-8".to_owned())?;
        let mut rest = Rest(text.strip_prefix('\u{feff}').unwrap_or(text));
        if rest.take("<?xml ") {
            rest.until("?>")?;
        }
        rest.space();
        let root = rest.element()?;
        rest.space();
        if rest.0.is_empty() { Ok(root) } else { Err(format!("something after the end: {}", rest.0)) }
    }

    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The first element at a path of names below this one: `Properties/Etag`.
    pub fn find(&self, path: &str) -> Option<&Element> {
        path.split('/').try_fold(self, |at, name| at.children.iter().find(|child| child.name == name))
    }

    pub fn text_of(&self, path: &str) -> Option<String> {
        self.find(path).map(|found| found.text.clone())
    }

    /// All children of the element at `path`.
    pub fn all(&self, path: &str) -> &[Element] {
        self.find(path).map_or(&[], |found| &found.children)
    }
}

struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn take(&mut self, text: &str) -> bool {
        let taken = self.0.strip_prefix(text);
        self.0 = taken.unwrap_or(self.0);
        taken.is_some()
    }

    fn until(&mut self, end: &str) -> Result<&'a str, String> {
        let (before, after) = self.0.split_once(end).ok_or_else(|| format!("no {end}"))?;
        self.0 = after;
        Ok(before)
    }

    fn space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t', '\r', '\n']);
    }

    fn name(&mut self) -> Result<String, String> {
        let is_in_name = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | ':');
        let end = self.0.find(|char| !is_in_name(char)).unwrap_or(self.0.len());
        let (name, after) = self.0.split_at(end);
        self.0 = after;
        let begins_well = name.starts_with(|char: char| char.is_alphabetic() || char == '_');
        if begins_well { Ok(name.to_owned()) } else { Err(format!("no name: {name:?}")) }
    }

    fn element(&mut self) -> Result<Element, String> {
        if !self.take("<") {
            return Err(format!("no element: {}", self.0));
        }
        let mut element = Element { name: self.name()?, ..Element::default() };
        loop {
            self.space();
            if self.take("/>") {
                return Ok(element);
            }
            if self.take(">") {
                return self.content(element);
            }
            let name = self.name()?;
            if !self.take("=\"") {
                return Err(format!("attribute {name} without a value in double quotes"));
            }
            element.attributes.push((name, unescaped(self.until("\"")?)?));
        }
    }

    fn content(&mut self, mut element: Element) -> Result<Element, String> {
        loop {
            let text = &self.0[..self.0.find('<').ok_or("no end")?];
            self.0 = &self.0[text.len()..];
            element.text += &unescaped(text)?;
            if self.take("</") {
                let name = self.name()?;
                let closed = name == element.name && self.take(">");
                return if closed { Ok(element) } else { Err(format!("{} ends as {name}", element.name)) };
            }
            element.children.push(self.element()?);
        }
    }
}

/// Only what XML 1.0 can say, with its five entities and character references.
fn unescaped(text: &str) -> Result<String, String> {
    let is_allowed =
        |char: char| matches!(char, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    let mut out = String::new();
    let mut parts = text.split('&');
    out += parts.next().unwrap_or_default();
    for part in parts {
        let (entity, after) = part.split_once(';').ok_or_else(|| format!("a bare & before {part:?}"))?;
        let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
        let char = match entity {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => match entity.strip_prefix("#x") {
                Some(digits) => number(digits, 16),
                None => entity.strip_prefix('#').and_then(|digits| number(digits, 10)),
            },
        };
        out.push(char.ok_or_else(|| format!("unknown entity {entity:?}"))?);
        out += after;
    }
    match out.chars().find(|char| !is_allowed(*char)) {
        Some(char) => Err(format!("XML cannot say {char:?}")),
        None => Ok(out),
    }
}

#[test]
fn the_reader_is_strict() {
    let read = Element::parse(b"<?xml version=\"1.0\"?><a b=\"1&amp;\"><c>x&#x41;</c><d/></a>").expect("well formed");
    assert_eq!((read.attribute("b"), read.text_of("c").as_deref()), (Some("1&"), Some("xA")));
    for bad in ["", "<a>", "<a></b>", "<a/><b/>", "<a>&</a>", "<a>&x;</a>", "<a>\u{1}</a>", "<a>&#1;</a>", "<1/>"] {
        assert!(Element::parse(bad.as_bytes()).is_err(), "{bad:?}");
    }
}
