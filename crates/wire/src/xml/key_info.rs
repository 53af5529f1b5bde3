//! The body of Get User Delegation Key: for how long the key is wanted.

use crate::dates;

use super::read::{self, XmlError};

/// Times as received; both are valid dates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    pub start: String,
    pub expiry: String,
    pub delegated_user_tid: Option<String>,
}

impl KeyInfo {
    pub fn parse(document: &[u8]) -> Result<KeyInfo, XmlError> {
        let root = read::parse(document, "KeyInfo")?;
        root.only(&["Start", "Expiry", "DelegatedUserTid"])?;
        let date = |name: &'static str| {
            let text = root.text(name)?;
            dates::parse_iso(text).map(|_| text.to_owned()).ok_or_else(|| XmlError::bad(name, text))
        };
        Ok(KeyInfo {
            start: date("Start")?,
            expiry: date("Expiry")?,
            delegated_user_tid: root.text_if("DelegatedUserTid")?.map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_times_are_required_and_checked() {
        let parse = |inner: &str| KeyInfo::parse(format!("<KeyInfo>{inner}</KeyInfo>").as_bytes());
        let start = "<Start>2026-01-01T00:00:00Z</Start>";
        let info = parse(&format!("{start}<Expiry>2026-01-07</Expiry><DelegatedUserTid>t</DelegatedUserTid>"));
        assert_eq!(
            info,
            Ok(KeyInfo {
                start: "2026-01-01T00:00:00Z".into(),
                expiry: "2026-01-07".into(),
                delegated_user_tid: Some("t".into())
            })
        );
        assert_eq!(parse(start), Err(XmlError::Missing("Expiry")));
        assert_eq!(parse("<Expiry>2026-01-07</Expiry>"), Err(XmlError::Missing("Start")));
        assert_eq!(parse(&format!("{start}<Expiry>soon</Expiry>")), Err(XmlError::bad("Expiry", "soon")));
        assert_eq!(parse(&format!("{start}{start}")), Err(XmlError::Malformed));
    }
}
