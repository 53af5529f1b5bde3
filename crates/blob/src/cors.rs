//! The rules for pages of other sites. Every answer needs them, so they are kept parsed.
//!
//! What is kept is held against the row each time, so a change counts from the next answer on, whoever made it.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use engine::{Engine, EngineError, NotCommitted, Unread, read};
use wire::xml::CorsRule;

use crate::ops::get_blob_service_properties as service_properties;

/// Rules of accounts, beside the rows that they were read from.
#[derive(Debug, Default)]
pub struct KnownRules(RwLock<HashMap<u64, (Bytes, Rules)>>);

/// In the order in which they are asked.
pub type Rules = Arc<[CorsRule]>;

impl KnownRules {
    /// The rules of an account as they are now. `None`: it has none.
    pub async fn of(&self, engine: &dyn Engine, account: u64) -> Result<Option<Rules>, EngineError> {
        let key = service_properties::key(account);
        let row = match read::<_, std::convert::Infallible, _>(engine, |rows, _| Ok(rows.get(&key)?)).await {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(None),
            Err(NotCommitted::Refused(never)) => match never {},
            Err(NotCommitted::Failed(error)) => return Err(error),
        };
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
        let properties = service_properties::parse(&row).map_err(|unread| match unread {
            Unread::Failed(error) => error,
            Unread::NotYet => EngineError::Unavailable("a row was not at hand".into()),
        })?;
        let rules: Rules = properties.cors.unwrap_or_default().into();
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(account, (row, Arc::clone(&rules)));
        Ok(rules)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;

    const URL: &str = "?restype=service&comp=properties";

    #[tokio::test]
    async fn rules_are_seen_as_soon_as_they_are_set() {
        let bench = Bench::new().await;
        let set = async |origins: &[&str]| {
            let rules = origins.iter().map(|origin| {
                format!(
                    "<CorsRule><AllowedOrigins>{origin}</AllowedOrigins><AllowedMethods>GET</AllowedMethods>\
                     <AllowedHeaders/><ExposedHeaders/><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule>"
                )
            });
            let rules: String = rules.collect();
            let document = format!("<StorageServiceProperties><Cors>{rules}</Cors></StorageServiceProperties>");
            bench.call("PUT", URL, &[], document.as_bytes()).await.unwrap();
        };
        let origins = async || {
            let rules = bench.service.cors(1).await.unwrap();
            rules.map(|rules| rules.iter().map(|rule| rule.allowed_origins[0].clone()).collect::<Vec<_>>())
        };
        assert_eq!(origins().await, None);
        for _ in 0..2 {
            set(&["http://a", "http://b"]).await;
            assert_eq!(origins().await, Some(vec!["http://a".into(), "http://b".into()]));
            assert_eq!(origins().await, Some(vec!["http://a".into(), "http://b".into()]));
            set(&["*"]).await;
            assert_eq!(origins().await, Some(vec!["*".into()]));
            set(&[]).await;
            assert_eq!(origins().await, None);
        }
        assert_eq!(bench.service.cors(2).await, Ok(None), "the rules of another account");
    }
}
