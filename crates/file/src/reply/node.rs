//! The headers that answers about directories and files have in common.

use bytes::Bytes;
use concurrency::{Lease, Timestamp};
use service::reply::{
    CONTENT_TYPE_DEFAULT, REQUEST_SERVER_ENCRYPTED, SERVER_ENCRYPTED, TRUE, reply, set_lease, set_md5, set_metadata,
    set_version, value,
};
use wire::dates;
use wire::http::{Head, HeaderMap, HeaderName, HeaderValue, Reply, StatusCode, header};

use crate::model::{FileState, NfsProperties, Node, NodeKind};
use crate::smb_headers::SMB_HEADERS_SINCE;
use crate::tree::{Spot, shown_id};

macro_rules! names {
    ($($constant:ident = $name:literal;)*) => {
        $(pub static $constant: HeaderName = HeaderName::from_static($name);)*
    };
}

names! {
    CONTENT_LENGTH = "x-ms-content-length";
    CONTENT_MD5_OF_FILE = "x-ms-content-md5";
    FILE_ATTRIBUTES = "x-ms-file-attributes";
    FILE_CHANGE_TIME = "x-ms-file-change-time";
    FILE_CREATION_TIME = "x-ms-file-creation-time";
    FILE_ID = "x-ms-file-id";
    FILE_LAST_WRITE_TIME = "x-ms-file-last-write-time";
    FILE_PARENT_ID = "x-ms-file-parent-id";
    FILE_PERMISSION_KEY = "x-ms-file-permission-key";
    FILE_TYPE = "x-ms-file-file-type";
    GROUP = "x-ms-group";
    LINK_COUNT = "x-ms-link-count";
    LINK_TEXT = "x-ms-link-text";
    MODE = "x-ms-mode";
    OWNER = "x-ms-owner";
    TYPE = "x-ms-type";
}

/// A file or directory as answers show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownNode {
    pub node: Node,
    /// That of the root is 0.
    id: u64,
    parent: u64,
    /// When it was looked at.
    now: Timestamp,
}

impl ShownNode {
    /// What stands at a spot, or what has become of it.
    pub fn new(spot: &Spot, node: Node, now: Timestamp) -> ShownNode {
        ShownNode { id: shown_id(spot.share, node.id), parent: spot.shown_parent(), node, now }
    }

    /// The answer to an operation that has created or changed it.
    pub fn changed(&self, head: &Head, status: StatusCode) -> Reply {
        let mut answer = reply(status);
        set_version(&mut answer.headers, self.node.stamp);
        answer.headers.insert(&REQUEST_SERVER_ENCRYPTED, TRUE);
        self.set_smb(&mut answer.headers, head);
        answer
    }

    /// The headers of a read: everything but what depends on which bytes the answer has.
    pub fn set_on(&self, headers: &mut HeaderMap, head: &Head) {
        set_version(headers, self.node.stamp);
        set_metadata(headers, &self.node.metadata);
        headers.insert(&SERVER_ENCRYPTED, TRUE);
        self.set_smb(headers, head);
        if !self.node.is_directory() {
            headers.insert(&TYPE, HeaderValue::from_static("File"));
        }
        if let NodeKind::SymbolicLink(_) = self.node.kind {
            // It is told as a file that has nothing of its own.
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE_DEFAULT));
            set_lease(headers, &Lease::Available, self.now);
        }
        if let Some(state) = self.node.file() {
            state.headers.set_on(headers);
            set_lease(headers, &state.lease, self.now);
            if let Some(copy) = &state.copy {
                copy.tell(headers, self.now);
            }
        }
    }

    /// What SMB sees.
    fn set_smb(&self, headers: &mut HeaderMap, head: &Head) {
        if !head.since(SMB_HEADERS_SINCE) {
            return;
        }
        let node = &self.node;
        match node.nfs {
            None => {
                headers.insert(&FILE_ATTRIBUTES, value(node.attributes.to_string()));
                headers.insert(&FILE_PERMISSION_KEY, value(node.permission.to_string()));
            }
            Some(nfs) => self.set_nfs(headers, nfs),
        }
        headers.insert(&FILE_CREATION_TIME, time(node.created));
        headers.insert(&FILE_LAST_WRITE_TIME, time(node.written));
        headers.insert(&FILE_CHANGE_TIME, time(node.changed));
        headers.insert(&FILE_ID, HeaderValue::from(self.id));
        headers.insert(&FILE_PARENT_ID, HeaderValue::from(self.parent));
    }

    /// What NFS sees in the place of attributes and permission.
    fn set_nfs(&self, headers: &mut HeaderMap, nfs: NfsProperties) {
        headers.insert(&OWNER, HeaderValue::from(nfs.owner));
        headers.insert(&GROUP, HeaderValue::from(nfs.group));
        headers.insert(&MODE, value(nfs.mode.to_string()));
        headers.insert(&FILE_TYPE, HeaderValue::from_static(file_type(&self.node)));
        if !self.node.is_directory() {
            headers.insert(&LINK_COUNT, HeaderValue::from(self.node.link_count()));
        }
    }
}

/// What NFS calls it.
fn file_type(node: &Node) -> &'static str {
    match node.kind {
        NodeKind::Directory => "Directory",
        NodeKind::File(_) => "Regular",
        NodeKind::SymbolicLink(_) => "SymLink",
    }
}

/// The answer to Set Metadata.
pub fn metadata_set(stamp: Timestamp) -> Reply {
    let mut answer = reply(StatusCode::OK);
    set_version(&mut answer.headers, stamp);
    answer.headers.insert(&REQUEST_SERVER_ENCRYPTED, TRUE);
    answer
}

/// The answer to Get Metadata.
pub fn metadata(node: &Node) -> Reply {
    let mut answer = reply(StatusCode::OK);
    set_version(&mut answer.headers, node.stamp);
    set_metadata(&mut answer.headers, &node.metadata);
    answer
}

/// The MD5 that a client has set, under the name that depends on whether the answer has the whole file.
pub fn set_file_md5(headers: &mut HeaderMap, state: &FileState, name: &HeaderName) {
    if let Some(md5) = &state.headers.content_md5 {
        set_md5(headers, name, md5);
    }
}

/// A time as SMB counts it, exact to the tick.
pub fn time(at: Timestamp) -> HeaderValue {
    value(Bytes::copy_from_slice(dates::iso_ticks(at).as_bytes()))
}
