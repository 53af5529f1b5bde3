//! Entities to JSON: an object with as many annotations as the client asks for.

use std::borrow::Cow;

use concurrency::Timestamp;
use engine::Unread;
use serde::Serialize;
use wire::{base64, dates, percent};

use super::value::{Value, guid_text, time_text};
use super::{PARTITION_KEY, ROW_KEY, Row, TIMESTAMP, UncheckedValue};
use crate::etag;
use crate::key::KeyView;

/// How many annotations an answer has besides the values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metadata {
    /// `nometadata`: none, not even types.
    None,
    /// `minimalmetadata`: types that the JSON does not show, and ETags.
    Minimal,
    /// `fullmetadata`: also what a client could compute itself.
    Full,
}

impl Metadata {
    pub fn content_type(self) -> &'static str {
        match self {
            Metadata::None => "application/json;odata=nometadata;streaming=true;charset=utf-8",
            Metadata::Minimal => "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
            Metadata::Full => "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
        }
    }
}

/// How an answer shows its entities.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    pub metadata: Metadata,
    pub endpoint: &'a str,
    pub account: &'a str,
    pub table: &'a str,
    /// `$select`: the properties to show; `None`: all of them.
    pub select: Option<&'a [String]>,
}

impl Shape<'_> {
    /// One entity.
    pub fn alone(&self, out: &mut Vec<u8>, key: KeyView<'_>, row: &Row<'_>) -> Result<(), Unread> {
        let mut object = Object::open(out);
        if self.metadata != Metadata::None {
            object.name("odata.metadata");
            object.text(format!("{}/$metadata#{}/@Element", self.endpoint, self.table));
        }
        self.members(object, key, row)
    }

    /// One entity of a list.
    pub fn among(&self, out: &mut Vec<u8>, key: KeyView<'_>, row: &Row<'_>) -> Result<(), Unread> {
        self.members(Object::open(out), key, row)
    }

    /// The beginning of a list of entities; [`LIST_END`] ends it.
    pub fn list(&self, out: &mut Vec<u8>) {
        begin_list(out, self.metadata, self.endpoint, self.table);
    }

    fn members(&self, mut object: Object<'_>, key: KeyView<'_>, row: &Row<'_>) -> Result<(), Unread> {
        if self.metadata == Metadata::Full {
            let link = link(self.endpoint, self.table, key);
            object.name("odata.type");
            object.text(format!("{}.{}", self.account, self.table));
            object.name("odata.id");
            object.text(&link);
            object.etag(row.stamp);
            object.name("odata.editLink");
            object.text(&link[self.endpoint.len() + 1..]);
        }
        if self.metadata == Metadata::Minimal {
            object.etag(row.stamp);
        }
        for (name, text) in [(PARTITION_KEY, key.partition), (ROW_KEY, key.row)] {
            if self.wants(name) {
                object.name(name);
                object.text(text);
            }
        }
        if self.wants(TIMESTAMP) {
            if self.metadata == Metadata::Full {
                object.type_of(TIMESTAMP, "Edm.DateTime");
            }
            object.name(TIMESTAMP);
            object.plain(dates::iso_ticks(row.stamp).as_str());
        }
        for property in row.shown() {
            let (name, value) = property?;
            if self.wants(name) {
                object.property(name, &value, self.metadata);
            }
        }
        // A selected property that the entity does not have is shown as null.
        for name in self.select.unwrap_or_default() {
            if ![PARTITION_KEY, ROW_KEY, TIMESTAMP].contains(&name.as_str()) && row.property(name)?.is_none() {
                object.raw(name, b"null");
            }
        }
        object.close();
        Ok(())
    }

    fn wants(&self, name: impl AsRef<[u8]>) -> bool {
        self.select.is_none_or(|select| select.iter().any(|selected| selected.as_bytes() == name.as_ref()))
    }
}

pub const LIST_END: &[u8] = b"]}";

/// The beginning of a list of what the entity set `set` contains.
pub fn begin_list(out: &mut Vec<u8>, metadata: Metadata, endpoint: &str, set: &str) {
    let mut object = Object::open(out);
    if metadata != Metadata::None {
        object.name("odata.metadata");
        object.text(format!("{endpoint}/$metadata#{set}"));
    }
    object.name("value");
    out.push(b'[');
}

/// The URL of an entity.
pub fn link(endpoint: &str, table: &str, key: KeyView<'_>) -> String {
    let (partition, row) = (quoted(key.partition), quoted(key.row));
    [endpoint, "/", table, "(PartitionKey='", &partition, "',RowKey='", &row, "')"].concat()
}

fn quoted(text: &str) -> Cow<'_, str> {
    match text.contains('\'') {
        true => percent::encode_value(&text.replace('\'', "''")).into_owned().into(),
        false => percent::encode_value(text),
    }
}

/// Writes a JSON object.
#[derive(Debug)]
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> Object<'a> {
    pub fn open(out: &'a mut Vec<u8>) -> Object<'a> {
        out.push(b'{');
        Object { out, is_empty: true }
    }

    pub fn close(self) {
        self.out.push(b'}');
    }

    pub fn name(&mut self, name: impl AsRef<[u8]>) {
        self.begin_name(name.as_ref());
        self.out.extend_from_slice(b"\":");
    }

    /// Names of properties are identifiers and those of annotations plain text, so neither needs escapes.
    fn begin_name(&mut self, name: &[u8]) {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name);
    }

    /// Annotates the type of the property that follows.
    fn type_of(&mut self, name: impl AsRef<[u8]>, type_name: &str) {
        self.begin_name(name.as_ref());
        self.out.extend_from_slice(b"@odata.type\":");
        self.plain(type_name);
    }

    /// Writes a UTF-8 text.
    pub fn text(&mut self, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        if is_plain(text) {
            self.plain(text);
        } else {
            self.json(String::from_utf8_lossy(text));
        }
    }

    /// Writes a text that needs no escapes.
    fn plain(&mut self, text: impl AsRef<[u8]>) {
        self.out.push(b'"');
        self.out.extend_from_slice(text.as_ref());
        self.out.push(b'"');
    }

    fn json(&mut self, value: impl Serialize) {
        serde_json::to_writer(&mut *self.out, &value).expect("a vector takes every byte");
    }

    fn raw(&mut self, name: &str, json: &[u8]) {
        self.name(name);
        self.out.extend_from_slice(json);
    }

    fn etag(&mut self, stamp: Timestamp) {
        self.name("odata.etag");
        self.out.extend_from_slice(b"\"W/\\\"");
        etag::push_inner(self.out, stamp);
        self.out.extend_from_slice(b"\\\"\"");
    }

    fn property(&mut self, name: &[u8], value: &UncheckedValue<'_>, metadata: Metadata) {
        match value {
            UncheckedValue::Text(text) => {
                self.name(name);
                self.text(text);
            }
            UncheckedValue::Other(value) => self.typed(name, value, metadata),
        }
    }

    fn typed(&mut self, name: &[u8], value: &Value<'_>, metadata: Metadata) {
        let is_told = match value {
            Value::String(_) | Value::Int32(_) | Value::Boolean(_) => true,
            Value::Double(value) => value.is_finite(),
            Value::Int64(_) | Value::DateTime(_) | Value::Guid(_) | Value::Binary(_) => false,
        };
        if !is_told && metadata != Metadata::None {
            self.type_of(name, value.type_name());
        }
        self.name(name);
        match value {
            Value::String(text) => self.text(&**text),
            Value::Int32(value) => self.json(value),
            Value::Int64(value) => self.plain(value.to_string()),
            // A double always has a point or an exponent: a client would take `5` for an integer.
            Value::Double(value) if value.is_finite() => self.json(value),
            Value::Double(value) if value.is_nan() => self.plain("NaN"),
            Value::Double(value) => self.plain(if *value > 0.0 { "Infinity" } else { "-Infinity" }),
            Value::Boolean(value) => self.out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Value::DateTime(value) => self.plain(time_text(*value)),
            Value::Guid(value) => self.plain(guid_text(value)),
            Value::Binary(value) => self.plain(base64::encode(value)),
        }
    }
}

/// Whether JSON needs no escapes for a text. It looks at every byte without stopping early, because that is quicker.
fn is_plain(text: &[u8]) -> bool {
    text.iter().fold(true, |plain, byte| plain & (*byte >= b' ') & (*byte != b'"') & (*byte != b'\\'))
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::one_of_each;
    use super::*;
    use crate::entity::{Entity, Property, read};

    fn shape(metadata: Metadata) -> Shape<'static> {
        Shape { metadata, endpoint: "http://h/acct", account: "acct", table: "Tab", select: None }
    }

    fn written(shape: Shape<'_>, properties: Vec<Property<'static>>) -> String {
        let row = Entity { stamp: Timestamp(637_596_494_267_026_499), properties }.to_row();
        let mut out = Vec::new();
        shape.alone(&mut out, KeyView { partition: "it's", row: "ä" }, &Row::open(&row).unwrap()).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn some() -> Vec<Property<'static>> {
        vec![
            ("Text".into(), Value::String("a\"b".into())),
            ("Whole".into(), Value::Double(5.0)),
            ("Long".into(), Value::Int64(255)),
            ("Since".into(), Value::DateTime(crate::entity::value::parse_time("2008-07-10T00:00:00Z").unwrap())),
            ("No".into(), Value::Double(f64::NEG_INFINITY)),
        ]
    }

    #[test]
    fn the_three_levels() {
        let values = [
            r#""PartitionKey":"it's","RowKey":"ä","#,
            r#""Timestamp":"2021-06-18T21:43:46.7026499Z","Text":"a\"b","Whole":5.0,"#,
        ];
        let typed = r#""Long@odata.type":"Edm.Int64","Long":"255","Since@odata.type":"Edm.DateTime","Since":"2008-07-10T00:00:00Z","No@odata.type":"Edm.Double","No":"-Infinity"}"#;
        let etag = r#""odata.etag":"W/\"datetime'2021-06-18T21%3A43%3A46.7026499Z'\"","#;
        let none = written(shape(Metadata::None), some());
        assert_eq!(
            none,
            format!(
                "{{{}{}\"Long\":\"255\",\"Since\":\"2008-07-10T00:00:00Z\",\"No\":\"-Infinity\"}}",
                values[0], values[1]
            )
        );
        let context = r#""odata.metadata":"http://h/acct/$metadata#Tab/@Element","#;
        let minimal = written(shape(Metadata::Minimal), some());
        assert_eq!(minimal, format!("{{{context}{etag}{}{}{typed}", values[0], values[1]));
        let full = written(shape(Metadata::Full), some());
        let links = [
            r#""odata.type":"acct.Tab","odata.id":"http://h/acct/Tab(PartitionKey='it%27%27s',RowKey='%C3%A4')","#,
            r#""odata.editLink":"Tab(PartitionKey='it%27%27s',RowKey='%C3%A4')","#,
        ];
        let stamp = r#""Timestamp@odata.type":"Edm.DateTime","#;
        assert_eq!(full, format!("{{{context}{}{etag}{}{}{stamp}{}{typed}", links[0], links[1], values[0], values[1]));
    }

    #[test]
    fn what_goes_out_comes_in_again() {
        let written = written(shape(Metadata::Minimal), one_of_each());
        let read = read::read(written.as_bytes()).unwrap();
        assert_eq!((read.partition.as_deref(), read.row.as_deref()), (Some("it's"), Some("ä")));
        assert_eq!(read.properties, one_of_each());
    }

    #[test]
    fn texts_are_escaped_where_they_must_be() {
        for char in (0..=0x2FF).chain(0xD7F0..=0xD7FF).chain(0x2020..=0x2030).filter_map(char::from_u32) {
            for text in [char.to_string(), format!("{char}after"), format!("a long text before it {char}")] {
                let mut out = Vec::new();
                Object { out: &mut out, is_empty: true }.text(&text);
                assert_eq!(out, serde_json::to_vec(&text).unwrap(), "{text:?}");
            }
        }
    }

    #[test]
    fn only_what_is_selected() {
        let select = ["Whole".to_owned(), "RowKey".into(), "Absent".into()];
        let some_of = Shape { select: Some(&select), ..shape(Metadata::None) };
        assert_eq!(written(some_of, some()), r#"{"RowKey":"ä","Whole":5.0,"Absent":null}"#);
    }

    #[test]
    fn lists() {
        let mut out = Vec::new();
        shape(Metadata::Minimal).list(&mut out);
        out.extend_from_slice(LIST_END);
        assert_eq!(out, br#"{"odata.metadata":"http://h/acct/$metadata#Tab","value":[]}"#);
        let mut out = Vec::new();
        shape(Metadata::None).list(&mut out);
        assert_eq!(out, br#"{"value":["#);
    }
}
