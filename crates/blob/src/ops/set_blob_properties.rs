//! Set Blob Properties: the HTTP headers that a blob is read with, all six together.

use wire::http::{Head, Reply, StatusCode};

use super::Call;
use super::set_blob_metadata::WriteBlob;
use crate::error::BlobError;
use crate::{Failure, reply, request};

/// Block blobs have neither a size of their own nor a sequence number.
fn no_page_blob_headers(head: &Head) -> Result<(), BlobError> {
    for name in ["x-ms-blob-content-length", "x-ms-sequence-number-action", "x-ms-blob-sequence-number"] {
        if let Some(value) = request::text(head, name)? {
            return Err(BlobError::header(name, value));
        }
    }
    Ok(())
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = WriteBlob::parse(call.head)?;
    no_page_blob_headers(call.head)?;
    // One that is not sent is cleared.
    let headers = request::blob_headers(call.head)?;
    let stamp = op.run(call, move |state| state.headers = headers.clone()).await?;
    let mut answer = reply::reply(StatusCode::OK);
    reply::set_version(&mut answer.headers, stamp);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use crate::BlobError;
    use crate::testing::{Bench, header, refusal};

    #[tokio::test]
    async fn what_is_not_sent_is_cleared() {
        let bench = Bench::with_container().await;
        let put = [("x-ms-blob-type", "BlockBlob"), ("content-type", "text/plain"), ("x-ms-meta-a", "1")];
        bench.call("PUT", "cont/blob", &put, b"hello").await.unwrap();
        let url = "cont/blob?comp=properties";
        let set = [("x-ms-blob-cache-control", "no-store"), ("x-ms-blob-content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")];
        let answer = bench.call("PUT", url, &set, b"").await.unwrap();
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!(header(&told, "etag"), header(&answer, "etag"));
        assert_eq!(header(&told, "cache-control"), Some("no-store"));
        assert_eq!(header(&told, "content-md5"), Some("1B2M2Y8AsgTpgAmY7PhCfg=="));
        assert_eq!(header(&told, "content-type"), Some("application/octet-stream"));
        assert_eq!(header(&told, "x-ms-meta-a"), Some("1"));
        bench.call("PUT", url, &[], b"").await.unwrap();
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!((header(&told, "cache-control"), header(&told, "content-md5")), (None, None));
    }

    #[tokio::test]
    async fn a_block_blob_is_not_resized() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"x").await;
        let refused = bench.call("PUT", "cont/blob?comp=properties", &[("x-ms-blob-content-length", "512")], b"").await;
        assert_eq!(refusal(refused), BlobError::header("x-ms-blob-content-length", "512"));
        let refused = bench.call("PUT", "cont/blob?comp=properties", &[("x-ms-blob-content-md5", "x")], b"").await;
        assert_eq!(refusal(refused), BlobError::InvalidMd5);
    }
}
