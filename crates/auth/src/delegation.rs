//! User delegation keys: a user with a token gets a key to sign with, for a few days at most.
//!
//! Nothing is stored. The key is derived from a secret of the server and from everything that a signature made with it
//! repeats, so a signature in which any of that was changed names another key, which was given to no one.

use std::fmt;

use concurrency::Timestamp;
use wire::dates;
use wire::xml::{KeyInfo, UserDelegationKey, XmlError};

use crate::account::Key;
use crate::bearer::Bearer;
use crate::grant::Service;
use crate::node_key::append_parts;

/// A key lives inside so many days around the request for it, either way.
pub const KEY_DAYS_MAX: u64 = 7;

const TICKS_MAX: u64 = KEY_DAYS_MAX * 86_400 * Timestamp::TICKS_PER_SECOND;
/// Keeps these keys apart from anything else that the secret may ever be used for.
const LABEL: &[u8] = b"lazurite user delegation key 1";

/// What a key is made from, beside the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelegationKey<'a> {
    pub account: &'a str,
    pub oid: &'a str,
    pub tid: &'a str,
    pub start: Timestamp,
    pub expiry: Timestamp,
    pub service: Service,
    pub version: &'a str,
    pub delegated_tid: Option<&'a str>,
}

impl<'a> DelegationKey<'a> {
    /// The key that Get User Delegation Key is asked for. Clients repeat its times in whole seconds, so it has no others.
    pub fn wanted(
        bearer: &'a Bearer,
        account: &'a str,
        service: Service,
        version: &'a str,
        info: &'a KeyInfo,
        now: Timestamp,
    ) -> Result<DelegationKey<'a>, XmlError> {
        let time = |node: &'static str, text: &str| {
            let bad = || XmlError::BadValue { node, value: text.to_owned() };
            let at = dates::parse_iso(text).ok_or_else(bad)?;
            if at.0.abs_diff(now.0) > TICKS_MAX { Err(bad()) } else { Ok(at.whole_seconds()) }
        };
        let start = info.start.as_deref().map(|text| time("Start", text)).transpose()?.unwrap_or(now.whole_seconds());
        let expiry = time("Expiry", &info.expiry)?;
        if expiry <= now || expiry <= start {
            return Err(XmlError::BadValue { node: "Expiry", value: info.expiry.clone() });
        }
        let (oid, tid, delegated_tid) = (&*bearer.oid, &*bearer.tid, info.delegated_user_tid.as_deref());
        Ok(DelegationKey { account, oid, tid, start, expiry, service, version, delegated_tid })
    }

    /// The answer of Get User Delegation Key.
    pub fn answer(&self, secret: &[u8; 32]) -> UserDelegationKey {
        UserDelegationKey {
            signed_oid: self.oid.to_owned(),
            signed_tid: self.tid.to_owned(),
            signed_start: dates::iso_seconds(self.start).to_string(),
            signed_expiry: dates::iso_seconds(self.expiry).to_string(),
            signed_service: char::from(self.service.letter()).to_string(),
            signed_version: self.version.to_owned(),
            signed_delegated_user_tid: self.delegated_tid.map(str::to_owned),
            value: wire::base64::encode(&self.value(secret)),
        }
    }

    /// The key as bytes.
    pub fn value(&self, secret: &[u8; 32]) -> [u8; 32] {
        let mut message = LABEL.to_vec();
        let (start, expiry) = (self.start.0.to_be_bytes(), self.expiry.0.to_be_bytes());
        let delegated = self.delegated_tid.unwrap_or_default();
        let texts = [self.account, self.oid, self.tid, self.service.word(), self.version, delegated];
        append_parts(&mut message, texts.map(str::as_bytes).into_iter().chain([&start[..], &expiry[..]]));
        Key::from_bytes(secret).tag(&message)
    }

    pub(crate) fn signing_key(&self, secret: &[u8; 32]) -> Key {
        Key::from_bytes(&self.value(secret))
    }
}

/// The secret that delegation keys are made from, if this server hands any out. Never printed.
#[derive(Clone, Copy, Default)]
pub struct Secret<'a>(pub Option<&'a [u8; 32]>);

impl fmt::Debug for Secret<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Secret(..)" } else { "Secret(none)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    const SECRET: [u8; 32] = [7; 32];
    const NOW: &str = "2026-01-02T03:04:05.6Z";

    fn bearer() -> Bearer {
        Bearer { oid: "oid".into(), tid: "tid".into() }
    }

    fn info(start: Option<&str>, expiry: &str) -> KeyInfo {
        KeyInfo { start: start.map(str::to_owned), expiry: expiry.into(), delegated_user_tid: None }
    }

    fn times(start: Option<&str>, expiry: &str) -> Result<(String, String), XmlError> {
        let (bearer, info) = (bearer(), info(start, expiry));
        let key = DelegationKey::wanted(&bearer, "acct", Service::Blob, "2026-10-06", &info, at(NOW))?;
        let answer = key.answer(&SECRET);
        Ok((answer.signed_start, answer.signed_expiry))
    }

    #[test]
    fn a_key_has_whole_seconds_in_one_form() {
        let expected = |start: &str, expiry: &str| Ok((start.to_owned(), expiry.to_owned()));
        assert_eq!(
            times(Some("2026-01-02"), "2026-01-03T01:00:00.9+01:00"),
            expected("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z")
        );
        assert_eq!(times(None, "2026-01-03"), expected("2026-01-02T03:04:05Z", "2026-01-03T00:00:00Z"));
    }

    #[test]
    fn a_key_lives_for_a_week_at_most() {
        let is_bad = |start, expiry, node| match times(start, expiry) {
            Err(XmlError::BadValue { node: found, .. }) => assert_eq!(found, node, "{start:?} {expiry}"),
            other => panic!("{start:?} {expiry} gave {other:?}"),
        };
        assert!(times(Some("2025-12-26T03:04:06Z"), "2026-01-09T03:04:05Z").is_ok());
        is_bad(None, "2026-01-09T03:04:06Z", "Expiry");
        is_bad(Some("2026-01-09T03:04:06Z"), "2026-01-09T03:04:05Z", "Start");
        is_bad(Some("2025-12-26T03:04:05Z"), "2026-01-03", "Start");
        is_bad(Some("2026-01-03"), "2026-01-03", "Expiry");
        is_bad(Some("2026-01-01"), "2026-01-02T03:04:05Z", "Expiry");
    }

    #[test]
    fn every_field_makes_another_key() {
        let (start, expiry) = (at("2026-01-01"), at("2026-01-02"));
        let base = DelegationKey {
            account: "acct",
            oid: "ab",
            tid: "cd",
            start,
            expiry,
            service: Service::Blob,
            version: "2026-10-06",
            delegated_tid: None,
        };
        let others = [
            DelegationKey { account: "accu", ..base },
            DelegationKey { oid: "abc", tid: "d", ..base },
            DelegationKey { oid: "ac", ..base },
            DelegationKey { tid: "ce", ..base },
            DelegationKey { start: expiry, ..base },
            DelegationKey { expiry: start, ..base },
            DelegationKey { service: Service::Queue, ..base },
            DelegationKey { version: "2026-06-06", ..base },
            DelegationKey { delegated_tid: Some("x"), ..base },
        ];
        let values: std::collections::HashSet<_> =
            others.iter().chain([&base]).map(|key| key.value(&SECRET)).chain([base.value(&[8; 32])]).collect();
        assert_eq!(values.len(), others.len() + 2);
        assert_eq!(base.value(&SECRET), base.value(&SECRET));
    }

    #[test]
    fn keys_outlive_releases() {
        let (bearer, info) = (bearer(), info(Some("2026-01-02"), "2026-01-03"));
        let key = DelegationKey::wanted(&bearer, "acct", Service::Blob, "2026-10-06", &info, at(NOW)).expect("valid");
        // A key that was handed out before an update must still sign after it.
        assert_eq!(key.answer(&SECRET).value, "DdVr3kcEsIhHJO46XKxQTn8HU4IthxFUBbEA9vb8VnE=");
    }

    #[test]
    fn the_secret_is_not_printed() {
        assert_eq!(format!("{:?}", Secret(Some(&SECRET))), "Secret(..)");
    }
}
