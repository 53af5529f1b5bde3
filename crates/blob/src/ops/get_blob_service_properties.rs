//! Get Blob Service Properties: logging, metrics, CORS rules and the rest of an account's settings.

use engine::{Key, Rows, Unread, read, space};
use minicbor::{Decode, Encode};
use wire::http::{Reply, StatusCode};
use wire::xml::{DeleteRetention, Logging, Metrics, ServiceProperties, StaticWebsite, XmlWriter};

use super::Call;
use crate::error::BlobError;
use crate::{Failure, codec, reply};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let first_days = call.asker.settings.blob_soft_delete_days;
    let found = read::<_, BlobError, _>(call.engine, |rows, _| Ok(find(rows, call.account, first_days)?)).await?;
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
    #[n(1)]
    retention: Option<Retention>,
}

/// What the document says of deleted blobs, once more: every delete and every overwrite asks, and need not read the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
pub struct Retention {
    /// `None`: what is deleted is gone.
    #[n(0)]
    pub days: Option<u16>,
    /// Whether what is deleted may be deleted for good before its time.
    #[n(1)]
    pub allow_permanent_delete: bool,
}

impl Retention {
    fn of(properties: &ServiceProperties) -> Retention {
        let policy = properties.delete_retention.unwrap_or_default();
        Retention {
            days: policy.days.filter(|_| policy.enabled),
            allow_permanent_delete: policy.allow_permanent_delete.unwrap_or(false),
        }
    }
}

/// The same row, for those who only need to know that.
#[derive(Decode)]
#[cbor(map)]
struct StoredRetention {
    #[n(1)]
    retention: Option<Retention>,
}

/// For how long an account keeps what is deleted. `first_days` holds until somebody sets something.
pub fn retention(rows: &dyn Rows, account: u64, first_days: Option<u16>) -> Result<Retention, Unread> {
    let Some(row) = rows.get(&key(account))? else { return Ok(Retention { days: first_days, ..Retention::default() }) };
    Ok(codec::decode::<StoredRetention>(&row)?.retention.unwrap_or_default())
}

pub fn key(account: u64) -> Key {
    Key::new(space::SERVICE).number(account).text("blob")
}

pub fn find(rows: &dyn Rows, account: u64, first_days: Option<u16>) -> Result<ServiceProperties, Unread> {
    let Some(row) = rows.get(&key(account))? else { return Ok(defaults(first_days)) };
    parse(&row)
}

pub fn parse(row: &[u8]) -> Result<ServiceProperties, Unread> {
    let stored: Stored = codec::decode(row)?;
    ServiceProperties::parse(stored.document.as_bytes()).map_err(|error| codec::corrupt(&error.to_string()))
}

pub fn row(properties: &ServiceProperties) -> bytes::Bytes {
    let mut xml = XmlWriter::fragment();
    properties.write(&mut xml);
    let document = String::from_utf8_lossy(&xml.finish()).into_owned();
    codec::encode(&Stored { document, retention: Some(Retention::of(properties)) })
}

/// What holds until somebody sets something.
fn defaults(first_days: Option<u16>) -> ServiceProperties {
    ServiceProperties {
        logging: Some(Logging::default()),
        hour_metrics: Some(Metrics::default()),
        minute_metrics: Some(Metrics::default()),
        cors: Some(Vec::new()),
        default_service_version: None,
        delete_retention: Some(DeleteRetention {
            enabled: first_days.is_some(),
            days: first_days,
            ..Default::default()
        }),
        static_website: Some(StaticWebsite::default()),
    }
}
