//! The five services, as far as a port and a URL know them.

use http::HeaderValue;

/// A service of an account. Each has its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    Blob,
    Queue,
    Table,
    File,
    Dfs,
}

impl Service {
    pub const ALL: [Service; 5] = [Service::Blob, Service::Queue, Service::Table, Service::File, Service::Dfs];

    /// For people: `Blob service is listening at ...`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Service::Blob => "Blob",
            Service::Queue => "Queue",
            Service::Table => "Table",
            Service::File => "File",
            Service::Dfs => "Dfs",
        }
    }

    /// The second label of a host-style URL, and the beginning of the flags.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Service::Blob => "blob",
            Service::Queue => "queue",
            Service::Table => "table",
            Service::File => "file",
            Service::Dfs => "dfs",
        }
    }

    /// The port it has unless told otherwise. Clients take 10000 to 10004 for path style as it is.
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Service::Blob => 10_000,
            Service::Queue => 10_001,
            Service::Table => 10_002,
            Service::File => 10_003,
            Service::Dfs => 10_004,
        }
    }

    /// The service that answers at its port: that of Blob knows the requests of Data Lake, too.
    pub(crate) fn answering(self) -> Service {
        match self {
            Service::Dfs => Service::Blob,
            Service::Blob | Service::Queue | Service::Table | Service::File => self,
        }
    }

    /// The oldest version it speaks.
    #[must_use]
    pub fn oldest_version(self) -> &'static str {
        match self {
            Service::File => "2014-02-14",
            Service::Blob | Service::Queue | Service::Table | Service::Dfs => "2009-09-19",
        }
    }

    /// The service that signatures and tokens are for.
    pub(crate) fn signed_as(self) -> auth::Service {
        match self {
            Service::Blob | Service::Dfs => auth::Service::Blob,
            Service::Queue => auth::Service::Queue,
            Service::Table => auth::Service::Table,
            Service::File => auth::Service::File,
        }
    }

    /// The `Server` header.
    pub(crate) fn banner(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Service::Blob => concat!("Lazurite-Blob/", env!("CARGO_PKG_VERSION")),
            Service::Queue => concat!("Lazurite-Queue/", env!("CARGO_PKG_VERSION")),
            Service::Table => concat!("Lazurite-Table/", env!("CARGO_PKG_VERSION")),
            Service::File => concat!("Lazurite-File/", env!("CARGO_PKG_VERSION")),
            Service::Dfs => concat!("Lazurite-Dfs/", env!("CARGO_PKG_VERSION")),
        })
    }
}
