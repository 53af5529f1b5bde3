//! The answer of Get User Delegation Key.

use std::fmt;

use super::write::XmlWriter;

/// A key, and the fields that a signature made with it repeats.
#[derive(Clone, PartialEq, Eq)]
pub struct UserDelegationKey {
    pub signed_oid: String,
    pub signed_tid: String,
    pub signed_start: String,
    pub signed_expiry: String,
    /// `b`, `q` or `f`.
    pub signed_service: String,
    pub signed_version: String,
    pub signed_delegated_user_tid: Option<String>,
    /// The key itself, in base64.
    pub value: String,
}

impl UserDelegationKey {
    pub fn write(&self, xml: &mut XmlWriter) {
        xml.open("UserDelegationKey").leaf("SignedOid", &self.signed_oid).leaf("SignedTid", &self.signed_tid);
        xml.leaf("SignedStart", &self.signed_start).leaf("SignedExpiry", &self.signed_expiry);
        xml.leaf("SignedService", &self.signed_service).leaf("SignedVersion", &self.signed_version);
        xml.leaf_if("SignedDelegatedUserTid", self.signed_delegated_user_tid.as_ref());
        xml.leaf("Value", &self.value).close("UserDelegationKey");
    }
}

/// Leaves out the key itself.
impl fmt::Debug for UserDelegationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserDelegationKey")
            .field("oid", &self.signed_oid)
            .field("tid", &self.signed_tid)
            .field("start", &self.signed_start)
            .field("expiry", &self.signed_expiry)
            .field("service", &self.signed_service)
            .field("version", &self.signed_version)
            .field("delegated_user_tid", &self.signed_delegated_user_tid)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(delegated: Option<&str>) -> UserDelegationKey {
        UserDelegationKey {
            signed_oid: "o".into(),
            signed_tid: "t".into(),
            signed_start: "2026-01-01T00:00:00Z".into(),
            signed_expiry: "2026-01-07T00:00:00Z".into(),
            signed_service: "b".into(),
            signed_version: "2026-10-06".into(),
            signed_delegated_user_tid: delegated.map(str::to_owned),
            value: "c2VjcmV0".into(),
        }
    }

    #[test]
    fn as_it_is_written() {
        let written = |delegated| {
            let mut xml = XmlWriter::fragment();
            key(delegated).write(&mut xml);
            String::from_utf8(xml.finish()).expect("UTF-8")
        };
        let head = "<UserDelegationKey><SignedOid>o</SignedOid><SignedTid>t</SignedTid>\
                    <SignedStart>2026-01-01T00:00:00Z</SignedStart><SignedExpiry>2026-01-07T00:00:00Z</SignedExpiry>\
                    <SignedService>b</SignedService><SignedVersion>2026-10-06</SignedVersion>";
        let tail = "<Value>c2VjcmV0</Value></UserDelegationKey>";
        assert_eq!(written(None), format!("{head}{tail}"));
        let delegated = "<SignedDelegatedUserTid>d</SignedDelegatedUserTid>";
        assert_eq!(written(Some("d")), format!("{head}{delegated}{tail}"));
    }

    #[test]
    fn the_key_is_not_printed() {
        let printed = format!("{:?}", key(None));
        assert!(printed.contains("2026-10-06") && !printed.contains("c2Vj"), "{printed}");
    }
}
