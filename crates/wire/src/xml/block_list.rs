//! The body of Put Block List: which blocks make up the blob, in order.

use super::read::{Step, Steps, XmlError, is_blank};

/// A committed blob has at most this many blocks.
pub const BLOCKS_PER_LIST_MAX: usize = 50_000;

/// Where a block is looked up by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockSearch {
    Committed,
    Uncommitted,
    /// The uncommitted ones first, then the committed ones.
    Latest,
}

/// One element of the list; the id as sent, base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    pub search: BlockSearch,
    pub id: String,
}

/// Parses the list without building a tree of a long document. More than [`BLOCKS_PER_LIST_MAX`] entries are
/// [`XmlError::TooMany`].
pub fn parse_block_list(document: &[u8]) -> Result<Vec<BlockEntry>, XmlError> {
    let mut steps = Steps::through(document)?;
    match steps.next()? {
        Step::Open(tag) if tag.local_name().as_ref() == "BlockList" => {}
        _ => return Err(XmlError::Malformed),
    }
    let mut entries = Vec::new();
    loop {
        match steps.next()? {
            Step::Open(tag) => {
                let search = match tag.local_name().as_ref() {
                    "Committed" => BlockSearch::Committed,
                    "Uncommitted" => BlockSearch::Uncommitted,
                    "Latest" => BlockSearch::Latest,
                    _ => return Err(XmlError::Malformed),
                };
                if entries.len() == BLOCKS_PER_LIST_MAX {
                    return Err(XmlError::TooMany { node: "BlockList", limit: BLOCKS_PER_LIST_MAX });
                }
                entries.push(BlockEntry { search, id: id(&mut steps)? });
            }
            Step::Text(text) if is_blank(&text) => {}
            Step::Text(_) => return Err(XmlError::Malformed),
            Step::Close => break,
            Step::End => return Err(XmlError::Malformed),
        }
    }
    match steps.next()? {
        Step::End => Ok(entries),
        _ => Err(XmlError::Malformed),
    }
}

fn id(steps: &mut Steps<'_>) -> Result<String, XmlError> {
    let mut id = String::new();
    loop {
        match steps.next()? {
            Step::Text(text) => id.push_str(text.trim_ascii()),
            Step::Close => return Ok(id),
            Step::Open(_) | Step::End => return Err(XmlError::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_elements_is_the_order_of_the_list() {
        let list = parse_block_list(
            b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<BlockList>\n <Latest>QQ==</Latest>\n <Committed>\nQg==\n</Committed>\
              <Uncommitted>Q&#119;==</Uncommitted><Latest>QQ==</Latest></BlockList>\n",
        );
        let entry = |search, id: &str| BlockEntry { search, id: id.into() };
        let expected = vec![
            entry(BlockSearch::Latest, "QQ=="),
            entry(BlockSearch::Committed, "Qg=="),
            entry(BlockSearch::Uncommitted, "Qw=="),
            entry(BlockSearch::Latest, "QQ=="),
        ];
        assert_eq!(list, Ok(expected));
    }

    #[test]
    fn a_list_may_be_empty() {
        assert_eq!(parse_block_list(b"<BlockList/>"), Ok(vec![]));
        assert_eq!(parse_block_list(b"<BlockList> </BlockList>"), Ok(vec![]));
    }

    #[test]
    fn other_shapes_are_malformed() {
        for document in [
            "",
            "<Blocks/>",
            "<BlockList>x</BlockList>",
            "<BlockList><Block>a</Block></BlockList>",
            "<BlockList><Latest><a/></Latest></BlockList>",
            "<BlockList><Latest>a</BlockList>",
            "<BlockList>",
            "<BlockList/><BlockList/>",
            "<!DOCTYPE a><BlockList/>",
        ] {
            assert_eq!(parse_block_list(document.as_bytes()), Err(XmlError::Malformed), "{document}");
        }
    }

    #[test]
    fn fifty_thousand_blocks_and_no_more() {
        let list = |n: usize| format!("<BlockList>{}</BlockList>", "<Latest>QQ==</Latest>".repeat(n));
        assert_eq!(parse_block_list(list(BLOCKS_PER_LIST_MAX).as_bytes()).map(|l| l.len()), Ok(BLOCKS_PER_LIST_MAX));
        assert_eq!(
            parse_block_list(list(BLOCKS_PER_LIST_MAX + 1).as_bytes()),
            Err(XmlError::TooMany { node: "BlockList", limit: BLOCKS_PER_LIST_MAX })
        );
    }
}
