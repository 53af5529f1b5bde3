//! What the program says at its start and its end. Test tools read these lines, so they change only with care.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use server::{Service, SmbEncryption};

use crate::accounts::{Known, WELL_KNOWN_KEY};
use crate::flags::{Cluster, Durability, OAuth, Options, Tls};
use crate::program_name::CalledAs;

/// Which service listens where.
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    pub https: bool,
    pub services: Vec<(Service, SocketAddr)>,
    pub smb: Option<SocketAddr>,
    pub admin: Option<SocketAddr>,
}

/// What there is to say beside that.
#[derive(Debug)]
pub struct Facts<'a> {
    pub data: Data<'a>,
    pub durability: Durability,
    pub known: &'a Known,
    /// The certificate that clients have to be told of.
    pub own_certificate: Option<&'a Path>,
    pub oauth: &'a OAuth,
    /// How many keys the issuer of tokens has given us.
    pub issuer_keys: usize,
    pub smb_encryption: SmbEncryption,
    pub test_clock: bool,
    pub silent: bool,
    pub azurite: bool,
    pub paint: Paint,
}

/// Where the data is.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    Memory,
    Folder(&'a Path),
    /// In a database and a store that other nodes use, too.
    Cluster(&'a Cluster),
}

/// Whether there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    Plain,
    Coloured,
}

impl Endpoints {
    /// Where a server with these options listens.
    pub fn expected(options: &Options, called_as: CalledAs) -> Endpoints {
        let services = options.services.iter().filter_map(|door| {
            let port = door.port(called_as, options.azurite_compat)?;
            Some((door.service, SocketAddr::new(door.host, port)))
        });
        Endpoints { https: options.tls != Tls::Off, services: services.collect(), smb: None, admin: None }
    }

    fn scheme(&self) -> &'static str {
        if self.https { "https" } else { "http" }
    }

    /// The endpoint of an account.
    fn of(&self, service: Service, account: &str) -> Option<String> {
        let (_, address) = self.services.iter().find(|(listening, _)| *listening == service)?;
        Some(format!("{}://{}/{account}", self.scheme(), reachable(*address)))
    }
}

/// An address that means every address of the machine is none to connect to.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

impl Paint {
    /// Only where a person looks, and does not mind.
    pub fn of_standard_output() -> Paint {
        let minds = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        if std::io::stdout().is_terminal() && !minds { Paint::Coloured } else { Paint::Plain }
    }

    fn strong(self, text: &str) -> String {
        match self {
            Paint::Plain => text.to_owned(),
            Paint::Coloured => format!("\x1b[1;36m{text}\x1b[0m"),
        }
    }

    fn faint(self, text: &str) -> String {
        match self {
            Paint::Plain => text.to_owned(),
            Paint::Coloured => format!("\x1b[2m{text}\x1b[0m"),
        }
    }
}

/// The whole greeting, up to `Ready.`
pub fn text(endpoints: &Endpoints, facts: &Facts<'_>) -> String {
    let mut text = String::new();
    if !facts.silent && !facts.azurite {
        let _ = writeln!(text, "{}", facts.paint.strong(VERSION.trim_end()));
    }
    let scheme = endpoints.scheme();
    for (service, address) in &endpoints.services {
        let (name, at) = (service.name(), facts.paint.strong(&format!("{scheme}://{address}")));
        let _ = if facts.azurite {
            write!(
                text,
                "Azurite {name} service is starting at {at}\nAzurite {name} service is successfully listening at {at}\n"
            )
        } else {
            writeln!(text, "{name} service is listening at {at}")
        };
    }
    if let Some(address) = endpoints.smb {
        let clients = match facts.smb_encryption {
            SmbEncryption::Required => "encrypted",
            SmbEncryption::Desired => "not all of it encrypted; for development",
        };
        let _ = writeln!(text, "SMB is listening at {} ({clients})", facts.paint.strong(&format!("smb://{address}")));
    }
    if let Some(address) = endpoints.admin {
        let _ = writeln!(text, "Admin is listening at {}", facts.paint.strong(&format!("http://{address}")));
    }
    if !facts.silent {
        put_facts(&mut text, endpoints, facts);
    }
    text.push_str("Ready.\n");
    text
}

/// For `--version`.
pub const VERSION: &str = concat!("Lazurite ", env!("CARGO_PKG_VERSION"), "\n");

fn put_facts(text: &mut String, endpoints: &Endpoints, facts: &Facts<'_>) {
    put_data(text, facts);
    if facts.test_clock {
        text.push_str("Test clock: on. The time of this server can be moved; never use it for data that matters\n");
    }
    match facts.oauth {
        OAuth::Off => {}
        OAuth::Basic => text
            .push_str("Bearer tokens: taken whoever signed them (--oauth basic); never use it for data that matters\n"),
        OAuth::Verified { keys, .. } => {
            let _ = writeln!(text, "Bearer tokens: those signed by a key in {}", keys.display());
        }
        OAuth::Issuer(issuer) => {
            let keys = match facts.issuer_keys {
                0 => "none yet: its keys could not be fetched, which is tried again".to_owned(),
                1 => "1 key was fetched there".to_owned(),
                count => format!("{count} keys were fetched there"),
            };
            let _ = writeln!(text, "Bearer tokens: those of {issuer} ({keys})");
        }
    }
    if let Some(cert) = facts.own_certificate {
        let cert = cert.display();
        let _ = write!(
            text,
            "Certificate: {cert} (made here; clients must be told to trust it)\n\
             \x20 Python   export REQUESTS_CA_BUNDLE='{cert}' SSL_CERT_FILE='{cert}'\n\
             \x20 Node     export NODE_EXTRA_CA_CERTS='{cert}'\n"
        );
    }
    put_accounts(text, endpoints, facts);
}

fn put_data(text: &mut String, facts: &Facts<'_>) {
    let folder = match facts.data {
        Data::Memory => {
            text.push_str("Data: in memory only; it is gone when the server ends\n");
            return;
        }
        Data::Cluster(cluster) => {
            let bucket = cluster.bytes.as_ref().map_or("", |bytes| bytes.bucket.as_str());
            let _ = writeln!(text, "Data: in PostgreSQL and in the S3 bucket {bucket}, shared with other nodes");
            return;
        }
        Data::Folder(folder) => folder,
    };
    let durability = match facts.durability {
        Durability::Full => "full (a write is answered when it is on disk)",
        Durability::Relaxed => "relaxed (a power cut can take the newest writes)",
    };
    let _ = writeln!(text, "Data folder: {}\nDurability: {durability}", folder.display());
}

fn put_accounts(text: &mut String, endpoints: &Endpoints, facts: &Facts<'_>) {
    let mut names = facts.known.names();
    let Some(name) = names.next() else { return };
    // A key that is a secret is not repeated.
    let is_secret = !facts.known.well_known.iter().any(|known| known == name);
    let key = if is_secret { "<the key>" } else { WELL_KNOWN_KEY };
    let _ = writeln!(text, "Connection string: {}", connection_string(name, key, endpoints));
    let others: Vec<&str> = names.collect();
    if !others.is_empty() {
        let _ = writeln!(text, "Further accounts: {}", others.join(", "));
    }
    if let Some(blob) = endpoints.of(Service::Blob, name).filter(|_| !facts.azurite) {
        let title = "Try it, after export AZURE_STORAGE_CONNECTION_STRING='the string above'";
        let _ = write!(
            text,
            "{}:\n\
             \x20 Python   BlobServiceClient.from_connection_string(os.environ[\"AZURE_STORAGE_CONNECTION_STRING\"])\n\
             \x20 az       az storage container create --name first\n\
             \x20 azcopy   azcopy copy FILE \"{blob}/first/FILE?$(az storage container generate-sas --name first --permissions racwl \
             --expiry 2099-01-01 --output tsv)\"\n\
             \x20 rclone   rclone ls :azureblob:first --azureblob-account {name} --azureblob-key '{key}' \
             --azureblob-endpoint {blob}\n",
            facts.paint.faint(title)
        );
    }
}

/// Ready to paste.
pub fn connection_string(name: &str, key: &str, endpoints: &Endpoints) -> String {
    let scheme = endpoints.scheme();
    let mut text = format!("DefaultEndpointsProtocol={scheme};AccountName={name};AccountKey={key};");
    for (service, _) in &endpoints.services {
        // Clients have no setting for the dfs endpoint; they take the blob one.
        if let Some(endpoint) = endpoints.of(*service, name).filter(|_| *service != Service::Dfs) {
            let _ = write!(text, "{}Endpoint={endpoint};", service.name());
        }
    }
    text
}

/// When the end begins. Azurite says it whether it is silent or not.
pub fn closing(endpoints: &Endpoints, silent: bool, azurite: bool) -> String {
    match (azurite, silent) {
        (true, _) => each(endpoints, |name| format!("Azurite {name} service is closing...\n")),
        (false, false) => "Closing; requests that have begun come to their end.\n".to_owned(),
        (false, true) => String::new(),
    }
}

/// When everything is on disk.
pub fn closed(endpoints: &Endpoints, silent: bool, azurite: bool) -> String {
    match (azurite, silent) {
        (true, _) => each(endpoints, |name| format!("Azurite {name} service successfully closed\n")),
        (false, false) => "Closed.\n".to_owned(),
        (false, true) => String::new(),
    }
}

fn each(endpoints: &Endpoints, line: impl Fn(&str) -> String) -> String {
    endpoints.services.iter().map(|(service, _)| line(service.name())).collect()
}

/// Writes to standard output. A closed standard output is no reason to fail.
pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::Sources;
    use crate::secret::Secret;

    fn endpoints() -> Endpoints {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Endpoints {
            https: false,
            services: vec![(Service::Blob, at(1)), (Service::Dfs, at(5))],
            smb: None,
            admin: Some(at(9)),
        }
    }

    fn known(list: &str) -> Known {
        let lists = vec![("LIST", Secret::new(list))];
        Sources { lists, takes_loose_keys: false, file: "/nowhere".into(), file_is_needed: false }.load().unwrap()
    }

    fn facts(known: &Known) -> Facts<'_> {
        Facts {
            data: Data::Memory,
            durability: Durability::Full,
            known,
            own_certificate: None,
            oauth: &OAuth::Off,
            issuer_keys: 0,
            smb_encryption: SmbEncryption::Required,
            test_clock: false,
            silent: false,
            azurite: false,
            paint: Paint::Plain,
        }
    }

    #[test]
    fn smb_is_said_where_it_listens() {
        let known = known("");
        let smb = Endpoints { smb: Some(SocketAddr::from(([127, 0, 0, 1], 7))), ..endpoints() };
        let said = text(&smb, &facts(&known));
        assert!(said.contains("\nSMB is listening at smb://127.0.0.1:7 (encrypted)\n"), "{said}");
        let said = text(&smb, &Facts { smb_encryption: SmbEncryption::Desired, ..facts(&known) });
        assert!(said.contains("for development"), "{said}");
    }

    #[test]
    fn the_lines_that_tools_wait_for() {
        let known = known("");
        let said = text(&endpoints(), &Facts { silent: true, ..facts(&known) });
        let expected = "Blob service is listening at http://127.0.0.1:1\nDfs service is listening at http://127.0.0.1:5\n\
                        Admin is listening at http://127.0.0.1:9\nReady.\n";
        assert_eq!(said, expected);
        let said = text(&endpoints(), &Facts { azurite: true, ..facts(&known) });
        assert!(said.starts_with(
            "Azurite Blob service is starting at http://127.0.0.1:1\n\
             Azurite Blob service is successfully listening at http://127.0.0.1:1\n"
        ));
        let https = Endpoints { https: true, ..endpoints() };
        let said = text(&https, &Facts { azurite: true, ..facts(&known) });
        assert!(said.contains("Azurite Blob service is successfully listening at https://127.0.0.1:1\n"));
        assert!(said.contains("Admin is listening at http://127.0.0.1:9\n"));
    }

    #[test]
    fn the_last_lines() {
        let blob = Endpoints { services: endpoints().services[..1].to_vec(), ..endpoints() };
        assert_eq!(closing(&blob, true, true), "Azurite Blob service is closing...\n");
        assert_eq!(closed(&blob, true, true), "Azurite Blob service successfully closed\n");
        assert_eq!(closing(&blob, true, false) + &closed(&blob, true, false), "");
    }

    #[test]
    fn the_greeting_tells_no_secret() {
        let well_known = known("");
        let said = text(&endpoints(), &facts(&well_known));
        assert!(said.contains(WELL_KNOWN_KEY));
        assert!(said.contains("BlobEndpoint=http://127.0.0.1:1/devstoreaccount1;"));
        let secret = known("abc:c2VjcmV0;def:c2VjcmV0");
        let said = text(&endpoints(), &facts(&secret));
        assert!(said.contains("AccountName=abc;") && said.contains("Further accounts: def\n"), "{said}");
        assert!(!said.contains("c2VjcmV0"));
    }

    #[test]
    fn one_line_for_each_tool() {
        let known = known("");
        let said = text(&endpoints(), &facts(&known));
        for tool in ["  Python   ", "  az       ", "  azcopy   ", "  rclone   "] {
            assert_eq!(said.lines().filter(|line| line.starts_with(tool)).count(), 1, "{tool}");
        }
    }

    #[test]
    fn an_address_to_connect_to() {
        let services = vec![(Service::Blob, SocketAddr::from(([0, 0, 0, 0], 7)))];
        let endpoints = Endpoints { https: true, services, smb: None, admin: None };
        let expected =
            "DefaultEndpointsProtocol=https;AccountName=abc;AccountKey=K;BlobEndpoint=https://127.0.0.1:7/abc;";
        assert_eq!(connection_string("abc", "K", &endpoints), expected);
    }

    #[test]
    fn our_certificate_comes_with_what_clients_need() {
        let known = known("");
        let said = text(&endpoints(), &Facts { own_certificate: Some(Path::new("/d/cert.pem")), ..facts(&known) });
        for words in
            ["REQUESTS_CA_BUNDLE='/d/cert.pem'", "SSL_CERT_FILE='/d/cert.pem'", "NODE_EXTRA_CA_CERTS='/d/cert.pem'"]
        {
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn colours_only_when_asked() {
        let known = known("");
        assert!(!text(&endpoints(), &facts(&known)).contains('\x1b'));
        assert!(text(&endpoints(), &Facts { paint: Paint::Coloured, ..facts(&known) }).contains('\x1b'));
    }
}
