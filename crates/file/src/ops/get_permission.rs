//! Get Permission: the security descriptor that a key of a share stands for.

use std::sync::Arc;

use concurrency::Timestamp;
use engine::Rows;
use service::{ReadOperation, codec, reply};
use wire::http::{Head, Reply, StatusCode};
use wire::names::ShareName;

use super::Call;
use crate::error::FileError;
use crate::model::{Halt, guard, permission_key, refuse};
use crate::permission_format::PermissionFormat;
use crate::security::{Permission, PermissionKey};
use crate::{Failure, past, request};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetPermission {
    pub share: ShareName,
    /// The snapshot to look at. Permissions stay as long as the share does, so those of a snapshot are there, too.
    pub snapshot: Option<Timestamp>,
    pub key: PermissionKey,
}

const KEY: &str = "x-ms-file-permission-key";

fn parse(head: &Head) -> Result<GetPermission, FileError> {
    let share = request::share(head)?;
    request::no_conditions(head)?;
    let snapshot = request::snapshot(head)?;
    Ok(GetPermission { share, snapshot, key: PermissionKey::parse(request::required(head, KEY)?)? })
}

impl ReadOperation for GetPermission {
    type Outcome = Permission;
    type Refusal = FileError;

    fn apply(&self, rows: &dyn Rows, account: u64, _: Timestamp) -> Result<Permission, Halt> {
        let share = guard(rows, account, &self.share)?;
        past::epoch_of(rows, share, self.snapshot)?;
        let row = rows.get(&permission_key(share.generation, self.key))?;
        let row = row.ok_or(refuse(FileError::FileInvalidPermissionKey))?;
        Ok(Permission::from_bytes(&row).map_err(|_| codec::corrupt("a stored permission cannot be read"))?)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let format = PermissionFormat::of(call.head)?;
    let permission = call.read(&Arc::new(parse(call.head)?)).await?;
    let text = format.write(&permission).map_err(FileError::from)?;
    let body = serde_json::json!({ "permission": text }).to_string();
    Ok(reply::reply(StatusCode::OK).with_body("application/json", body.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, header, refusal, text};
    use service::RequestError;

    const URL: &str = "share?restype=share&comp=filepermission";
    const SDDL: &str = "O:BAG:SYD:(A;;FA;;;BU)";

    async fn create(bench: &Bench, permission: &str, format: &str) -> String {
        let body = serde_json::json!({ "permission": permission, "format": format }).to_string();
        let made = bench.call("PUT", URL, &[], body.as_bytes()).await.unwrap();
        header(&made, KEY).unwrap().to_owned()
    }

    #[tokio::test]
    async fn in_the_format_that_is_asked_for() {
        let bench = Bench::with_share().await;
        let key = create(&bench, SDDL, "sddl").await;
        let get = async |format: &[(&str, &str)]| {
            let headers = [&[(KEY, key.as_str())], format].concat();
            let told = bench.call("GET", URL, &headers, b"").await.unwrap();
            assert_eq!(header(&told, "content-type"), Some("application/json"));
            text(told).await
        };
        let plain = format!("{{\"permission\":\"{SDDL}\"}}");
        assert_eq!(get(&[]).await, plain);
        assert_eq!(get(&[("x-ms-file-permission-format", "Sddl")]).await, plain);
        let binary = Permission::from_sddl(SDDL).unwrap().to_base64();
        let told = get(&[("x-ms-file-permission-format", "binary")]).await;
        assert_eq!(told, format!("{{\"permission\":\"{binary}\"}}"));
    }

    /// An entry that only some programs know can be stored and told in binary form, and not as SDDL.
    #[tokio::test]
    async fn what_sddl_cannot_say() {
        let bench = Bench::with_share().await;
        let mut bytes = Permission::from_sddl("O:BAG:SYD:(A;;FA;;;BU)").unwrap().as_bytes().to_vec();
        // The type of the only entry, which stands behind the header of the descriptor and that of the list.
        let entry = bytes.windows(4).position(|window| window == [0, 0, 24, 0]).unwrap();
        bytes[entry] = 0x4D;
        let key = create(&bench, &wire::base64::encode(&bytes), "binary").await;
        let get = async |format: &str| {
            let headers = [(KEY, key.as_str()), ("x-ms-file-permission-format", format)];
            bench.call("GET", URL, &headers, b"").await
        };
        assert_eq!(refusal(get("sddl").await), FileError::CannotConvertToSddlDueToCustomAce);
        assert!(text(get("binary").await.unwrap()).await.contains(&wire::base64::encode(&bytes)));
    }

    #[tokio::test]
    async fn each_refusal_and_two_at_once() {
        let bench = Bench::with_share().await;
        let get = async |url: &str, headers: &[(&str, &str)]| refusal(bench.call("GET", url, headers, b"").await);
        assert_eq!(get(URL, &[]).await, RequestError::MissingRequiredHeader { name: KEY }.into());
        for key in ["1*2", "x", "1"] {
            assert_eq!(get(URL, &[(KEY, key)]).await, FileError::FileInvalidPermissionKey, "{key}");
        }
        let other = "other?restype=share&comp=filepermission";
        assert_eq!(get(other, &[(KEY, "1*2")]).await, FileError::ShareNotFound);
        assert_eq!(get(other, &[(KEY, "1")]).await, FileError::FileInvalidPermissionKey);
        let format = "x-ms-file-permission-format";
        assert_eq!(get(URL, &[(KEY, "1*2"), (format, "text")]).await, FileError::header(format, "text"));
        let snapshot = format!("{URL}&sharesnapshot=2026-11-15T18:00:00.0000000Z");
        assert_eq!(get(&snapshot, &[(KEY, "1*2")]).await, FileError::ShareNotFound);
    }
}
