//! Who may enter the admin port: programs that call it on purpose, and pages of its own, but no page of another site.
//!
//! There is no sign-in here, so a page in a browser must not get through: neither by having the name of its own server lead to this
//! address (then `Host` names that server), nor by asking from another site or port (then `Origin` or `Sec-Fetch-Site` says so).
//! Programs other than browsers send neither of these two and are not kept out by them.

use std::net::IpAddr;

use http::request::Parts;
use http::uri::Authority;
use http::{HeaderValue, Version, header};

/// What a browser calls a request that a page of this very origin made, or that its user made without any page.
const OWN_SITES: [&str; 2] = ["same-origin", "none"];

/// Whether a request to the admin port was sent on purpose, and not by a page of another site. `names` are what this port may be called
/// beside addresses and `localhost`.
pub(super) fn may_enter(request: &Parts, names: &[String]) -> bool {
    let mut hosts = request.headers.get_all(header::HOST).iter();
    let (host, another) = (hosts.next(), hosts.next());
    let is_host_good = match host {
        Some(host) => host.to_str().is_ok_and(|host| is_ours(host, names)),
        None => request.version < Version::HTTP_11,
    };
    // Probes and scrapers call the port by whatever name their cluster has for it.
    let is_host_good = is_for_watchers(request.uri.path()) || is_host_good && another.is_none();
    // Only a page of this very port: others can come from an address, too, or from another port of this machine.
    let is_own_origin = |origin: &HeaderValue| {
        let site = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        let is_of_host =
            site.zip(host).is_some_and(|((_, site), host)| host.as_bytes().eq_ignore_ascii_case(site.as_bytes()));
        is_of_host && another.is_none()
    };
    let is_own_site = |site: &HeaderValue| OWN_SITES.iter().any(|own| site.as_bytes() == own.as_bytes());
    is_host_good
        && request.headers.get_all(header::ORIGIN).iter().all(is_own_origin)
        && request.headers.get_all("sec-fetch-site").iter().all(is_own_site)
}

/// What tells nothing about accounts and changes nothing.
fn is_for_watchers(path: &str) -> bool {
    matches!(path, "/health/live" | "/health/ready" | "/metrics")
}

fn is_ours(host: &str, names: &[String]) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().to_ascii_lowercase();
    let name = name.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    // An address needs no name server, so no name server can redirect it.
    name.parse::<IpAddr>().is_ok()
        || name == "localhost"
        || name.ends_with(".localhost")
        || names.iter().any(|known| known.eq_ignore_ascii_case(name))
}
