//! The body of Query Blob Contents: the query, and the formats of the blob and of the answer.

use super::read::{self, Node, XmlError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryRequest {
    pub expression: String,
    pub input: Option<QueryFormat>,
    pub output: Option<QueryFormat>,
}

/// The format of a blob or of an answer. Texts are as they were sent; `None` is what was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryFormat {
    Delimited {
        column_separator: Option<String>,
        field_quote: Option<String>,
        record_separator: Option<String>,
        escape_char: Option<String>,
        has_headers: bool,
    },
    Json {
        record_separator: Option<String>,
    },
    Arrow,
    Parquet,
}

impl QueryRequest {
    pub fn parse(document: &[u8]) -> Result<QueryRequest, XmlError> {
        let root = read::parse(document, "QueryRequest")?;
        root.only(&["QueryType", "Expression", "InputSerialization", "OutputSerialization"])?;
        let kind = root.text("QueryType")?;
        if !kind.eq_ignore_ascii_case("SQL") {
            return Err(XmlError::bad("QueryType", kind));
        }
        Ok(QueryRequest {
            expression: root.text("Expression")?.to_owned(),
            input: root.child("InputSerialization").map(format).transpose()?,
            output: root.child("OutputSerialization").map(format).transpose()?,
        })
    }
}

fn format(node: &Node) -> Result<QueryFormat, XmlError> {
    let format = node.required("Format")?;
    match format.text("Type")?.to_ascii_lowercase().as_str() {
        "delimited" => {
            let nothing = Node::default();
            let form = format.child("DelimitedTextConfiguration").unwrap_or(&nothing);
            let headers = [form.flag_if("HasHeaders")?, form.flag_if("HeadersPresent")?];
            Ok(QueryFormat::Delimited {
                column_separator: text(form, "ColumnSeparator"),
                field_quote: text(form, "FieldQuote"),
                record_separator: text(form, "RecordSeparator"),
                escape_char: text(form, "EscapeChar"),
                has_headers: headers.contains(&Some(true)),
            })
        }
        "json" => {
            let form = format.child("JsonTextConfiguration");
            Ok(QueryFormat::Json { record_separator: form.and_then(|form| text(form, "RecordSeparator")) })
        }
        "arrow" => Ok(QueryFormat::Arrow),
        "parquet" => Ok(QueryFormat::Parquet),
        other => Err(XmlError::bad("Type", other)),
    }
}

/// The text is not trimmed: a separator may be white space.
fn text(node: &Node, name: &str) -> Option<String> {
    node.child(name).map(|child| child.text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(inner: &str) -> Result<QueryRequest, XmlError> {
        let head = "<QueryType>SQL</QueryType><Expression>SELECT * from BlobStorage</Expression>";
        QueryRequest::parse(format!("<QueryRequest>{head}{inner}</QueryRequest>").as_bytes())
    }

    #[test]
    fn formats() {
        let plain = parse("").unwrap();
        assert_eq!((plain.expression.as_str(), plain.input), ("SELECT * from BlobStorage", None));
        let of = |inner: &str| parse(&format!("<InputSerialization><Format>{inner}</Format></InputSerialization>"));
        let form = "<ColumnSeparator>,</ColumnSeparator><FieldQuote>\"</FieldQuote><RecordSeparator>&#10;</RecordSeparator>\
                    <EscapeChar></EscapeChar><HasHeaders>true</HasHeaders>";
        let given = format!("<Type>delimited</Type><DelimitedTextConfiguration>{form}</DelimitedTextConfiguration>");
        let expected = QueryFormat::Delimited {
            column_separator: Some(",".into()),
            field_quote: Some("\"".into()),
            record_separator: Some("\n".into()),
            escape_char: Some(String::new()),
            has_headers: true,
        };
        assert_eq!(of(&given).unwrap().input, Some(expected));
        assert_eq!(of("<Type>json</Type>").unwrap().input, Some(QueryFormat::Json { record_separator: None }));
        assert_eq!(of("<Type>parquet</Type>").unwrap().input, Some(QueryFormat::Parquet));
        assert_eq!(of("<Type>zip</Type>"), Err(XmlError::bad("Type", "zip")));
        assert_eq!(of(""), Err(XmlError::Missing("Type")));
    }

    #[test]
    fn what_is_asked_is_required() {
        let parse = |text: &str| QueryRequest::parse(text.as_bytes());
        assert_eq!(parse("<QueryRequest/>"), Err(XmlError::Missing("QueryType")));
        assert_eq!(
            parse("<QueryRequest><QueryType>SQL</QueryType></QueryRequest>"),
            Err(XmlError::Missing("Expression"))
        );
        assert_eq!(
            parse("<QueryRequest><QueryType>XPath</QueryType></QueryRequest>"),
            Err(XmlError::bad("QueryType", "XPath"))
        );
        assert_eq!(parse("<Other/>"), Err(XmlError::Malformed));
    }
}
