//! List Handles: the SMB handles of a file or directory, or of everything below a directory. It also works on a file that SMB
//! is about to delete.

use std::sync::Arc;

use concurrency::Timestamp;
use concurrency::share_mode::Access;
use engine::Rows;
use service::{ReadOperation, listing, reply};
use wire::dates;
use wire::http::{Head, Reply, StatusCode};
use wire::xml::XmlWriter;

use super::Call;
use crate::entering::file_id;
use crate::error::FileError;
use crate::model::{Halt, refuse};
use crate::opens::{FileId, HandleId, HandleInfo, HandlePage, Reach, Scope};
use crate::request::flag;
use crate::tree::{self, Target};
use crate::{Failure, request};

/// The most handles of a page, and how many it has if the request does not say.
const RESULTS_MAX: usize = 5_000;
const RECURSIVE: &str = "x-ms-recursive";

/// The handles that a request means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandleScope {
    pub target: Target,
    reach: Reach,
}

impl HandleScope {
    pub fn parse(head: &Head) -> Result<HandleScope, FileError> {
        // The request does not say whether it names a file or a directory.
        let target = request::directory(head)?;
        request::no_conditions(head)?;
        let target = request::at_snapshot(head, target)?;
        let is_recursive = flag(head, RECURSIVE)?.unwrap_or(false);
        Ok(HandleScope { target, reach: if is_recursive { Reach::Tree } else { Reach::Node } })
    }
}

impl ReadOperation for HandleScope {
    /// `None`: nothing has what a snapshot sees open.
    type Outcome = Option<Scope>;
    type Refusal = FileError;

    fn apply(&self, rows: &dyn Rows, account: u64, _: Timestamp) -> Result<Option<Scope>, Halt> {
        let spot = tree::find(rows, account, &self.target)?;
        let node = spot.existing().map_err(refuse)?;
        if self.reach == Reach::Tree && !node.is_directory() {
            return Err(refuse(FileError::header(RECURSIVE, "true")));
        }
        let file = file_id(&spot).ok_or(refuse(FileError::ResourceNotFound))?;
        Ok(spot.at.is_none().then_some(Scope { file, reach: self.reach }))
    }
}

/// The handle with which the last page ended.
pub fn marker(head: &Head) -> Result<Option<HandleId>, FileError> {
    let Some(text) = head.query.get("marker") else { return Ok(None) };
    text.parse().map(|number| Some(HandleId(number))).map_err(|_| FileError::InvalidMarker)
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let scope = HandleScope::parse(call.head)?;
    let (after, most) = (marker(call.head)?, listing::max_results(call.head, RESULTS_MAX).map_err(FileError::from)?);
    let scope = call.read(&Arc::new(scope)).await?;
    Ok(reply::xml(
        StatusCode::OK,
        document(&scope.map(|scope| call.opens.handles(scope, after, most)).unwrap_or_default()),
    ))
}

fn document(page: &HandlePage) -> XmlWriter {
    let mut xml = XmlWriter::document();
    xml.open("EnumerationResults").open("Entries");
    page.handles.iter().for_each(|handle| element(&mut xml, handle));
    xml.close("Entries");
    xml.leaf("NextMarker", page.next.map(|id| id.0.to_string()).unwrap_or_default());
    xml.close("EnumerationResults");
    xml
}

fn element(xml: &mut XmlWriter, handle: &HandleInfo) {
    let FileId { share, id } = handle.file;
    let shown = |id: u64| if id == share { 0 } else { id };
    xml.open("Handle");
    xml.number("HandleId", handle.id.0);
    xml.leaf("Path", &handle.place.path);
    xml.number("FileId", shown(id));
    xml.number("ParentId", handle.place.above.first().map_or(0, |parent| shown(*parent)));
    xml.number("SessionId", handle.client.session);
    xml.leaf("ClientIp", handle.client.address.to_string());
    xml.leaf("ClientName", &handle.client.name);
    xml.leaf("OpenTime", dates::http_date(handle.opened).as_str());
    xml.leaf_if("LastReconnectTime", handle.reconnected.map(|at| dates::http_date(at).to_string()));
    xml.open("AccessRightList");
    for (access, name) in [(Access::READ, "Read"), (Access::WRITE, "Write"), (Access::DELETE, "Delete")] {
        xml.leaf_if("AccessRight", handle.access.contains(access).then_some(name));
    }
    xml.close("AccessRightList").close("Handle");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, between, header, text};

    async fn list(bench: &Bench, path: &str, query: &str, is_recursive: bool) -> String {
        let headers = [("x-ms-recursive", if is_recursive { "true" } else { "false" })];
        let url = format!("share/{path}?comp=listhandles{query}");
        text(bench.call("GET", &url, &headers, b"").await.unwrap()).await
    }

    #[tokio::test]
    async fn without_smb_there_are_none() {
        let bench = Bench::with_share().await;
        bench.create("file", 0).await;
        for path in ["file", ""] {
            let listed = list(&bench, path, "", false).await;
            assert!(
                listed.ends_with("<EnumerationResults><Entries></Entries><NextMarker /></EnumerationResults>"),
                "{listed}"
            );
        }
    }

    #[tokio::test]
    async fn a_handle_and_its_client() {
        let bench = Bench::with_share().await;
        bench.mkdir("dir").await;
        bench.create("dir/file", 0).await;
        let handle = bench.open("dir/file", Access::READ.and(Access::DELETE), Access::ALL).await;
        let listed = list(&bench, "DIR/File", "", false).await;
        let id = |reply: &Reply| header(reply, "x-ms-file-id").unwrap().to_owned();
        let expected = format!(
            "<Handle><HandleId>{}</HandleId><Path>dir/file</Path><FileId>{}</FileId><ParentId>{}</ParentId>\
             <SessionId>7</SessionId><ClientIp>10.0.0.1:50000</ClientIp><ClientName>client</ClientName><OpenTime>",
            handle.id().0,
            id(&bench.file("dir/file").await),
            id(&bench.directory("dir").await),
        );
        assert!(listed.contains(&expected), "{listed}");
        let rights =
            "<AccessRightList><AccessRight>Read</AccessRight><AccessRight>Delete</AccessRight></AccessRightList>";
        assert!(listed.contains(rights) && !listed.contains("LastReconnectTime"), "{listed}");
        let root = bench.open("", Access::NONE, Access::ALL).await;
        let listed = list(&bench, "", "", false).await;
        assert_eq!(between(&listed, "<HandleId>", "<"), [root.id().0.to_string()]);
        assert!(listed.contains("<FileId>0</FileId><ParentId>0</ParentId>"), "{listed}");
        assert_eq!(between(&list(&bench, "", "", true).await, "<HandleId>", "<").len(), 2);
    }

    #[tokio::test]
    async fn pages() {
        let bench = Bench::with_share().await;
        bench.create("file", 0).await;
        let mut handles = Vec::new();
        for _ in 0..5 {
            handles.push(bench.open("file", Access::READ, Access::ALL).await);
        }
        let (mut seen, mut marker) = (Vec::new(), String::new());
        loop {
            let page = list(&bench, "file", &format!("&maxresults=2&marker={marker}"), false).await;
            seen.extend(between(&page, "<HandleId>", "<").into_iter().map(str::to_owned));
            match between(&page, "<NextMarker>", "<").first() {
                Some(next) => marker = (*next).to_owned(),
                None => break,
            }
        }
        assert_eq!(seen, handles.iter().map(|handle| handle.id().0.to_string()).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn refusals_and_two_at_once() {
        let bench = Bench::with_share().await;
        bench.create("file", 0).await;
        let recursive = ("x-ms-recursive", "true");
        let refused = async |url: &str, headers: &[(&str, &str)]| bench.refused("GET", url, headers).await;
        let on_a_file = refused("share/file?comp=listhandles", &[recursive]).await;
        assert_eq!(on_a_file, FileError::header("x-ms-recursive", "true"));
        assert_eq!(refused("share/no?comp=listhandles", &[recursive]).await, FileError::ResourceNotFound);
        assert_eq!(refused("share/no?comp=listhandles&marker=x", &[recursive]).await, FileError::InvalidMarker);
    }
}
