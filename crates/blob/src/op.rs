//! Every operation of the Blob service, by the name the REST reference gives it.

use auth::{Need, Permissions, ResourceType, Service};
use wire::http::Head;

use crate::model::PublicAccess;

service::operations! {
    // The service.
    ListContainers,
    GetBlobServiceProperties,
    SetBlobServiceProperties,
    GetBlobServiceStats,
    GetAccountInformation,
    GetUserDelegationKey,
    PreflightBlobRequest,
    BlobBatch,
    FindBlobsByTags,
    FindBlobsByTagsInContainer,
    // Containers.
    CreateContainer,
    GetContainerProperties,
    GetContainerMetadata,
    SetContainerMetadata,
    GetContainerAcl,
    SetContainerAcl,
    DeleteContainer,
    LeaseContainer,
    RestoreContainer,
    RenameContainer,
    ListBlobs,
    // Blobs of every type.
    PutBlob,
    PutBlobFromUrl,
    GetBlob,
    GetBlobProperties,
    SetBlobProperties,
    GetBlobMetadata,
    SetBlobMetadata,
    GetBlobTags,
    SetBlobTags,
    LeaseBlob,
    SnapshotBlob,
    CopyBlob,
    CopyBlobFromUrl,
    AbortCopyBlob,
    IncrementalCopyBlob,
    DeleteBlob,
    UndeleteBlob,
    SetBlobTier,
    SetBlobExpiry,
    SetBlobImmutabilityPolicy,
    DeleteBlobImmutabilityPolicy,
    SetBlobLegalHold,
    QueryBlobContents,
    // Block blobs.
    PutBlock,
    PutBlockFromUrl,
    PutBlockList,
    GetBlockList,
    // Page blobs.
    PutPage,
    PutPageFromUrl,
    GetPageRanges,
    // Append blobs.
    AppendBlock,
    AppendBlockFromUrl,
    AppendBlobSeal,
}

/// What a list does not show to anonymous requests.
const NOT_PUBLIC: [&str; 5] = ["uncommittedblobs", "deleted", "deletedwithversions", "immutabilitypolicy", "legalhold"];

impl Op {
    /// Whether it is here; the others answer 501 and stand in `docs/not-yet.txt`.
    #[must_use]
    pub fn is_built(self) -> bool {
        match self {
            Op::ListContainers
            | Op::GetBlobServiceProperties
            | Op::SetBlobServiceProperties
            | Op::GetBlobServiceStats
            | Op::GetAccountInformation
            | Op::GetUserDelegationKey
            | Op::PreflightBlobRequest
            | Op::FindBlobsByTags
            | Op::FindBlobsByTagsInContainer
            | Op::CreateContainer
            | Op::GetContainerProperties
            | Op::GetContainerMetadata
            | Op::SetContainerMetadata
            | Op::GetContainerAcl
            | Op::SetContainerAcl
            | Op::DeleteContainer
            | Op::LeaseContainer
            | Op::RestoreContainer
            | Op::ListBlobs
            | Op::PutBlob
            | Op::GetBlob
            | Op::GetBlobProperties
            | Op::SetBlobProperties
            | Op::GetBlobMetadata
            | Op::SetBlobMetadata
            | Op::GetBlobTags
            | Op::SetBlobTags
            | Op::SetBlobTier
            | Op::SetBlobExpiry
            | Op::SetBlobImmutabilityPolicy
            | Op::DeleteBlobImmutabilityPolicy
            | Op::SetBlobLegalHold
            | Op::LeaseBlob
            | Op::SnapshotBlob
            | Op::DeleteBlob
            | Op::UndeleteBlob
            | Op::PutBlock
            | Op::PutBlockList
            | Op::GetBlockList
            | Op::PutPage
            | Op::GetPageRanges
            | Op::AppendBlock
            | Op::AppendBlobSeal
            | Op::QueryBlobContents
            | Op::BlobBatch
            | Op::PutBlobFromUrl
            | Op::CopyBlob
            | Op::CopyBlobFromUrl
            | Op::AbortCopyBlob
            | Op::IncrementalCopyBlob
            | Op::PutBlockFromUrl
            | Op::PutPageFromUrl
            | Op::AppendBlockFromUrl => true,
            Op::RenameContainer => false,
        }
    }

    /// The public access of the container that makes a credential unnecessary for this request; `None`: there is always one
    /// needed.
    ///
    /// The table in "Configure anonymous read access for containers and blobs" gives anybody List Blobs, Get Blob and its
    /// properties, and of Get Block List the committed blocks alone. That earlier versions belong to what is given was seen on
    /// the real service: the walk-throughs of the exercise <https://pwnedlabs.io/labs/azure-blob-container-to-initial-access>
    /// list a public container with `include=versions` (and `x-ms-version: 2019-12-12`) and read a deleted blob by its
    /// `versionId`, both without a credential. Snapshots are read by the same two operations. Nobody was found who was shown
    /// legal holds and policies in a list, so they need a credential, as do tags.
    #[must_use]
    pub fn anonymous(self, head: &Head) -> Option<PublicAccess> {
        if touches_tags(head) {
            return None;
        }
        match self {
            Op::GetBlob | Op::GetBlobProperties | Op::GetBlobMetadata | Op::GetPageRanges => Some(PublicAccess::Blob),
            // Only the list of what is committed.
            Op::GetBlockList => match head.query.get("blocklisttype") {
                None | Some("") => Some(PublicAccess::Blob),
                Some(list) => list.eq_ignore_ascii_case("committed").then_some(PublicAccess::Blob),
            },
            // Only what is there, and not what the owner notes of it.
            Op::ListBlobs if includes(head, &NOT_PUBLIC) => None,
            Op::ListBlobs | Op::GetContainerProperties | Op::GetContainerMetadata => Some(PublicAccess::Container),
            Op::ListContainers
            | Op::GetBlobServiceProperties
            | Op::SetBlobServiceProperties
            | Op::GetBlobServiceStats
            | Op::GetAccountInformation
            | Op::GetUserDelegationKey
            | Op::PreflightBlobRequest
            | Op::BlobBatch
            | Op::FindBlobsByTags
            | Op::FindBlobsByTagsInContainer
            | Op::CreateContainer
            | Op::SetContainerMetadata
            | Op::GetContainerAcl
            | Op::SetContainerAcl
            | Op::DeleteContainer
            | Op::LeaseContainer
            | Op::RestoreContainer
            | Op::RenameContainer
            | Op::PutBlob
            | Op::PutBlobFromUrl
            | Op::SetBlobProperties
            | Op::SetBlobMetadata
            | Op::GetBlobTags
            | Op::SetBlobTags
            | Op::LeaseBlob
            | Op::SnapshotBlob
            | Op::CopyBlob
            | Op::CopyBlobFromUrl
            | Op::AbortCopyBlob
            | Op::IncrementalCopyBlob
            | Op::DeleteBlob
            | Op::UndeleteBlob
            | Op::SetBlobTier
            | Op::SetBlobExpiry
            | Op::SetBlobImmutabilityPolicy
            | Op::DeleteBlobImmutabilityPolicy
            | Op::SetBlobLegalHold
            | Op::QueryBlobContents
            | Op::PutBlock
            | Op::PutBlockFromUrl
            | Op::PutBlockList
            | Op::PutPage
            | Op::PutPageFromUrl
            | Op::AppendBlock
            | Op::AppendBlockFromUrl
            | Op::AppendBlobSeal => None,
        }
    }

    /// The right that this request must carry: mostly the one of its operation.
    #[must_use]
    pub fn needed_by(self, head: &Head) -> Need {
        let need = self.needs();
        let need = match (touches_tags(head), self.creates() && sets_protection(head)) {
            (false, false) => need,
            (true, false) => need.all_of("t"),
            (false, true) => need.all_of("i"),
            (true, true) => need.all_of("ti"),
        };
        let breaks = || head.header("x-ms-lease-action").is_some_and(|action| action.eq_ignore_ascii_case("break"));
        let is_permanent = || head.query.get("deletetype").is_some_and(|kind| kind.eq_ignore_ascii_case("permanent"));
        match self {
            // The permission to delete includes breaking the lease that stands against it.
            Op::LeaseBlob | Op::LeaseContainer if breaks() && head.since("2017-07-29") => {
                Need { any_of: Permissions::of("wd"), ..need }
            }
            Op::DeleteBlob if is_permanent() => Need { any_of: Permissions::of("y"), ..need },
            Op::DeleteBlob if head.query.has("versionid") => Need { any_of: Permissions::of("x"), ..need },
            // It can be asked of the service, a container or a blob, and a signature for that will do.
            Op::GetAccountInformation => Need { resource: level(head), ..need },
            _ => need,
        }
    }

    /// Whether it makes a new state of a blob, of which everything can be said at once.
    fn creates(self) -> bool {
        matches!(self, Op::PutBlob | Op::PutBlobFromUrl | Op::CopyBlob | Op::CopyBlobFromUrl | Op::PutBlockList)
    }

    /// The right that a signature must carry, if the request says nothing that changes it. (The holder of the account key
    /// may do everything.)
    ///
    /// One rule cannot be told beforehand: Put Blob with the right to create but not to write must not overwrite, which is
    /// for [`crate::Reach`] to say.
    #[must_use]
    pub fn needs(self) -> Need {
        let service = |letters| Need::new(Service::Blob, ResourceType::Service, letters).account_sas_only();
        let container = |letters| Need::new(Service::Blob, ResourceType::Container, letters);
        let object = |letters| Need::new(Service::Blob, ResourceType::Object, letters);
        match self {
            Op::ListContainers => service("l"),
            Op::GetBlobServiceProperties | Op::GetBlobServiceStats => service("r"),
            Op::SetBlobServiceProperties => service("w"),
            // Any signature will do, says the reference, and no token.
            Op::GetAccountInformation => Need::new(Service::Blob, ResourceType::Service, ""),
            // Browsers send preflight requests without credentials.
            Op::PreflightBlobRequest => service(""),
            Op::GetUserDelegationKey => service("").only_by_bearer(),
            // Each part of a batch is judged by itself.
            Op::BlobBatch => object(""),
            // What is found are blobs. No container's signature reaches beyond it.
            Op::FindBlobsByTags => object("f").account_sas_only(),
            // The container is asked, and blobs are found: a signature for either will do.
            Op::FindBlobsByTagsInContainer => object("f").or_container(),
            Op::CreateContainer | Op::RestoreContainer => container("cw").account_sas_only(),
            Op::GetContainerProperties | Op::GetContainerMetadata => container("r").account_sas_only(),
            Op::SetContainerMetadata | Op::RenameContainer | Op::LeaseContainer => container("w").account_sas_only(),
            Op::GetContainerAcl | Op::SetContainerAcl => container("").never_by_sas(),
            Op::DeleteContainer => container("d").account_sas_only(),
            Op::ListBlobs => container("l"),
            Op::GetBlob
            | Op::GetBlobProperties
            | Op::GetBlobMetadata
            | Op::GetBlockList
            | Op::GetPageRanges
            | Op::QueryBlobContents => object("r"),
            Op::PutBlob
            | Op::PutBlobFromUrl
            | Op::CopyBlob
            | Op::CopyBlobFromUrl
            | Op::IncrementalCopyBlob
            | Op::SnapshotBlob => object("cw"),
            Op::SetBlobProperties
            | Op::SetBlobMetadata
            | Op::LeaseBlob
            | Op::AbortCopyBlob
            | Op::UndeleteBlob
            | Op::SetBlobTier
            | Op::SetBlobExpiry
            | Op::PutBlock
            | Op::PutBlockFromUrl
            | Op::PutBlockList
            | Op::PutPage
            | Op::PutPageFromUrl => object("w"),
            Op::AppendBlock | Op::AppendBlockFromUrl | Op::AppendBlobSeal => object("aw"),
            Op::GetBlobTags | Op::SetBlobTags => object("t"),
            Op::DeleteBlob => object("d"),
            Op::SetBlobImmutabilityPolicy | Op::DeleteBlobImmutabilityPolicy | Op::SetBlobLegalHold => object("i"),
        }
    }
}

/// Whether a request sets tags, asks for them beside something else, or depends on them: all that says what they are.
fn touches_tags(head: &Head) -> bool {
    head.has_header("x-ms-tags") || head.has_header("x-ms-if-tags") || includes(head, &["tags"])
}

/// Whether a listing is to show one of these.
fn includes(head: &Head, words: &[&str]) -> bool {
    let is_one = |word: &str| words.iter().any(|wanted| word.trim().eq_ignore_ascii_case(wanted));
    let lists = head.query.pairs().iter().filter(|(name, _)| name.eq_ignore_ascii_case("include"));
    lists.into_iter().any(|(_, list)| list.split(',').any(is_one))
}

/// Whether a request that creates a blob also protects it.
fn sets_protection(head: &Head) -> bool {
    head.has_header("x-ms-immutability-policy-until-date") || head.has_header("x-ms-legal-hold")
}

/// What the path of a request names, if it says that it names no blob of the root container.
fn level(head: &Head) -> ResourceType {
    match (head.first_segment(), head.rest()) {
        (None, _) => ResourceType::Service,
        (Some(_), None) => ResourceType::Container,
        (Some(_), Some(_)) => ResourceType::Object,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;
    use std::collections::BTreeSet;

    /// The second column of the lines of one service in a file under `docs`.
    fn names(file: &str, service: &str) -> BTreeSet<String> {
        let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let columns = lines.map(|line| line.split('\t').collect::<Vec<_>>());
        columns.filter(|columns| columns[0] == service).map(|columns| columns[1].to_owned()).collect()
    }

    fn of(ops: impl Iterator<Item = Op>) -> BTreeSet<String> {
        ops.map(|op| op.name().to_owned()).collect()
    }

    #[test]
    fn there_is_one_op_for_each_published_operation() {
        assert_eq!(of(Op::ALL.iter().copied()), names("operations.txt", "blob"));
    }

    #[test]
    fn what_is_missing_is_written_down() {
        assert_eq!(of(Op::ALL.iter().copied().filter(|op| !op.is_built())), names("not-yet.txt", "blob"));
    }

    #[test]
    fn rights_that_depend_on_the_request() {
        let need = |op: Op, url: &str, headers: &[(&str, &str)]| op.needed_by(&request("PUT", url, headers));
        let lease = |action| need(Op::LeaseBlob, "cont/blob?comp=lease", &[("x-ms-lease-action", action)]).any_of;
        assert_eq!((lease("Break"), lease("release")), (Permissions::of("wd"), Permissions::of("w")));
        let deleted = |query: &str| need(Op::DeleteBlob, &format!("cont/blob{query}"), &[]).any_of;
        assert_eq!(deleted(""), Permissions::of("d"));
        assert_eq!(deleted("?versionid=2026-01-01T00:00:00.0000000Z"), Permissions::of("x"));
        assert_eq!(deleted("?versionid=2026-01-01T00:00:00.0000000Z&deletetype=Permanent"), Permissions::of("y"));
        let tags = |url: &str, headers: &[(&str, &str)]| need(Op::PutBlob, url, headers).all_of;
        assert_eq!(tags("cont/blob", &[]), Permissions::NONE);
        assert_eq!(tags("cont/blob", &[("x-ms-tags", "a=b")]), Permissions::of("t"));
        assert_eq!(tags("cont/blob", &[("x-ms-if-tags", "a='b'")]), Permissions::of("t"));
        assert_eq!(tags("cont?include=metadata,Tags", &[]), Permissions::of("t"));
        assert_eq!(tags("cont/blob", &[("x-ms-legal-hold", "true")]), Permissions::of("i"));
        assert_eq!(tags("cont/blob", &[("x-ms-legal-hold", "true"), ("x-ms-tags", "a=b")]), Permissions::of("ti"));
        assert_eq!(tags("cont/blob", &[("x-ms-legal-hold", ""), ("x-ms-tags", "")]), Permissions::NONE);
        for (path, resource) in
            [("", ResourceType::Service), ("cont/", ResourceType::Container), ("cont/blob", ResourceType::Object)]
        {
            assert_eq!(need(Op::GetAccountInformation, path, &[]).resource, resource, "{path}");
        }
    }

    /// What is public is said of contents: not what the owner notes of them, nor what is not there yet or no longer. Versions
    /// and snapshots are public with their blobs.
    #[test]
    fn what_anybody_may_read_of_what_is_public() {
        let anonymous = |op: Op, url: &str, headers: &[(&str, &str)]| op.anonymous(&request("GET", url, headers));
        let (blob, all) = (Some(PublicAccess::Blob), Some(PublicAccess::Container));
        let list = "cont?restype=container&comp=list";
        assert_eq!(anonymous(Op::GetBlob, "cont/blob?versionid=2026-01-01T00:00:00.0000000Z", &[]), blob);
        assert_eq!(anonymous(Op::GetBlob, "cont/blob", &[("x-ms-if-tags", "a='b'")]), None);
        assert_eq!(anonymous(Op::GetBlockList, "cont/blob?comp=blocklist", &[]), blob);
        assert_eq!(anonymous(Op::GetBlockList, "cont/blob?comp=blocklist&blocklisttype=Committed", &[]), blob);
        for lists in ["uncommitted", "all", "ALL", "x"] {
            let url = format!("cont/blob?comp=blocklist&blocklisttype={lists}");
            assert_eq!(anonymous(Op::GetBlockList, &url, &[]), None, "{lists}");
        }
        for include in ["", "metadata", "snapshots,copy", "versions"] {
            let url = format!("{list}&include={include}");
            assert_eq!(anonymous(Op::ListBlobs, &url, &[]), all, "{include}");
        }
        for include in [
            "tags",
            "metadata,Tags",
            "uncommittedblobs",
            "deleted",
            "versions, Deleted",
            "deletedwithversions",
            "legalhold",
            "immutabilityPolicy",
        ] {
            let url = format!("{list}&include={include}");
            assert_eq!(anonymous(Op::ListBlobs, &url, &[]), None, "{include}");
        }
        let twice = format!("{list}&include=metadata&include=tags");
        assert_eq!(anonymous(Op::ListBlobs, &twice, &[]), None);
        assert_eq!(anonymous(Op::PutBlob, "cont/blob", &[]), None);
    }

    #[test]
    fn what_a_service_signature_never_allows() {
        for op in [Op::CreateContainer, Op::DeleteContainer, Op::LeaseContainer, Op::SetContainerMetadata] {
            assert_eq!(op.needs().sas, auth::SasUse::AccountOnly, "{}", op.name());
        }
        // Older pages of the reference keep tokens from these, too; the newest clients are tested with them.
        for op in [Op::GetContainerAcl, Op::SetContainerAcl] {
            let need = op.needs();
            assert_eq!((need.sas, need.bearer), (auth::SasUse::Never, auth::BearerUse::Any), "{}", op.name());
        }
        assert_eq!(Op::ListBlobs.needs().any_of, Permissions::of("l"));
        assert_eq!(Op::PutBlob.needs().any_of, Permissions::of("cw"));
    }
}
