//! Get Service Stats: how far the secondary lags behind. Here the secondary is the primary itself, so it never does.

use engine::Engine;
use wire::dates;
use wire::http::{Head, Reply, StatusCode};
use wire::xml::XmlWriter;

use crate::RequestError;

/// Only the secondary endpoint answers.
pub fn stats(engine: &dyn Engine, head: &Head) -> Result<Reply, RequestError> {
    if !head.secondary {
        return Err(RequestError::query("comp", "stats"));
    }
    let mut xml = XmlWriter::document();
    xml.open("StorageServiceStats").open("GeoReplication").leaf("Status", "live");
    xml.leaf("LastSyncTime", dates::http_date(engine.now()).as_str());
    xml.close("GeoReplication").close("StorageServiceStats");
    Ok(Reply::new(StatusCode::OK).with_body("application/xml", xml.finish()))
}
