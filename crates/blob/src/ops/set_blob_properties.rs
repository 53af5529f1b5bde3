//! Set Blob Properties: the HTTP headers that a blob is read with, all six together; of a page blob also its length and its
//! sequence number.

use content::map::ByteSpan;
use engine::{Changes, Rows, Tick};
use service::RequestError;
use wire::http::{Head, HeaderValue, Reply, StatusCode};

use super::Call;
use super::set_blob_metadata::{Version, WriteBlob};
use crate::error::BlobError;
use crate::model::{BlobType, Committed, ContainerGuard, ContentRef, Halt, HttpHeaders, refuse};
use crate::request::{BLOB_CONTENT_LENGTH, SEQUENCE_NUMBER_MAX};
use crate::rules::encryption;
use crate::{Failure, reply, request};

/// What is to become of a blob.
#[derive(Clone, PartialEq, Eq, Debug)]
struct NewProperties {
    /// `None`: they stay, because only something of a page blob was asked for.
    headers: Option<HttpHeaders>,
    length: Option<u64>,
    sequence: Option<SequenceAction>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SequenceAction {
    Max(u64),
    Update(u64),
    Increment,
}

const ACTION: &str = "x-ms-sequence-number-action";
const NUMBER: &str = "x-ms-blob-sequence-number";

fn parse(head: &Head) -> Result<NewProperties, BlobError> {
    let (length, sequence) = (request::page_blob_length(head)?, sequence(head)?);
    let of_pages = length.is_some() || sequence.is_some();
    // One that is not sent is cleared.
    let headers = request::blob_headers(head)?;
    let headers = (!of_pages || request::BLOB_HEADERS.are_in(head)).then_some(headers);
    Ok(NewProperties { headers, length, sequence })
}

fn sequence(head: &Head) -> Result<Option<SequenceAction>, BlobError> {
    let number = request::sequence_number(head)?;
    let needed = || number.ok_or(BlobError::Request(RequestError::MissingRequiredHeader { name: NUMBER }));
    let unwanted = |number: u64| BlobError::header(NUMBER, number.to_string());
    match request::text(head, ACTION)?.map(str::to_ascii_lowercase).as_deref() {
        None => number.map_or(Ok(None), |number| Err(unwanted(number))),
        Some("max") => Ok(Some(SequenceAction::Max(needed()?))),
        Some("update") => Ok(Some(SequenceAction::Update(needed()?))),
        Some("increment") => number.map_or(Ok(Some(SequenceAction::Increment)), |number| Err(unwanted(number))),
        Some(other) => Err(BlobError::header(ACTION, other)),
    }
}

impl SequenceAction {
    fn name(self) -> &'static str {
        match self {
            SequenceAction::Max(_) => "max",
            SequenceAction::Update(_) => "update",
            SequenceAction::Increment => "increment",
        }
    }

    fn apply(self, sequence: u64) -> Result<u64, BlobError> {
        match self {
            SequenceAction::Max(number) => Ok(sequence.max(number)),
            SequenceAction::Update(number) => Ok(number),
            SequenceAction::Increment if sequence >= SEQUENCE_NUMBER_MAX => {
                Err(BlobError::SequenceNumberIncrementTooLarge)
            }
            SequenceAction::Increment => Ok(sequence + 1),
        }
    }
}

impl NewProperties {
    /// Only page blobs have a length that can be set, and a sequence number.
    fn decide(&self, state: &Committed) -> Result<Committed, BlobError> {
        let mut after = state.clone();
        match state.kind {
            BlobType::Block | BlobType::Append { .. } => self.of_no_pages()?,
            BlobType::Page { sequence } => {
                let sequence = self.sequence.map_or(Ok(sequence), |action| action.apply(sequence))?;
                after.kind = BlobType::Page { sequence };
                after.length = self.length.unwrap_or(state.length);
                after.tier = state.tier.map(|set| set.resized(after.length)).transpose()?;
            }
        }
        after.headers = self.headers.clone().unwrap_or(after.headers);
        Ok(after)
    }

    fn of_no_pages(&self) -> Result<(), BlobError> {
        match (self.length, self.sequence) {
            (Some(length), _) => Err(BlobError::header(BLOB_CONTENT_LENGTH, length.to_string())),
            (None, Some(action)) => Err(BlobError::header(ACTION, action.name())),
            (None, None) => Ok(()),
        }
    }

    /// What lies beyond the new end is gone, and zeros if the blob grows again.
    fn change(&self, state: &mut Committed, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<(), Halt> {
        let after = self.decide(state).map_err(refuse)?;
        if let ContentRef::Pages(view) = state.content
            && after.length < state.length
        {
            view.clear(rows, ByteSpan { start: after.length, end: state.length }, tick, changes)?;
        }
        *state = after;
        Ok(())
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = WriteBlob::parse(call.head)?;
    let wanted = parse(call.head)?;
    let asked = call.encryption()?;
    let change = move |state: &mut Committed, _: &ContainerGuard, rows: &dyn Rows, tick, changes: &mut Changes| {
        // No byte is read or written, so no key is needed; one that comes must be the right one.
        if asked.encryption.is_some() {
            encryption::matches(state.encryption.as_ref(), asked.encryption.as_ref()).map_err(refuse)?;
        }
        wanted.change(state, rows, tick, changes)
    };
    let state = op.run(call, Version::Same, change).await?;
    let mut answer = reply::reply(StatusCode::OK);
    reply::set_version(&mut answer.headers, state.stamp);
    if let BlobType::Page { sequence } = state.kind {
        answer.headers.insert(&reply::BLOB_SEQUENCE_NUMBER, HeaderValue::from(sequence));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(header(&told, "content-type"), None);
        assert_eq!(header(&told, "x-ms-meta-a"), Some("1"));
        bench.call("PUT", url, &[], b"").await.unwrap();
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!((header(&told, "cache-control"), header(&told, "content-md5")), (None, None));
    }

    #[test]
    fn what_becomes_of_sequence_numbers() {
        assert_eq!(SequenceAction::Max(5).apply(7), Ok(7));
        assert_eq!(SequenceAction::Max(9).apply(7), Ok(9));
        assert_eq!(SequenceAction::Update(5).apply(7), Ok(5));
        assert_eq!(SequenceAction::Increment.apply(7), Ok(8));
        let last = SequenceAction::Increment.apply(SEQUENCE_NUMBER_MAX);
        assert_eq!(last, Err(BlobError::SequenceNumberIncrementTooLarge));
    }

    #[tokio::test]
    async fn a_page_blob_has_a_length_and_a_number() {
        let bench = Bench::with_container().await;
        bench.put_pages("cont/blob", 1_024).await;
        let url = "cont/blob?comp=properties";
        let set = async |headers: &[(&str, &str)]| bench.call("PUT", url, headers, b"").await;
        let told = async |name: &str| {
            let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
            header(&told, name).map(str::to_owned)
        };
        set(&[("x-ms-blob-cache-control", "no-store")]).await.unwrap();
        let page = [("x-ms-page-write", "update"), ("range", "bytes=512-1023")];
        bench.call("PUT", "cont/blob?comp=page", &page, &[7; 512]).await.unwrap();
        let (action, number, length) = ("x-ms-sequence-number-action", NUMBER, BLOB_CONTENT_LENGTH);
        let answer = set(&[(action, "Update"), (number, "5")]).await.unwrap();
        assert_eq!(header(&answer, number), Some("5"));
        assert_eq!(header(&set(&[(action, "max"), (number, "3")]).await.unwrap(), number), Some("5"));
        assert_eq!(header(&set(&[(action, "increment")]).await.unwrap(), number), Some("6"));
        assert_eq!(told(number).await.as_deref(), Some("6"));
        // What was not asked for stays.
        assert_eq!(told("cache-control").await.as_deref(), Some("no-store"));
        // What is cut off does not come back.
        set(&[(length, "512")]).await.unwrap();
        assert_eq!(bench.get("cont/blob").await, [0; 512]);
        set(&[(length, "1536"), ("x-ms-blob-content-type", "a/b")]).await.unwrap();
        assert_eq!(bench.get("cont/blob").await, [0; 1_536]);
        assert_eq!((told("cache-control").await, told("content-type").await.as_deref()), (None, Some("a/b")));
        bench.sweep().await;
        assert_eq!(bench.figures().1, 0);
        for (headers, refused) in [
            (&[(length, "513")][..], BlobError::header(length, "513")),
            (&[(length, "-512")], BlobError::header(length, "-512")),
            (&[(length, "8796093022720")], BlobError::header(length, "8796093022720")),
            (&[(action, "update")], BlobError::Request(RequestError::MissingRequiredHeader { name: NUMBER })),
            (&[(action, "increment"), (number, "1")], BlobError::header(NUMBER, "1")),
            (&[(number, "1")], BlobError::header(NUMBER, "1")),
            (&[(action, "add"), (number, "1")], BlobError::header(ACTION, "add")),
            (&[(action, "update"), (number, "9223372036854775808")], BlobError::header(NUMBER, "9223372036854775808")),
        ] {
            assert_eq!(refusal(set(headers).await), refused);
        }
        set(&[(action, "update"), (number, "9223372036854775807")]).await.unwrap();
        assert_eq!(refusal(set(&[(action, "increment")]).await), BlobError::SequenceNumberIncrementTooLarge);
    }

    #[tokio::test]
    async fn a_block_blob_is_not_resized() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"x").await;
        let refused = bench.call("PUT", "cont/blob?comp=properties", &[("x-ms-blob-content-length", "512")], b"").await;
        assert_eq!(refusal(refused), BlobError::header("x-ms-blob-content-length", "512"));
        let counted = [("x-ms-sequence-number-action", "increment")];
        let refused = bench.call("PUT", "cont/blob?comp=properties", &counted, b"").await;
        assert_eq!(refusal(refused), BlobError::header("x-ms-sequence-number-action", "increment"));
        let refused = bench.call("PUT", "cont/blob?comp=properties", &[("x-ms-blob-content-md5", "x")], b"").await;
        assert_eq!(refusal(refused), BlobError::Request(RequestError::InvalidMd5));
    }

    #[tokio::test]
    async fn without_headers_there_is_no_content_type_any_longer() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"x").await;
        let told = async || {
            let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
            header(&told, "content-type").map(str::to_owned)
        };
        assert_eq!(told().await.as_deref(), Some("application/octet-stream"));
        bench.call("PUT", "cont/blob?comp=properties", &[], b"").await.unwrap();
        assert_eq!(told().await, None);
        let list = bench.text("GET", "cont?restype=container&comp=list").await;
        assert!(list.contains("<Content-Type />"), "{list}");
    }
}
