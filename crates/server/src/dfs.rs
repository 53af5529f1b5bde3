//! Data Lake requests to an account without a hierarchy, which is the only kind there is yet.
//!
//! Clients that can use a hierarchy ask whether there is one before they do anything else, and go on with blobs when there is
//! none. They ask on whatever port they were given, and send requests of both kinds there: so both ports answer both.

use auth::{Caller, Refusal};
use http::Method;
use wire::http::{ErrorReply, Head};

/// Access control has a meaning in a hierarchy only. (Hadoop, pyarrow and Trino tell by this answer that there is none.)
const ACCESS_CONTROL: [&str; 4] = ["getAccessControl", "setAccessControl", "setAccessControlRecursive", "checkAccess"];
const ACTIONS: [&str; 4] = ["append", "flush", "setProperties", "getStatus"];
const RESOURCES: [&str; 4] = ["account", "filesystem", "file", "directory"];
/// What only a file in a hierarchy can have.
const OF_A_HIERARCHY: [&str; 5] = ["x-ms-permissions", "x-ms-umask", "x-ms-owner", "x-ms-group", "x-ms-acl"];

/// What a request of Data Lake asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataLakeRequest {
    /// What there is in a hierarchy only.
    Hierarchy,
    /// What the service has for accounts without one as well; we do not.
    Other,
}

impl DataLakeRequest {
    /// `None`: the request is one of the Blob service.
    pub(crate) fn by(head: &Head) -> Option<DataLakeRequest> {
        // A request of the Blob service says so by one of these wherever it could be taken for something else.
        let is_blob = ["comp", "restype"].iter().any(|name| head.query.has(name))
            || ["x-ms-blob-type", "x-ms-copy-source"].iter().any(|name| head.has_header(name));
        if is_blob {
            return None;
        }
        let says = |name: &str, known: &[&str]| {
            head.query.get(name).is_some_and(|value| known.iter().any(|known| known.eq_ignore_ascii_case(value)))
        };
        if says("action", &ACCESS_CONTROL) {
            return Some(DataLakeRequest::Hierarchy);
        }
        let is_dfs = says("action", &ACTIONS)
            || says("resource", &RESOURCES)
            || head.has_header("x-ms-rename-source")
            || head.method == Method::DELETE && head.query.has("recursive")
            || head.method == Method::POST && head.has_header("x-ms-lease-action");
        let needs_hierarchy = OF_A_HIERARCHY.iter().any(|name| head.has_header(name));
        is_dfs.then_some(if needs_hierarchy { DataLakeRequest::Hierarchy } else { DataLakeRequest::Other })
    }

    /// The refusal, which says nothing of the account to those who show no credential.
    pub(crate) fn refused(self, caller: &Caller, head: &Head) -> ErrorReply {
        match (caller, self) {
            (Caller::Anonymous, _) => Refusal::anonymous(head.header("x-ms-version")).into(),
            (_, DataLakeRequest::Hierarchy) => ErrorReply::new(
                400,
                "HierarchicalNamespaceNotEnabled",
                "This operation is only supported on a hierarchical namespace account.",
            ),
            (_, DataLakeRequest::Other) => ErrorReply::new(
                409,
                "EndpointUnsupportedAccountFeatures",
                "This endpoint does not support the features of this account; use the Blob service.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::http::{HeaderMap, HeaderName, HeaderValue, Query};

    fn head(line: &str, headers: &[&'static str]) -> Head {
        let (method, target) = line.split_once(' ').unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let headers: HeaderMap =
            headers.iter().map(|name| (HeaderName::from_static(name), HeaderValue::from_static("1"))).collect();
        Head {
            method: method.parse().unwrap(),
            account: "acct".into(),
            secondary: false,
            resource: path.into(),
            raw_path: path.into(),
            query: Query::new(pairs.map(|(name, value)| (name.into(), value.into())).collect()),
            headers,
            endpoint: String::new(),
            version: "2026-10-06".into(),
            request_id: String::new(),
            https: false,
        }
    }

    #[test]
    fn which_protocol_a_request_is_of() {
        let table: [(&str, &[&'static str], Option<DataLakeRequest>); 21] = [
            ("HEAD fs/?action=getAccessControl", &[], Some(DataLakeRequest::Hierarchy)),
            ("HEAD fs//?action=getaccesscontrol&upn=false", &[], Some(DataLakeRequest::Hierarchy)),
            ("PATCH fs/f?action=setAccessControlRecursive&mode=set", &[], Some(DataLakeRequest::Hierarchy)),
            ("PUT fs/d?resource=directory", &["x-ms-permissions"], Some(DataLakeRequest::Hierarchy)),
            ("PUT fs/d?resource=directory", &[], Some(DataLakeRequest::Other)),
            ("HEAD fs?resource=filesystem", &[], Some(DataLakeRequest::Other)),
            ("GET ?resource=account", &[], Some(DataLakeRequest::Other)),
            ("PATCH fs/f?action=append&position=0", &[], Some(DataLakeRequest::Other)),
            ("PUT fs/f?mode=legacy", &["x-ms-rename-source"], Some(DataLakeRequest::Other)),
            ("DELETE fs/d?recursive=true", &[], Some(DataLakeRequest::Other)),
            ("POST fs/f", &["x-ms-lease-action"], Some(DataLakeRequest::Other)),
            ("GET fs/f", &[], None),
            ("HEAD fs/f", &[], None),
            ("DELETE fs/f", &[], None),
            ("POST fs/f", &[], None),
            ("GET fs/f?action=download", &[], None),
            ("GET fs?restype=container&comp=list&resource=filesystem", &[], None),
            ("PUT fs/f?comp=lease", &["x-ms-lease-action"], None),
            ("PUT fs/f?resource=file", &["x-ms-blob-type"], None),
            ("PUT fs/f", &["x-ms-copy-source"], None),
            ("PUT fs/f", &["x-ms-owner"], None),
        ];
        for (line, headers, expected) in table {
            assert_eq!(DataLakeRequest::by(&head(line, headers)), expected, "{line}");
        }
    }

    #[test]
    fn strangers_learn_nothing() {
        let head = head("HEAD fs/?action=getAccessControl", &["x-ms-version"]);
        let to = |caller: &Caller| DataLakeRequest::Hierarchy.refused(caller, &head).code;
        assert_eq!(to(&Caller::Owner), "HierarchicalNamespaceNotEnabled");
        assert_ne!(to(&Caller::Anonymous), "HierarchicalNamespaceNotEnabled");
    }
}
