//! A request body on its way into a content.

use bytes::Bytes;
use content::sealing::{self, Sealer};
use engine::collector::is_referred;
use engine::{Changes, Engine, Rows, Staged};
use service::RequestError;
use wire::checksum::{Crc64, Md5};
use wire::http::{Body, BodyError, Head, HeaderMap, HeaderValue};
use wire::structured::{self, Decoder};

use crate::Failure;
use crate::error::BlobError;
use crate::model::{Halt, refuse};
use crate::request::BodySums;
use crate::rules::encryption::{self, CustomerKey};
use crate::{reply, request};

/// Since this version an answer carries the MD5 only if the request did, and a CRC64 otherwise.
const CRC64_SINCE: &str = "2019-02-02";

/// Which sums to compute while the bytes pass.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub md5: bool,
    pub crc64: bool,
}

/// A body that has arrived whole and is what the client said it is.
#[derive(Clone, Debug)]
pub struct Received {
    /// `None` if there were no bytes, or none that were not here already.
    pub staged: Option<Staged>,
    /// The content that has these bytes already.
    pub shared: Option<u64>,
    pub length: u64,
    pub md5: Option<[u8; 16]>,
    pub crc64: Option<u64>,
}

impl Received {
    /// No bytes yet, of so many.
    pub fn nothing(length: u64) -> Received {
        Received { staged: None, shared: None, length, md5: None, crc64: None }
    }

    /// Stores the bytes for `owner`, or refers to where they are. `None`: there are none.
    pub fn keep(&self, rows: &dyn Rows, owner: u64, changes: &mut Changes) -> Result<Option<u64>, Halt> {
        match (&self.staged, self.shared) {
            (Some(staged), _) => {
                changes.store(staged, owner);
                Ok(Some(staged.id().0))
            }
            // Whoever had it may have let it go meanwhile. As long as anybody refers to it, it is there.
            (None, Some(content)) if is_referred(rows, content)? => {
                changes.refer(content, owner);
                Ok(Some(content))
            }
            (None, Some(_)) => Err(refuse(BlobError::SourceConditionNotMet)),
            (None, None) => Ok(None),
        }
    }
}

impl Wanted {
    /// Put Block and Append Block answer the CRC64 to a client that checks by MD5, too; its tests ask for it. Put Page
    /// does as they do.
    pub fn of_block(head: &Head, sums: &BodySums) -> Wanted {
        let plain = Wanted::by(head, sums);
        Wanted { crc64: plain.crc64 || head.since(CRC64_SINCE), ..plain }
    }

    /// What must be checked or answered. An MD5 to store is asked for apart.
    pub fn by(head: &Head, sums: &BodySums) -> Wanted {
        let by_crc64 = head.since(CRC64_SINCE);
        Wanted { md5: sums.md5.is_some() || !by_crc64, crc64: sums.crc64.is_some() || (by_crc64 && sums.md5.is_none()) }
    }
}

/// What the client says will come: so many bytes of content, and whether they come in a structured body.
#[derive(Clone, Debug)]
pub struct Announced {
    pub length: u64,
    framing: Option<Decoder>,
    key: Option<CustomerKey>,
}

impl From<u64> for Announced {
    fn from(length: u64) -> Announced {
        Announced { length, framing: None, key: None }
    }
}

impl Announced {
    /// To be sealed with the client's key, if it has one.
    pub fn sealed_with(self, key: Option<&CustomerKey>) -> Announced {
        Announced { key: key.cloned(), ..self }
    }
}

/// Takes the length that the client must announce, and refuses what is over `most` before any byte is asked for.
pub fn announced(head: &Head, body: &dyn Body, most: u64) -> Result<Announced, BlobError> {
    let sent = body.length().ok_or(BlobError::Request(RequestError::MissingContentLengthHeader))?;
    let announced = match request::structured_body(head)? {
        false => Announced::from(sent),
        true => {
            let length = request::structured_content_length(head)?;
            Announced { length, framing: Some(Decoder::new(sent, length)), key: None }
        }
    };
    if announced.length > most {
        Err(BlobError::Request(RequestError::RequestBodyTooLarge { most }))
    } else {
        Ok(announced)
    }
}

/// Reads what was announced into a content. Nothing is stored until a commit says so; on an error nothing is left. The
/// sums are those of the content, not of the frame that it came in.
pub async fn receive(
    engine: &dyn Engine,
    body: &mut dyn Body,
    announced: impl Into<Announced>,
    wanted: Wanted,
) -> Result<Received, Failure> {
    let Announced { length, mut framing, key } = announced.into();
    let mut md5 = wanted.md5.then(Md5::new);
    let mut crc64 = wanted.crc64.then(Crc64::new);
    let stored = if key.is_some() { sealing::sealed_length(length) } else { length };
    let mut writer = (length > 0).then(|| engine.writer(Some(stored)));
    let mut sealer = match (&key, &writer) {
        (Some(key), Some(writer)) => Some(Sealer::new(&key.secret, encryption::salt()?, writer.id().0, length)),
        _ => None,
    };
    let mut arrived = 0_u64;
    while let Some(bytes) = body.next().await {
        let mut rest = bytes?;
        while let Some(bytes) = content(&mut rest, framing.as_mut())? {
            arrived += bytes.len() as u64;
            if arrived > length {
                return Err(BodyError::Incomplete.into());
            }
            if let Some(sum) = &mut md5 {
                sum.update(&bytes);
            }
            if let Some(sum) = &mut crc64 {
                sum.update(&bytes);
            }
            if let Some(writer) = &mut writer {
                match &mut sealer {
                    None => writer.write(bytes).await?,
                    Some(sealer) => {
                        for piece in sealer.next(bytes) {
                            writer.write(piece).await?;
                        }
                    }
                }
            }
        }
    }
    if let Some(decoder) = &framing {
        decoder.finish().map_err(BlobError::from)?;
    }
    if arrived != length {
        return Err(BodyError::Incomplete.into());
    }
    let staged = match writer {
        Some(writer) => Some(writer.finish().await?),
        None => None,
    };
    Ok(Received { staged, shared: None, length, md5: md5.map(Md5::finish), crc64: crc64.map(Crc64::finish) })
}

/// Reads `length` bytes that are stored already, for their sums alone.
pub async fn sum(body: &mut dyn Body, length: u64, wanted: Wanted) -> Result<Received, Failure> {
    let mut md5 = wanted.md5.then(Md5::new);
    let mut crc64 = wanted.crc64.then(Crc64::new);
    while let Some(bytes) = body.next().await {
        let bytes = bytes?;
        if let Some(sum) = &mut md5 {
            sum.update(&bytes);
        }
        if let Some(sum) = &mut crc64 {
            sum.update(&bytes);
        }
    }
    Ok(Received { md5: md5.map(Md5::finish), crc64: crc64.map(Crc64::finish), ..Received::nothing(length) })
}

/// The next bytes of content in what has come.
fn content(rest: &mut Bytes, framing: Option<&mut Decoder>) -> Result<Option<Bytes>, BlobError> {
    match framing {
        Some(decoder) => Ok(decoder.next(rest)?),
        None => Ok(Some(std::mem::take(rest)).filter(|bytes| !bytes.is_empty())),
    }
}

/// Compares what was announced with what arrived.
pub fn verify(given: &BodySums, computed_md5: Option<[u8; 16]>, computed_crc64: Option<u64>) -> Result<(), BlobError> {
    match (given.md5, computed_md5) {
        (Some(given), Some(computed)) if given != computed => return Err(BlobError::Md5Mismatch { given, computed }),
        _ => {}
    }
    match (given.crc64, computed_crc64) {
        (Some(given), Some(computed)) if given != computed => Err(BlobError::Crc64Mismatch { given, computed }),
        _ => Ok(()),
    }
}

/// Tells the client what arrived: the MD5 if that is how it checks, and the CRC64 if that was computed.
pub fn answer_sums(headers: &mut HeaderMap, head: &Head, sums: &BodySums, md5: Option<[u8; 16]>, crc64: Option<u64>) {
    let by_md5 = sums.md5.is_some() || !head.since(CRC64_SINCE);
    if let Some(md5) = md5.filter(|_| by_md5) {
        reply::set_md5(headers, &reply::CONTENT_MD5, &md5);
    }
    if let Some(crc64) = crc64 {
        reply::set_crc64(headers, crc64);
    }
    if head.has_header(request::STRUCTURED_BODY) {
        headers.insert(&reply::STRUCTURED_BODY, HeaderValue::from_static(structured::VALUE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, bytes, header, refusal};
    use wire::structured::{Encoder, Fault};

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
        bench
            .call("PUT", "cont/new?comp=blocklist", &[], b"<BlockList><Latest>QQ==</Latest></BlockList>")
            .await
            .unwrap();
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
            assert!(matches!(put(&whole, &damaged).await, BlobError::Crc64Mismatch { .. }), "{url}");
            assert_eq!(put(&whole, &old).await, BlobError::InvalidInput(Fault::Version(0)), "{url}");
            let cut = BlobError::InvalidInput(Fault::MessageLength { given: 551, expected: 550 });
            assert_eq!(put(&whole, &good[..550]).await, cut, "{url}");
            assert_eq!(
                put(&[FORM], &good).await,
                BlobError::Request(RequestError::MissingRequiredHeader { name: LENGTH }),
                "{url}"
            );
            assert_eq!(put(&[FORM, (LENGTH, "x")], &good).await, BlobError::header(LENGTH, "x"), "{url}");
            assert_eq!(
                put(&[(FORM.0, "XSM/2.0"), whole[1]], &good).await,
                BlobError::header(FORM.0, "XSM/2.0"),
                "{url}"
            );
            let wrong = [FORM, whole[1], ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")];
            assert!(matches!(put(&wrong, &good).await, BlobError::Md5Mismatch { .. }), "{url}");
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
}
