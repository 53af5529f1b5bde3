//! Get Blob Service Properties: logging, metrics, CORS rules and the rest of an account's settings.

use wire::http::{Reply, StatusCode};
use wire::xml::XmlWriter;

use super::Call;
use crate::model::service_properties::PROPERTIES;
use crate::{Failure, reply};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let found = PROPERTIES.get(call.engine, call.account, call.asker.settings).await?;
    let mut xml = XmlWriter::document();
    found.write(&mut xml);
    Ok(reply::xml(StatusCode::OK, xml))
}
