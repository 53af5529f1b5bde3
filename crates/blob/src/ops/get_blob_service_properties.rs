//! Get Blob Service Properties: logging, metrics, CORS rules and the rest of an account's settings.

use engine::{Key, Rows, Unread, read, space};
use minicbor::{Decode, Encode};
use wire::http::{Reply, StatusCode};
use wire::xml::{DeleteRetention, Logging, Metrics, ServiceProperties, StaticWebsite, XmlWriter};

use super::Call;
use crate::error::BlobError;
use crate::{Failure, codec, reply};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let found = read::<_, BlobError, _>(call.engine, |rows, _| Ok(find(rows, call.account)?)).await?;
    let mut xml = XmlWriter::document();
    found.write(&mut xml);
    Ok(reply::xml(StatusCode::OK, xml))
}

/// The row: the settings as the document they are shown as.
#[derive(Encode, Decode)]
#[cbor(map)]
struct Stored {
    #[n(0)]
    document: String,
}

pub fn key(account: u64) -> Key {
    Key::new(space::SERVICE).number(account).text("blob")
}

pub fn find(rows: &dyn Rows, account: u64) -> Result<ServiceProperties, Unread> {
    let Some(row) = rows.get(&key(account))? else { return Ok(defaults()) };
    parse(&row)
}

pub fn parse(row: &[u8]) -> Result<ServiceProperties, Unread> {
    let stored: Stored = codec::decode(row)?;
    ServiceProperties::parse(stored.document.as_bytes()).map_err(|error| codec::corrupt(&error.to_string()))
}

pub fn row(properties: &ServiceProperties) -> bytes::Bytes {
    let mut xml = XmlWriter::fragment();
    properties.write(&mut xml);
    codec::encode(&Stored { document: String::from_utf8_lossy(&xml.finish()).into_owned() })
}

/// What holds until somebody sets something.
fn defaults() -> ServiceProperties {
    ServiceProperties {
        logging: Some(Logging::default()),
        hour_metrics: Some(Metrics::default()),
        minute_metrics: Some(Metrics::default()),
        cors: Some(Vec::new()),
        default_service_version: None,
        delete_retention: Some(DeleteRetention::default()),
        static_website: Some(StaticWebsite::default()),
    }
}
