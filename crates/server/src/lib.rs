//! The walk: from a socket to a service and back.
//!
//! [`Doors`] are the ports; [`Server`] is what stands behind them. A connection is accepted in `listener.rs`, a request is read in
//! `http1.rs`, is taken through `pipeline.rs` (start reading there), and leaves through `respond.rs`. Only this crate knows sockets and status lines;
//! what an operation means is the business of the service crates.

mod access_log;
mod activity;
mod admin;
mod batch;
mod body;
mod connection_limits;
mod debug_log;
mod deletions;
mod dfs;
mod failed_sign_ins;
mod forward;
mod http1;
mod issuer;
pub mod limits;
mod listener;
mod log_throttle;
mod metadata_case;
mod metrics;
mod nodes;
mod pipeline;
mod relay;
mod request_id;
mod respond;
mod service;
mod services;
mod smb;
mod smb_metrics;
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
use file::owner::NodeAddress;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::rustls;

pub use ::service::Manners;
pub use ::service::current::{Current, Shared};
pub use access_log::AccessLog;
pub use fetch::Client;
pub use issuer::{BadIssuer, Issuer};
pub use limits::Limits;
pub use service::Service;
pub use target::Hosts;

use admin::Admin;
use body::PublicAnswers;
use failed_sign_ins::FailedSignIns;
use http1::Http1;
use listener::{Connections, Port};
use metrics::Metrics;
use nodes::Nodes;
use pipeline::{AccountIds, House, Pipeline};
use request_id::RequestIds;
use services::Services;
use socket::Transport;
use sources::Elsewhere;
use sweeper::Sweeper;

/// What a port is for. A port with another protocol is another variant, and another arm in `Server::listen`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// The REST protocol of a service.
    Rest(Service),
    /// SMB, for the shares of the File service.
    Smb,
    Admin,
}

/// The ports of a server. Clients that come before it runs wait.
#[derive(Debug, Default)]
pub struct Doors(Vec<OpenDoor>);

#[derive(Debug)]
struct OpenDoor {
    door: Door,
    listener: TcpListener,
    idle: Option<Duration>,
}

impl Doors {
    /// Opens a port and says which it became. `idle` overrides how long its connections may be silent.
    ///
    /// Must be called on the runtime.
    pub fn open(&mut self, door: Door, at: SocketAddr, idle: Option<Duration>) -> io::Result<SocketAddr> {
        let listener = listener::bind(at)?;
        let address = listener.local_addr()?;
        self.0.push(OpenDoor { door, listener, idle });
        Ok(address)
    }

    /// Where the services listen for REST requests.
    fn rest_addresses(&self) -> Vec<(Service, SocketAddr)> {
        let address = |open: &OpenDoor| match open.door {
            Door::Rest(service) => Some((service.answering(), open.listener.local_addr().ok()?)),
            Door::Smb | Door::Admin => None,
        };
        self.0.iter().filter_map(address).collect()
    }

    fn smb_port(&self) -> Option<u16> {
        let open = self.0.iter().find(|open| open.door == Door::Smb)?;
        open.listener.local_addr().ok().map(|address| address.port())
    }
}

/// That the server is one node of many, over an engine that they share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The name or address by which other nodes reach this one.
    pub advertise: String,
}

/// Which SMB clients are let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SmbEncryption {
    /// Those that encrypt, as with Azure Files: SMB 3.0 and later.
    #[default]
    Required,
    /// All of them, SMB 2.1 as well. Who asks for encryption gets it; for development.
    Desired,
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
    /// How SMB is spoken, if a port for it is opened.
    pub smb: SmbEncryption,
    /// `None`: the server is alone.
    pub cluster: Option<Cluster>,
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
    /// Those of the SMB port.
    smb_connections: Connections,
    transport: Transport,
    test_clock: bool,
    admin_names: Vec<String>,
    smb: Arc<::smb::server::Server>,
}

impl Server {
    /// Makes the server; every account gets its number if it has none yet. One that comes later gets it on its first use.
    pub async fn new(setup: Setup) -> Result<Server, EngineError> {
        let account_ids = AccountIds::new(Arc::clone(&setup.engine));
        for name in setup.accounts.get().names() {
            account_ids.of(name).await?;
        }
        let client = fetch::Client::new(fetch::Limits::default()).within(setup.copy_sources);
        let metrics = Arc::new(Metrics::new());
        let nodes = setup.cluster.map(|Cluster { advertise }| {
            Arc::new(Nodes::new(&setup.engine, advertise, &setup.delegation_secret, &setup.limits, &metrics))
        });
        let ownership = nodes.as_ref().map(|nodes| &nodes.ownership);
        let services = Services::new(&setup.engine, &(Arc::new(Elsewhere { client }) as _), ownership);
        let handlers = services.handlers();
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
            rest_addresses: OnceLock::new(),
            failed_sign_ins: FailedSignIns::default(),
            nodes,
            public_answers: PublicAnswers::new(&setup.limits),
        };
        let house = Arc::new(house);
        let connections = Connections::new(setup.limits, metrics);
        Ok(Server {
            smb: Arc::new(smb::server(&house, setup.smb)),
            sweeper: Arc::new(Sweeper { engine: Arc::clone(&setup.engine), handlers, sweeper: Default::default() }),
            engine: setup.engine,
            house,
            smb_connections: connections.apart(),
            connections,
            transport: setup.tls.map_or(Transport::Plain, |config| Transport::https(&config)),
            test_clock: setup.test_clock,
            admin_names: setup.admin_names,
        })
    }

    /// Has a port accept connections, and its protocol converse on them.
    fn listen(&self, OpenDoor { door, listener, idle }: OpenDoor) {
        let (connections, idle) = (self.connections.clone(), idle.unwrap_or(self.house.limits.idle));
        match door {
            Door::Rest(service) => {
                let (transport, connection_limits) = (self.transport.clone(), connections.service_limits());
                let (house, https) = (Arc::clone(&self.house), transport.is_https());
                let pipeline = Pipeline { house, service: service.answering(), https };
                let port = Port { listener, transport, connection_limits, idle };
                tokio::spawn(connections.accept(port, Http1(pipeline)));
            }
            Door::Smb => {
                let local = listener.local_addr().unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
                let (transport, connection_limits) = (Transport::Plain, connections.service_limits());
                let port = Port { listener, transport, connection_limits, idle };
                let protocol = smb::Smb { server: Arc::clone(&self.smb), local, nodes: self.house.nodes.clone() };
                tokio::spawn(self.smb_connections.clone().accept(port, protocol));
                tokio::spawn(smb::look_after_disconnected(Arc::clone(&self.smb), self.house.nodes.clone()));
                // Files to be deleted whose last handle was not closed but lost, as when its request was cut off.
                deletions::spawn(&self.house.services.file_door());
            }
            Door::Admin => {
                // Health checks know nothing of certificates, so with one the port takes both.
                let (transport, connection_limits) = (self.transport.clone().or_plain(), connections.admin_limits());
                let port = Port { listener, transport, connection_limits, idle };
                tokio::spawn(connections.accept(port, Http1(self.admin())));
            }
        }
    }

    fn admin(&self) -> Admin {
        Admin {
            engine: Arc::clone(&self.engine),
            connections: self.connections.clone(),
            metrics: Arc::clone(&self.house.metrics),
            limits: self.house.limits,
            names: self.admin_names.clone(),
            sweeper: Arc::clone(&self.sweeper),
            has_test_clock: self.test_clock,
        }
    }

    /// As a node of many: from now on it knows which one serves SMB, and may become it if it has a port for that.
    fn join_nodes(&self, doors: &Doors) -> Option<JoinSet<()>> {
        let nodes = self.house.nodes.as_ref()?;
        let rest = self.house.rest_addresses();
        let port_of = |wanted| rest.iter().find(|(service, _)| *service == wanted).map(|(_, address)| address.port());
        let address = doors.smb_port().map(|smb_port| NodeAddress {
            host: nodes.advertised.clone(),
            smb_port,
            https: self.transport.is_https(),
            file_port: port_of(Service::File),
            blob_port: port_of(Service::Blob),
        });
        Some(nodes.start(address))
    }

    /// Ends SMB, and with it the term of this node: another one takes its place while long requests on other ports come to their end.
    async fn end_smb(&self, keeping: Option<JoinSet<()>>) {
        let limits = self.house.limits;
        self.smb_connections.part_ended().await;
        self.smb.end_all_disconnected();
        // Connections that were cut leave files behind that their clients have deleted.
        let _ = tokio::time::timeout(limits.shutdown, deletions::ended(&self.house.services.file_door())).await;
        if let (Some(nodes), Some(mut keeping)) = (&self.house.nodes, keeping) {
            keeping.shutdown().await;
            let _ = tokio::time::timeout(limits.shutdown, nodes.resign()).await;
        }
    }

    /// Serves until `stop`, then ends in good order: no new connection, what runs comes to its end, the engine closes.
    pub async fn run(self, doors: Doors, stop: impl Future<Output = ()>) -> Result<(), EngineError> {
        let limits = self.house.limits;
        let _ = self.house.rest_addresses.set(doors.rest_addresses());
        let keeping = self.join_nodes(&doors);
        for open in doors.0 {
            self.listen(open);
        }
        let (sweeper, connections) = (Arc::clone(&self.sweeper), self.connections.clone());
        let sweeper = tokio::spawn(async move { sweeper.run(connections).await });

        tokio::spawn(self.connections.clone().give_memory_back());

        stop.await;
        let (left, ()) = tokio::join!(self.connections.end(), self.end_smb(keeping));
        if left > 0 {
            tracing::warn!(left, "connections were still busy when time was up; they are cut");
        }
        // Requests that closed handles may have left some.
        let _ = tokio::time::timeout(limits.shutdown, deletions::ended(&self.house.services.file_door())).await;
        // A sweep that takes longer than requests may is left where it is: what it did not finish is still due.
        let _ = tokio::time::timeout(limits.shutdown, sweeper).await;
        self.engine.close().await
    }
}
