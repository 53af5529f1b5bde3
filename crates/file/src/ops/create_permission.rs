//! Create Permission: store a security descriptor in a share, for files and directories to be created with its key.

use std::sync::Arc;

use engine::{Changes, Key, Rows, Tick};
use serde_json::Value;
use service::{Operation, reply};
use wire::http::{Body, Head, Reply, StatusCode, collect};
use wire::names::ShareName;

use super::Call;
use crate::change::permission::store;
use crate::error::FileError;
use crate::model::{Halt, guard, share_key};
use crate::permission_format::PermissionFormat;
use crate::reply::node::FILE_PERMISSION_KEY;
use crate::security::{DESCRIPTOR_BYTES_MAX, Permission, PermissionKey};
use crate::{Failure, request};

/// The largest descriptor in base64, or as SDDL, which is longer than its bytes; either may have escapes.
const BODY_BYTES_MAX: usize = 8 * DESCRIPTOR_BYTES_MAX;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreatePermission {
    pub share: ShareName,
    pub permission: Permission,
}

fn share(head: &Head) -> Result<ShareName, FileError> {
    let share = request::share(head)?;
    request::no_conditions(head)?;
    request::only_base(head)?;
    Ok(share)
}

/// `{"permission": "...", "format": "..."}`.
fn permission(body: &[u8]) -> Result<Permission, FileError> {
    let bad = |reason| FileError::InvalidInput { reason };
    let Ok(Value::Object(members)) = serde_json::from_slice(body) else {
        return Err(bad("The body is not a JSON object."));
    };
    if members.keys().any(|name| !["permission", "format"].contains(&name.as_str())) {
        return Err(bad("The body has other members than permission and format."));
    }
    let format = match members.get("format") {
        None | Some(Value::Null) => PermissionFormat::default(),
        Some(Value::String(word)) => {
            PermissionFormat::parse(word).ok_or(bad("The format is neither sddl nor binary."))?
        }
        Some(_) => return Err(bad("The format is not a text.")),
    };
    match members.get("permission") {
        Some(Value::String(text)) => Ok(format.read(text)?),
        Some(_) => Err(bad("The permission is not a text.")),
        None => Err(bad("The body has no permission.")),
    }
}

impl Operation for CreatePermission {
    type Outcome = PermissionKey;
    type Refusal = FileError;

    fn partition(&self, account: u64) -> Key {
        share_key(account, &self.share)
    }

    /// A permission that the share has already is told once more. Neither changes the share.
    fn apply(&self, rows: &dyn Rows, account: u64, _: Tick, changes: &mut Changes) -> Result<PermissionKey, Halt> {
        store(guard(rows, account, &self.share)?, &self.permission, rows, changes)
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let share = share(call.head)?;
    let permission = permission(&collect(body, BODY_BYTES_MAX).await?)?;
    let key = call.commit(&Arc::new(CreatePermission { share, permission })).await?;
    let mut answer = reply::reply(StatusCode::CREATED);
    answer.headers.insert(&FILE_PERMISSION_KEY, reply::value(key.to_string()));
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, header, refusal, text};
    use crate::{Failure, FileError};

    const URL: &str = "share?restype=share&comp=filepermission";
    const SDDL: &str = "O:BAG:SYD:(A;;FA;;;BU)";

    async fn create(bench: &Bench, body: &str) -> Result<String, Failure> {
        let made = bench.call("PUT", URL, &[], body.as_bytes()).await?;
        assert_eq!(made.status, 201);
        Ok(header(&made, "x-ms-file-permission-key").unwrap().to_owned())
    }

    fn body(permission: &str) -> String {
        serde_json::json!({ "permission": permission }).to_string()
    }

    #[tokio::test]
    async fn the_same_permission_has_the_same_key_in_both_formats() {
        let bench = Bench::with_share().await;
        let before = bench.call("GET", "share?restype=share", &[], b"").await.unwrap();
        let key = create(&bench, &body(SDDL)).await.unwrap();
        let rows = bench.rows();
        assert_eq!(create(&bench, &body("D:(A;;0x1f01ff;;;S-1-5-32-545)O:baG:sy")).await.unwrap(), key);
        for format in ["sddl", "Sddl"] {
            let body = serde_json::json!({ "permission": SDDL, "format": format }).to_string();
            assert_eq!(create(&bench, &body).await.unwrap(), key);
        }
        let asked = [("x-ms-file-permission-key", key.as_str()), ("x-ms-file-permission-format", "binary")];
        let told = text(bench.call("GET", URL, &asked, b"").await.unwrap()).await;
        let binary = serde_json::from_str::<serde_json::Value>(&told).unwrap()["permission"].clone();
        let body = serde_json::json!({ "permission": binary, "format": "Binary" }).to_string();
        assert_eq!(create(&bench, &body).await.unwrap(), key);
        assert_eq!(bench.rows(), rows, "it is stored once");
        let after = bench.call("GET", "share?restype=share", &[], b"").await.unwrap();
        assert_eq!(header(&before, "etag"), header(&after, "etag"));
    }

    #[tokio::test]
    async fn each_refusal_and_two_at_once() {
        let bench = Bench::with_share().await;
        let rows = bench.rows();
        for body in [
            "",
            "{",
            "[]",
            "\"O:BAG:SYD:\"",
            "{}",
            "{\"permission\":7}",
            "{\"permission\":\"O:BAG:SYD:\",\"format\":\"text\"}",
            "{\"permission\":\"O:BAG:SYD:\",\"format\":1}",
            "{\"permission\":\"O:BAG:SYD:\",\"other\":\"x\"}",
            "{\"permission\":\"O:BAG:SYD:\"} {}",
        ] {
            let refused = refusal(create(&bench, body).await);
            assert!(matches!(refused, FileError::InvalidInput { .. }), "{body}: {refused:?}");
        }
        for sddl in ["", "x", "O:BAG:SY", "O:BAD:", "O:DAG:SYD:(A;;FA;;;BU)"] {
            assert_eq!(refusal(create(&bench, &body(sddl)).await), FileError::FileInvalidPermission, "{sddl}");
        }
        assert_eq!(bench.rows(), rows);
        let other = "other?restype=share&comp=filepermission";
        let missing = bench.call("PUT", other, &[], body(SDDL).as_bytes()).await;
        assert_eq!(refusal(missing), FileError::ShareNotFound);
        let both = bench.call("PUT", other, &[], body("x").as_bytes()).await;
        assert_eq!(refusal(both), FileError::FileInvalidPermission);
    }

    /// Longer than a header may be, and longer than a descriptor may be.
    #[tokio::test]
    async fn a_permission_has_its_limit() {
        let bench = Bench::with_share().await;
        let sddl = |entries: usize| {
            let entries = (0..entries).map(|n| format!("(A;;FA;;;S-1-5-21-1-2-3-{n})"));
            format!("O:BAG:SYD:{}", entries.collect::<String>())
        };
        assert!(sddl(1_000).len() > 8 * 1024);
        let key = create(&bench, &body(&sddl(1_000))).await.unwrap();
        let told = bench.call("GET", URL, &[("x-ms-file-permission-key", &key)], b"").await.unwrap();
        assert!(text(told).await.contains(&sddl(1_000)));
        assert_eq!(refusal(create(&bench, &body(&sddl(2_000))).await), FileError::FileInvalidPermission);
        assert!(matches!(create(&bench, &body(&sddl(40_000))).await, Err(Failure::Body(_))));
    }
}
