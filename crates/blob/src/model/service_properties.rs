//! The settings of the Blob service in an account, which Set Blob Service Properties changes.

use auth::Settings;
use service::properties::{BLOB, Properties, usual_defaults};
use wire::xml::{DeleteRetention, ServiceProperties, StaticWebsite};

pub static PROPERTIES: Properties = Properties::new(BLOB, defaults);

/// The settings of an account that has set none.
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
