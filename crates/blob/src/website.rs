//! The static website of an account: `$web`, read without a credential, with an index document and a page for what is not there.
//!
//! A site is told by its host (`account.web.host`). Only GET and HEAD are for it, the query means nothing, and of the
//! request's headers those count that every web server knows: a range and the conditions.

use service::{Asker, RequestError};
use wire::http::{FixedBody, Head, HeaderMap, HeaderValue, Method, Query, Reply, StatusCode, header};
use wire::xml::StaticWebsite;

use crate::error::BlobError;
use crate::model::service_properties::PROPERTIES;
use crate::ops::{self, Call};
use crate::{BlobService, Failure, Op, Reach};

const CONTAINER: &str = "$web";
const NOT_FOUND: &str = "<!DOCTYPE html><html><head><title>WebContentNotFound</title></head><body>\
                         <h1>The requested content does not exist.</h1></body></html>";
/// What a request for a page may say.
const HEADERS: [header::HeaderName; 6] = [
    header::RANGE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
    header::ORIGIN,
];

/// The page that a request to the site of the account asks for.
pub async fn page(service: &BlobService, asker: Asker<'_>, head: &Head, account: u64) -> Result<Reply, Failure> {
    let engine = &*service.engine;
    let op = match head.method {
        Method::GET => Op::GetBlob,
        Method::HEAD => Op::GetBlobProperties,
        _ => return Err(BlobError::Request(RequestError::UnsupportedHttpVerb).into()),
    };
    let properties = PROPERTIES.get(engine, account, asker.settings).await?;
    let Some(site) = properties.static_website.filter(|site| site.enabled) else { return Ok(not_found()) };
    let get = async |path: &str, headers: HeaderMap| {
        let resource = format!("{CONTAINER}/{path}");
        let head = Head { resource, query: Query::default(), headers, ..head.clone() };
        let call = Call { engine, account, head: &head, reach: Reach::CreateOnly, asker, outside: None, service };
        match ops::run(op, call, &mut FixedBody::new("")).await {
            Err(Failure::Refused(error)) if error.to_reply().status == 404 => Ok(None),
            // A path that is no blob's name is one that is not there.
            Err(Failure::Refused(BlobError::Request(
                RequestError::InvalidResourceName | RequestError::OutOfRangeInput,
            ))) => Ok(None),
            answer => answer.map(Some),
        }
    };
    for path in documents(&site, &head.resource) {
        if let Some(found) = get(&path, known(&head.headers)).await? {
            return Ok(found);
        }
    }
    if let Some(path) = &site.error_document_404_path
        && let Some(mut found) = get(path.trim_start_matches('/'), HeaderMap::new()).await?
    {
        found.status = StatusCode::NOT_FOUND;
        return Ok(found);
    }
    Ok(not_found())
}

/// What may be meant by a path, in the order in which it is looked for.
fn documents(site: &StaticWebsite, path: &str) -> Vec<String> {
    let index = site.index_document.as_deref().filter(|name| !name.is_empty());
    let default = site.default_index_document_path.as_deref().map(|path| path.trim_start_matches('/').to_owned());
    match (path.is_empty() || path.ends_with('/'), index) {
        (true, Some(index)) => vec![format!("{path}{index}")],
        (true, None) => default.into_iter().filter(|_| path.is_empty()).collect(),
        (false, Some(index)) => vec![path.to_owned(), format!("{path}/{index}")],
        (false, None) => vec![path.to_owned()],
    }
}

fn known(sent: &HeaderMap) -> HeaderMap {
    let known = HEADERS.into_iter().filter_map(|name| Some((name.clone(), sent.get(name)?.clone())));
    known.collect()
}

fn not_found() -> Reply {
    let mut reply = Reply::new(StatusCode::NOT_FOUND).with_body("text/html", NOT_FOUND);
    reply.headers.insert("x-ms-error-code", HeaderValue::from_static("WebContentNotFound"));
    reply
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, bytes, header, request};
    use auth::{Caller, Settings};

    const PROPERTIES_URL: &str = "?restype=service&comp=properties";

    async fn get(bench: &Bench, method: &str, path: &str, headers: &[(&str, &str)]) -> Result<Reply, Failure> {
        let settings = Settings::default();
        let (caller, secret) = (Caller::Anonymous, auth::delegation::Secret(None));
        let asker = Asker { caller: &caller, settings: &settings, secret, ..Asker::OWNER };
        page(&bench.service, asker, &request(method, path, headers), 1).await
    }

    async fn status(bench: &Bench, path: &str) -> (u16, String) {
        let answer = get(bench, "GET", path, &[]).await.unwrap();
        let status = answer.status.as_u16();
        (status, String::from_utf8(bytes(answer).await).unwrap())
    }

    async fn set(bench: &Bench, inner: &str) {
        let body =
            format!("<StorageServiceProperties><StaticWebsite>{inner}</StaticWebsite></StorageServiceProperties>");
        bench.call("PUT", PROPERTIES_URL, &[], body.as_bytes()).await.unwrap();
    }

    #[tokio::test]
    async fn pages() {
        let bench = Bench::with_container().await;
        assert_eq!(status(&bench, "").await.0, 404);
        bench.call("PUT", "$web?restype=container", &[], b"").await.unwrap();
        for path in ["index.html", "about", "docs/index.html", "404.html", "a%20b"] {
            bench.put(&format!("$web/{path}"), path.as_bytes()).await;
        }
        bench.put("cont/secret", b"not for the web").await;
        assert_eq!(status(&bench, "about").await, (404, NOT_FOUND.to_owned()), "it is not switched on");

        let index = "<Enabled>true</Enabled><IndexDocument>index.html</IndexDocument>";
        set(&bench, index).await;
        for (path, expected) in [
            ("", "index.html"),
            ("index.html", "index.html"),
            ("about", "about"),
            ("docs/", "docs/index.html"),
            ("docs", "docs/index.html"),
            ("a%20b", "a%20b"),
            ("about?comp=list&snapshot=x", "about"),
        ] {
            assert_eq!(status(&bench, path).await, (200, expected.to_owned()), "{path}");
        }
        for path in ["none", "none/", "cont/secret", "../cont/secret", "about/"] {
            assert_eq!(status(&bench, path).await, (404, NOT_FOUND.to_owned()), "{path}");
        }
        set(&bench, &format!("{index}<ErrorDocument404Path>/404.html</ErrorDocument404Path>")).await;
        assert_eq!(status(&bench, "none").await, (404, "404.html".to_owned()));
        set(&bench, "<Enabled>true</Enabled><DefaultIndexDocumentPath>about</DefaultIndexDocumentPath>").await;
        assert_eq!(status(&bench, "").await, (200, "about".to_owned()));
        assert_eq!(status(&bench, "docs/").await.0, 404);
    }

    #[tokio::test]
    async fn only_reads_with_conditions_and_ranges() {
        let bench = Bench::new().await;
        bench.call("PUT", "$web?restype=container", &[], b"").await.unwrap();
        bench.put("$web/page", b"0123456789").await;
        set(&bench, "<Enabled>true</Enabled>").await;
        for method in ["PUT", "POST", "DELETE", "OPTIONS"] {
            let refused = get(&bench, method, "page", &[]).await;
            let unsupported = BlobError::Request(RequestError::UnsupportedHttpVerb);
            assert_eq!(refused.err(), Some(Failure::Refused(unsupported)), "{method}");
        }
        let head = get(&bench, "HEAD", "page", &[]).await.unwrap();
        assert_eq!(header(&head, "content-length"), Some("10"));
        let etag = header(&head, "etag").unwrap();
        let refused = get(&bench, "GET", "page", &[("if-none-match", etag)]).await;
        assert_eq!(refused.err(), Some(Failure::Refused(BlobError::NotModified)));
        let part = get(&bench, "GET", "page", &[("range", "bytes=2-3"), ("x-ms-lease-id", "nonsense")]).await.unwrap();
        assert_eq!((part.status.as_u16(), bytes(part).await), (206, b"23".to_vec()));
    }
}
