//! Structured bodies: every operation that takes one, and downloads as one.

use bytes::Bytes;
use service::RequestError;
use wire::checksum::{Crc64, Md5};
use wire::structured::{self, Encoder, Fault};

use crate::BlobError;
use crate::testing::{Bench, bytes, header, refusal};

const FORM: (&str, &str) = ("x-ms-structured-body", structured::VALUE);
const LENGTH: &str = "x-ms-structured-content-length";

fn framed(payload: &[u8]) -> Vec<u8> {
    Encoder::new(payload.len() as u64).next(Bytes::copy_from_slice(payload)).concat()
}

/// The operations that take a structured body, each with what else it needs.
const UPLOADS: [(&str, &[(&str, &str)]); 4] = [
    ("cont/new", &[("x-ms-blob-type", "BlockBlob")]),
    ("cont/new?comp=block&blockid=QQ==", &[]),
    ("cont/append?comp=appendblock", &[]),
    ("cont/pages?comp=page", &[("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-511")]),
];

async fn bench() -> Bench {
    let bench = Bench::with_container().await;
    bench.call("PUT", "cont/append", &[("x-ms-blob-type", "AppendBlob")], b"").await.unwrap();
    bench.put_pages("cont/pages", 512).await;
    bench
}

#[tokio::test]
async fn structured_bodies_are_taken_apart() {
    let bench = bench().await;
    let payload = [7; 512];
    let md5 = wire::base64::encode(&Md5::of(&payload));
    for (url, more) in UPLOADS {
        for sums in [&[][..], &[("content-md5", md5.as_str())]] {
            let headers = [more, sums, &[FORM, (LENGTH, "512")]].concat();
            let answer = bench.call("PUT", url, &headers, &framed(&payload)).await.unwrap();
            assert_eq!(header(&answer, FORM.0), Some(FORM.1), "{url}");
            // Sums are those of the content: nobody could store that of a frame.
            let name = if sums.is_empty() { "x-ms-content-crc64" } else { "content-md5" };
            let crc64 = wire::base64::encode_crc64(Crc64::of(&payload));
            assert_eq!(
                header(&answer, name),
                Some(if sums.is_empty() { crc64.as_str() } else { md5.as_str() }),
                "{url}"
            );
        }
    }
    bench.call("PUT", "cont/new?comp=blocklist", &[], b"<BlockList><Latest>QQ==</Latest></BlockList>").await.unwrap();
    assert_eq!(bench.get("cont/new").await, payload);
    assert_eq!(bench.get("cont/append").await, [payload, payload].concat());
    assert_eq!(bench.get("cont/pages").await, payload);
}

#[tokio::test]
async fn a_bad_frame_changes_nothing() {
    let bench = bench().await;
    let before = bench.figures();
    let good = framed(&[7; 512]);
    let mut damaged = good.clone();
    damaged[100] ^= 1;
    let mut old = good.clone();
    old[0] = 0;
    for (url, more) in UPLOADS {
        let put = async |headers: &[(&str, &str)], body: &[u8]| {
            refusal(bench.call("PUT", url, &[more, headers].concat(), body).await)
        };
        let whole = [FORM, (LENGTH, "512")];
        assert!(matches!(put(&whole, &damaged).await, BlobError::Request(RequestError::Crc64Mismatch { .. })), "{url}");
        assert_eq!(put(&whole, &old).await, BlobError::Request(RequestError::InvalidInput(Fault::Version(0))), "{url}");
        let cut = BlobError::Request(RequestError::InvalidInput(Fault::MessageLength { given: 551, expected: 550 }));
        assert_eq!(put(&whole, &good[..550]).await, cut, "{url}");
        assert_eq!(
            put(&[FORM], &good).await,
            BlobError::Request(RequestError::MissingRequiredHeader { name: LENGTH }),
            "{url}"
        );
        assert_eq!(put(&[FORM, (LENGTH, "x")], &good).await, BlobError::header(LENGTH, "x"), "{url}");
        assert_eq!(put(&[(FORM.0, "XSM/2.0"), whole[1]], &good).await, BlobError::header(FORM.0, "XSM/2.0"), "{url}");
        let wrong = [FORM, whole[1], ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")];
        assert!(matches!(put(&wrong, &good).await, BlobError::Request(RequestError::Md5Mismatch { .. })), "{url}");
    }
    let (url, more) = UPLOADS[2];
    let large = [more, &[FORM, (LENGTH, "104857601")]].concat();
    let most = 100 << 20;
    assert_eq!(
        refusal(bench.call_unread("PUT", url, &large).await),
        BlobError::Request(RequestError::RequestBodyTooLarge { most })
    );
    assert_eq!(bench.figures(), before);
}

#[tokio::test]
async fn downloads_can_be_structured() {
    let bench = Bench::with_container().await;
    for length in [0, 5, 700_000] {
        let payload: Vec<u8> = (0..length).map(|n: u32| n as u8).collect();
        bench.put("cont/blob", &payload).await;
        let answer = bench.call("GET", "cont/blob", &[FORM], b"").await.unwrap();
        assert_eq!((header(&answer, FORM.0), header(&answer, LENGTH)), (Some(FORM.1), Some(&*length.to_string())));
        assert!(bytes(answer).await == framed(&payload));
    }
    let answer = bench.call("GET", "cont/blob", &[FORM, ("x-ms-range", "bytes=1-3")], b"").await.unwrap();
    assert_eq!((answer.status.as_u16(), header(&answer, "content-range")), (206, Some("bytes 1-3/700000")));
    assert_eq!(bytes(answer).await, framed(&[1, 2, 3]));
    let refused = bench.call("GET", "cont/blob", &[(FORM.0, "zip")], b"").await;
    assert_eq!(refusal(refused), BlobError::header(FORM.0, "zip"));
}
