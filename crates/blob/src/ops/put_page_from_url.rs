//! Put Page From URL: pages whose bytes come from elsewhere.

use std::sync::Arc;

use content::upload::Wanted;
use service::RequestError;
use wire::http::{Body, Reply};
use wire::ranges::RangeHeader;

use super::Call;
use super::put_page::{self, BODY_BYTES_MAX, PageWrite, PutPage};
use crate::error::BlobError;
use crate::source::Source;
use crate::{Failure, request};

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    request::no_body(body)?;
    let (op, _) = put_page::parse(call.head)?;
    let source = Source::parse_with_key(call.head)?;
    if matches!(op.write, PageWrite::Clear) {
        return Err(BlobError::header("x-ms-page-write", "clear").into());
    }
    if source.range == RangeHeader::None {
        return Err(BlobError::Request(RequestError::MissingRequiredHeader { name: "x-ms-source-range" }).into());
    }
    let asked = call.encryption()?;
    let op = Arc::new(PutPage { encryption: asked.encryption.clone(), ..op });
    call.read(&op).await?;
    let opened = source.open(call.sources(), BODY_BYTES_MAX).await?.unshared();
    if opened.length != put_page::bytes_of(op.span) {
        return Err(BlobError::InvalidPageRange.into());
    }
    let wanted = Wanted::of_block(call.head, &source.sums);
    let received = opened.receive(call.engine, wanted, &source.sums, asked.key.as_ref()).await?;
    let write = PageWrite::Update(received);
    PutPage { write, ..Arc::unwrap_or_clone(op) }.store(call, &source.sums).await
}
