//! Entities from JSON: an object whose annotations say which types its properties have.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::value::{Value, parse_typed};
use super::{PARTITION_KEY, Property, ROW_KEY, TIMESTAMP, check_properties};
use crate::error::TableError;

const TYPE_ANNOTATION: &str = "@odata.type";
/// Room for as many members as most entities have.
const MEMBERS_USUAL: usize = 12;

/// An entity as the body of a request describes it.
#[derive(Debug, PartialEq)]
pub struct SentEntity {
    pub partition: Option<String>,
    pub row: Option<String>,
    /// A key with an annotation of another type than string, though its value is a text. It is an error only where the
    /// body's keys are used.
    pub odd_key: Option<&'static str>,
    /// The properties without the keys and without the timestamp, which clients cannot set. Each of them is valid by
    /// itself.
    pub properties: Vec<Property<'static>>,
}

/// Parses a body. A property that is null counts as not sent.
pub fn read(body: &[u8]) -> Result<SentEntity, TableError> {
    let Object(members) = object(body)?;
    // Annotations by property name; the first of several for the same name counts.
    let mut types: Vec<(&str, &str)> = members.iter().filter_map(type_of).collect();
    types.sort_by_key(|(of, _)| *of);
    let written = OnceCell::new();
    let properties = Vec::with_capacity(members.len());
    let mut sent = SentEntity { partition: None, row: None, odd_key: None, properties };
    for (Text(name), json) in &members {
        let is_whole_zero = is_negative_zero(json) && written.get_or_init(|| Written::read(body)).is_whole_zero(name);
        let json = if is_whole_zero { &Json::Whole(0) } else { json };
        if name.contains("odata.") || name == TIMESTAMP || *json == Json::Null {
            continue;
        }
        let bad_type = || TableError::InvalidValueType { name: name.clone().into_owned() };
        let at = types.partition_point(|(of, _)| *of < &**name);
        let annotated = types.get(at).filter(|(of, _)| of == name).map(|(_, kind)| *kind);
        if let Some(key) = [PARTITION_KEY, ROW_KEY].into_iter().find(|key| key == name) {
            let Json::Text(text) = json else { return Err(bad_type()) };
            if annotated.is_some_and(|kind| kind != "Edm.String") {
                sent.odd_key = Some(key);
            }
            let place = if key == PARTITION_KEY { &mut sent.partition } else { &mut sent.row };
            if place.replace(text.clone().into_owned()).is_some() {
                return Err(TableError::DuplicatePropertiesSpecified);
            }
            continue;
        }
        let value = typed(json, annotated).ok_or_else(bad_type)?;
        sent.properties.push((Cow::Owned(name.clone().into_owned()), value));
    }
    check_properties(&sent.properties)?;
    Ok(sent)
}

/// The name in the body of Create Table.
pub fn table_name(body: &[u8]) -> Result<String, TableError> {
    let Object(members) = object(body)?;
    let name = members.into_iter().find(|(Text(name), _)| name == "TableName");
    match name {
        Some((_, Json::Text(name))) => Ok(name.into_owned()),
        _ => Err(TableError::PropertiesNeedValue),
    }
}

fn object(body: &[u8]) -> Result<Object<'_>, TableError> {
    serde_json::from_slice(body).map_err(|_| TableError::InvalidInput("The body is not a JSON object."))
}

/// The JSON parser returns a double for `-0`, as it does for `-0.0`.
fn is_negative_zero(json: &Json<'_>) -> bool {
    matches!(json, Json::Fraction(value) if *value == 0.0 && value.is_sign_negative())
}

/// The members as they are written in the body. This parses the body a second time; it is needed so seldom that this is
/// cheap.
struct Written<'a>(HashMap<Cow<'a, str>, &'a RawValue>);

impl<'a> Written<'a> {
    fn read(body: &'a [u8]) -> Written<'a> {
        Written(serde_json::from_slice(body).unwrap_or_default())
    }

    /// Whether a member was written as the integer `-0`: without point and exponent.
    fn is_whole_zero(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| value.get() == "-0")
    }
}

fn type_of<'a>((Text(name), json): &'a (Text<'_>, Json<'_>)) -> Option<(&'a str, &'a str)> {
    match (name.strip_suffix(TYPE_ANNOTATION), json) {
        (Some(of), Json::Text(kind)) if !of.is_empty() => Some((of, kind)),
        _ => None,
    }
}

/// The value of a property. Without an annotation its JSON type decides; a whole number that does not fit 32 bits is a
/// double, as in Azure's client libraries.
fn typed(json: &Json<'_>, annotated: Option<&str>) -> Option<Value<'static>> {
    match (json, annotated) {
        (Json::Text(text), None) => Some(Value::String(Cow::Owned(text.clone().into_owned()))),
        (Json::Text(text), Some(kind)) => parse_typed(kind, Cow::Owned(text.clone().into_owned())),
        (Json::Bool(value), None | Some("Edm.Boolean")) => Some(Value::Boolean(*value)),
        (Json::Whole(value), None) => Some(i32::try_from(*value).map_or(Value::Double(*value as f64), Value::Int32)),
        (Json::Whole(value), Some("Edm.Int32")) => i32::try_from(*value).ok().map(Value::Int32),
        (Json::Whole(value), Some("Edm.Int64")) => i64::try_from(*value).ok().map(Value::Int64),
        (Json::Whole(value), Some("Edm.Double")) => Some(Value::Double(*value as f64)),
        (Json::Fraction(value), None | Some("Edm.Double")) => Some(Value::Double(*value)),
        (Json::Null | Json::Nested | Json::Bool(_) | Json::Whole(_) | Json::Fraction(_), _) => None,
    }
}

/// The members in their order, duplicates included. Texts are borrowed from the body where possible.
struct Object<'a>(Vec<(Text<'a>, Json<'a>)>);

struct Text<'a>(Cow<'a, str>);

/// The JSON values that an entity can have.
#[derive(Debug, PartialEq)]
enum Json<'a> {
    Null,
    Bool(bool),
    Whole(i128),
    Fraction(f64),
    Text(Cow<'a, str>),
    Nested,
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<'de>, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut members = Vec::with_capacity(MEMBERS_USUAL);
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<'de>, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::Text(text) => Ok(Text(text)),
            _ => Err(serde::de::Error::custom("a name is a text")),
        }
    }
}

impl<'de> Deserialize<'de> for Json<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json<'de>, D::Error> {
        struct Member;
        impl<'de> Visitor<'de> for Member {
            type Value = Json<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Json<'de>, E> {
                Ok(Json::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Json<'de>, E> {
                Ok(Json::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Json<'de>, E> {
                Ok(Json::Whole(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Json<'de>, E> {
                Ok(Json::Whole(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Json<'de>, E> {
                Ok(Json::Fraction(value))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Json<'de>, E> {
                Ok(Json::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
                Ok(Json::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json<'de>, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Json::Nested)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Json::Nested)
            }
        }
        deserializer.deserialize_any(Member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(body: &str) -> Result<Vec<(String, Value<'static>)>, TableError> {
        let sent = read(body.as_bytes())?;
        Ok(sent.properties.into_iter().map(|(name, value)| (name.into_owned(), value)).collect())
    }

    fn one(body: &str) -> Option<Value<'static>> {
        properties(body).ok()?.pop().map(|(_, value)| value)
    }

    #[test]
    fn what_json_says_without_annotations() {
        let table = [
            ("\"5\"", Value::String("5".into())),
            ("5", Value::Int32(5)),
            ("-2147483648", Value::Int32(i32::MIN)),
            ("-0", Value::Int32(0)),
            ("-0.0", Value::Double(-0.0)),
            ("-0e0", Value::Double(-0.0)),
            ("2147483648", Value::Double(2_147_483_648.0)),
            ("99999999999999999999", Value::Double(1e20)),
            ("5.0", Value::Double(5.0)),
            ("1e3", Value::Double(1000.0)),
            ("0.1", Value::Double(0.1)),
            ("5.960464477539063e-8", Value::Double(5.960_464_477_539_063e-8)),
            ("true", Value::Boolean(true)),
            ("\"\\ud83d\\ude00\"", Value::String("😀".into())),
        ];
        for (json, value) in table {
            assert_eq!(one(&format!("{{\"a\":{json}}}")), Some(value), "{json}");
        }
    }

    #[test]
    fn what_annotations_make_of_it() {
        let table = [
            ("Edm.Int64", "\"255\"", Some(Value::Int64(255))),
            ("Edm.Int64", "255", Some(Value::Int64(255))),
            ("Edm.Int32", "\"5\"", Some(Value::Int32(5))),
            ("Edm.Int32", "5000000000", None),
            ("Edm.Int32", "5.5", None),
            ("Edm.Int64", "-0", Some(Value::Int64(0))),
            ("Edm.Int32", "-0.0", None),
            ("Edm.Double", "5", Some(Value::Double(5.0))),
            ("Edm.Double", "\"Infinity\"", Some(Value::Double(f64::INFINITY))),
            ("Edm.Boolean", "true", Some(Value::Boolean(true))),
            ("Edm.Boolean", "1", None),
            ("Edm.String", "\"x\"", Some(Value::String("x".into()))),
            ("Edm.String", "5", None),
            ("Edm.Guid", "\"no guid\"", None),
            ("Edm.Binary", "\"*\"", None),
            (
                "Edm.DateTime",
                "\"2008-07-10\"",
                Some(Value::DateTime(crate::entity::value::parse_time("2008-07-10").unwrap())),
            ),
            ("Edm.Nothing", "\"x\"", None),
        ];
        for (kind, json, value) in table {
            for body in [
                format!("{{\"a@odata.type\":\"{kind}\",\"a\":{json}}}"),
                format!("{{\"a\":{json},\"a@odata.type\":\"{kind}\"}}"),
            ] {
                assert_eq!(one(&body), value, "{body}");
                if value.is_none() {
                    assert_eq!(properties(&body), Err(TableError::InvalidValueType { name: "a".into() }));
                }
            }
        }
    }

    #[test]
    fn keys_and_what_is_passed_over() {
        let body = r#"{"odata.etag":"x","odata.metadata":7,"Timestamp":"never","PartitionKey":"p","RowKey":"","b":1,"a":null,
            "z@odata.other":"x","A":2}"#;
        let sent = read(body.as_bytes()).unwrap();
        assert_eq!((sent.partition.as_deref(), sent.row.as_deref()), (Some("p"), Some("")));
        let names: Vec<_> = sent.properties.iter().map(|(name, _)| name.as_ref()).collect();
        assert_eq!((names, sent.odd_key), (vec!["b", "A"], None));
        let odd = read(br#"{"PartitionKey@odata.type":"Edm.DateTime","PartitionKey":"2022-04-01T00:00:00Z"}"#).unwrap();
        assert_eq!((odd.partition.as_deref(), odd.odd_key), (Some("2022-04-01T00:00:00Z"), Some("PartitionKey")));
    }

    #[test]
    fn bodies_that_are_none() {
        for body in ["", "[]", "5", "{", "{\"a\":1}x", "{\"a\":\"\\ud800\"}", "{\"a\":NaN}", "\u{feff}{}"] {
            assert!(matches!(read(body.as_bytes()), Err(TableError::InvalidInput(_))), "{body}");
        }
        assert!(matches!(read(b"{\"a\":\"\xff\"}"), Err(TableError::InvalidInput(_))));
        assert!(matches!(read("[".repeat(100_000).as_bytes()), Err(TableError::InvalidInput(_))));
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(1_000), "]".repeat(1_000));
        assert!(matches!(read(deep.as_bytes()), Err(TableError::InvalidValueType { .. })));
        for body in ["{\"a\":[1]}", "{\"a\":{}}", "{\"PartitionKey\":1}", "{\"RowKey\":[]}"] {
            assert!(matches!(read(body.as_bytes()), Err(TableError::InvalidValueType { .. })), "{body}");
        }
        for body in ["{\"a\":1,\"a\":1}", "{\"RowKey\":\"1\",\"RowKey\":\"1\"}"] {
            assert_eq!(read(body.as_bytes()), Err(TableError::DuplicatePropertiesSpecified), "{body}");
        }
    }

    #[test]
    fn names_of_tables() {
        assert_eq!(table_name(b"{\"TableName\":\"abc\"}"), Ok("abc".into()));
        assert_eq!(table_name(b"{\"TableName\":5}"), Err(TableError::PropertiesNeedValue));
        assert_eq!(table_name(b"{}"), Err(TableError::PropertiesNeedValue));
    }

    /// The body is not parsed again for each zero, and not all annotations are searched for each property: either would
    /// take minutes here.
    #[test]
    fn very_many_members_are_refused_and_cost_little() {
        let zeros: Vec<String> = (0..20_000).map(|at| format!("\"p{at}\":-0")).collect();
        let types: Vec<String> =
            (0..60_000).map(|at| format!("\"p{at}@odata.type\":\"Edm.Int64\",\"q{at}\":1")).collect();
        for members in [zeros, types] {
            let refused = read(format!("{{{}}}", members.join(",")).as_bytes());
            assert_eq!(refused, Err(TableError::TooManyProperties));
        }
    }
}
