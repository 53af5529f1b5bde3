//! What the crate `fuzzing` calls: decoders of requests, of rows and of security descriptors, with arbitrary bytes.

use concurrency::{Lease, Timestamp};
use content::map::FileView;
use service::{HttpHeaders, codec};
use wire::http::Head;

use crate::model::{
    AccessTier, Attributes, DeletedShare, Entry, FileState, FormerPlace, HardLink, Links, NfsProperties, Node,
    NodeKind, NodePlace, Protocol, Provisioned, Share, ShareGuard, ShareSnapshot, Usage,
};
use crate::permission_format::PermissionFormat;
use crate::security::{ChildKind, Descriptor, Permission, PermissionKey, Sid, new_child, root_directory};
use crate::{ShareSettings, request, share_settings, smb_headers};

/// Reads from a head all that operations read from heads.
pub fn head(head: &Head) {
    let _ = (request::share(head), request::file(head), request::directory(head), request::snapshot(head));
    let _ = (request::trailing_dots(head), request::source_trailing_dots(head));
    let _ = (request::only_base(head), request::no_conditions(head), request::metadata(head));
    let _ = (request::file_length(head), smb_headers::parse(head), smb_headers::parse_optional(head));
    let _ = (smb_headers::parse_copy(head), smb_headers::parse_symbolic_link(head));
    let _ = (smb_headers::last_write_time_moves(head), PermissionFormat::of(head));
    let _ = (ShareSettings::parse(head), share_settings::protocol(head));
}

/// Reads what SMB clients name files by: paths, and patterns of directories.
pub fn smb_names(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    crate::door::fuzz_names(text);
}

/// Decodes a row as each kind of row.
pub fn rows(row: &[u8]) {
    let _ = (codec::decode::<Share>(row).is_ok(), codec::decode::<ShareGuard>(row).is_ok());
    let _ = (codec::decode::<DeletedShare>(row).is_ok(), codec::decode::<Usage>(row).is_ok());
    let _ = (codec::decode::<Entry>(row).is_ok(), codec::decode::<NodePlace>(row).is_ok());
    let _ = (codec::decode::<Node>(row).is_ok(), codec::decode::<ShareSnapshot>(row).is_ok());
}

/// Reads a security descriptor, in binary form and as SDDL, and does with it all that is done with one.
pub fn descriptor(bytes: &[u8]) {
    let _ = (Sid::decode(bytes), Permission::from_bytes(bytes).is_ok());
    if let Ok(descriptor) = Descriptor::decode(bytes) {
        use_descriptor(&descriptor);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = (Sid::parse(text), PermissionKey::parse(text).is_ok(), Permission::from_base64(text).is_ok());
    for descriptor in [Descriptor::parse_sddl(text), Descriptor::for_share(text)].into_iter().flatten() {
        use_descriptor(&descriptor);
    }
}

fn use_descriptor(descriptor: &Descriptor) {
    let _ = descriptor.to_sddl().is_ok();
    for kind in [ChildKind::File, ChildKind::Directory] {
        let _ = new_child(&root_directory(), descriptor, kind);
        let _ = new_child(descriptor, &root_directory(), kind).encode().is_ok();
    }
    if let Ok(bytes) = descriptor.encode() {
        assert_eq!(Descriptor::decode(&bytes).as_ref(), Ok(descriptor), "a descriptor reads back as written");
    }
}

/// Valid rows, for the mutator to start from.
#[must_use]
pub fn row_samples() -> Vec<Vec<u8>> {
    let share = Share {
        generation: 7,
        stamp: Timestamp(1_000),
        lease: Lease::Available,
        metadata: vec![("a".into(), "b".into())],
        policies: vec![],
        quota_gib: 5,
        tier: AccessTier::default(),
        tier_changed: None,
        protocol: Protocol::default(),
        root_squash: None,
        provisioned: Provisioned::default(),
        epoch: 2,
        newest_snapshot: 1,
        snapshots: 1,
        last_snapshot: 10_000_000,
    };
    let directory = Node {
        id: 8,
        name: "Name".into(),
        kind: NodeKind::Directory,
        since: 1,
        stamp: Timestamp(1_000),
        created: Timestamp(1_000),
        written: Timestamp(1_000),
        changed: Timestamp(1_000),
        accessed: Timestamp(1_000),
        attributes: Attributes::DIRECTORY,
        permission: PermissionKey::from_bytes([1; 16]),
        metadata: vec![("a".into(), "b".into())],
        nfs: Some(NfsProperties::new(true)),
        links: None,
        former: Some(vec![FormerPlace { until: 1, directory: 7, name: "name".into() }]),
    };
    let symbolic_link = Node { kind: NodeKind::SymbolicLink("../other".into()), ..directory.clone() };
    let place = NodePlace { directory: 7, name: "NAME".into() };
    let links = Links::new(place.clone(), "Name").with(NodePlace { directory: 8, ..place.clone() }, "name");
    let state = FileState {
        length: 10,
        view: FileView::new(9),
        born: Timestamp(1_000),
        headers: HttpHeaders::default(),
        lease: Lease::Available,
        copy: None,
    };
    let linked = Node { kind: NodeKind::File(state), links: Some(links), ..directory.clone() };
    let link = HardLink { id: 8, since: 1 };
    let usage = Usage { bytes: 10, past_bytes: 1 };
    let snapshot = ShareSnapshot { epoch: 1, taken: Timestamp(1_000), share: share.clone() };
    let samples = [
        codec::encode(&share),
        codec::encode(&snapshot),
        codec::encode(&directory),
        codec::encode(&symbolic_link),
        codec::encode(&linked),
        codec::encode(&link),
        codec::encode(&place),
        codec::encode(&usage),
    ];
    samples.iter().map(|row| row.to_vec()).collect()
}

/// Valid descriptors in binary form, for the mutator to start from.
#[must_use]
pub fn descriptor_samples() -> Vec<Vec<u8>> {
    root_directory().encode().into_iter().collect()
}
