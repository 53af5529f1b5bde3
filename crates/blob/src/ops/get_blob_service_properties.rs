//! Get Blob Service Properties: logging, metrics, CORS rules and the rest of an account's settings.

use auth::Settings;
use service::properties::{BLOB, Properties, usual_defaults};
use wire::http::{Reply, StatusCode};
use wire::xml::{DeleteRetention, ServiceProperties, StaticWebsite, XmlWriter};

use super::Call;
use crate::{Failure, reply};

pub static PROPERTIES: Properties = Properties::new(BLOB, defaults);

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let found = PROPERTIES.get(call.engine, call.account, call.asker.settings).await?;
    let mut xml = XmlWriter::document();
    found.write(&mut xml);
    Ok(reply::xml(StatusCode::OK, xml))
}

/// What holds until somebody sets something.
fn defaults(settings: &Settings) -> ServiceProperties {
    let first_days = settings.blob_soft_delete_days;
    ServiceProperties {
        delete_retention: Some(DeleteRetention {
            enabled: first_days.is_some(),
            days: first_days,
            ..Default::default()
        }),
        static_website: Some(StaticWebsite::default()),
        ..usual_defaults()
    }
}
