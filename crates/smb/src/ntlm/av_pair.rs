//! Names and values inside challenge and proof (MS-NLMP 2.2.2.1). The proof covers them: what a client sends here was not changed on the way.

use super::ServerNames;
use crate::wire::cursor::{Put, Reader, len16, to_utf16, utf16};

/// Pairs in a list. Ten are documented.
pub(super) const PAIRS_MAX: usize = 32;

/// Where the pairs begin in what a client proves.
const IN_BLOB: usize = 28;

const END: u16 = 0;
const COMPUTER: u16 = 1;
const DOMAIN: u16 = 2;
const DNS_COMPUTER: u16 = 3;
const DNS_DOMAIN: u16 = 4;
const FLAGS: u16 = 6;
const TIMESTAMP: u16 = 7;
const TARGET_NAME: u16 = 9;

const FLAG_MIC: u32 = 2;

/// A list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AvPairs(Vec<(u16, Vec<u8>)>);

impl AvPairs {
    /// What a challenge has.
    pub(super) fn of_server(names: &ServerNames, time: i64) -> AvPairs {
        AvPairs(vec![
            (DOMAIN, to_utf16(&names.domain)),
            (COMPUTER, to_utf16(&names.computer)),
            (DNS_DOMAIN, to_utf16(&names.dns_domain)),
            (DNS_COMPUTER, to_utf16(&names.dns_computer)),
            (TIMESTAMP, time.to_le_bytes().to_vec()),
        ])
    }

    /// What a proof has: the blob that follows the 16 bytes of an NTLMv2 response. None for any other response.
    pub(super) fn of_client(blob: &[u8]) -> Option<AvPairs> {
        if blob.get(..2)? != [1, 1] {
            return None;
        }
        AvPairs::decode(blob.get(IN_BLOB..)?)
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<AvPairs> {
        let mut reader = Reader::new(bytes);
        let mut pairs = Vec::new();
        for _ in 0..PAIRS_MAX {
            let id = reader.u16().ok()?;
            let length = reader.u16().ok()?;
            if id == END {
                return Some(AvPairs(pairs));
            }
            pairs.push((id, reader.take(usize::from(length)).ok()?.to_vec()));
        }
        None
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (id, value) in &self.0 {
            out.put_u16(*id);
            out.put_u16(len16(value.len()));
            out.put(value);
        }
        out.put_u32(0);
        out
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn push(&mut self, id: u16, value: &[u8]) {
        self.0.push((id, value.to_vec()));
    }

    fn value(&self, id: u16) -> Option<&[u8]> {
        self.0.iter().find(|(other, _)| *other == id).map(|(_, value)| &value[..])
    }

    /// Whether the message has an integrity code.
    pub(super) fn have_mic(&self) -> bool {
        let flags = self.value(FLAGS).and_then(|value| Reader::new(value).u32().ok());
        flags.unwrap_or(0) & FLAG_MIC != 0
    }

    /// Whether the proof was made for a challenge of this server: names and time as they were sent, and the target a file server that the
    /// client meant to reach. A client that leaves pairs out is taken for an old one.
    pub(super) fn belong_to(&self, names: &ServerNames, time: i64) -> bool {
        let same = |id, expected: &[u8]| self.value(id).is_none_or(|value| value == expected);
        same(COMPUTER, &to_utf16(&names.computer))
            && same(DOMAIN, &to_utf16(&names.domain))
            && same(TIMESTAMP, &time.to_le_bytes())
            && self.target_is(names)
    }

    /// `cifs/host`, or nothing. A proof that was made for a web or directory server is a relayed one.
    fn target_is(&self, names: &ServerNames) -> bool {
        let Some(value) = self.value(TARGET_NAME).filter(|value| !value.is_empty()) else { return true };
        let Ok(name) = utf16(value) else { return false };
        let name = name.trim_end_matches('\0').to_lowercase();
        if name.is_empty() {
            return true;
        }
        let Some((service, host)) = name.split_once('/') else { return false };
        let host = host.split('/').next().unwrap_or(host);
        let known = |hosts: &Vec<String>| hosts.iter().any(|known| known == host);
        matches!(service, "cifs" | "host") && names.hosts.as_ref().is_none_or(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(hosts: Option<Vec<String>>) -> ServerNames {
        ServerNames {
            computer: "SERVER".into(),
            domain: "LAZURITE".into(),
            dns_computer: "server".into(),
            dns_domain: "lazurite".into(),
            hosts,
        }
    }

    #[test]
    fn pairs_are_read_as_they_were_written() {
        let pairs = AvPairs::of_server(&names(None), 5);
        let bytes = pairs.encode();
        assert_eq!(AvPairs::decode(&bytes), Some(pairs));
        for length in 0..bytes.len() {
            assert_eq!(AvPairs::decode(&bytes[..length]), None, "{length}");
        }
        assert_eq!(AvPairs::decode(&[1, 0, 0, 0].repeat(PAIRS_MAX + 1)), None);
    }

    #[test]
    fn a_proof_for_another_server_is_no_proof() {
        let pairs = AvPairs::of_server(&names(None), 5);
        assert!(pairs.belong_to(&names(None), 5));
        assert!(!pairs.belong_to(&names(None), 6));
        assert!(!pairs.belong_to(&ServerNames { computer: "OTHER".into(), ..names(None) }, 5));
        assert!(AvPairs(Vec::new()).belong_to(&names(None), 5));
    }

    #[test]
    fn a_target_is_a_file_server() {
        let target = |name: &str, hosts: Option<&[&str]>| {
            let hosts = hosts.map(|hosts| hosts.iter().map(|host| (*host).to_owned()).collect());
            AvPairs(vec![(TARGET_NAME, to_utf16(name))]).belong_to(&names(hosts), 5)
        };
        assert!(target("cifs/127.0.0.1", None) && target("", None) && target("CIFS/Server", Some(&["server"])));
        assert!(!target("HTTP/server", None) && !target("cifs/evil", Some(&["server"])) && !target("server", None));
    }
}
