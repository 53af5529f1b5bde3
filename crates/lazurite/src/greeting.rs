//! What the program says at the start. Test tools read these lines, so they change only with care.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use server::Service;

use crate::accounts::{Known, WELL_KNOWN_KEY};
use crate::flags::Durability;

/// Who listens where.
#[derive(Debug, Default)]
pub struct Listening {
    pub services: Vec<(Service, SocketAddr)>,
    pub admin: Option<SocketAddr>,
}

/// What there is to say beside that.
#[derive(Debug)]
pub struct Facts<'a> {
    /// `None`: in memory.
    pub folder: Option<&'a Path>,
    pub durability: Durability,
    pub known: &'a Known,
    pub test_clock: bool,
    pub silent: bool,
    pub azurite: bool,
}

/// The whole greeting, up to `Ready.`
pub fn text(listening: &Listening, facts: &Facts<'_>) -> String {
    let mut text = String::new();
    for (service, address) in &listening.services {
        let name = service.name();
        let _ = if facts.azurite {
            write!(
                text,
                "Azurite {name} service is starting at http://{address}\n\
                 Azurite {name} service is successfully listening at http://{address}\n"
            )
        } else {
            writeln!(text, "{name} service is listening at http://{address}")
        };
    }
    if let Some(address) = listening.admin {
        let _ = writeln!(text, "Admin is listening at http://{address}");
    }
    if !facts.silent {
        put_facts(&mut text, listening, facts);
    }
    text.push_str("Ready.\n");
    text
}

fn put_facts(text: &mut String, listening: &Listening, facts: &Facts<'_>) {
    let _ = match (facts.folder, facts.durability) {
        (None, _) => writeln!(text, "Data: in memory only; it is gone when the server ends"),
        (Some(folder), Durability::Full) => {
            writeln!(
                text,
                "Data folder: {}\nDurability: full (a write is answered when it is on disk)",
                folder.display()
            )
        }
        (Some(folder), Durability::Relaxed) => writeln!(
            text,
            "Data folder: {}\nDurability: relaxed (a power cut can take the newest writes)",
            folder.display()
        ),
    };
    if facts.test_clock {
        text.push_str("Test clock: on. The time of this server can be moved; never use it for data that matters\n");
    }
    if let Some(name) = facts.known.names.first() {
        let _ = writeln!(text, "Connection string: {}", connection_string(name, listening, facts.known));
    }
    if let more @ 1.. = facts.known.names.len().saturating_sub(1) {
        let _ = writeln!(text, "Further accounts: {more}");
    }
}

/// Ready to paste. A key that is a secret is not repeated.
fn connection_string(name: &str, listening: &Listening, known: &Known) -> String {
    let is_secret = !known.well_known.iter().any(|known| known == name);
    let key = if is_secret { "<the key>" } else { WELL_KNOWN_KEY };
    let mut text = format!("DefaultEndpointsProtocol=http;AccountName={name};AccountKey={key};");
    for (service, address) in &listening.services {
        // Clients have no setting for the dfs endpoint; they take the blob one.
        if *service != Service::Dfs {
            let _ = write!(text, "{}Endpoint=http://{address}/{name};", service.name());
        }
    }
    text
}

/// Writes to standard output. That nobody listens is no reason to fail.
pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listening() -> Listening {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Listening { services: vec![(Service::Blob, at(1)), (Service::Dfs, at(5))], admin: Some(at(9)) }
    }

    fn facts(known: &Known) -> Facts<'_> {
        Facts { folder: None, durability: Durability::Full, known, test_clock: false, silent: false, azurite: false }
    }

    #[test]
    fn the_lines_that_tools_wait_for() {
        let known = Known::load(None, None).unwrap();
        let said = text(&listening(), &Facts { silent: true, ..facts(&known) });
        let expected = "Blob service is listening at http://127.0.0.1:1\nDfs service is listening at http://127.0.0.1:5\n\
                        Admin is listening at http://127.0.0.1:9\nReady.\n";
        assert_eq!(said, expected);
        let said = text(&listening(), &Facts { azurite: true, ..facts(&known) });
        assert!(said.contains("Azurite Blob service is starting at http://127.0.0.1:1\n"));
        assert!(said.contains("Azurite Blob service is successfully listening at http://127.0.0.1:1\n"));
    }

    #[test]
    fn the_connection_string_tells_no_secret() {
        let known = Known::load(None, None).unwrap();
        let said = text(&listening(), &facts(&known));
        assert!(said.contains(WELL_KNOWN_KEY));
        assert!(said.contains("BlobEndpoint=http://127.0.0.1:1/devstoreaccount1;"));
        let known = Known::load(None, Some("abc:c2VjcmV0")).unwrap();
        let said = text(&listening(), &facts(&known));
        assert!(said.contains("AccountName=abc;") && !said.contains("c2VjcmV0"));
    }
}
