//! The walk: from a socket to a service and back.
//!
//! [`Doors`] are the ports; [`Server`] is what stands behind them. A request enters by `listener.rs`, is taken through
//! `pipeline.rs` (start reading there), and leaves through `respond.rs`. Only this crate knows sockets and status lines;
//! what an operation means is the business of the service crates.

mod access_log;
mod admin;
mod batch;
mod body;
mod connection_limits;
mod debug_log;
mod dfs;
mod failed_sign_ins;
mod issuer;
pub mod limits;
mod listener;
mod log_throttle;
mod metadata_case;
mod metrics;
mod op;
mod pipeline;
mod request_id;
mod respond;
mod service;
mod services;
mod shared;
mod socket;
mod sources;
mod stream;
mod sweeper;
mod target;
mod timeouts;
pub mod version;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use auth::{Accounts, Tokens};
use engine::{Engine, EngineError};
use tokio::net::TcpListener;
use tokio_rustls::rustls;

pub use ::service::Manners;
pub use access_log::AccessLog;
pub use fetch::Client;
pub use issuer::{BadIssuer, Issuer};
pub use limits::Limits;
pub use service::Service;
pub use shared::{Current, Shared};
pub use target::Hosts;

use admin::Admin;
use failed_sign_ins::FailedSignIns;
use listener::Connections;
use metrics::Metrics;
use pipeline::{AccountIds, House, Pipeline};
use request_id::RequestIds;
use services::Services;
use socket::Transport;
use sources::Elsewhere;
use sweeper::Sweeper;

/// The ports of a server. Clients that come before it runs wait.
#[derive(Debug, Default)]
pub struct Doors {
    services: Vec<(Service, TcpListener, Option<Duration>)>,
    admin: Option<TcpListener>,
}

impl Doors {
    /// Opens a port for a service and says which it became. `idle` overrides how long its connections may be silent.
    ///
    /// Must be called on the runtime.
    pub fn open(&mut self, service: Service, at: SocketAddr, idle: Option<Duration>) -> io::Result<SocketAddr> {
        let listener = listener::bind(at)?;
        let address = listener.local_addr()?;
        self.services.push((service, listener, idle));
        Ok(address)
    }

    /// Opens the admin port.
    pub fn open_admin(&mut self, at: SocketAddr) -> io::Result<SocketAddr> {
        let listener = listener::bind(at)?;
        let address = listener.local_addr()?;
        self.admin = Some(listener);
        Ok(address)
    }
}

/// What a server is made of.
pub struct Setup {
    pub engine: Arc<dyn Engine>,
    /// Asked for each request, which is judged by what they are then.
    pub accounts: Arc<dyn Current<Accounts>>,
    /// Whose bearer tokens are taken. May be set anew as well.
    pub tokens: Arc<Shared<Tokens>>,
    /// Where the keys of the tokens come from, to be asked when a token names one that is not known.
    pub issuer: Option<Arc<Issuer>>,
    /// `None`: the services speak plain HTTP.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// What user delegation keys are made from. Another secret makes all of them void.
    pub delegation_secret: [u8; 32],
    pub hosts: Hosts,
    pub manners: Manners,
    /// From where copies may come, apart from this server itself.
    pub copy_sources: fetch::Hosts,
    pub limits: Limits,
    pub access_log: Option<AccessLog>,
    /// Whether the admin port may move the engine's time.
    pub test_clock: bool,
    /// Names by which the admin port is called, beside addresses and `localhost`.
    pub admin_names: Vec<String>,
}

/// Leaves out the secret.
impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("hosts", &self.hosts).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The services over one engine.
#[derive(Debug)]
pub struct Server {
    engine: Arc<dyn Engine>,
    house: Arc<House>,
    sweeper: Arc<Sweeper>,
    connections: Connections,
    transport: Transport,
    test_clock: bool,
    admin_names: Vec<String>,
}

impl Server {
    /// Makes the server; every account gets its number if it has none yet. One that comes later gets it on its first use.
    pub async fn new(setup: Setup) -> Result<Server, EngineError> {
        let account_ids = AccountIds::new(Arc::clone(&setup.engine));
        for name in setup.accounts.get().names() {
            account_ids.of(name).await?;
        }
        let client = fetch::Client::new(fetch::Limits::default()).within(setup.copy_sources);
        let services = Services::new(&setup.engine, Arc::new(Elsewhere { client }));
        let handlers = services.handlers();
        let metrics = Arc::new(Metrics::new());
        let house = House {
            metrics: Arc::clone(&metrics),
            accounts: setup.accounts,
            tokens: setup.tokens,
            issuer: setup.issuer,
            delegation_secret: setup.delegation_secret,
            account_ids,
            services,
            hosts: setup.hosts,
            manners: setup.manners,
            limits: setup.limits,
            access_log: setup.access_log,
            request_ids: RequestIds::new(),
            blob_doors: OnceLock::new(),
            failed_sign_ins: FailedSignIns::default(),
        };
        Ok(Server {
            sweeper: Arc::new(Sweeper { engine: Arc::clone(&setup.engine), handlers, sweeper: Default::default() }),
            engine: setup.engine,
            house: Arc::new(house),
            connections: Connections::new(setup.limits, metrics),
            transport: setup.tls.map_or(Transport::Plain, |config| Transport::tls(&config)),
            test_clock: setup.test_clock,
            admin_names: setup.admin_names,
        })
    }

    /// Serves until `stop`, then ends in good order: no new connection, what runs comes to its end, the engine closes.
    pub async fn run(self, doors: Doors, stop: impl Future<Output = ()>) -> Result<(), EngineError> {
        let limits = self.house.limits;
        // The Data Lake port answers what the Blob port answers, which knows both kinds of requests.
        let as_blob = |service| if service == Service::Dfs { Service::Blob } else { service };
        let blob = doors.services.iter().filter(|(service, ..)| as_blob(*service) == Service::Blob);
        let blob = blob.filter_map(|(_, listener, _)| listener.local_addr().ok()).collect();
        let _ = self.house.blob_doors.set(blob);
        for (service, listener, idle) in doors.services {
            let https = self.transport.is_https();
            let pipeline = Arc::new(Pipeline { house: Arc::clone(&self.house), service: as_blob(service), https });
            let (transport, idle) = (self.transport.clone(), idle.unwrap_or(limits.idle));
            let places = self.connections.service_places();
            tokio::spawn(self.connections.clone().accept(listener, places, transport, pipeline, idle));
        }
        if let Some(listener) = doors.admin {
            let admin = Arc::new(Admin {
                engine: Arc::clone(&self.engine),
                connections: self.connections.clone(),
                metrics: Arc::clone(&self.house.metrics),
                limits,
                names: self.admin_names,
                sweeper: Arc::clone(&self.sweeper),
                has_test_clock: self.test_clock,
            });
            let places = self.connections.admin_places();
            tokio::spawn(self.connections.clone().accept(listener, places, Transport::Plain, admin, limits.idle));
        }
        let (sweeper, connections) = (Arc::clone(&self.sweeper), self.connections.clone());
        let sweeper = tokio::spawn(async move { sweeper.run(connections).await });

        tokio::spawn(self.connections.clone().give_memory_back());

        stop.await;
        let left = self.connections.end().await;
        if left > 0 {
            tracing::warn!(left, "connections were still busy when time was up; they are cut");
        }
        // A sweep that takes longer than requests may is left where it is: what it did not finish is still due.
        let _ = tokio::time::timeout(limits.shutdown, sweeper).await;
        self.engine.close().await
    }
}
