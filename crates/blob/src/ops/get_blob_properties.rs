//! Get Blob Properties: what Get Blob tells, without the bytes.

use std::sync::Arc;

use wire::http::{HeaderValue, Reply, StatusCode, header};

use super::Call;
use super::get_blob::ReadBlob;
use crate::{Failure, reply};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (seen, now) = call.read(&Arc::new(ReadBlob::parse(call.head)?)).await?;
    let mut answer = reply::reply(StatusCode::OK);
    reply::set_blob(&mut answer.headers, &seen.state, seen.lease.as_ref(), now);
    answer.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(seen.state.length));
    if let Some(md5) = &seen.state.headers.content_md5 {
        reply::set_md5(&mut answer.headers, &reply::CONTENT_MD5, md5);
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use crate::BlobError;
    use crate::testing::{Bench, header, refusal};

    #[tokio::test]
    async fn what_was_put_is_told() {
        let bench = Bench::with_container().await;
        let headers = [
            ("x-ms-blob-type", "BlockBlob"),
            ("content-type", "text/plain"),
            ("x-ms-blob-content-type", "text/html"),
            ("content-language", "de"),
            ("x-ms-blob-content-disposition", "inline"),
            ("x-ms-meta-Colour", "blue"),
            ("x-ms-access-tier", "Cool"),
        ];
        let put = bench.call("PUT", "cont/blob", &headers, b"hello").await.unwrap();
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        let expected = [
            ("content-length", "5"),
            ("content-type", "text/html"),
            ("content-language", "de"),
            ("content-disposition", "inline"),
            ("x-ms-meta-colour", "blue"),
            ("x-ms-access-tier", "Cool"),
            ("x-ms-blob-type", "BlockBlob"),
            ("x-ms-lease-state", "available"),
            ("x-ms-lease-status", "unlocked"),
            ("accept-ranges", "bytes"),
            ("x-ms-server-encrypted", "true"),
            ("etag", header(&put, "etag").unwrap()),
            ("last-modified", header(&put, "last-modified").unwrap()),
            ("x-ms-creation-time", header(&put, "last-modified").unwrap()),
        ];
        for (name, value) in expected {
            assert_eq!(header(&told, name), Some(value), "{name}");
        }
        assert_eq!(header(&told, "x-ms-access-tier-inferred"), None);
        bench.put("cont/plain", b"").await;
        let told = bench.call("HEAD", "cont/plain", &[], b"").await.unwrap();
        assert_eq!(header(&told, "content-type"), Some("application/octet-stream"));
        assert_eq!(header(&told, "x-ms-access-tier-inferred"), Some("true"));
    }

    #[tokio::test]
    async fn conditions() {
        let bench = Bench::with_container().await;
        let etag = bench.put("cont/blob", b"x").await;
        let ask = async |name: &'static str, value: &str| bench.call("HEAD", "cont/blob", &[(name, value)], b"").await;
        assert!(ask("if-match", &etag).await.is_ok());
        assert!(ask("if-none-match", "\"0x1\", \"0x2\"").await.is_ok());
        assert_eq!(refusal(ask("if-none-match", &etag).await), BlobError::NotModified);
        assert_eq!(refusal(ask("if-match", "\"0x1\"").await), BlobError::ConditionNotMet);
        assert_eq!(refusal(ask("if-none-match", "*").await), BlobError::UnsatisfiableCondition);
        assert_eq!(refusal(ask("if-modified-since", "x").await), BlobError::header("if-modified-since", "x"));
    }
}
