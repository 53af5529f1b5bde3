//! Put Page From URL: pages whose bytes come from elsewhere.

use content::upload::Wanted;
use service::RequestError;
use wire::http::{Body, Reply};
use wire::ranges::RangeHeader;

use super::Call;
use super::put_page::{self, BODY_BYTES_MAX, PageWrite};
use crate::error::BlobError;
use crate::source::Source;
use crate::{Failure, request};

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    request::no_body(body)?;
    let mut op = put_page::parse(call.head)?;
    let source = Source::parse_with_key(call.head)?;
    if op.write == PageWrite::Clear {
        return Err(BlobError::header("x-ms-page-write", "clear").into());
    }
    if source.range == RangeHeader::None {
        return Err(BlobError::Request(RequestError::MissingRequiredHeader { name: "x-ms-source-range" }).into());
    }
    op.sums = source.sums;
    let asked = call.encryption()?;
    op.may(call, &asked).await?;
    let opened = source.open(call.sources(), BODY_BYTES_MAX).await?.unshared();
    if opened.length != op.span.end - op.span.start {
        return Err(BlobError::InvalidPageRange.into());
    }
    let wanted = Wanted::of_block(call.head, &op.sums);
    let received = opened.receive(call.engine, wanted, &op.sums, asked.key.as_ref()).await?;
    op.store(call, asked, Some(received)).await
}
