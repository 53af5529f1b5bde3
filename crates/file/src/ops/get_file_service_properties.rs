//! Get File Service Properties: metrics, CORS rules, soft delete of shares and the settings of protocols.

use auth::Settings;
use service::properties::{FILE, Properties, usual_defaults};
use service::reply;
use wire::http::{Reply, StatusCode};
use wire::xml::{ProtocolSettings, ServiceProperties, ShareDeleteRetention, SmbSettings, XmlWriter};

use super::Call;
use crate::Failure;

pub static PROPERTIES: Properties = Properties::new(FILE, defaults);

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let found = PROPERTIES.get(call.engine, call.account, call.asker.settings).await?;
    let mut xml = XmlWriter::document();
    found.write(&mut xml);
    Ok(reply::xml(StatusCode::OK, xml))
}

/// The settings of an account that has set none.
fn defaults(settings: &Settings) -> ServiceProperties {
    let first_days = settings.share_soft_delete_days;
    ServiceProperties {
        // Files are not logged.
        logging: None,
        share_delete_retention: Some(ShareDeleteRetention { enabled: first_days.is_some(), days: first_days }),
        protocol_settings: Some(ProtocolSettings {
            smb: Some(SmbSettings { multichannel: Some(false), ..SmbSettings::default() }),
            nfs: None,
        }),
        ..usual_defaults()
    }
}
