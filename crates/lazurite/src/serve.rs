//! Serving: from the options to a running server, and its end.

use std::env::VarError;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, IsTerminal};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use auth::{Accounts, Tokens};
use engine::Engine;
use engine::memory::MemoryEngine;
use engine_embedded::EmbeddedEngine;
use engine_postgres::PostgresEngine;
use server::{AccessLog, Client, Current, Door, Doors, Hosts, Issuer, Limits, Manners, Server, Setup, Shared};
use time::OffsetDateTime;
use tokio::time::timeout;

use crate::accounts::{Known, Sources};
use crate::cluster::SharedAccounts;
use crate::config::BadConfig;
use crate::flags::{Durability, OAuth, Options, Port, Tls, Wrong};
use crate::greeting::{self, Data, Endpoints, Facts, Paint};
use crate::program_name::CalledAs;
use crate::reload::{self, Files, Reload};
use crate::secret::Secret;
use crate::tls::{Certificate, Source};
use crate::{cluster, create, delegation_secret, paths};

const ADMIN_PORT: u16 = 10_010;
/// How long the start waits for the keys of an issuer. The server can do without them for a while.
const ISSUER_PATIENCE: Duration = Duration::from_secs(5);
/// How long the last lines of the access log may take to be written.
const LOG_PATIENCE: Duration = Duration::from_secs(1);

pub fn run(options: Options, called_as: CalledAs) -> Result<(), Wrong> {
    start_logging(options.debug.as_deref())?;
    let files = allow_many_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Wrong(format!("The runtime does not start: {error}.")))?;
    runtime.block_on(serve(options, called_as, files))
}

async fn serve(options: Options, called_as: CalledAs, files: Option<u64>) -> Result<(), Wrong> {
    // Before anything takes time: whoever stops us while we start gets an orderly end, too.
    let (ask_to_reload, asked_to_reload) = mpsc::channel();
    let stop = stop_signal(ask_to_reload).map_err(|error| Wrong(format!("Signals cannot be received: {error}.")))?;
    let azurite = options.azurite_compat || called_as.is_azurite();
    let manners = if azurite { Manners::Azurite } else { Manners::Azure };
    let folder = paths::data_folder(&options, called_as);
    // Everything that may be wrong with what we were given, before the ports and the data.
    let mut reloads = Vec::new();
    let sources = sources(&options, called_as)?;
    // A node that was given no accounts takes those of the database.
    let in_database = options.cluster.is_some() && sources.are_silent().map_err(|BadConfig(what)| Wrong(what))?;
    let reach = Reach::of(&options, called_as);
    let given = match in_database {
        false => Some(load_accounts(sources.clone(), reach, &mut reloads)?),
        true => None,
    };
    reach.allows_tokens(&options.oauth)?;
    let (tokens, issuer) = load_tokens(&options.oauth, manners, &mut reloads)?;
    if options.oauth != OAuth::Off && options.tls == Tls::Off {
        tracing::warn!("bearer tokens are taken over https only: add --tls auto or --cert");
    }
    // Beside everything else that has to be done: it may be far away, and slow.
    let first_keys = issuer.clone().map(|issuer| tokio::spawn(async move { issuer.fetch().await.unwrap_or(0) }));
    let tls = Source::of(&options.tls, &folder);
    let own_certificate = match &tls {
        Some(Source::Own(own)) => Some(own.clone()),
        _ => None,
    };
    let mut certificate = match &tls {
        Some(source) if own_certificate.is_none() => Some(load_certificate(source, manners, &mut reloads)?),
        _ => None,
    };
    if !options.in_memory && options.cluster.is_none() {
        paths::refuse_azurites_data(&folder)?;
        warn_of_azurites_data(&options, called_as);
    }

    // The ports first: a second server on the same ports must not get as far as the data.
    let mut doors = Doors::default();
    let endpoints = open(&mut doors, &options, called_as)?;
    let data = match &options.cluster {
        Some(cluster) => Data::Cluster(cluster),
        None if options.in_memory => Data::Memory,
        None => Data::Folder(&folder),
    };
    let (engine, shared): (Arc<dyn Engine>, _) = match data {
        Data::Memory => (Arc::new(MemoryEngine::new(seed())), None),
        Data::Folder(folder) => (open_folder(folder, options.durability)?, None),
        Data::Cluster(cluster) => {
            let engine = cluster::open(cluster).await?;
            (Arc::clone(&engine) as _, Some(engine))
        }
    };
    let (known, accounts) = match (given, shared) {
        (None, Some(engine)) => accounts_in_database(engine, sources, reach).await?,
        (given, _) => given.ok_or_else(|| Wrong("There are no accounts.".into()))?,
    };
    let delegation_secret = match data {
        Data::Memory => delegation_secret::load(None)?,
        Data::Folder(folder) => delegation_secret::load(Some(folder))?,
        Data::Cluster(_) => delegation_secret::shared(engine.as_ref()).await?,
    };
    if let (Some(own), Some(source)) = (&own_certificate, &tls) {
        own.prepare(OffsetDateTime::now_utc())?;
        certificate = Some(load_certificate(source, manners, &mut reloads)?);
    }
    let access_log = match options.silent {
        true => None,
        false => Some(AccessLog::to(io::stdout()).map_err(|error| Wrong(format!("The access log fails: {error}.")))?),
    };
    create::run(&engine, known.names(), &options.create).await?;
    let setup = Setup {
        engine,
        accounts,
        tokens,
        issuer: issuer.clone(),
        tls: certificate.map(|certificate| certificate.config()).transpose()?,
        delegation_secret,
        manners,
        hosts: if options.disable_product_style_url { Hosts::NeverNameAccounts } else { Hosts::MayNameAccounts },
        copy_sources: options.copy_sources,
        limits: within_files(options.limits, endpoints.services.len(), files),
        access_log: access_log.clone(),
        test_clock: options.test_clock,
        admin_names: options.admin_names.clone(),
    };
    let server = Server::new(setup).await.map_err(|error| Wrong(format!("The accounts cannot be stored: {error}.")))?;
    reload::watch(reloads, asked_to_reload).map_err(|error| Wrong(format!("No thread can be started: {error}.")))?;
    let issuer_keys = match first_keys {
        Some(fetching) => timeout(ISSUER_PATIENCE, fetching).await.map_or(0, |fetched| fetched.unwrap_or(0)),
        None => 0,
    };
    if let Some(issuer) = issuer {
        tokio::spawn(async move { issuer.keep_up().await });
    }
    let facts = Facts {
        data,
        durability: options.durability,
        known: &known,
        own_certificate: own_certificate.as_ref().map(|own| own.cert.as_path()),
        oauth: &options.oauth,
        issuer_keys,
        test_clock: options.test_clock,
        silent: options.silent,
        azurite,
        paint: Paint::of_standard_output(),
    };
    greeting::say(&greeting::text(&endpoints, &facts));
    let stop = async {
        stop.await;
        greeting::say(&greeting::closing(&endpoints, options.silent, azurite));
    };
    let ended = server.run(doors, stop).await;
    if let Some(log) = access_log {
        log.close(LOG_PATIENCE);
    }
    ended.map_err(|error| Wrong(format!("The data did not close in good order: {error}.")))?;
    greeting::say(&greeting::closed(&endpoints, options.silent, azurite));
    Ok(())
}

type LoadedAccounts = (Known, Arc<dyn Current<Accounts>>);

/// Those that all nodes of a cluster share.
async fn accounts_in_database(
    engine: Arc<PostgresEngine>,
    sources: Sources,
    reach: Reach,
) -> Result<LoadedAccounts, Wrong> {
    let read = move |text: &str| {
        let wrong = |BadConfig(sentence)| format!("In the database: {sentence}");
        let known = sources.with_text(text).map_err(wrong)?;
        reach.allows_the_known_key(&known).map_err(|Wrong(sentence)| sentence)?;
        known.warnings().for_each(|warning| tracing::warn!("{warning}"));
        Ok(known)
    };
    let (known, accounts) = SharedAccounts::open(engine, Box::new(read)).await?;
    Ok((known, accounts))
}

fn load_accounts(mut sources: Sources, reach: Reach, reloads: &mut Vec<Arc<Reload>>) -> Result<LoadedAccounts, Wrong> {
    let files = Files::now([sources.file.as_path()]);
    let mut read = move || -> Result<Known, String> {
        let known = sources.load().map_err(|BadConfig(sentence)| sentence)?;
        reach.allows_the_known_key(&known).map_err(|Wrong(sentence)| sentence)?;
        // When the file is gone later, that is no reason to let the well-known account in.
        sources.file_is_needed |= known.from_file;
        known.warnings().for_each(|warning| tracing::warn!("{warning}"));
        Ok(known)
    };
    let known = read().map_err(Wrong)?;
    let accounts = Arc::new(Shared::new(known.accounts.clone()));
    let shared = Arc::clone(&accounts);
    let reload = Arc::new(Reload::new(files, move || {
        shared.set(read()?.accounts);
        Ok(())
    }));
    reloads.push(Arc::clone(&reload));
    Ok((known, Arc::new(AccountsOfFile { reload, accounts })))
}

/// The accounts, with a glance at their file each time: a key that was taken away must open nothing from that moment on.
struct AccountsOfFile {
    reload: Arc<Reload>,
    accounts: Arc<Shared<Accounts>>,
}

impl Current<Accounts> for AccountsOfFile {
    fn get(&self) -> Arc<Accounts> {
        self.reload.glance();
        self.accounts.get()
    }
}

fn sources(options: &Options, called_as: CalledAs) -> Result<Sources, Wrong> {
    const VARIABLE: &str = "AZURITE_ACCOUNTS";
    let environment = match std::env::var(VARIABLE) {
        Ok(list) => Some((VARIABLE, Secret::new(list))),
        Err(VarError::NotPresent) => None,
        Err(VarError::NotUnicode(_)) => return Err(Wrong(format!("{VARIABLE} is not readable text."))),
    };
    let flag = options.accounts.clone().map(|list| ("--accounts", list));
    Ok(Sources {
        takes_loose_keys: options.azurite_compat || called_as.is_azurite(),
        lists: flag.into_iter().chain(environment).collect(),
        file: paths::config(options, called_as),
        file_is_needed: options.config.is_some(),
    })
}

type Taken = (Arc<Shared<Tokens>>, Option<Arc<Issuer>>);

fn load_tokens(oauth: &OAuth, manners: Manners, reloads: &mut Vec<Arc<Reload>>) -> Result<Taken, Wrong> {
    let files = match oauth {
        OAuth::Issuer(name) => return issuer(name, reloads),
        OAuth::Verified { keys, .. } => Some(keys.as_path()),
        OAuth::Off | OAuth::Basic => None,
    };
    let files = Files::now(files);
    let tokens = Arc::new(Shared::new(oauth.load(manners)?));
    if matches!(oauth, OAuth::Verified { issuer: None, .. }) {
        tracing::warn!("if the keys sign for several tenants, tokens of all of them are taken: add --oauth issuer=URL");
    }
    let (shared, oauth) = (Arc::clone(&tokens), oauth.clone());
    reloads.push(Arc::new(Reload::new(files, move || {
        shared.set(oauth.load(manners).map_err(|Wrong(sentence)| sentence)?);
        Ok(())
    })));
    Ok((tokens, None))
}

/// Its keys come later. Who asks us to read everything again means them, too.
fn issuer(name: &str, reloads: &mut Vec<Arc<Reload>>) -> Result<Taken, Wrong> {
    let issuer = Issuer::new(name, Client::default());
    let issuer = Arc::new(issuer.map_err(|error| Wrong(format!("--oauth issuer={name} is wrong: {error}.")))?);
    let asked = Arc::clone(&issuer);
    reloads.push(Arc::new(Reload::new(Files::now([]), move || {
        asked.ask();
        Ok(())
    })));
    Ok((issuer.tokens(), Some(issuer)))
}

fn load_certificate(
    source: &Source,
    manners: Manners,
    reloads: &mut Vec<Arc<Reload>>,
) -> Result<Arc<Certificate>, Wrong> {
    let files = Files::now(source.files());
    let certificate = Certificate::new(source.load(manners)?);
    let (shared, source) = (Arc::clone(&certificate), source.clone());
    reloads.push(Arc::new(Reload::new(files, move || {
        shared.set(source.load(manners).map_err(|Wrong(sentence)| sentence)?);
        Ok(())
    })));
    Ok(certificate)
}

/// From where we can be reached, and whether that may be with doors that everybody can open.
#[derive(Clone, Copy, Debug)]
struct Reach {
    /// The first address that is not only for this machine.
    outside: Option<IpAddr>,
    /// Azurite's users expect it, and are told.
    azurite: bool,
}

impl Reach {
    fn of(options: &Options, called_as: CalledAs) -> Reach {
        let open = options.services.iter().filter(|door| door.port(called_as, options.azurite_compat).is_some());
        Reach {
            outside: open.map(|door| door.host).find(|host| !host.is_loopback()),
            azurite: options.azurite_compat || called_as.is_azurite(),
        }
    }

    /// A key that everybody knows opens the door to everybody who can reach it.
    fn allows_the_known_key(self, known: &Known) -> Result<(), Wrong> {
        let Some(account) = known.well_known.first() else { return Ok(()) };
        let risk = format!("Account {account} has the key that everybody knows");
        self.allows(&risk, "give it a key of its own (lazurite account add, --config or AZURITE_ACCOUNTS)")
    }

    /// So do tokens that everybody can make.
    fn allows_tokens(self, oauth: &OAuth) -> Result<(), Wrong> {
        match oauth {
            OAuth::Off | OAuth::Verified { .. } => Ok(()),
            OAuth::Basic => {
                self.allows("--oauth basic takes tokens that everybody can make", "give --oauth issuer=URL")
            }
            OAuth::Issuer(name) if name.starts_with("https://") || is_on_this_machine(name) => Ok(()),
            OAuth::Issuer(_) => self.allows(
                "An issuer over http has the keys that anybody between it and us likes it to have",
                "give one over https, or --oauth-jwks FILE",
            ),
        }
    }

    fn allows(self, risk: &str, instead: &str) -> Result<(), Wrong> {
        let Some(host) = self.outside else { return Ok(()) };
        if self.azurite {
            tracing::warn!("{risk}, and {host} can be reached from elsewhere");
            return Ok(());
        }
        Err(Wrong(format!(
            "{risk}, and {host} can be reached from elsewhere: {instead}, or allow this with --azurite-compat."
        )))
    }
}

/// `http://localhost:8080/...`, or an address that is never seen on a network.
fn is_on_this_machine(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_local = |host: &str| host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    authority.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback())
        || is_local(authority.trim_matches(['[', ']']))
        || authority.split(':').next() == Some("localhost")
}

/// Under its name we do not use its files and do not stand in their way; who looks for his data should know.
fn warn_of_azurites_data(options: &Options, called_as: CalledAs) {
    let location = paths::location(options, called_as);
    if called_as.is_azurite() && paths::has_azurites_data(&location) {
        tracing::warn!("the data that Azurite has left in {} is not read; ours is beside it", location.display());
    }
}

fn open(doors: &mut Doors, options: &Options, called_as: CalledAs) -> Result<Endpoints, Wrong> {
    let mut endpoints = Endpoints { https: options.tls != Tls::Off, ..Endpoints::default() };
    for door in &options.services {
        let Some(port) = door.port(called_as, options.azurite_compat) else { continue };
        let what = format!("the {} service", door.service.name());
        let flag = format!("--{}-port", door.service.label());
        let address = SocketAddr::new(door.host, port);
        let opened = doors
            .open(Door::Rest(door.service), address, door.keep_alive)
            .map_err(|error| no_port(address, &what, &flag, error))?;
        endpoints.services.push((door.service, opened));
    }
    let admin = match options.admin_port {
        Some(Port::At(port)) => Some(port),
        None if !options.azurite_compat && !called_as.is_azurite() => Some(ADMIN_PORT),
        Some(Port::Off) | None => None,
    };
    if let Some(port) = admin {
        let address = SocketAddr::new(options.admin_host, port);
        let opened = doors
            .open(Door::Admin, address, None)
            .map_err(|error| no_port(address, "administration", "--admin-port", error))?;
        endpoints.admin = Some(opened);
    }
    Ok(endpoints)
}

fn no_port(address: SocketAddr, what: &str, flag: &str, error: io::Error) -> Wrong {
    let port = address.port();
    Wrong(match error.kind() {
        ErrorKind::AddrInUse => {
            format!("Port {port} for {what} is already in use: choose another with {flag}, or stop who listens there.")
        }
        ErrorKind::PermissionDenied => {
            format!("Port {port} for {what} is not open to this user: choose one above 1023 with {flag}.")
        }
        _ => format!("Cannot listen at {address} for {what} ({flag}): {error}."),
    })
}

fn open_folder(folder: &Path, durability: Durability) -> Result<Arc<dyn Engine>, Wrong> {
    let durability = match durability {
        Durability::Full => engine_embedded::Durability::Full,
        Durability::Relaxed => engine_embedded::Durability::Relaxed,
    };
    let options = engine_embedded::Options { durability, ..engine_embedded::Options::default() };
    match EmbeddedEngine::open(folder, options) {
        Ok(engine) => Ok(engine),
        Err(error) => Err(Wrong(format!("The data folder cannot be opened: {error}."))),
    }
}

/// Another one for each run: lease and request ids of two runs must not meet.
fn seed() -> u128 {
    let half = || u128::from(RandomState::new().hash_one(std::process::id()));
    half() << 64 | half()
}

/// Files that are not connections of services: data, logs, the admin port, copies from elsewhere.
const FILES_KEPT_BACK: u64 = 512;

/// Connections must not take the files that everything else needs, health checks among them.
fn within_files(limits: Limits, ports: usize, files: Option<u64>) -> Limits {
    let Some(files) = files else { return limits };
    let kept_back = FILES_KEPT_BACK.min(files / 2);
    let most = usize::try_from((files - kept_back) / ports.max(1) as u64).unwrap_or(usize::MAX).max(1);
    if most >= limits.connections {
        return limits;
    }
    let said = format!("only {files} files may be open at once (ulimit -n), so each port takes {most} connections");
    match limits.connections == Limits::default().connections {
        true => tracing::info!("{said}"),
        // Somebody asked for more.
        false => tracing::warn!("{said}"),
    }
    // Half of them for one address, unless one address was said to get all.
    let for_one = if limits.connections_per_address >= limits.connections { most } else { most.div_ceil(2) };
    Limits { connections: most, connections_per_address: limits.connections_per_address.min(for_one), ..limits }
}

/// What macOS allows a process whose limit it does not name.
#[cfg(unix)]
const OPEN_MAX: u64 = 10_240;

/// Every connection is a file, and the usual soft limit of 1024 is soon reached. What is allowed is taken, and said.
#[cfg(unix)]
fn allow_many_files() -> Option<u64> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current;
    limit.current = limit.maximum;
    let mut raised = setrlimit(Resource::Nofile, limit);
    // macOS says that there is no limit, and then refuses more than it opens. (There, 256 are usual otherwise.)
    if raised.is_err() && before.is_some_and(|before| before < OPEN_MAX) {
        limit.current = Some(OPEN_MAX);
        raised = setrlimit(Resource::Nofile, limit);
    }
    if let Err(error) = raised {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
    getrlimit(Resource::Nofile).current
}

#[cfg(not(unix))]
fn allow_many_files() -> Option<u64> {
    None
}

fn start_logging(file: Option<&Path>) -> Result<(), Wrong> {
    let builder = tracing_subscriber::fmt().with_target(false).with_ansi(false);
    match file {
        None => builder.with_max_level(tracing::Level::WARN).with_writer(io::stderr).init(),
        Some(path) => {
            let file = open_log(path)
                .map_err(|error| Wrong(format!("The log {} cannot be written: {error}.", path.display())))?;
            builder.with_max_level(tracing::Level::DEBUG).with_writer(std::sync::Mutex::new(file)).init();
        }
    }
    Ok(())
}

/// For its owner only: it says who asks for what.
fn open_log(path: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // It may have been there before, written by an earlier version. A terminal or a pipe has no owner to speak of.
    #[cfg(unix)]
    if file.metadata()?.is_file() {
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    }
    Ok(file)
}

/// Resolves at the first request to end; the second one ends the process at once. A hangup is a request to read the
/// files again, which goes to `reload`.
fn stop_signal(reload: mpsc::Sender<()>) -> io::Result<impl Future<Output = ()>> {
    let mut signals = Signals::new(reload)?;
    Ok(async move {
        signals.next().await;
        tokio::spawn(async move {
            signals.next().await;
            std::process::exit(130);
        });
    })
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    reload: mpsc::Sender<()>,
    /// Somebody sits there.
    on_terminal: bool,
}

#[cfg(unix)]
impl Signals {
    fn new(reload: mpsc::Sender<()>) -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            reload,
            on_terminal: io::stdin().is_terminal(),
        })
    }

    async fn next(&mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => {}
            }
            // Who closes the window wants us to end, not to go on unseen.
            if self.on_terminal && !io::stdin().is_terminal() {
                return;
            }
            let _ = self.reload.send(());
        }
    }
}

#[cfg(not(unix))]
struct Signals(mpsc::Sender<()>);

#[cfg(not(unix))]
impl Signals {
    fn new(reload: mpsc::Sender<()>) -> io::Result<Signals> {
        Ok(Signals(reload))
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_files_mean_few_connections_and_what_was_said_of_an_address_holds() {
        let within = |connections, connections_per_address, files| {
            let limits = Limits { connections, connections_per_address, ..Limits::default() };
            let limits = within_files(limits, 4, files);
            (limits.connections, limits.connections_per_address)
        };
        assert_eq!(within(8_192, 4_096, None), (8_192, 4_096));
        assert_eq!(within(8_192, 4_096, Some(1_000_000)), (8_192, 4_096));
        assert_eq!(within(8_192, 4_096, Some(4_512)), (1_000, 500));
        assert_eq!(within(8_192, 100, Some(4_512)), (1_000, 100));
        assert_eq!(within(8_192, 4_096, Some(256)), (32, 16));
        // Behind a load balancer all clients have one address, and it was said to get everything.
        assert_eq!(within(8_192, 8_192, Some(4_512)), (1_000, 1_000));
    }
}
