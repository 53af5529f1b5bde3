//! Tools start us under Azurite's names and expect its manners then.

use std::ffi::OsString;
use std::path::Path;

use server::Service;

/// The name the program was started under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalledAs {
    Lazurite,
    /// `azurite`: Blob, Queue and Table.
    Azurite,
    /// `azurite-blob` and its like: one service.
    AzuriteFor(Service),
}

impl CalledAs {
    pub fn of(program: Option<OsString>) -> CalledAs {
        let program = program.unwrap_or_default();
        let name = Path::new(&program).file_stem().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        match name.as_str() {
            "azurite" => CalledAs::Azurite,
            "azurite-blob" => CalledAs::AzuriteFor(Service::Blob),
            "azurite-queue" => CalledAs::AzuriteFor(Service::Queue),
            "azurite-table" => CalledAs::AzuriteFor(Service::Table),
            _ => CalledAs::Lazurite,
        }
    }

    /// Whether a port that nobody mentioned is opened. Azurite has three, and two of it run side by side when those
    /// three differ; the others must not be in their way.
    pub fn opens(self, service: Service, azurite_compat: bool) -> bool {
        let is_azurites = matches!(service, Service::Blob | Service::Queue | Service::Table);
        match self {
            CalledAs::Lazurite => !azurite_compat || is_azurites,
            CalledAs::Azurite => is_azurites,
            CalledAs::AzuriteFor(only) => service == only,
        }
    }

    /// Whether there is such a service at all, whatever is said of its port.
    pub fn has(self, service: Service) -> bool {
        match self {
            CalledAs::Lazurite | CalledAs::Azurite => true,
            CalledAs::AzuriteFor(only) => service == only,
        }
    }

    pub fn is_azurite(self) -> bool {
        match self {
            CalledAs::Lazurite => false,
            CalledAs::Azurite | CalledAs::AzuriteFor(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let called = |name: &str| CalledAs::of(Some(name.into()));
        assert_eq!(called("/usr/bin/lazurite"), CalledAs::Lazurite);
        assert_eq!(called("./azurite"), CalledAs::Azurite);
        assert_eq!(called("azurite.exe"), CalledAs::Azurite);
        assert_eq!(called("/x/azurite-queue"), CalledAs::AzuriteFor(Service::Queue));
        assert_eq!(CalledAs::of(None), CalledAs::Lazurite);
    }

    #[test]
    fn azurite_opens_its_own_ports_only() {
        let open =
            |called: CalledAs, compat| Service::ALL.iter().filter(|service| called.opens(**service, compat)).count();
        assert_eq!(open(CalledAs::Lazurite, false), 5);
        assert_eq!(open(CalledAs::Lazurite, true), 3);
        assert_eq!(open(CalledAs::Azurite, false), 3);
        assert_eq!(open(CalledAs::AzuriteFor(Service::Table), false), 1);
    }
}
