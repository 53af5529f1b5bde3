//! The body of Get User Delegation Key: the time for which the client wants the key.

use crate::dates;

use super::read::{self, XmlError};

/// Times as received; they are valid dates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// `None`: from now on.
    pub start: Option<String>,
    pub expiry: String,
    pub delegated_user_tid: Option<String>,
}

impl KeyInfo {
    pub fn parse(document: &[u8]) -> Result<KeyInfo, XmlError> {
        let root = read::parse(document, "KeyInfo")?;
        root.only(&["Start", "Expiry", "DelegatedUserTid"])?;
        let date = |name: &'static str, text: &str| {
            dates::parse_iso(text).map(|_| text.to_owned()).ok_or_else(|| XmlError::bad(name, text))
        };
        Ok(KeyInfo {
            start: root.text_if("Start")?.map(|text| date("Start", text)).transpose()?,
            expiry: date("Expiry", root.text("Expiry")?)?,
            delegated_user_tid: root.text_if("DelegatedUserTid")?.map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_are_checked_and_the_last_one_is_required() {
        let parse = |inner: &str| KeyInfo::parse(format!("<KeyInfo>{inner}</KeyInfo>").as_bytes());
        let start = "<Start>2026-01-01T00:00:00Z</Start>";
        let info = parse(&format!("{start}<Expiry>2026-01-07</Expiry><DelegatedUserTid>t</DelegatedUserTid>"));
        assert_eq!(
            info,
            Ok(KeyInfo {
                start: Some("2026-01-01T00:00:00Z".into()),
                expiry: "2026-01-07".into(),
                delegated_user_tid: Some("t".into())
            })
        );
        assert_eq!(parse(start), Err(XmlError::Missing("Expiry")));
        for left_out in ["<Expiry>2026-01-07</Expiry>", "<Start/><Expiry>2026-01-07</Expiry>"] {
            assert_eq!(parse(left_out).map(|info| info.start), Ok(None));
        }
        assert_eq!(parse("<Start>now</Start><Expiry>2026-01-07</Expiry>"), Err(XmlError::bad("Start", "now")));
        assert_eq!(parse(&format!("{start}<Expiry>soon</Expiry>")), Err(XmlError::bad("Expiry", "soon")));
        assert_eq!(parse(&format!("{start}{start}")), Err(XmlError::Malformed));
    }
}
