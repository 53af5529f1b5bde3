//! Flags and their environment variables: the table, the parser and the help all read from one list.
//!
//! Every flag has three spellings: ours (`--blob-port`), Azurite's (`--blobPort`) and a variable (`LAZURITE_BLOB_PORT`).
//! The command line wins over the environment. `lazurite account` takes the same flags, to know which file is meant.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lexopt::{Arg, Parser};
use server::{Limits, Service, SmbEncryption};
use table::TableName;
use wire::names::{ContainerName, QueueName, ShareName};

use crate::account_command::{Action, Which};
use crate::create::InitialResource;
use crate::program_name::CalledAs;
use crate::secret::Secret;

/// What the program was asked to do.
#[derive(Debug, PartialEq)]
pub enum Command {
    Serve(Box<Options>),
    Account(Action, Box<Options>),
    Check(PathBuf),
    /// Brings the tables of `--metadata` up to date.
    Migrate(Box<Options>),
    Help,
    Version,
}

/// How to serve.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub location: Option<PathBuf>,
    pub config: Option<PathBuf>,
    /// `name:key1[:key2];...`
    pub accounts: Option<Secret>,
    pub create: Vec<InitialResource>,
    pub tls: Tls,
    pub oauth: OAuth,
    pub in_memory: bool,
    pub durability: Durability,
    /// Rows and bytes elsewhere, shared with other nodes.
    pub cluster: Option<Cluster>,
    pub host: IpAddr,
    pub services: Vec<Door>,
    /// Where SMB is spoken; nowhere without the flag.
    pub smb_port: Option<Port>,
    pub smb_encryption: SmbEncryption,
    /// Where other nodes reach this one.
    pub advertise: Option<String>,
    pub admin_port: Option<Port>,
    pub admin_host: IpAddr,
    /// What the admin port may be called.
    pub admin_names: Vec<String>,
    pub limits: Limits,
    pub silent: bool,
    pub debug: Option<PathBuf>,
    pub test_clock: bool,
    pub azurite_compat: bool,
    pub disable_product_style_url: bool,
    /// From where copies may come, apart from this server itself.
    pub copy_sources: fetch::Hosts,
}

/// Where a node of many finds what they share.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// May hold a password.
    pub metadata: Secret,
    /// `None` only where nothing is stored: `lazurite migrate` and `lazurite account`.
    pub bytes: Option<engine_s3::Address>,
}

/// Where one service listens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Door {
    pub service: Service,
    /// `None` without the flag; what that means depends on the name we run under.
    pub port: Option<Port>,
    pub host: IpAddr,
    /// How long its connections may be silent between requests.
    pub keep_alive: Option<Duration>,
}

impl Door {
    /// The port to open, if any.
    pub fn port(&self, called_as: CalledAs, azurite_compat: bool) -> Option<u16> {
        match self.port {
            _ if !called_as.has(self.service) => None,
            Some(Port::At(port)) => Some(port),
            Some(Port::Off) => None,
            None => called_as.opens(self.service, azurite_compat).then(|| self.service.default_port()),
        }
    }
}

/// Where the certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    Off,
    /// A certificate of our own making.
    Auto,
    Pem {
        cert: PathBuf,
        key: PathBuf,
    },
    Pfx {
        cert: PathBuf,
        password: Option<Secret>,
    },
}

/// Which bearer tokens are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OAuth {
    Off,
    /// Signatures of tokens are not checked.
    Basic,
    /// Those that a key of this file has signed.
    Verified {
        keys: PathBuf,
        issuer: Option<String>,
    },
    /// Those that this issuer has signed; it is asked for its keys.
    Issuer(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    At(u16),
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    Full,
    Relaxed,
}

/// One sentence for the person at the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong(pub String);

/// Where a flag stands in the help.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Data,
    Callers,
    Network,
    Running,
    Azurite,
}

struct Flag {
    name: &'static str,
    short: Option<char>,
    /// What its value is called; a flag without is a switch.
    value: Option<&'static str>,
    section: Section,
    help: &'static str,
}

const fn flag(name: &'static str, value: &'static str, section: Section, help: &'static str) -> Flag {
    Flag { name, short: None, value: Some(value), section, help }
}

const fn switch(name: &'static str, section: Section, help: &'static str) -> Flag {
    Flag { name, short: None, value: None, section, help }
}

const fn short(short: char, flag: Flag) -> Flag {
    Flag { short: Some(short), ..flag }
}

const FLAGS: &[Flag] = &[
    short('l', flag("location", "DIR", Section::Data, "data folder [./lazurite-data]")),
    switch("in-memory", Section::Data, "keep everything in memory and forget it at the end"),
    flag("durability", "full|relaxed", Section::Data, "answer writes when they are on disk, or earlier [full]"),
    flag("metadata", "postgres://...", Section::Data, "for many machines: rows in this database (see docs/cluster.md)"),
    flag("bytes", "s3://BUCKET?endpoint=URL", Section::Data, "and large contents in this store"),
    flag(
        "create",
        "blob:NAME,queue:NAME,table:NAME,share:NAME,...",
        Section::Data,
        "make these at the start if they are missing",
    ),
    flag("config", "FILE", Section::Callers, "accounts and their settings [LOCATION/lazurite.toml]"),
    flag("accounts", "NAME:KEY[:KEY];...", Section::Callers, "accounts; better as a variable, which others do not see"),
    flag("oauth", "basic", Section::Callers, "take bearer tokens, whoever signed them: for development"),
    flag("oauth", "issuer=URL", Section::Callers, "take those of this issuer; it is asked for its keys"),
    flag("oauth-jwks", "FILE", Section::Callers, "do not ask: the keys are in this JSON Web Key Set"),
    flag("host", "ADDRESS", Section::Network, "listen at this address [127.0.0.1]"),
    flag("blob-port", "PORT", Section::Network, "[10000]; 0 takes any free port, off closes it"),
    flag("queue-port", "PORT", Section::Network, "[10001]"),
    flag("table-port", "PORT", Section::Network, "[10002]"),
    flag("file-port", "PORT", Section::Network, "[10003]"),
    flag("dfs-port", "PORT", Section::Network, "[10004]"),
    flag("smb-port", "PORT", Section::Network, "SMB for the shares [off; 10445 is usual] (see docs/smb.md)"),
    flag("smb-encryption", "required|desired", Section::Network, "whether SMB clients must encrypt [required]"),
    flag("advertise", "HOST", Section::Network, "where other nodes reach this one [the address of --host]"),
    flag("admin-port", "PORT", Section::Network, "health checks [10010]"),
    flag("admin-host", "ADDRESS", Section::Network, "where health checks are answered [127.0.0.1]"),
    flag("admin-names", "NAME,...", Section::Network, "call it by these, too, beside addresses and localhost"),
    flag("connections", "NUMBER", Section::Network, "at once, on each port of a service [8192]"),
    flag("connections-per-address", "NUMBER", Section::Network, "and from one address [half of them]"),
    flag("first-request-timeout", "SECONDS", Section::Network, "how long who has not signed in may be silent [10]"),
    flag("tls", "auto", Section::Network, "https with a certificate for localhost, made here"),
    flag("cert", "FILE", Section::Network, "https with this certificate: PEM, or PFX with --pwd"),
    flag("key", "FILE", Section::Network, "the key of a PEM certificate"),
    flag("pwd", "PASSWORD", Section::Network, "the password of a PFX certificate; better as a variable"),
    flag("copy-sources", "HOST,...", Section::Network, "copy from these, too: name, *.name, address, *, loopback"),
    short('s', switch("silent", Section::Running, "no access log")),
    short('d', flag("debug", "FILE", Section::Running, "write a detailed log to this file")),
    switch("test-clock", Section::Running, "let tests move the time: POST /test/clock, admin port"),
    switch("azurite-compat", Section::Running, "behave as Azurite; allows its key on every address"),
    flag("blob-host", "ADDRESS", Section::Azurite, "the address of one service"),
    flag("queue-host", "ADDRESS", Section::Azurite, ""),
    flag("table-host", "ADDRESS", Section::Azurite, ""),
    flag("blob-keep-alive-timeout", "SECONDS", Section::Azurite, "how long a silent connection is kept"),
    flag("queue-keep-alive-timeout", "SECONDS", Section::Azurite, ""),
    flag("table-keep-alive-timeout", "SECONDS", Section::Azurite, ""),
    switch("disable-product-style-url", Section::Azurite, "never take the account from the host name"),
    switch("in-memory-persistence", Section::Azurite, "the same as --in-memory"),
    short('L', switch("loose", Section::Azurite, "accepted, without effect")),
    switch("skip-api-version-check", Section::Azurite, "accepted: every version is taken anyway"),
    flag("extent-memory-limit", "MB", Section::Azurite, "accepted, without effect"),
    switch("disable-telemetry", Section::Azurite, "accepted: there is none"),
];

const DEFAULT_HOST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// Reads the command line (without the program's name) and the environment.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl Fn(&str) -> Option<OsString>,
) -> Result<Command, Wrong> {
    let (mut given, task) = match read_arguments(arguments)? {
        Read::Task(task, given) => (given, task),
        Read::Other(command) => return Ok(command),
    };
    refuse_password(&given)?;
    for flag in FLAGS {
        if !given.contains_key(flag.name)
            && let Some(value) = environment(&variable(flag.name))
        {
            given.extend(from_environment(flag, value)?);
        }
    }
    let given = Given(given);
    let mut options = Box::new(given.options()?);
    Ok(match task {
        Task::Serve => {
            options.cluster = given.cluster()?;
            Command::Serve(options)
        }
        Task::Account(action) => {
            options.cluster = given.database()?;
            Command::Account(action, options)
        }
        Task::Migrate => {
            options.cluster = given.database()?;
            if options.cluster.is_none() {
                let needed = "lazurite migrate needs --metadata postgres://USER@HOST/DATABASE (or LAZURITE_METADATA).";
                return Err(Wrong(needed.into()));
            }
            Command::Migrate(options)
        }
    })
}

/// Others on this machine can read a command line.
fn refuse_password(given: &Values) -> Result<(), Wrong> {
    let url = given.get("metadata").map(|url| url.to_string_lossy().into_owned()).unwrap_or_default();
    let user = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?']).next()?.rsplit_once('@'));
    let has_password = user.is_some_and(|(user, _)| user.contains(':')) || url.contains("password=");
    match has_password {
        false => Ok(()),
        true => Err(Wrong(
            "A password has no place on the command line, where others see it: give it as PGPASSWORD, or the whole address \
             as LAZURITE_METADATA."
                .into(),
        )),
    }
}

/// What was given, by our spelling of the name. A switch has an empty value.
type Values = HashMap<&'static str, OsString>;

enum Read {
    Task(Task, Values),
    Other(Command),
}

enum Task {
    Serve,
    Account(Action),
    Migrate,
}

fn read_arguments(arguments: impl IntoIterator<Item = OsString>) -> Result<Read, Wrong> {
    let mut parser = Parser::from_args(arguments);
    let (mut given, mut task) = (Values::new(), Task::Serve);
    while let Some(argument) = next(&mut parser)? {
        match argument {
            Arg::Long("help") | Arg::Short('h') => return Ok(Read::Other(Command::Help)),
            Arg::Long("version") | Arg::Short('v' | 'V') => return Ok(Read::Other(Command::Version)),
            Arg::Value(word) if word == "check" && given.is_empty() => return check(parser),
            Arg::Value(word) if word == "account" && given.is_empty() => return account(parser),
            Arg::Value(word) if word == "migrate" && given.is_empty() => task = Task::Migrate,
            argument => {
                let flag = flag_of(&argument)?;
                take(&mut given, flag, &mut parser)?;
            }
        }
    }
    Ok(Read::Task(task, given))
}

fn next(parser: &mut Parser) -> Result<Option<Arg<'_>>, Wrong> {
    parser.next().map_err(|error| Wrong(format!("{error}.")))
}

fn flag_of(argument: &Arg<'_>) -> Result<&'static Flag, Wrong> {
    match argument {
        Arg::Long(name) => named(name).ok_or_else(|| unknown(&format!("--{name}"))),
        Arg::Short(letter) => {
            FLAGS.iter().find(|flag| flag.short == Some(*letter)).ok_or_else(|| unknown(&format!("-{letter}")))
        }
        Arg::Value(word) => Err(unknown(&word.to_string_lossy())),
    }
}

fn take(given: &mut Values, flag: &'static Flag, parser: &mut Parser) -> Result<(), Wrong> {
    let value = match flag.value {
        Some(value) => {
            parser.value().map_err(|_| Wrong(format!("--{} needs a value: --{} {value}.", flag.name, flag.name)))?
        }
        None => OsString::new(),
    };
    given.insert(flag.name, value);
    Ok(())
}

const ACCOUNT_USAGE: &str = "lazurite account takes add NAME [--key KEY], list, show NAME or rotate NAME [--secondary]; --location, --config \
     or --metadata say where.";

fn account(mut parser: Parser) -> Result<Read, Wrong> {
    let usage = || Wrong(ACCOUNT_USAGE.into());
    let word = parser.value().map_err(|_| usage())?.into_string().map_err(|_| usage())?;
    let (mut given, mut name, mut key, mut which) = (Values::new(), None, None, Which::Primary);
    while let Some(argument) = next(&mut parser)? {
        match argument {
            Arg::Long("help") | Arg::Short('h') => return Ok(Read::Other(Command::Help)),
            Arg::Long("key") if word == "add" => {
                let text = parser.value().ok().and_then(|text| text.into_string().ok());
                key = Some(Secret::new(text.ok_or_else(usage)?));
            }
            Arg::Long("secondary") if word == "rotate" => which = Which::Secondary,
            Arg::Value(text) if name.is_none() => name = Some(text.into_string().map_err(|_| usage())?),
            argument => {
                let flag = flag_of(&argument)?;
                take(&mut given, flag, &mut parser)?;
            }
        }
    }
    let action = match (word.as_str(), name) {
        ("add", Some(name)) => Action::Add { name, key },
        ("show", Some(name)) => Action::Show { name },
        ("rotate", Some(name)) => Action::Rotate { name, which },
        ("list", None) => Action::List,
        _ => return Err(usage()),
    };
    Ok(Read::Task(Task::Account(action), given))
}

fn check(mut parser: Parser) -> Result<Read, Wrong> {
    let Ok(folder) = parser.value() else { return Err(Wrong("lazurite check needs a data folder.".into())) };
    match parser.next() {
        Ok(None) => Ok(Read::Other(Command::Check(folder.into()))),
        _ => Err(Wrong("lazurite check takes one data folder and nothing else.".into())),
    }
}

/// Our spelling or Azurite's.
fn named(name: &str) -> Option<&'static Flag> {
    let mut kebab = String::with_capacity(name.len() + 4);
    for char in name.chars() {
        if char.is_ascii_uppercase() {
            kebab.push('-');
        }
        kebab.push(char.to_ascii_lowercase());
    }
    FLAGS.iter().find(|flag| flag.name == kebab)
}

fn unknown(what: &str) -> Wrong {
    Wrong(format!("There is no option {what}; lazurite --help lists them all."))
}

/// The environment variable of a flag.
fn variable(name: &str) -> String {
    format!("LAZURITE_{}", name.replace('-', "_").to_ascii_uppercase())
}

fn from_environment(flag: &Flag, value: OsString) -> Result<Option<(&'static str, OsString)>, Wrong> {
    if flag.value.is_some() {
        // An empty variable is how many tools leave one out.
        return Ok((!value.is_empty()).then_some((flag.name, value)));
    }
    match value.to_string_lossy().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(Some((flag.name, OsString::new()))),
        "" | "0" | "false" | "no" | "off" => Ok(None),
        _ => Err(Wrong(format!("{} is neither true nor false.", variable(flag.name)))),
    }
}

struct Given(Values);

impl Given {
    fn options(&self) -> Result<Options, Wrong> {
        let host = self.host("host")?.unwrap_or(DEFAULT_HOST);
        let services = Service::ALL.iter().map(|service| self.door(*service, host)).collect::<Result<_, _>>()?;
        Ok(Options {
            location: self.path("location"),
            config: self.path("config"),
            accounts: self.text("accounts")?.map(Secret::new),
            create: self.create()?,
            tls: self.tls()?,
            oauth: self.oauth()?,
            in_memory: self.has("in-memory") || self.has("in-memory-persistence"),
            durability: self.durability()?,
            cluster: None,
            host,
            services,
            smb_port: self.port("smb-port")?,
            smb_encryption: self.smb_encryption()?,
            advertise: self.advertise()?,
            admin_port: self.port("admin-port")?,
            // Not the address of the services: their clients need not see the health and figures of the server.
            admin_host: self.host("admin-host")?.unwrap_or(DEFAULT_HOST),
            admin_names: self.admin_names()?,
            limits: self.limits()?,
            silent: self.has("silent"),
            debug: self.path("debug"),
            test_clock: self.has("test-clock"),
            azurite_compat: self.has("azurite-compat"),
            disable_product_style_url: self.has("disable-product-style-url"),
            copy_sources: self.copy_sources()?,
        })
    }

    /// Nothing but this server itself, unless others are named: a client that may write a blob could read with a copy what only
    /// this machine can reach.
    fn copy_sources(&self) -> Result<fetch::Hosts, Wrong> {
        let Some(text) = self.text("copy-sources")? else { return Ok(fetch::Hosts::default()) };
        text.parse().map_err(|bad| Wrong(format!("--copy-sources: {bad}.")))
    }

    fn admin_names(&self) -> Result<Vec<String>, Wrong> {
        let names = self.text("admin-names")?.unwrap_or_default().split(',').map(str::trim);
        let names = names.filter(|name| !name.is_empty()).map(|name| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            match name.bytes().all(is_part) {
                true => Ok(name.trim_end_matches('.').to_owned()),
                false => Err(Wrong(format!("--admin-names takes names without ports, not \"{name}\"."))),
            }
        });
        names.collect()
    }

    fn limits(&self) -> Result<Limits, Wrong> {
        let mut limits = Limits::default();
        if let Some(connections) = self.positive("connections")? {
            limits.connections = connections;
            limits.connections_per_address = connections.div_ceil(2);
        }
        if let Some(connections) = self.positive("connections-per-address")? {
            limits.connections_per_address = connections;
        }
        if let Some(seconds) = self.positive("first-request-timeout")? {
            limits.first_request = Duration::from_secs(seconds as u64);
        }
        Ok(limits)
    }

    fn positive(&self, name: &str) -> Result<Option<usize>, Wrong> {
        let Some(number) = self.number(name)? else { return Ok(None) };
        let most = u64::from(u32::MAX >> 3);
        match number {
            1.. if number <= most => Ok(usize::try_from(number).ok()),
            _ => Err(Wrong(format!("--{name} takes a number from 1 to {most}, not {number}."))),
        }
    }

    /// The database alone, for commands that do not use the store.
    fn database(&self) -> Result<Option<Cluster>, Wrong> {
        let metadata = self.text("metadata")?;
        Ok(metadata.map(|metadata| Cluster { metadata: Secret::new(metadata), bytes: None }))
    }

    fn cluster(&self) -> Result<Option<Cluster>, Wrong> {
        let (metadata, bytes) = match (self.text("metadata")?, self.text("bytes")?) {
            (None, None) => return Ok(None),
            (Some(metadata), Some(bytes)) => (metadata, bytes),
            (Some(_), None) => return Err(Wrong("--metadata needs --bytes s3://BUCKET as well.".into())),
            (None, Some(_)) => return Err(Wrong("--bytes needs --metadata postgres://... as well.".into())),
        };
        let has_smb = matches!(self.port("smb-port")?, Some(Port::At(_)));
        let is_everywhere = self.host("host")?.is_some_and(|host| host.is_unspecified());
        if has_smb && is_everywhere && self.advertise()?.is_none() {
            let why = "One node serves SMB for all: say with --advertise HOST where the other nodes reach this one.";
            return Err(Wrong(why.into()));
        }
        if has_smb && self.port("file-port")? == Some(Port::Off) {
            let why = "The node that serves SMB answers requests for its shares for all nodes: --smb-port needs the port of --file-port.";
            return Err(Wrong(why.into()));
        }
        if has_smb && self.tls()? == Tls::Auto {
            let why = "Other nodes do not trust the certificate of --tls auto: beside --smb-port and --metadata give one with --cert.";
            return Err(Wrong(why.into()));
        }
        for (name, is_given) in [
            ("in-memory", self.has("in-memory") || self.has("in-memory-persistence")),
            ("durability relaxed", self.durability()? == Durability::Relaxed),
        ] {
            if is_given {
                return Err(Wrong(format!("--{name} has no place beside --metadata.")));
            }
        }
        let bytes = bytes.parse().map_err(|error| Wrong(format!("--bytes: {error}.")))?;
        Ok(Some(Cluster { metadata: Secret::new(metadata), bytes: Some(bytes) }))
    }

    /// A name or address without a port.
    fn advertise(&self) -> Result<Option<String>, Wrong> {
        let Some(host) = self.text("advertise")? else { return Ok(None) };
        let is_address = host.parse::<IpAddr>().is_ok_and(|address| !address.is_unspecified());
        let is_name = host.parse::<IpAddr>().is_err()
            && !host.is_empty()
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
        match is_address || is_name {
            true => Ok(Some(host.to_owned())),
            false => Err(Wrong(format!("--advertise takes a name or an address without a port, not \"{host}\"."))),
        }
    }

    fn smb_encryption(&self) -> Result<SmbEncryption, Wrong> {
        match self.text("smb-encryption")? {
            None | Some("required") => Ok(SmbEncryption::Required),
            Some("desired") => Ok(SmbEncryption::Desired),
            Some(other) => Err(Wrong(format!("--smb-encryption is required or desired, not \"{other}\"."))),
        }
    }

    /// Nothing here may end in plain HTTP where encryption was asked for.
    fn tls(&self) -> Result<Tls, Wrong> {
        let wrong = |sentence: &str| Err(Wrong(sentence.into()));
        let (cert, key, password) = (self.path("cert"), self.path("key"), self.text("pwd")?.map(Secret::new));
        match (self.text("tls")?, cert, key, password) {
            (None, None, None, None) => Ok(Tls::Off),
            (Some("auto"), None, None, None) => Ok(Tls::Auto),
            (Some("auto"), _, _, _) => {
                wrong("--tls auto makes its own certificate; leave out --cert, --key and --pwd.")
            }
            (Some(_), _, _, _) => wrong("--tls takes \"auto\" and nothing else; give a certificate with --cert."),
            (None, None, _, _) => wrong("--key and --pwd belong to a certificate, and --cert FILE is missing."),
            (None, Some(_), Some(_), Some(_)) => {
                wrong("--key is for a PEM certificate and --pwd for a PFX one; give one of the two.")
            }
            (None, Some(cert), Some(key), None) => Ok(Tls::Pem { cert, key }),
            (None, Some(cert), None, password) if password.is_some() || is_pfx(&cert) => {
                Ok(Tls::Pfx { cert, password })
            }
            (None, Some(_), None, _) => {
                wrong("--cert needs --key FILE as well, or --pwd PASSWORD if it is a PFX file.")
            }
        }
    }

    fn oauth(&self) -> Result<OAuth, Wrong> {
        let keys = self.path("oauth-jwks");
        match (self.text("oauth")?, keys) {
            (None, None) => Ok(OAuth::Off),
            (None, Some(keys)) => Ok(OAuth::Verified { keys, issuer: None }),
            (Some("basic"), None) => Ok(OAuth::Basic),
            (Some("basic"), Some(_)) => {
                Err(Wrong("--oauth basic verifies no signature, so --oauth-jwks has no place beside it.".into()))
            }
            (Some(text), keys) => match (text.strip_prefix("issuer=").filter(|issuer| !issuer.is_empty()), keys) {
                (None, _) => Err(Wrong(format!("--oauth is basic or issuer=URL, not \"{text}\"."))),
                (Some(issuer), Some(keys)) => Ok(OAuth::Verified { keys, issuer: Some(issuer.to_owned()) }),
                (Some(issuer), None) => Ok(OAuth::Issuer(issuer.to_owned())),
            },
        }
    }

    fn create(&self) -> Result<Vec<InitialResource>, Wrong> {
        let wanted = self.text("create")?.unwrap_or_default().split(',').map(str::trim);
        wanted.filter(|wanted| !wanted.is_empty()).map(created).collect()
    }

    fn door(&self, service: Service, host: IpAddr) -> Result<Door, Wrong> {
        let label = service.label();
        Ok(Door {
            service,
            port: self.port(&format!("{label}-port"))?,
            host: self.host(&format!("{label}-host"))?.unwrap_or(host),
            keep_alive: self.number(&format!("{label}-keep-alive-timeout"))?.map(Duration::from_secs),
        })
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.0.get(name).map(PathBuf::from)
    }

    fn text(&self, name: &str) -> Result<Option<&str>, Wrong> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        value.to_str().map(Some).ok_or_else(|| Wrong(format!("The value of --{name} is not readable text.")))
    }

    fn number(&self, name: &str) -> Result<Option<u64>, Wrong> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let number = text.parse().map_err(|_| Wrong(format!("--{name} takes a number, not \"{text}\".")))?;
        Ok(Some(number))
    }

    fn port(&self, name: &str) -> Result<Option<Port>, Wrong> {
        match self.text(name)? {
            None => Ok(None),
            Some("off") => Ok(Some(Port::Off)),
            Some(text) => match text.parse() {
                Ok(port) => Ok(Some(Port::At(port))),
                Err(_) => Err(Wrong(format!("--{name} takes a port from 0 to 65535 or \"off\", not \"{text}\"."))),
            },
        }
    }

    fn host(&self, name: &str) -> Result<Option<IpAddr>, Wrong> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        if text == "localhost" {
            return Ok(Some(DEFAULT_HOST));
        }
        if let Ok(address) = text.parse() {
            return Ok(Some(address));
        }
        let found = (text, 0).to_socket_addrs().ok().and_then(|mut found| found.next());
        match found {
            Some(address) => Ok(Some(address.ip())),
            None => Err(Wrong(format!("--{name} takes an address of this machine, and \"{text}\" is none."))),
        }
    }

    fn durability(&self) -> Result<Durability, Wrong> {
        match self.text("durability")? {
            None | Some("full") => Ok(Durability::Full),
            Some("relaxed") => Ok(Durability::Relaxed),
            Some(other) => Err(Wrong(format!("--durability is full or relaxed, not \"{other}\"."))),
        }
    }
}

fn is_pfx(cert: &Path) -> bool {
    cert.extension().is_some_and(|end| end.eq_ignore_ascii_case("pfx") || end.eq_ignore_ascii_case("p12"))
}

fn created(wanted: &str) -> Result<InitialResource, Wrong> {
    let bad_name =
        |_| Wrong(format!("--create {wanted} cannot be done: names are 3 to 63 of a-z, 0-9 and single dashes."));
    match wanted.split_once(':') {
        Some(("blob", name)) => ContainerName::parse(name).map(InitialResource::Container).map_err(bad_name),
        Some(("queue", name)) => QueueName::parse(name).map(InitialResource::Queue).map_err(bad_name),
        Some(("table", name)) => TableName::parse(name).map(InitialResource::Table).map_err(|_| {
            Wrong(format!("--create {wanted} cannot be done: names are 3 to 63 letters and digits, a letter first."))
        }),
        Some(("share", name)) => ShareName::parse(name).map(InitialResource::Share).map_err(bad_name),
        Some(_) | None => {
            Err(Wrong(format!("--create takes blob:NAME,queue:NAME,table:NAME,share:NAME, not \"{wanted}\".")))
        }
    }
}

/// The help, as a page to read.
pub fn help() -> String {
    let mut page = String::from(
        "Lazurite stores blobs, queues, tables and files durably, and speaks the Azure Storage protocols.\n\n\
         Usage:  lazurite [options]       serve until SIGTERM or Ctrl-C\n\
         \x20       lazurite account ...     add NAME [--key KEY] | list | show NAME | rotate NAME [--secondary]\n\
         \x20       lazurite check DIR       verify a data folder (no server may be using it)\n\
         \x20       lazurite migrate         make the tables of --metadata, or bring them up to date\n\
         \x20       lazurite --version | --help\n",
    );
    for (section, title) in [
        (Section::Data, "Data"),
        (Section::Callers, "Who may come in"),
        (Section::Network, "Network"),
        (Section::Running, "Running"),
        (Section::Azurite, "Azurite's own options"),
    ] {
        let _ = write!(page, "\n{title}:\n");
        for flag in FLAGS.iter().filter(|flag| flag.section == section) {
            let short = flag.short.map_or("    ".to_owned(), |short| format!("-{short}, "));
            let value = flag.value.map_or(String::new(), |value| format!(" {value}"));
            let _ = writeln!(page, "  {:<41} {}", format!("{short}--{}{value}", flag.name), flag.help);
        }
    }
    page.push_str(
        "\nEvery option can also be written as Azurite writes it (--blobPort) and given in the environment\n\
         (LAZURITE_BLOB_PORT=10000, LAZURITE_SILENT=true); the command line wins.\n\n\
         Accounts come from --accounts, from AZURITE_ACCOUNTS=name:key1[:key2];name2:key1 and from the configuration\n\
         (the first of them that names an account decides its keys). Without any there is devstoreaccount1 with\n\
         the well-known development key, on loopback addresses only. The configuration, key sets and certificates\n\
         are read again when they change, and on SIGHUP.\n",
    );
    page.lines().fold(String::new(), |page, line| page + line.trim_end() + "\n")
}

#[cfg(test)]
mod tests;
