//! What an operation reads of a request, whether the request comes by itself or inside a transaction.

use wire::http::{Head, Method, Query};
use wire::multipart::Headers;

pub trait RequestParts {
    fn method(&self) -> &Method;
    /// The path below the account.
    fn resource(&self) -> &str;
    fn query(&self) -> &Query;
    /// All values of a header, in their order. `name` is in lower case.
    fn headers(&self, name: &'static str) -> impl Iterator<Item = &[u8]>;
    /// The header as text; `None` if it is missing, empty or not visible ASCII.
    fn header(&self, name: &'static str) -> Option<&str>;

    /// Whether the header is there, empty or not. An empty `If-Match` must not turn a conditional write into an
    /// unconditional one.
    fn has_header(&self, name: &'static str) -> bool {
        self.headers(name).next().is_some()
    }
}

impl RequestParts for Head {
    fn method(&self) -> &Method {
        &self.method
    }

    fn resource(&self) -> &str {
        &self.resource
    }

    fn query(&self) -> &Query {
        &self.query
    }

    fn headers(&self, name: &'static str) -> impl Iterator<Item = &[u8]> {
        self.headers.get_all(name).iter().map(|value| value.as_bytes())
    }

    fn header(&self, name: &'static str) -> Option<&str> {
        Head::header(self, name)
    }
}

/// A request inside a transaction, borrowed from the body around it.
#[derive(Debug)]
pub struct BatchedRequest<'a> {
    pub method: Method,
    pub resource: std::borrow::Cow<'a, str>,
    pub query: Query,
    pub headers: Headers<'a>,
    pub body: &'a [u8],
    pub content_id: Option<&'a str>,
}

impl RequestParts for BatchedRequest<'_> {
    fn method(&self) -> &Method {
        &self.method
    }

    fn resource(&self) -> &str {
        &self.resource
    }

    fn query(&self) -> &Query {
        &self.query
    }

    fn headers(&self, name: &'static str) -> impl Iterator<Item = &[u8]> {
        self.headers.all(name)
    }

    fn header(&self, name: &'static str) -> Option<&str> {
        self.headers.text(name).filter(|text| !text.is_empty())
    }
}
