//! Refuses to start where keys and tokens that everybody knows could be used from elsewhere.

use std::net::{IpAddr, SocketAddr};

use crate::accounts::Known;
use crate::flags::{OAuth, Options, Port, Wrong};
use crate::program_name::CalledAs;

/// From where the server can be reached, and whether it may be with a credential that everybody knows.
#[derive(Clone, Copy, Debug)]
pub struct Exposure {
    /// The first address that is not only for this machine.
    outside: Option<IpAddr>,
    /// Azurite's users expect it, and are told.
    azurite: bool,
}

impl Exposure {
    pub fn of(options: &Options, called_as: CalledAs) -> Exposure {
        let open = options.services.iter().filter(|door| door.port(called_as, options.azurite_compat).is_some());
        let smb = matches!(options.smb_port, Some(Port::At(_))).then_some(options.host);
        Exposure {
            outside: open.map(|door| door.host).chain(smb).find(|host| !host.is_loopback()),
            azurite: options.azurite_compat || called_as.is_azurite(),
        }
    }

    /// A key that everybody knows opens the door to everybody who can reach it.
    pub fn allows_the_known_key(self, known: &Known) -> Result<(), Wrong> {
        let Some(account) = known.well_known.first() else { return Ok(()) };
        let risk = format!("Account {account} has the key that everybody knows");
        self.allows(&risk, "give it a key of its own (lazurite account add, --config or AZURITE_ACCOUNTS)")
    }

    /// So do tokens that everybody can make.
    pub fn allows_tokens(self, oauth: &OAuth) -> Result<(), Wrong> {
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
