//! Get Share Stats: how much a share holds.

use std::sync::Arc;

use concurrency::Timestamp;
use engine::Rows;
use service::{ReadOperation, reply};
use wire::http::{Head, Reply, StatusCode};
use wire::xml::XmlWriter;

use super::Call;
use super::get_share_properties::ReadShare;
use crate::Failure;
use crate::error::FileError;
use crate::model::{Halt, Share, Usage, find_usage};

/// Since this version the usage is told in bytes; before, in GiB.
const BYTES_SINCE: &str = "2018-11-09";
const GIB: u64 = 1 << 30;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetShareStats(pub ReadShare);

impl ReadOperation for GetShareStats {
    type Outcome = (Share, Usage);
    type Refusal = FileError;

    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<(Share, Usage), Halt> {
        let (share, _) = self.0.apply(rows, account, now)?;
        let usage = find_usage(rows, share.generation)?;
        Ok((share, usage))
    }
}

fn document(head: &Head, usage: Usage) -> XmlWriter {
    let mut xml = XmlWriter::document();
    xml.open("ShareStats");
    if head.since(BYTES_SINCE) {
        xml.number("ShareUsageBytes", usage.bytes);
    } else {
        xml.number("ShareUsage", usage.bytes.div_ceil(GIB));
    }
    xml.close("ShareStats");
    xml
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = GetShareStats(ReadShare::parse_base(call.head)?);
    let (share, usage) = call.read(&Arc::new(op)).await?;
    let mut answer = reply::xml(StatusCode::OK, document(call.head, usage));
    reply::set_version(&mut answer.headers, share.stamp);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, header, refusal, request};

    const URL: &str = "share?restype=share&comp=stats";

    #[tokio::test]
    async fn a_new_share_is_empty() {
        let bench = Bench::with_share().await;
        let told = bench.text("GET", URL).await;
        assert!(told.ends_with("<ShareStats><ShareUsageBytes>0</ShareUsageBytes></ShareStats>"), "{told}");
        let answer = bench.call("GET", URL, &[], b"").await.unwrap();
        let share = bench.call("GET", "share?restype=share", &[], b"").await.unwrap();
        assert_eq!(header(&answer, "etag"), header(&share, "etag"));
        let gone = bench.call("GET", "gone?restype=share&comp=stats", &[], b"").await;
        assert_eq!(refusal(gone), FileError::ShareNotFound);
    }

    /// A GiB that has begun counts.
    #[test]
    fn an_old_version_is_told_in_gib() {
        let mut head = request("GET", URL, &[]);
        head.version = "2017-11-09".into();
        for (bytes, gib) in [(0, 0), (1, 1), (GIB, 1), (GIB + 1, 2)] {
            let told = document(&head, Usage { bytes, past_bytes: 0 }).finish();
            let told = String::from_utf8(told).unwrap();
            assert!(told.ends_with(&format!("<ShareStats><ShareUsage>{gib}</ShareUsage></ShareStats>")), "{told}");
        }
    }
}
