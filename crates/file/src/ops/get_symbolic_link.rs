//! Get Symbolic Link: the path that a symbolic link leads to.

use concurrency::Timestamp;
use concurrency::share_mode::RestAccess;
use engine::Rows;
use service::reply;
use wire::http::{Head, Reply, StatusCode};
use wire::percent;

use super::Call;
use crate::entering::{self, Admission, NodeRead};
use crate::error::FileError;
use crate::model::{Halt, NodeKind, refuse};
use crate::reply::node::LINK_TEXT;
use crate::tree::{Spot, Target};
use crate::{Failure, request};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct GetSymbolicLink;

/// The path, and the stamp of the link.
#[derive(Clone, PartialEq, Eq, Debug)]
struct LinkText {
    text: String,
    stamp: Timestamp,
}

fn parse(head: &Head) -> Result<Target, FileError> {
    let target = request::link(head)?;
    request::no_conditions(head)?;
    request::at_snapshot(head, target)
}

impl NodeRead for GetSymbolicLink {
    type Outcome = LinkText;

    fn admission(&self, _: &Spot) -> Admission {
        Admission::of(RestAccess::Look)
    }

    fn read(&self, spot: &Spot, _: &dyn Rows, _: Timestamp) -> Result<LinkText, Halt> {
        let node = spot.existing().map_err(refuse)?;
        match &node.kind {
            NodeKind::SymbolicLink(text) => Ok(LinkText { text: text.clone(), stamp: node.stamp }),
            // Where something else stands there is no such link.
            NodeKind::File(_) | NodeKind::Directory => Err(refuse(FileError::ResourceNotFound)),
        }
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let target = parse(call.head)?;
    let (_, link) = entering::look(call, &target, GetSymbolicLink).await?;
    let mut answer = reply::reply(StatusCode::OK);
    reply::set_version(&mut answer.headers, link.stamp);
    // Clients decode it, as they do with that of Azure.
    answer.headers.insert(&LINK_TEXT, reply::value(percent::encode_value(&link.text).into_owned()));
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, header};

    #[tokio::test]
    async fn the_path_as_it_was_stored() {
        let bench = Bench::with_nfs_share().await;
        for (name, text, told) in [
            ("relative", "../dir/file", "..%2Fdir%2Ffile"),
            ("absolute", "/mnt/share/a b", "%2Fmnt%2Fshare%2Fa%20b"),
            ("encoded", "a%20b%", "a%2520b%25"),
            ("itself", "itself", "itself"),
            ("letters", "Stra\u{df}e", "Stra%C3%9Fe"),
        ] {
            bench.symlink(name, text, &[]).await.unwrap();
            for method in ["GET", "HEAD"] {
                let answer = bench.call(method, &format!("share/{name}?restype=symboliclink"), &[], b"").await.unwrap();
                assert_eq!((answer.status.as_u16(), header(&answer, "x-ms-link-text")), (200, Some(told)));
                let file = bench.file(name).await;
                for name in ["etag", "last-modified"] {
                    assert_eq!(header(&answer, name), header(&file, name), "{name}");
                }
            }
        }
    }

    #[tokio::test]
    async fn where_no_link_stands() {
        let bench = Bench::with_nfs_share().await;
        bench.mkdir("dir").await;
        bench.create("dir/file", 0).await;
        for (path, expected) in [
            ("share/dir", FileError::ResourceNotFound),
            ("share/dir/file", FileError::ResourceNotFound),
            ("share/no", FileError::ResourceNotFound),
            ("share/no/link", FileError::ParentNotFound),
            ("other/link", FileError::ShareNotFound),
        ] {
            let refused = bench.refused("GET", &format!("{path}?restype=symboliclink"), &[]).await;
            assert_eq!(refused, expected, "{path}");
        }
    }
}
