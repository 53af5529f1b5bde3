//! Serving: from the options to a running server, and its end.

use std::env::VarError;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::Engine;
use engine::memory::MemoryEngine;
use engine_embedded::EmbeddedEngine;
use server::{AccessLog, Doors, Hosts, Limits, Server, Setup, Shared};

use crate::accounts::Known;
use crate::flags::{Durability, Options, Port, Wrong};
use crate::greeting::{self, Facts, Listening};
use crate::name::CalledAs;

const ADMIN_PORT: u16 = 10_010;
const DATA_FOLDER: &str = "lazurite-data";
const FOLDER_UNDER_AZURITES_NAME: &str = "__lazurite__";
/// How long the last lines of the access log may take to be written.
const LOG_PATIENCE: Duration = Duration::from_secs(1);

pub fn run(options: Options, called_as: CalledAs) -> Result<(), Wrong> {
    start_logging(options.debug.as_deref())?;
    allow_many_files();
    let list = match std::env::var("AZURITE_ACCOUNTS") {
        Ok(list) => Some(list),
        Err(VarError::NotPresent) => None,
        Err(VarError::NotUnicode(_)) => return Err(Wrong("AZURITE_ACCOUNTS is not readable text.".into())),
    };
    let known = Known::load(options.config.as_deref(), list.as_deref()).map_err(|error| Wrong(error.to_string()))?;
    let azurite = options.azurite_compat || called_as.is_azurite();
    keep_the_known_key_at_home(&known, &options, azurite)?;
    for warning in &known.warnings {
        tracing::warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Wrong(format!("The runtime does not start: {error}.")))?;
    runtime.block_on(serve(options, called_as, known, azurite))
}

async fn serve(options: Options, called_as: CalledAs, known: Known, azurite: bool) -> Result<(), Wrong> {
    // Before anything takes time: whoever stops us while we start gets an orderly end, too.
    let stop = stop_signal().map_err(|error| Wrong(format!("Signals cannot be received: {error}.")))?;
    // The ports first: a second server on the same ports must not get as far as the data.
    let mut doors = Doors::default();
    let listening = open(&mut doors, &options, called_as)?;
    let folder = data_folder(&options, called_as);
    let engine = open_engine(folder.as_deref(), options.durability)?;
    let access_log = match options.silent {
        true => None,
        false => Some(AccessLog::to(io::stdout()).map_err(|error| Wrong(format!("The access log fails: {error}.")))?),
    };
    let hosts = if options.disable_product_style_url { Hosts::NeverNameAccounts } else { Hosts::MayNameAccounts };
    let setup = Setup {
        engine,
        accounts: Arc::new(Shared::new(known.accounts.clone())),
        tokens: Arc::default(),
        tls: None,
        // Nothing hands out keys made from it yet.
        delegation_secret: [0; 32],
        hosts,
        limits: Limits::default(),
        access_log: access_log.clone(),
        test_clock: options.test_clock,
    };
    let server = Server::new(setup).await.map_err(|error| Wrong(format!("The accounts cannot be stored: {error}.")))?;
    let facts = Facts {
        folder: folder.as_deref(),
        durability: options.durability,
        known: &known,
        test_clock: options.test_clock,
        silent: options.silent,
        azurite,
    };
    greeting::say(&greeting::text(&listening, &facts));
    let ended = server.run(doors, stop).await;
    if let Some(log) = access_log {
        log.close(LOG_PATIENCE);
    }
    ended.map_err(|error| Wrong(format!("The data folder did not close in good order: {error}.")))
}

/// A key that everybody knows opens the door to everybody who can reach it.
fn keep_the_known_key_at_home(known: &Known, options: &Options, azurite: bool) -> Result<(), Wrong> {
    let Some(account) = known.well_known.first() else { return Ok(()) };
    let hosts = options.services.iter().filter(|door| door.port != Some(Port::Off)).map(|door| door.host);
    let Some(host) = hosts.into_iter().find(|host| !host.is_loopback()) else { return Ok(()) };
    if azurite {
        tracing::warn!("account {account} has the key that everybody knows, and {host} can be reached from elsewhere");
        return Ok(());
    }
    Err(Wrong(format!(
        "Account {account} has the key that everybody knows, and {host} can be reached from elsewhere: give it a key of \
         its own (--config or AZURITE_ACCOUNTS), or allow this with --azurite-compat."
    )))
}

fn open(doors: &mut Doors, options: &Options, called_as: CalledAs) -> Result<Listening, Wrong> {
    let mut listening = Listening::default();
    for door in &options.services {
        let unmentioned = called_as.opens(door.service, options.azurite_compat);
        let port = match door.port {
            Some(Port::At(port)) => port,
            None if unmentioned => door.service.default_port(),
            Some(Port::Off) | None => continue,
        };
        let what = format!("the {} service", door.service.name());
        let flag = format!("--{}-port", door.service.label());
        let address = SocketAddr::new(door.host, port);
        let opened = doors
            .open(door.service, address, door.keep_alive)
            .map_err(|error| no_port(address, &what, &flag, error))?;
        listening.services.push((door.service, opened));
    }
    let admin = match options.admin_port {
        Some(Port::At(port)) => Some(port),
        None if !options.azurite_compat && !called_as.is_azurite() => Some(ADMIN_PORT),
        Some(Port::Off) | None => None,
    };
    if let Some(port) = admin {
        let address = SocketAddr::new(options.admin_host, port);
        let opened =
            doors.open_admin(address).map_err(|error| no_port(address, "administration", "--admin-port", error))?;
        listening.admin = Some(opened);
    }
    Ok(listening)
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

/// `None`: in memory. Azurite puts its files into the current directory, beside whatever is there; ours get a folder.
fn data_folder(options: &Options, called_as: CalledAs) -> Option<PathBuf> {
    if options.in_memory {
        return None;
    }
    let folder = match (&options.location, called_as.is_azurite()) {
        (Some(location), false) => location.clone(),
        (None, false) => DATA_FOLDER.into(),
        (location, true) => location.as_deref().unwrap_or(Path::new(".")).join(FOLDER_UNDER_AZURITES_NAME),
    };
    Some(std::path::absolute(&folder).unwrap_or(folder))
}

fn open_engine(folder: Option<&Path>, durability: Durability) -> Result<Arc<dyn Engine>, Wrong> {
    let Some(folder) = folder else { return Ok(Arc::new(MemoryEngine::new(seed()))) };
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

/// Every connection is a file, and the usual soft limit of 1024 is soon reached. What is allowed is taken; that it is
/// not more shows when it is needed.
#[cfg(unix)]
fn allow_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

#[cfg(not(unix))]
fn allow_many_files() {}

fn start_logging(file: Option<&Path>) -> Result<(), Wrong> {
    let builder = tracing_subscriber::fmt().with_target(false).with_ansi(false);
    match file {
        None => builder.with_max_level(tracing::Level::WARN).with_writer(io::stderr).init(),
        Some(path) => {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            let file =
                file.map_err(|error| Wrong(format!("The log {} cannot be written: {error}.", path.display())))?;
            builder.with_max_level(tracing::Level::DEBUG).with_writer(std::sync::Mutex::new(file)).init();
        }
    }
    Ok(())
}

/// Resolves at the first request to end; the second one ends the process at once.
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut signals = Signals::new()?;
    Ok(async move {
        signals.next().await;
        tokio::spawn(async move {
            signals.next().await;
            std::process::exit(130);
        });
    })
}

#[cfg(unix)]
struct Signals(tokio::signal::unix::Signal, tokio::signal::unix::Signal);

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals(signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?))
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Signals> {
        Ok(Signals)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
