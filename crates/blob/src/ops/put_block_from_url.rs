//! Put Block From URL: a block whose bytes come from elsewhere.
//!
//! Bytes that are a content of their own in this server are referred to; others are read and written.

use content::upload::Wanted;
use wire::http::{Body, Reply};

use super::{Call, put_block};
use crate::error::BlobError;
use crate::source::Source;
use crate::{Failure, request};

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    request::no_body(body)?;
    let mut op = put_block::parse(call.head)?;
    let source = Source::parse_with_key(call.head)?;
    op.sums = source.sums;
    let asked = call.encryption()?;
    op.may(call, &asked).await?;
    let opened = source.open(call.sources(), put_block::body_bytes_max(call.head)).await?;
    if opened.length == 0 {
        return Err(BlobError::InvalidSourceBlobType.into());
    }
    let wanted = Wanted::of_block(call.head, &op.sums);
    let received = opened.receive(call.engine, wanted, &op.sums, asked.key.as_ref()).await?;
    op.store(call, asked, received).await
}
