//! How many files the process may have open, and how many connections that leaves room for.

use server::Limits;

/// Files that are not connections of services: data, logs, the admin port, copies from elsewhere.
const FILES_KEPT_BACK: u64 = 512;

/// What is kept back for everything else where a process may have so many files open.
fn kept_back(files: u64) -> u64 {
    FILES_KEPT_BACK.min(files / 2)
}

/// How many files of data may stay open to be read again: half of what is kept back.
pub fn for_data(files: Option<u64>) -> usize {
    usize::try_from(kept_back(files.unwrap_or(u64::MAX)) / 2).unwrap_or(usize::MAX)
}

/// Connections must not take the files that everything else needs, health checks among them.
pub fn within(limits: Limits, ports: usize, files: Option<u64>) -> Limits {
    let Some(files) = files else { return limits };
    let of_admin = usize::try_from(kept_back(files) / 8).unwrap_or(usize::MAX).max(1);
    let limits = Limits { admin_connections: limits.admin_connections.min(of_admin), ..limits };
    let most = usize::try_from((files - kept_back(files)) / ports.max(1) as u64).unwrap_or(usize::MAX).max(1);
    if most >= limits.connections {
        return limits;
    }
    let said = format!("only {files} files may be open at once (ulimit -n), so each port takes {most} connections");
    match limits.connections == Limits::default().connections {
        true => tracing::info!("{said}"),
        // A limit that was asked for cannot be kept.
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
pub fn allow_many() -> Option<u64> {
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
pub fn allow_many() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_files_mean_few_connections_and_what_was_said_of_an_address_holds() {
        let within = |connections, connections_per_address, files| {
            let limits = Limits { connections, connections_per_address, ..Limits::default() };
            let limits = within(limits, 4, files);
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

    #[test]
    fn what_is_kept_back_is_enough_for_data_and_the_admin_port() {
        for files in [64, 160, 256, 1_024, 20_000, 1_000_000] {
            let (limits, data) = (within(Limits::default(), 5, Some(files)), for_data(Some(files)) as u64);
            let taken = 5 * limits.connections as u64 + limits.admin_connections as u64 + data;
            let left = files - taken;
            assert!(left >= (files / 8).min(128), "of {files} files {left} are left");
        }
        assert_eq!((for_data(Some(1_024)), for_data(None)), (256, 256));
        assert_eq!(within(Limits::default(), 5, Some(1_024)).admin_connections, 64);
    }
}
