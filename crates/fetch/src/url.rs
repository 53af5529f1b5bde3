//! What a URL says: scheme, host, port, path and query, each as it was written.

use std::fmt;
use std::net::IpAddr;

use http::Uri;

/// An absolute `http` or `https` URL.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    https: bool,
    /// In lower case; an IPv6 address without its brackets.
    host: String,
    port: u16,
    path: String,
    query: Option<String>,
}

/// Not a URL, or none that can be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadUrl;

/// Leaves out the query, where signatures stand.
impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path)
    }
}

impl Url {
    pub fn parse(text: &str) -> Result<Url, BadUrl> {
        // The fragment after a `#` is not sent.
        let text = text.split_once('#').map_or(text, |(before, _)| before);
        let uri: Uri = text.parse().map_err(|_| BadUrl)?;
        let https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(BadUrl),
        };
        let authority = uri.authority().ok_or(BadUrl)?;
        // A name and password in front of the host could make a reader take one host for another.
        if authority.as_str().contains('@') {
            return Err(BadUrl);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let has_port = !authority.as_str().ends_with(authority.host());
        let port = match (authority.port_u16(), has_port) {
            (Some(port), _) => port,
            (None, false) => default_port(https),
            (None, true) => return Err(BadUrl),
        };
        // One dot at the end says the same name.
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        if host.is_empty() {
            return Err(BadUrl);
        }
        Ok(Url { https, host, port, path: uri.path().to_owned(), query: uri.query().map(str::to_owned) })
    }

    #[must_use]
    pub fn is_https(&self) -> bool {
        self.https
    }

    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The host, if it is written as an address.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// As a `Host` header has it: the port only if it is not the usual one.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == default_port(self.https) { host } else { format!("{host}:{}", self.port) }
    }

    /// `scheme://authority`.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("{}://{}", if self.https { "https" } else { "http" }, self.authority())
    }

    /// Percent-encoded, as it was written.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// For a client.
    pub fn uri(&self) -> Result<Uri, BadUrl> {
        format!("{}{}", self.origin(), self.path_and_query()).parse().map_err(|_| BadUrl)
    }

    #[must_use]
    pub fn path_and_query(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }
}

fn default_port(https: bool) -> u16 {
    if https { 443 } else { 80 }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_a_url_says() {
        let url = Url::parse("HTTPS://Acct.Blob.Example.ORG./c/a%20b?sig=x%3D#y").unwrap();
        assert_eq!((url.is_https(), url.host(), url.port()), (true, "acct.blob.example.org", 443));
        assert_eq!((url.path(), url.query()), ("/c/a%20b", Some("sig=x%3D")));
        assert_eq!(url.path_and_query(), "/c/a%20b?sig=x%3D");
        assert_eq!(format!("{url:?}"), "https://acct.blob.example.org/c/a%20b");
        let url = Url::parse("http://[::1]:10000").unwrap();
        assert_eq!((url.host(), url.port(), url.path()), ("::1", 10_000, "/"));
        assert_eq!((url.authority().as_str(), url.ip().is_some()), ("[::1]:10000", true));
        assert_eq!(Url::parse("http://127.0.0.1:80/x").unwrap().authority(), "127.0.0.1");
    }

    #[test]
    fn what_is_no_url_to_fetch() {
        for text in [
            "",
            "/a/b",
            "acct/c/b",
            "ftp://host/",
            "file:///etc/passwd",
            "http://",
            "http:///x",
            "http://u@host/",
            "http://u:p@host/",
            "http://host:x/",
            "http://host:70000/",
            "http://host:/",
            "http://a b/",
            "http://./",
        ] {
            assert_eq!(Url::parse(text), Err(BadUrl), "{text}");
        }
    }
}
