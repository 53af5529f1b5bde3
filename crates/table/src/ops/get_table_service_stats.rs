//! Get Table Service Stats: how far the secondary is behind. Ours is the primary itself, so it never is.

use service::RequestError;
use wire::dates;
use wire::http::{Reply, StatusCode};
use wire::xml::XmlWriter;

use super::Call;
use crate::Failure;
use crate::error::TableError;

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    if !call.head.secondary {
        return Err(TableError::from(RequestError::query("comp", "stats")).into());
    }
    let mut xml = XmlWriter::document();
    xml.open("StorageServiceStats").open("GeoReplication").leaf("Status", "live");
    xml.leaf("LastSyncTime", dates::http_date(call.engine.now()).as_str());
    xml.close("GeoReplication").close("StorageServiceStats");
    Ok(Reply::new(StatusCode::OK).with_body("application/xml", xml.finish()))
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, refusal, request, text};
    use service::RequestError;

    #[tokio::test]
    async fn only_the_secondary_tells() {
        let bench = Bench::new();
        let url = "?restype=service&comp=stats";
        let refused = refusal(bench.call("GET", url, &[], b"").await);
        assert_eq!(refused, RequestError::query("comp", "stats").into());
        let mut head = request("GET", url, &[]);
        head.secondary = true;
        assert!(text(bench.send(head, b"").await.unwrap()).contains("<Status>live</Status><LastSyncTime>"));
    }
}
