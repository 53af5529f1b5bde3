//! Get Queue Service Properties: logging, metrics and CORS rules of an account's queues.

use service::properties::{Properties, usual_defaults};
use wire::http::{Reply, StatusCode};
use wire::xml::XmlWriter;

use super::Call;
use crate::{Failure, reply};

pub static PROPERTIES: Properties = Properties::new("queue", |_| usual_defaults());

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let found = PROPERTIES.get(call.engine, call.account, call.asker.settings).await?;
    let mut xml = XmlWriter::document();
    found.write(&mut xml);
    Ok(reply::xml(StatusCode::OK, xml))
}
