//! Get Table Service Properties: logging, metrics and CORS rules of an account's tables.

use service::properties::{Properties, usual_defaults};
use wire::http::{Reply, StatusCode};
use wire::xml::XmlWriter;

use super::Call;
use crate::Failure;

pub static PROPERTIES: Properties = Properties::new("table", |_| usual_defaults());

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let found = PROPERTIES.get(call.engine, call.account, call.asker.settings).await?;
    let mut xml = XmlWriter::document();
    found.write(&mut xml);
    Ok(Reply::new(StatusCode::OK).with_body("application/xml", xml.finish()))
}
