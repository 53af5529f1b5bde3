//! Stored access policies: the body of Get and Set ACL of containers, queues, tables and shares.

use concurrency::Timestamp;

use crate::dates;

use super::read::{self, Node, XmlError, is_blank};
use super::write::XmlWriter;

/// A container, queue, table or share has at most this many.
pub const SIGNED_IDENTIFIERS_MAX: usize = 5;
const ID_CHARS_MAX: usize = 64;

/// One stored policy. Times are kept as received and are valid dates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIdentifier {
    pub id: String,
    pub start: Option<String>,
    pub expiry: Option<String>,
    pub permission: Option<String>,
}

impl SignedIdentifier {
    pub fn start_time(&self) -> Option<Timestamp> {
        self.start.as_deref().and_then(dates::parse_iso)
    }

    pub fn expiry_time(&self) -> Option<Timestamp> {
        self.expiry.as_deref().and_then(dates::parse_iso)
    }
}

/// All policies of one resource, with distinct ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignedIdentifiers(Vec<SignedIdentifier>);

impl SignedIdentifiers {
    /// Reads the body of Set ACL. An empty body means no policies.
    pub fn parse(document: &[u8]) -> Result<SignedIdentifiers, XmlError> {
        if std::str::from_utf8(document).is_ok_and(is_blank) {
            return Ok(SignedIdentifiers::default());
        }
        let root = read::parse(document, "SignedIdentifiers")?;
        let mut policies = SignedIdentifiers::default();
        for node in root.many("SignedIdentifier", "SignedIdentifiers", SIGNED_IDENTIFIERS_MAX)? {
            let policy = parse_one(node)?;
            if policies.get(&policy.id).is_some() {
                return Err(XmlError::bad("Id", policy.id));
            }
            policies.0.push(policy);
        }
        Ok(policies)
    }

    pub fn get(&self, id: &str) -> Option<&SignedIdentifier> {
        self.0.iter().find(|policy| policy.id == id)
    }

    pub fn as_slice(&self) -> &[SignedIdentifier] {
        &self.0
    }

    /// Policies from a row; they were checked when they were stored.
    pub fn of(stored: impl Iterator<Item = SignedIdentifier>) -> SignedIdentifiers {
        SignedIdentifiers(stored.collect())
    }

    pub fn write(&self, xml: &mut XmlWriter) {
        if self.0.is_empty() {
            xml.empty("SignedIdentifiers");
            return;
        }
        xml.open("SignedIdentifiers");
        for policy in &self.0 {
            xml.open("SignedIdentifier").leaf("Id", &policy.id);
            // An empty policy has no element, as in Azure's answers.
            if policy.start.is_some() || policy.expiry.is_some() || policy.permission.is_some() {
                xml.open("AccessPolicy").leaf_if("Start", policy.start.as_ref());
                xml.leaf_if("Expiry", policy.expiry.as_ref());
                xml.leaf_if("Permission", policy.permission.as_ref()).close("AccessPolicy");
            }
            xml.close("SignedIdentifier");
        }
        xml.close("SignedIdentifiers");
    }
}

fn parse_one(node: &Node) -> Result<SignedIdentifier, XmlError> {
    node.only(&["Id", "AccessPolicy"])?;
    let id = node.text("Id")?;
    if id.is_empty() || id.chars().count() > ID_CHARS_MAX {
        return Err(XmlError::bad("Id", id));
    }
    let absent = Node::default();
    let policy = node.child("AccessPolicy").unwrap_or(&absent).only(&["Start", "Expiry", "Permission"])?;
    Ok(SignedIdentifier {
        id: id.to_owned(),
        start: date(policy, "Start")?,
        expiry: date(policy, "Expiry")?,
        permission: policy.text_if("Permission")?.map(str::to_owned),
    })
}

fn date(policy: &Node, name: &'static str) -> Result<Option<String>, XmlError> {
    let Some(text) = policy.text_if(name)? else { return Ok(None) };
    dates::parse_iso(text).ok_or_else(|| XmlError::bad(name, text))?;
    Ok(Some(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(id: &str, inner: &str) -> String {
        format!("<SignedIdentifier><Id>{id}</Id><AccessPolicy>{inner}</AccessPolicy></SignedIdentifier>")
    }

    fn parse(inner: &str) -> Result<SignedIdentifiers, XmlError> {
        SignedIdentifiers::parse(format!("<SignedIdentifiers>{inner}</SignedIdentifiers>").as_bytes())
    }

    #[test]
    fn policies_read_back_as_they_were_written() {
        let full =
            policy("a&amp;b", "<Start>2026-01-01</Start><Expiry>2026-02-01T00:00Z</Expiry><Permission>rl</Permission>");
        let policies = parse(&(full + &policy("b", "<Start/>"))).expect("valid");
        let first = policies.get("a&b").expect("the first policy");
        assert_eq!(first.start.as_deref(), Some("2026-01-01"));
        assert_eq!(first.start_time(), dates::parse_iso("2026-01-01T00:00:00Z"));
        assert_eq!(first.expiry_time(), dates::parse_iso("2026-02-01"));
        assert_eq!(first.permission.as_deref(), Some("rl"));
        assert_eq!(policies.as_slice()[1].start, None);
        let mut xml = XmlWriter::document();
        policies.write(&mut xml);
        assert_eq!(SignedIdentifiers::parse(&xml.finish()), Ok(policies));
    }

    #[test]
    fn nothing_means_no_policies() {
        assert_eq!(SignedIdentifiers::parse(b""), Ok(SignedIdentifiers::default()));
        assert_eq!(parse(""), Ok(SignedIdentifiers::default()));
    }

    #[test]
    fn refusals() {
        let many: String = (0..6).map(|n| policy(&n.to_string(), "")).collect();
        assert_eq!(parse(&many), Err(XmlError::TooMany { node: "SignedIdentifiers", limit: 5 }));
        assert_eq!(parse(&policy(&"i".repeat(65), "")), Err(XmlError::bad("Id", "i".repeat(65))));
        assert!(parse(&policy(&"ä".repeat(64), "")).is_ok());
        assert_eq!(parse(&policy("", "")), Err(XmlError::bad("Id", "")));
        assert_eq!(parse("<SignedIdentifier/>"), Err(XmlError::Missing("Id")));
        assert_eq!(parse(&(policy("a", "") + &policy("a", ""))), Err(XmlError::bad("Id", "a")));
        assert_eq!(parse(&policy("a", "<Expiry>soon</Expiry>")), Err(XmlError::bad("Expiry", "soon")));
        assert_eq!(parse(&policy("a", "<Other/>")), Err(XmlError::Malformed));
        assert_eq!(parse("<Other/>"), Err(XmlError::Malformed));
        assert_eq!(parse("text"), Err(XmlError::Malformed));
    }
}
