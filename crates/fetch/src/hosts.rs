//! Where we may go.
//!
//! An entry is a name (`store.example.org`), all names below one (`*.example.org`), an address (`10.1.2.3`), everything
//! that is public (`*`), or this machine (`loopback`); each may end with a port. What a name may lead to depends on how much
//! the operator has said: a name on the list may have an address of a private network, while `*` means the public network
//! only. Nothing but `loopback`, or the address itself, leads to this machine or to a link-local address, where clouds keep
//! the secrets of a machine.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A list of entries; what one of them allows is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    host: Host,
    /// `None`: every port.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Loopback,
    Public,
    Name(String),
    /// With the dot that it begins with.
    Below(String),
    Address(IpAddr),
}

/// An entry that says nothing we understand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadHost(pub String);

impl fmt::Display for BadHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a host name, *.name, an address, * or loopback", self.0)
    }
}

impl Hosts {
    /// This machine only.
    #[must_use]
    pub fn loopback() -> Hosts {
        Hosts(vec![Entry { host: Host::Loopback, port: None }])
    }

    /// Whether it makes sense to look for the addresses of a host.
    #[must_use]
    pub fn may_ask_for(&self, host: &str, port: u16) -> bool {
        let ip = host.parse().ok().map(plain);
        self.at(port).any(|entry| match (&entry.host, ip) {
            (Host::Loopback, Some(ip)) => kind(ip) == Kind::Loopback,
            // What stands for this machine by definition; any other name would have to be asked for.
            (Host::Loopback, None) => host == "localhost" || host.ends_with(".localhost"),
            (Host::Public, Some(ip)) => kind(ip) == Kind::Public,
            (Host::Public, None) => true,
            (Host::Name(name), None) => host == name,
            (Host::Below(name), None) => host.ends_with(name.as_str()),
            (Host::Name(_) | Host::Below(_), Some(_)) => false,
            (Host::Address(address), ip) => ip == Some(*address),
        })
    }

    /// Whether a connection may go to this address, which `host` has.
    #[must_use]
    pub fn allow(&self, host: &str, ip: IpAddr, port: u16) -> bool {
        let ip = plain(ip);
        self.at(port).any(|entry| match &entry.host {
            Host::Loopback => kind(ip) == Kind::Loopback,
            Host::Public => kind(ip) == Kind::Public,
            Host::Name(name) => host == name && kind(ip).is_somewhere(),
            Host::Below(name) => host.ends_with(name.as_str()) && kind(ip).is_somewhere(),
            Host::Address(address) => ip == *address,
        })
    }

    fn at(&self, port: u16) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(move |entry| entry.port.is_none_or(|only| only == port))
    }
}

/// Entries with commas between them. None of them: nowhere.
impl FromStr for Hosts {
    type Err = BadHost;

    fn from_str(text: &str) -> Result<Hosts, BadHost> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        entries.map(str::parse).collect::<Result<_, _>>().map(Hosts)
    }
}

impl FromStr for Entry {
    type Err = BadHost;

    fn from_str(text: &str) -> Result<Entry, BadHost> {
        let bad = || BadHost(text.to_owned());
        // An address of version 6 has colons of its own.
        if let Ok(ip) = text.trim_start_matches('[').trim_end_matches(']').parse() {
            return Ok(Entry { host: Host::Address(plain(ip)), port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| bad())?)),
            None => (text, None),
        };
        let host = host.to_ascii_lowercase();
        let is_name = |name: &str| {
            let is_label = |label: &str| {
                !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            };
            name.split('.').all(is_label)
        };
        let host = match (host.as_str(), host.strip_prefix('*')) {
            ("loopback", _) => Host::Loopback,
            ("*", _) => Host::Public,
            (_, Some(below)) if below.strip_prefix('.').is_some_and(is_name) => Host::Below(below.to_owned()),
            (_, Some(_)) => return Err(bad()),
            (name, None) => match name.trim_start_matches('[').trim_end_matches(']').parse() {
                Ok(ip) => Host::Address(plain(ip)),
                Err(_) if is_name(name) => Host::Name(name.to_owned()),
                Err(_) => return Err(bad()),
            },
        };
        Ok(Entry { host, port })
    }
}

/// What kind of place an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Loopback,
    /// A private network.
    Private,
    Public,
    /// Link-local, many at once, or none at all.
    Special,
}

impl Kind {
    fn is_somewhere(self) -> bool {
        matches!(self, Kind::Private | Kind::Public)
    }
}

/// An address of version 4 may be written as one of version 6 in several ways.
fn plain(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(six) => match six.segments() {
            [0, 0, 0, 0, 0, 0xFFFF, ..] => IpAddr::V4(last_four(six)),
            // Translated (64:ff9b::/96), and the old compatible form.
            [0x64, 0xFF9B, 0, 0, 0, 0, ..] => IpAddr::V4(last_four(six)),
            [0, 0, 0, 0, 0, 0, high, low] if (high, low) != (0, 0) && (high, low) != (0, 1) => {
                IpAddr::V4(last_four(six))
            }
            _ => ip,
        },
        IpAddr::V4(_) => ip,
    }
}

fn last_four(six: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = six.octets();
    Ipv4Addr::new(a, b, c, d)
}

fn kind(ip: IpAddr) -> Kind {
    match ip {
        IpAddr::V4(four) => kind_of_four(four),
        IpAddr::V6(six) => kind_of_six(six),
    }
}

fn kind_of_four(four: Ipv4Addr) -> Kind {
    match four.octets() {
        [127, ..] => Kind::Loopback,
        // This network, link-local, multicast, reserved and broadcast.
        [0, ..] | [169, 254, ..] | [224..=255, ..] => Kind::Special,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Kind::Private,
        // Between a provider and its customers; assigned to protocols; for documents; for measurements.
        [100, 64..=127, ..] | [192, 0, 0 | 2, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Kind::Private
        }
        _ => Kind::Public,
    }
}

fn kind_of_six(six: Ipv6Addr) -> Kind {
    match six.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Kind::Loopback,
        [0, 0, 0, 0, 0, 0, 0, 0] => Kind::Special,
        // Link-local (and the site-local of old), multicast.
        [0xFE80..=0xFEFF, ..] | [0xFF00..=0xFFFF, ..] => Kind::Special,
        [0xFC00..=0xFDFF, ..] => Kind::Private,
        // Tunnels that could lead anywhere, translation of a provider's own, documents, discard-only.
        [0x2002, ..] | [0x2001, 0, ..] | [0x64, 0xFF9B, ..] | [0x2001, 0xDB8, ..] | [0x100, 0, 0, 0, ..] => {
            Kind::Private
        }
        [0x2000..=0x3FFF, ..] => Kind::Public,
        _ => Kind::Special,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn allow(hosts: &str, host: &str, ip: &str) -> bool {
        hosts.parse::<Hosts>().unwrap().allow(host, ip.parse().unwrap(), 443)
    }

    #[test]
    fn kinds_of_addresses() {
        let kind = |ip: &str| kind(plain(ip.parse().unwrap()));
        for ip in ["127.0.0.1", "127.255.0.1", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"] {
            assert_eq!(kind(ip), Kind::Loopback, "{ip}");
        }
        for ip in ["10.0.0.1", "172.16.0.1", "172.31.9.9", "192.168.1.1", "100.64.0.1", "fd00::1", "::ffff:10.0.0.1"] {
            assert_eq!(kind(ip), Kind::Private, "{ip}");
        }
        for ip in ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "ff02::1"] {
            assert_eq!(kind(ip), Kind::Special, "{ip}");
        }
        for ip in ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "198.20.0.1"] {
            assert_eq!(kind(ip), Kind::Public, "{ip}");
        }
    }

    #[test]
    fn what_an_entry_allows() {
        // hosts, host, address, allowed
        for (hosts, host, ip, allowed) in [
            ("loopback", "localhost", "127.0.0.1", true),
            ("loopback", "localhost", "10.0.0.1", false),
            ("loopback", "rebound.example.org", "127.0.0.1", true),
            ("store.example.org", "store.example.org", "10.0.0.1", true),
            ("store.example.org", "store.example.org", "1.1.1.1", true),
            ("store.example.org", "store.example.org", "127.0.0.1", false),
            ("store.example.org", "store.example.org", "169.254.169.254", false),
            ("store.example.org", "other.example.org", "1.1.1.1", false),
            ("*.example.org", "a.b.example.org", "1.1.1.1", true),
            ("*.example.org", "example.org", "1.1.1.1", false),
            ("*.example.org", "badexample.org", "1.1.1.1", false),
            ("*", "anything", "1.1.1.1", true),
            ("*", "anything", "10.0.0.1", false),
            ("*", "anything", "::1", false),
            ("10.0.0.1", "10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "::ffff:10.0.0.1", "::ffff:10.0.0.1", true),
            ("10.0.0.1:443", "10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1:80", "10.0.0.1", "10.0.0.1", false),
            ("[fd00::1]:443", "fd00::1", "fd00::1", true),
            ("fd00::1", "fd00::1", "fd00::1", true),
            ("169.254.169.254", "169.254.169.254", "169.254.169.254", true),
            ("", "localhost", "127.0.0.1", false),
            ("a.example.org, loopback", "localhost", "127.0.0.1", true),
        ] {
            assert_eq!(allow(hosts, host, ip), allowed, "{hosts:?} {host} {ip}");
        }
    }

    #[test]
    fn names_are_only_looked_up_if_they_may_be_right() {
        let may = |hosts: &str, host: &str| hosts.parse::<Hosts>().unwrap().may_ask_for(host, 443);
        assert!(may("loopback", "localhost") && may("loopback", "acct.blob.localhost") && may("loopback", "::1"));
        assert!(!may("loopback", "secret.example.org") && !may("loopback", "10.0.0.1"));
        assert!(may("a.example.org", "a.example.org") && !may("a.example.org", "10.0.0.1"));
        assert!(may("*", "anything") && may("*", "1.1.1.1") && !may("*", "10.0.0.1"));
    }

    #[test]
    fn entries_that_say_nothing() {
        for text in ["http://host", "a b", "*example.org", "*.", "host:port", "host:70000", "a..b", "host/path", "*.*"]
        {
            assert!(text.parse::<Hosts>().is_err(), "{text}");
        }
    }
}
