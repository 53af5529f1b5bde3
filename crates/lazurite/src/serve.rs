//! Serving: from the options to a running server, and its end.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use engine::Engine;
use engine::memory::MemoryEngine;
use engine_embedded::EmbeddedEngine;
use engine_postgres::PostgresEngine;
use server::{AccessLog, Door, Doors, Hosts, Issuer, Manners, Server, Setup};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::accounts::Known;
use crate::credentials::Credentials;
use crate::flags::{Durability, Options, Port, Tls, Wrong};
use crate::greeting::{self, Data, Endpoints, Facts, Paint};
use crate::program_name::CalledAs;
use crate::{cluster, create, delegation_secret, logging, open_files, paths, reload, signals};

const ADMIN_PORT: u16 = 10_010;
/// How long the start waits for the keys of an issuer. The server can do without them for a while.
const ISSUER_PATIENCE: Duration = Duration::from_secs(5);
/// How long the last lines of the access log may take to be written.
const LOG_PATIENCE: Duration = Duration::from_secs(1);

pub fn run(options: Options, called_as: CalledAs) -> Result<(), Wrong> {
    logging::start(options.debug.as_deref())?;
    let files = open_files::allow_many();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Wrong(format!("The runtime does not start: {error}.")))?;
    runtime.block_on(serve(options, called_as, files))
}

async fn serve(options: Options, called_as: CalledAs, files: Option<u64>) -> Result<(), Wrong> {
    // Before anything takes time: a signal during the start leads to an orderly end, too.
    let (ask_to_reload, asked_to_reload) = mpsc::channel();
    let stop = signals::stop(ask_to_reload).map_err(|error| Wrong(format!("Signals cannot be received: {error}.")))?;
    let azurite = options.azurite_compat || called_as.is_azurite();
    let manners = if azurite { Manners::Azurite } else { Manners::Azure };

    // Everything that may be wrong with what we were given, before the ports and the data.
    let folder = paths::data_folder(&options, called_as);
    let mut credentials = Credentials::read(&options, called_as, &folder, manners)?;
    let first_keys = credentials.issuer.clone().map(fetch_keys);
    let data = data(&options, called_as, &folder)?;

    // The ports first: a second server on the same ports must not get as far as the data.
    let mut doors = Doors::default();
    let endpoints = open(&mut doors, &options, called_as)?;

    let access_log = access_log(&options)?;
    let (setup, known) = set_up(&options, &mut credentials, data, manners, access_log.clone(), files).await?;
    let has_smb = usize::from(endpoints.smb.is_some());
    // A connection to the SMB port or the File port of a node may have another one behind it, to the node that serves SMB.
    let of_nodes = if options.cluster.is_some() { has_smb + 1 } else { 0 };
    let limits = open_files::within(setup.limits, endpoints.services.len() + has_smb + of_nodes, files);
    let server = Server::new(Setup { limits, ..setup })
        .await
        .map_err(|error| Wrong(format!("The accounts cannot be stored: {error}.")))?;
    let own_certificate = credentials.own_certificate().map(Path::to_owned);
    reload::watch(credentials.reloads, asked_to_reload)
        .map_err(|error| Wrong(format!("No thread can be started: {error}.")))?;

    let facts = Facts {
        data,
        durability: options.durability,
        known: &known,
        own_certificate: own_certificate.as_deref(),
        oauth: &options.oauth,
        issuer_keys: key_count(first_keys).await,
        smb_encryption: options.smb_encryption,
        test_clock: options.test_clock,
        silent: options.silent,
        azurite,
        paint: Paint::of_standard_output(),
    };
    if let Some(issuer) = credentials.issuer {
        tokio::spawn(async move { issuer.keep_up().await });
    }
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

/// Asks an issuer for its keys beside everything else that has to be done: it may be far away, and slow.
fn fetch_keys(issuer: Arc<Issuer>) -> JoinHandle<usize> {
    tokio::spawn(async move { issuer.fetch().await.unwrap_or(0) })
}

/// How many keys came in time.
async fn key_count(fetching: Option<JoinHandle<usize>>) -> usize {
    match fetching {
        Some(fetching) => timeout(ISSUER_PATIENCE, fetching).await.map_or(0, |fetched| fetched.unwrap_or(0)),
        None => 0,
    }
}

/// Where the data is to be.
fn data<'a>(options: &'a Options, called_as: CalledAs, folder: &'a Path) -> Result<Data<'a>, Wrong> {
    if let Some(cluster) = &options.cluster {
        return Ok(Data::Cluster(cluster));
    }
    if options.in_memory {
        return Ok(Data::Memory);
    }
    paths::refuse_azurites_data(folder)?;
    warn_of_azurites_data(options, called_as);
    Ok(Data::Folder(folder))
}

fn access_log(options: &Options) -> Result<Option<AccessLog>, Wrong> {
    match options.silent {
        true => Ok(None),
        false => {
            AccessLog::to(io::stdout()).map(Some).map_err(|error| Wrong(format!("The access log fails: {error}.")))
        }
    }
}

/// Opens the data, and makes what is to be in it from the start.
async fn set_up(
    options: &Options,
    credentials: &mut Credentials,
    data: Data<'_>,
    manners: Manners,
    access_log: Option<AccessLog>,
    files: Option<u64>,
) -> Result<(Setup, Known), Wrong> {
    let (engine, cluster) = open_data(data, options.durability, files).await?;
    let (known, accounts) = credentials.accounts(cluster).await?;
    let delegation_secret = match data {
        Data::Memory => delegation_secret::load(None)?,
        Data::Folder(folder) => delegation_secret::load(Some(folder))?,
        Data::Cluster(_) => delegation_secret::shared(engine.as_ref()).await?,
    };
    let certificate = credentials.certificate()?;
    create::run(&engine, known.names(), &options.create).await?;
    let setup = Setup {
        engine,
        accounts,
        tokens: Arc::clone(&credentials.tokens),
        issuer: credentials.issuer.clone(),
        tls: certificate.map(|certificate| certificate.config()).transpose()?,
        delegation_secret,
        manners,
        hosts: if options.disable_product_style_url { Hosts::NeverNameAccounts } else { Hosts::MayNameAccounts },
        copy_sources: options.copy_sources.clone(),
        limits: options.limits,
        access_log,
        test_clock: options.test_clock,
        smb: options.smb_encryption,
        cluster: options.cluster.as_ref().map(|_| {
            let advertise = options.advertise.clone().unwrap_or_else(|| options.host.to_string());
            let is_loopback =
                advertise.parse().map_or(advertise == "localhost", |address: IpAddr| address.is_loopback());
            if is_loopback && matches!(options.smb_port, Some(Port::At(_))) {
                tracing::warn!(
                    advertise,
                    "nodes on other machines cannot reach this one: say with --advertise where it is"
                );
            }
            server::Cluster { advertise }
        }),
        admin_names: options.admin_names.clone(),
    };
    Ok((setup, known))
}

/// Opens the engine. A node of a cluster needs to know it by its own name, too.
async fn open_data(
    data: Data<'_>,
    durability: Durability,
    files: Option<u64>,
) -> Result<(Arc<dyn Engine>, Option<Arc<PostgresEngine>>), Wrong> {
    Ok(match data {
        Data::Memory => (Arc::new(MemoryEngine::new(seed())), None),
        Data::Folder(folder) => (open_folder(folder, durability, files)?, None),
        Data::Cluster(cluster) => {
            let engine = cluster::open(cluster).await?;
            (Arc::clone(&engine) as _, Some(engine))
        }
    })
}

/// Under Azurite's name the server neither reads nor touches Azurite's files; a user who looks for that data is told.
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
    if let Some(Port::At(port)) = options.smb_port {
        let address = SocketAddr::new(options.host, port);
        let opened =
            doors.open(Door::Smb, address, None).map_err(|error| no_port(address, "SMB", "--smb-port", error))?;
        endpoints.smb = Some(opened);
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
            format!(
                "Port {port} for {what} is already in use: choose another with {flag}, or stop the program that listens there."
            )
        }
        ErrorKind::PermissionDenied => {
            format!("Port {port} for {what} is not open to this user: choose one above 1023 with {flag}.")
        }
        _ => format!("Cannot listen at {address} for {what} ({flag}): {error}."),
    })
}

fn open_folder(folder: &Path, durability: Durability, files: Option<u64>) -> Result<Arc<dyn Engine>, Wrong> {
    let durability = match durability {
        Durability::Full => engine_embedded::Durability::Full,
        Durability::Relaxed => engine_embedded::Durability::Relaxed,
    };
    let files_max = open_files::for_data(files);
    let options = engine_embedded::Options { durability, files_max, ..engine_embedded::Options::default() };
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
