//! Which operation a request names. No other place knows.
//!
//! The path says what the request is about; then `comp` and the verb decide. A client that cannot send MERGE or PATCH
//! sends POST and names the verb in `X-HTTP-Method`. A write of an entity with `If-Match` is an update, without it an
//! upsert.

use service::RequestError;
use wire::http::{Head, Method};

use crate::address::Address;
use crate::error::TableError;
use crate::name::TableName;
use crate::op::Op;
use crate::request_parts::RequestParts;

impl Op {
    /// The operation that a request names.
    pub fn named_by(head: &Head) -> Result<Op, TableError> {
        Op::named_in(head)
    }

    /// The same for a request inside a transaction.
    pub(crate) fn named_in(head: &impl RequestParts) -> Result<Op, TableError> {
        if *head.method() == Method::OPTIONS {
            return Ok(Op::PreflightTableRequest);
        }
        let comp = head.query().get("comp").map(str::to_ascii_lowercase);
        let verb = verb(head)?;
        let address = Address::parse(head.resource())?;
        if let Address::Beyond(name) = address {
            // If the name is invalid too, that is the error that Azure gives.
            TableName::parse(name)?;
        }
        match (address, comp.as_deref()) {
            (Address::Service, comp) => service(head, verb, comp),
            (Address::Entities(_), Some("acl")) => match verb {
                Verb::Get | Verb::Head => Ok(Op::GetTableAcl),
                Verb::Put => Ok(Op::SetTableAcl),
                _ => Err(TableError::MethodNotAllowed),
            },
            (_, Some(comp)) => Err(RequestError::query("comp", comp).into()),
            (Address::Batch, None) => match verb {
                Verb::Post => Ok(Op::EntityGroupTransaction),
                _ => Err(TableError::MethodNotAllowed),
            },
            (Address::Tables, None) => match verb {
                Verb::Get => Ok(Op::QueryTables),
                Verb::Post => Ok(Op::CreateTable),
                _ => Err(TableError::MethodNotAllowed),
            },
            (Address::Table(_), None) => match verb {
                Verb::Get => Ok(Op::QueryTables),
                Verb::Delete => Ok(Op::DeleteTable),
                _ => Err(TableError::MethodNotAllowed),
            },
            (Address::Entities(_), None) => match verb {
                Verb::Get => Ok(Op::QueryEntities),
                Verb::Post => Ok(Op::InsertEntity),
                _ => Err(TableError::MethodNotAllowed),
            },
            (Address::Entity(..), None) => entity(head, verb),
            (Address::Beyond(_), None) => match verb {
                Verb::Post => Ok(Op::InsertEntity),
                Verb::Delete => Ok(Op::DeleteEntity),
                _ => Err(TableError::KeysDoNotMatch),
            },
        }
    }
}

fn service(head: &impl RequestParts, verb: Verb, comp: Option<&str>) -> Result<Op, TableError> {
    if let Some(restype) = head.query().get("restype").filter(|restype| !restype.eq_ignore_ascii_case("service")) {
        return Err(RequestError::query("restype", restype).into());
    }
    match (verb, comp) {
        (Verb::Get, Some("properties")) => Ok(Op::GetTableServiceProperties),
        (Verb::Put, Some("properties")) => Ok(Op::SetTableServiceProperties),
        (Verb::Get, Some("stats")) => Ok(Op::GetTableServiceStats),
        (_, Some("properties" | "stats")) => Err(TableError::MethodNotAllowed),
        (_, Some(comp)) => Err(RequestError::query("comp", comp).into()),
        (_, None) => Err(RequestError::MissingRequiredQueryParameter { name: "comp" }.into()),
    }
}

fn entity(head: &impl RequestParts, verb: Verb) -> Result<Op, TableError> {
    let is_conditional = head.has_header("if-match");
    match (verb, is_conditional) {
        (Verb::Get, _) => Ok(Op::QueryEntities),
        (Verb::Put, true) => Ok(Op::UpdateEntity),
        (Verb::Put, false) => Ok(Op::InsertOrReplaceEntity),
        (Verb::Merge, true) => Ok(Op::MergeEntity),
        (Verb::Merge, false) => Ok(Op::InsertOrMergeEntity),
        (Verb::Delete, _) => Ok(Op::DeleteEntity),
        (Verb::Head | Verb::Post | Verb::Other, _) => Err(TableError::MethodNotAllowed),
    }
}

#[derive(Clone, Copy)]
enum Verb {
    Get,
    Head,
    Put,
    Post,
    Delete,
    /// MERGE or PATCH, which are the same.
    Merge,
    Other,
}

/// The verb, with `X-HTTP-Method` taken into account.
fn verb(head: &impl RequestParts) -> Result<Verb, TableError> {
    let mut named = head.headers("x-http-method");
    let Some(name) = named.next() else { return Ok(known(head.method().as_str())) };
    if named.next().is_some() {
        return Err(TableError::XMethodIncorrectCount);
    }
    if *head.method() != Method::POST {
        return Err(TableError::XMethodNotUsingPost);
    }
    match known(std::str::from_utf8(name).unwrap_or_default()) {
        verb @ (Verb::Put | Verb::Delete | Verb::Merge) => Ok(verb),
        Verb::Get | Verb::Head | Verb::Post | Verb::Other => Err(TableError::XMethodIncorrectValue),
    }
}

fn known(name: &str) -> Verb {
    match name {
        "GET" => Verb::Get,
        "HEAD" => Verb::Head,
        "PUT" => Verb::Put,
        "POST" => Verb::Post,
        "DELETE" => Verb::Delete,
        "MERGE" | "PATCH" => Verb::Merge,
        _ => Verb::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;

    /// Method, URL below the account, headers, and what they name.
    type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)], Op);

    const ENTITY: &str = "tab(PartitionKey='p',RowKey='r')";

    #[test]
    fn the_request_lines_of_the_reference_name_their_operations() {
        let table: &[Row] = &[
            ("GET", "?restype=service&comp=properties", &[], Op::GetTableServiceProperties),
            ("PUT", "?restype=service&comp=properties", &[], Op::SetTableServiceProperties),
            ("GET", "?restype=service&comp=stats", &[], Op::GetTableServiceStats),
            ("OPTIONS", "tab", &[], Op::PreflightTableRequest),
            ("GET", "Tables", &[], Op::QueryTables),
            ("GET", "Tables('tab')", &[], Op::QueryTables),
            ("POST", "Tables", &[], Op::CreateTable),
            ("DELETE", "Tables('tab')", &[], Op::DeleteTable),
            ("GET", "tab?comp=acl", &[], Op::GetTableAcl),
            ("PUT", "tab?comp=acl", &[], Op::SetTableAcl),
            ("GET", "tab()", &[], Op::QueryEntities),
            ("GET", "tab?$filter=a", &[], Op::QueryEntities),
            ("GET", ENTITY, &[], Op::QueryEntities),
            ("POST", "tab", &[], Op::InsertEntity),
            ("PUT", ENTITY, &[("if-match", "*")], Op::UpdateEntity),
            ("PUT", ENTITY, &[], Op::InsertOrReplaceEntity),
            ("MERGE", ENTITY, &[("if-match", "*")], Op::MergeEntity),
            ("PATCH", ENTITY, &[("if-match", "*")], Op::MergeEntity),
            ("MERGE", ENTITY, &[], Op::InsertOrMergeEntity),
            ("PATCH", ENTITY, &[], Op::InsertOrMergeEntity),
            ("DELETE", ENTITY, &[("if-match", "*")], Op::DeleteEntity),
            ("POST", ENTITY, &[("x-http-method", "MERGE")], Op::InsertOrMergeEntity),
            ("POST", ENTITY, &[("x-http-method", "DELETE"), ("if-match", "*")], Op::DeleteEntity),
            ("POST", "$batch", &[], Op::EntityGroupTransaction),
        ];
        for (method, url, headers, op) in table {
            assert_eq!(Op::named_by(&request(method, url, headers)), Ok(*op), "{method} {url}");
        }
        for op in Op::ALL {
            assert!(table.iter().any(|row| row.3 == *op), "no request names {}", op.name());
        }
    }

    #[test]
    fn requests_that_name_nothing() {
        let named = |method: &str, url: &str, headers: &[(&str, &str)]| Op::named_by(&request(method, url, headers));
        for (method, url) in [
            ("PUT", "Tables"),
            ("PUT", "Tables('tab')"),
            ("DELETE", "tab"),
            ("POST", ENTITY),
            ("GET", "$batch"),
            ("DELETE", "tab?comp=acl"),
            ("POST", "?comp=properties"),
            ("BREW", ENTITY),
        ] {
            assert_eq!(named(method, url, &[]), Err(TableError::MethodNotAllowed), "{method} {url}");
        }
        assert_eq!(named("POST", "tab/Tables", &[]), Ok(Op::InsertEntity));
        assert_eq!(named("DELETE", "tab/Tables('tab')", &[]), Ok(Op::DeleteEntity));
        assert_eq!(named("GET", "tab/Tables", &[]), Err(TableError::KeysDoNotMatch));
        assert_eq!(named("GET", "a//?comp=acl", &[]), Err(TableError::NameLength));
        let properties = named("GET", "tab/?restype=service&comp=properties", &[]);
        assert_eq!(properties, Err(RequestError::query("comp", "properties").into()));
        assert_eq!(named("GET", "tab?comp=x", &[]), Err(RequestError::query("comp", "x").into()));
        assert_eq!(named("GET", "?comp=x", &[]), Err(RequestError::query("comp", "x").into()));
        assert_eq!(named("GET", "?restype=x&comp=stats", &[]), Err(RequestError::query("restype", "x").into()));
        assert_eq!(named("GET", "", &[]), Err(RequestError::MissingRequiredQueryParameter { name: "comp" }.into()));
        let verb = ("x-http-method", "MERGE");
        assert_eq!(named("PUT", ENTITY, &[verb]), Err(TableError::XMethodNotUsingPost));
        assert_eq!(named("POST", ENTITY, &[verb, verb]), Err(TableError::XMethodIncorrectCount));
        assert_eq!(named("POST", ENTITY, &[("x-http-method", "BREW")]), Err(TableError::XMethodIncorrectValue));
    }
}
