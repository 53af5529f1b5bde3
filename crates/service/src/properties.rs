//! The properties of a service in an account (Set and Get Service Properties): one row, which holds the XML document.
//!
//! Every answer needs the CORS rules in it, so they are cached in parsed form. The cached rules are compared with the
//! row each time, so a change takes effect with the next answer, on whichever node it was made.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::space;
use auth::Settings;
use bytes::Bytes;
use engine::{Changes, Commit, Engine, EngineError, Key, Rows, Unread, commit, read};
use minicbor::{Decode, Encode};
use wire::cors;
use wire::http::{Body, Head, Reply, collect};
use wire::xml::{CorsRule, Logging, Metrics, ServiceProperties};

use crate::{Failure, RequestError, codec, unrefused};

const BODY_BYTES_MAX: usize = 64 * 1024;

/// The Blob service, which has properties that the others do not have.
pub const BLOB: &str = "blob";
/// The File service, the same.
pub const FILE: &str = "file";

/// The properties of one service.
#[derive(Debug)]
pub struct Properties {
    /// The service's name in the key of the row.
    service: &'static str,
    /// The properties of an account in which they were never set.
    defaults: fn(&Settings) -> ServiceProperties,
}

/// The row.
#[derive(Encode, Decode)]
#[cbor(map)]
struct Stored {
    #[n(0)]
    document: String,
    #[n(1)]
    retention: Option<Retention>,
}

/// The delete retention policy of blobs or of shares, a second time outside the document: every delete and overwrite reads it, and
/// need not parse the XML.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
pub struct Retention {
    /// For how many days a deleted blob or share is kept; `None`: soft delete is off.
    #[n(0)]
    pub days: Option<u16>,
    /// Whether a soft-deleted blob may be deleted for good before its days are over.
    #[n(1)]
    pub allow_permanent_delete: bool,
}

impl Retention {
    /// A service has one of the two policies at most.
    fn of(properties: &ServiceProperties) -> Retention {
        if let Some(policy) = properties.share_delete_retention {
            return Retention { days: policy.days.filter(|_| policy.enabled), allow_permanent_delete: false };
        }
        let policy = properties.delete_retention.unwrap_or_default();
        Retention {
            days: policy.days.filter(|_| policy.enabled),
            allow_permanent_delete: policy.allow_permanent_delete.unwrap_or(false),
        }
    }
}

/// The same row, when only the retention policy matters.
#[derive(Decode)]
#[cbor(map)]
struct StoredRetention {
    #[n(1)]
    retention: Option<Retention>,
}

impl Properties {
    pub const fn new(service: &'static str, defaults: fn(&Settings) -> ServiceProperties) -> Properties {
        Properties { service, defaults }
    }

    pub fn key(&self, account: u64) -> Key {
        Key::new(space::SERVICE).number(account).text(self.service)
    }

    fn find(&self, rows: &dyn Rows, account: u64) -> Result<Option<ServiceProperties>, Unread> {
        rows.get(&self.key(account))?.map(|row| parse(&row)).transpose()
    }

    /// The delete retention policy of an account. `first_days` is the one of an account in which it was never set.
    pub fn retention(&self, rows: &dyn Rows, account: u64, first_days: Option<u16>) -> Result<Retention, Unread> {
        let Some(row) = rows.get(&self.key(account))? else {
            return Ok(Retention { days: first_days, ..Retention::default() });
        };
        Ok(codec::decode::<StoredRetention>(&row)?.retention.unwrap_or_default())
    }

    pub async fn get(
        &'static self,
        engine: &dyn Engine,
        account: u64,
        settings: &Settings,
    ) -> Result<ServiceProperties, EngineError> {
        let found = unrefused(read(engine, move |rows, _| Ok(self.find(rows, account)?)).await)?;
        Ok(found.unwrap_or_else(|| (self.defaults)(settings)))
    }

    /// Sets the properties that the body names; the others keep their values.
    pub async fn set<E>(
        &'static self,
        engine: &dyn Engine,
        account: u64,
        settings: &Settings,
        body: &mut dyn Body,
    ) -> Result<(), Failure<E>>
    where
        E: From<RequestError> + Send + Sync + 'static,
    {
        let document = collect(body, BODY_BYTES_MAX).await?;
        let asked = match self.service {
            BLOB => ServiceProperties::parse(&document),
            FILE => ServiceProperties::parse_for_files(&document),
            _ => ServiceProperties::parse_common(&document),
        };
        let asked = asked.map_err(|error| Failure::Refused(RequestError::from(error).into()))?;
        let defaults = (self.defaults)(settings);
        let set = commit::<_, E, _>(engine, self.key(account), move |rows, _| {
            let found = self.find(rows, account)?.unwrap_or_else(|| defaults.clone());
            let mut changes = Changes::none();
            changes.put(self.key(account), row(&merged(found, &asked)));
            Ok(Commit { changes, outcome: () })
        });
        Ok(set.await?)
    }

    /// Answers a CORS preflight: may a page of another origin send this request? A preflight has no credentials, and
    /// its path need not exist.
    pub async fn preflight<E: From<RequestError>>(
        &'static self,
        engine: &dyn Engine,
        account: u64,
        head: &Head,
    ) -> Result<Reply, Failure<E>> {
        let found = unrefused(read(engine, move |rows, _| Ok(self.find(rows, account)?)).await)?;
        let rules = found.and_then(|found| found.cors).unwrap_or_default();
        let [origin, method, headers] =
            ["origin", "access-control-request-method", "access-control-request-headers"].map(|name| head.header(name));
        let reply = cors::preflight(&rules, origin, method, headers);
        reply.map_err(|refused| Failure::Refused(RequestError::from(refused).into()))
    }
}

/// The properties of a new account, in every service.
pub fn usual_defaults() -> ServiceProperties {
    ServiceProperties {
        logging: Some(Logging::default()),
        hour_metrics: Some(Metrics::default()),
        minute_metrics: Some(Metrics::default()),
        cors: Some(Vec::new()),
        default_service_version: None,
        delete_retention: None,
        static_website: None,
        share_delete_retention: None,
        protocol_settings: None,
    }
}

fn merged(found: ServiceProperties, asked: &ServiceProperties) -> ServiceProperties {
    let asked = asked.clone();
    ServiceProperties {
        logging: asked.logging.or(found.logging),
        hour_metrics: asked.hour_metrics.or(found.hour_metrics),
        minute_metrics: asked.minute_metrics.or(found.minute_metrics),
        cors: asked.cors.or(found.cors),
        default_service_version: asked.default_service_version.or(found.default_service_version),
        delete_retention: asked.delete_retention.or(found.delete_retention),
        static_website: asked.static_website.or(found.static_website),
        share_delete_retention: asked.share_delete_retention.or(found.share_delete_retention),
        protocol_settings: match (asked.protocol_settings, found.protocol_settings) {
            (Some(asked), Some(found)) => Some(asked.over(found)),
            (asked, found) => asked.or(found),
        },
    }
}

fn parse(row: &[u8]) -> Result<ServiceProperties, Unread> {
    let stored: Stored = codec::decode(row)?;
    ServiceProperties::parse_any(stored.document.as_bytes()).map_err(|error| codec::corrupt(&error.to_string()))
}

fn row(properties: &ServiceProperties) -> Bytes {
    let mut xml = wire::xml::XmlWriter::fragment();
    properties.write(&mut xml);
    let document = String::from_utf8_lossy(&xml.finish()).into_owned();
    codec::encode(&Stored { document, retention: Some(Retention::of(properties)) })
}

/// The CORS rules of accounts, each with the row that they were parsed from.
#[derive(Debug, Default)]
pub struct KnownRules(RwLock<HashMap<u64, (Bytes, Rules)>>);

/// CORS rules, in the order in which they are tried.
pub type Rules = Arc<[CorsRule]>;

impl KnownRules {
    /// The current CORS rules of an account. `None`: it has none.
    pub async fn of(
        &self,
        properties: &Properties,
        engine: &dyn Engine,
        account: u64,
    ) -> Result<Option<Rules>, EngineError> {
        let key = properties.key(account);
        let Some(row) = unrefused(read(engine, move |rows, _| Ok(rows.get(&key)?)).await)? else { return Ok(None) };
        let rules = match self.parsed(account, &row) {
            Some(rules) => rules,
            None => self.parse(account, row)?,
        };
        Ok((!rules.is_empty()).then_some(rules))
    }

    fn parsed(&self, account: u64, row: &Bytes) -> Option<Rules> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&account).filter(|(from, _)| from == row).map(|(_, rules)| Arc::clone(rules))
    }

    fn parse(&self, account: u64, row: Bytes) -> Result<Rules, EngineError> {
        let properties = parse(&row).map_err(|unread| match unread {
            Unread::Failed(error) => error,
            Unread::NotYet => EngineError::Unavailable("a row was not at hand".into()),
        })?;
        let rules: Rules = properties.cors.unwrap_or_default().into();
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(account, (row, Arc::clone(&rules)));
        Ok(rules)
    }
}
