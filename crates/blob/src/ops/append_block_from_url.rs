//! Append Block From URL: bytes from elsewhere at the end of an append blob.

use content::upload::Wanted;
use wire::http::{Body, Reply};

use super::{Call, append_block};
use crate::error::BlobError;
use crate::source::Source;
use crate::{Failure, request};

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    request::no_body(body)?;
    let mut op = append_block::parse(call.head)?;
    let source = Source::parse_with_key(call.head)?;
    op.sums = source.sums;
    let asked = call.encryption()?;
    op.may(call, &asked, 0).await?;
    let opened = source.open(call.sources(), append_block::body_bytes_max(call.head)).await?;
    if opened.length == 0 {
        return Err(BlobError::InvalidSourceBlobType.into());
    }
    op.may(call, &asked, opened.length).await?;
    let wanted = Wanted::of_block(call.head, &op.sums);
    let received = opened.receive(call.engine, wanted, &op.sums, asked.key.as_ref()).await?;
    op.store(call, asked, received).await
}
