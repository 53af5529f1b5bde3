//! Opens the contents of a blob for a download.
//!
//! A block list has at most 50,000 entries, which bounds what a download of a whole blob holds open; a range opens only the
//! blocks it touches.

use std::collections::VecDeque;

use content::pieces::Piece;
use engine::{Rows, Unread};
use wire::ranges::Span;

use crate::model::blocks::for_each_chunk;
use crate::model::{self, Committed, ContentRef};

/// Opens what `span` of the blob is made of.
pub fn open(rows: &dyn Rows, blob: &Committed, span: Option<Span>) -> Result<VecDeque<Piece>, Unread> {
    let (offset, length) = match span {
        Some(span) => (span.first, span.count()),
        None => (0, blob.length),
    };
    match blob.content {
        ContentRef::Empty => Ok(VecDeque::new()),
        ContentRef::Whole(id) => Ok(VecDeque::from([Piece::new(id, model::content(rows, id)?, offset, length)])),
        ContentRef::Blocks(list) | ContentRef::Shared(list) => open_blocks(rows, list, offset, length),
        ContentRef::Pages(view) => view.open(rows, offset, offset + length),
    }
}

fn open_blocks(rows: &dyn Rows, list: u64, offset: u64, length: u64) -> Result<VecDeque<Piece>, Unread> {
    let end = offset + length;
    let mut wanted = Vec::new();
    for_each_chunk(rows, list, offset, |chunk| {
        let mut start = chunk.start;
        for entry in &chunk.entries {
            let (first, last) = (start.max(offset), (start + entry.size).min(end));
            if first < last {
                wanted.push((entry.content, first - start, last - first));
            }
            start += entry.size;
        }
        start < end
    })?;
    let open = |(id, offset, length)| Ok(Piece::new(id, model::content(rows, id)?, offset, length));
    wanted.into_iter().map(open).collect()
}
