//! Get Queue Service Stats: how far the secondary is behind. Ours is the primary itself, so it never is.

use wire::dates;
use wire::http::{Reply, StatusCode};
use wire::xml::XmlWriter;

use super::Call;
use crate::error::QueueError;
use crate::{Failure, reply};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    if !call.head.secondary {
        return Err(QueueError::query("comp", "stats").into());
    }
    let mut xml = XmlWriter::document();
    xml.open("StorageServiceStats").open("GeoReplication").leaf("Status", "live");
    xml.leaf("LastSyncTime", dates::http_date(call.engine.now()).as_str());
    xml.close("GeoReplication").close("StorageServiceStats");
    Ok(reply::xml(StatusCode::OK, xml))
}

#[cfg(test)]
mod tests {
    use crate::QueueError;
    use crate::testing::{Bench, bytes, refusal, request};
    use wire::http::FixedBody;

    #[tokio::test]
    async fn only_the_secondary_tells() {
        let bench = Bench::new();
        let url = "?restype=service&comp=stats";
        assert_eq!(refusal(bench.call("GET", url, &[], b"").await), QueueError::query("comp", "stats"));
        let mut head = request("GET", url, &[]);
        head.secondary = true;
        let told = bytes(bench.send(head, &mut FixedBody::new("")).await.unwrap());
        assert!(String::from_utf8(told).unwrap().contains("<Status>live</Status><LastSyncTime>"));
    }
}
