//! Restore Container: a deleted container comes back with everything in it, under its name or another.

use engine::{Changes, Commit, commit};
use service::codec;
use wire::http::{Head, Reply, StatusCode};
use wire::names::ContainerName;

use super::Call;
use crate::error::BlobError;
use crate::model::{
    self, Container, DeletedContainer, container_key, deleted_container_due, deleted_container_key, moved_key, refuse,
};
use crate::{Failure, reply, request};

struct RestoreContainer {
    /// The name it is to have.
    name: ContainerName,
    deleted: ContainerName,
    version: u64,
}

fn parse(head: &Head) -> Result<RestoreContainer, BlobError> {
    const NAME: &str = "x-ms-deleted-container-name";
    const VERSION: &str = "x-ms-deleted-container-version";
    let name = request::container(head)?;
    request::no_foreign_headers(head)?;
    let (deleted, version) = (request::required(head, NAME)?, request::required(head, VERSION)?);
    Ok(RestoreContainer {
        name,
        deleted: ContainerName::parse(deleted).map_err(|_| BlobError::header(NAME, deleted))?,
        version: parse_version(version).ok_or_else(|| BlobError::header(VERSION, version))?,
    })
}

/// The version of a deleted container, as List Containers tells it.
pub fn version_text(version: u64) -> String {
    format!("{version:016X}")
}

fn parse_version(text: &str) -> Option<u64> {
    let is_version = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(text, 16).ok().filter(|_| is_version)
}

/// What is to come back must be there, then its name must be free.
fn decide(
    deleted: Option<DeletedContainer>,
    taken: Option<&Container>,
    now: engine::Timestamp,
) -> Result<DeletedContainer, BlobError> {
    let deleted = deleted.filter(|deleted| deleted.mark.is_kept(now)).ok_or(BlobError::ContainerNotFound)?;
    if taken.is_some() { Err(BlobError::ContainerAlreadyExists) } else { Ok(deleted) }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = parse(call.head)?;
    let account = call.account;
    let key = container_key(account, &op.name);
    commit(call.engine, key.clone(), move |rows, tick| {
        let source = deleted_container_key(account, &op.deleted, op.version);
        let deleted = rows.get(&source)?.map(|row| codec::decode(&row)).transpose()?;
        let taken = model::find_container(rows, account, &op.name)?;
        let DeletedContainer { container, mark } = decide(deleted, taken.as_ref(), tick.now).map_err(refuse)?;
        let mut changes = Changes::none();
        changes.delete(deleted_container_due(&source, mark));
        changes.delete(source);
        // Under the name that it had last, the row that says so is right if there is one: tags may know it by another yet.
        if op.name != op.deleted {
            let name = op.name.as_str().as_bytes().to_vec();
            changes.put(moved_key(container.generation), name);
        }
        changes.put(key.clone(), codec::encode(&container));
        Ok(Commit { changes, outcome: () })
    })
    .await?;
    Ok(reply::reply(StatusCode::CREATED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, NOW, between, container, refusal, tick};
    use concurrency::Lease;
    use service::RequestError;

    const DAY: u64 = 24 * 3600;

    #[test]
    fn each_refusal_and_two_at_once() {
        let mark = model::Deletion::new(1, tick());
        let deleted = || Some(DeletedContainer { container: container(Lease::Available), mark });
        let taken = container(Lease::Available);
        assert_eq!(decide(deleted(), None, NOW), Ok(deleted().unwrap()));
        assert_eq!(decide(deleted(), Some(&taken), NOW), Err(BlobError::ContainerAlreadyExists));
        assert_eq!(decide(None, None, NOW), Err(BlobError::ContainerNotFound));
        assert_eq!(decide(None, Some(&taken), NOW), Err(BlobError::ContainerNotFound));
        assert_eq!(decide(deleted(), None, mark.until), Err(BlobError::ContainerNotFound));
        let before = engine::Timestamp(mark.until.0 - 1);
        assert!(decide(deleted(), None, before).is_ok());
    }

    async fn bench() -> Bench {
        let mut bench = Bench::with_container().await;
        bench.settings.container_soft_delete_days = Some(7);
        let tagged = [("x-ms-blob-type", "BlockBlob"), ("x-ms-tags", "a=b")];
        bench.call("PUT", "cont/blob", &tagged, b"kept").await.unwrap();
        bench
    }

    async fn found_by_tags(bench: &Bench) -> Vec<String> {
        let page = bench.text("GET", "?comp=blobs&where=a%3D%27b%27").await;
        between(&page, "<ContainerName>", "</ContainerName>").iter().map(|name| name.to_string()).collect()
    }

    async fn delete(bench: &Bench) -> String {
        bench.call("DELETE", "cont?restype=container", &[], b"").await.unwrap();
        let listed = bench.text("GET", "?comp=list&include=deleted&prefix=cont").await;
        between(&listed, "<Version>", "</Version>").last().unwrap().to_string()
    }

    async fn restore(bench: &Bench, name: &str, version: &str) -> Result<Reply, Failure> {
        let headers = [("x-ms-deleted-container-name", "cont"), ("x-ms-deleted-container-version", version)];
        bench.call("PUT", &format!("{name}?restype=container&comp=undelete"), &headers, b"").await
    }

    #[tokio::test]
    async fn it_comes_back_under_its_name_or_another_until_its_time_is_over() {
        let bench = bench().await;
        let before = bench.figures();
        let version = delete(&bench).await;
        assert_eq!(refusal(bench.call("GET", "cont/blob", &[], b"").await), BlobError::ContainerNotFound);
        bench.advance(6 * DAY).await;
        bench.sweep().await;
        assert_eq!(restore(&bench, "other", &version).await.unwrap().status, 201);
        bench.advance(2 * DAY).await;
        bench.sweep().await;
        assert_eq!(bench.get("other/blob").await, b"kept");
        assert_eq!(found_by_tags(&bench).await, ["other"]);
        // One row more, which says where it is now.
        assert_eq!(bench.figures(), (before.0 + 1, before.1));
        assert_eq!(refusal(restore(&bench, "cont", &version).await), BlobError::ContainerNotFound);
        bench.call("DELETE", "other?restype=container", &[], b"").await.unwrap();
        assert_eq!(found_by_tags(&bench).await, Vec::<String>::new());
        bench.advance(7 * DAY).await;
        bench.sweep().await;
        assert_eq!(bench.figures(), (0, 0));
    }

    #[tokio::test]
    async fn a_name_that_is_taken_again_is_not_taken_back() {
        let bench = bench().await;
        let version = delete(&bench).await;
        bench.call("PUT", "cont?restype=container", &[], b"").await.unwrap();
        bench.put("cont/new", b"new").await;
        assert_eq!(refusal(restore(&bench, "cont", &version).await), BlobError::ContainerAlreadyExists);
        let second = delete(&bench).await;
        assert_ne!(version, second);
        restore(&bench, "cont", &version).await.unwrap();
        assert_eq!(bench.get("cont/blob").await, b"kept");
        bench.call("DELETE", "cont?restype=container", &[], b"").await.unwrap();
        bench.advance(7 * DAY).await;
        // Nobody has swept yet.
        assert_eq!(refusal(restore(&bench, "cont", &second).await), BlobError::ContainerNotFound);
        assert!(!bench.text("GET", "?comp=list&include=deleted").await.contains("<Name>"));
        bench.sweep().await;
        assert_eq!(bench.figures(), (0, 0));
    }

    #[tokio::test]
    async fn what_is_not_a_version_is_named() {
        let bench = bench().await;
        for version in ["1", "00000000000000000", "+000000000000001", "000000000000000G"] {
            let refused = restore(&bench, "cont", version).await;
            assert_eq!(refusal(refused), BlobError::header("x-ms-deleted-container-version", version));
        }
        let none = bench.call("PUT", "cont?restype=container&comp=undelete", &[], b"").await;
        let missing = RequestError::MissingRequiredHeader { name: "x-ms-deleted-container-name" };
        assert_eq!(refusal(none), BlobError::Request(missing));
    }

    /// Rows of the index say the name that the container had when its blobs were tagged.
    #[tokio::test]
    async fn what_is_tagged_is_found_after_every_restoration() {
        let bench = bench().await;
        let mut name = "cont".to_owned();
        for next in ["other", "other", "third", "cont", "cont", "other"] {
            bench.call("DELETE", &format!("{name}?restype=container"), &[], b"").await.unwrap();
            let listed = bench.text("GET", "?comp=list&include=deleted").await;
            let version = between(&listed, "<Version>", "</Version>").last().unwrap().to_string();
            let headers = [("x-ms-deleted-container-name", &*name), ("x-ms-deleted-container-version", &*version)];
            bench.call("PUT", &format!("{next}?restype=container&comp=undelete"), &headers, b"").await.unwrap();
            name = next.to_owned();
            assert_eq!(found_by_tags(&bench).await, [next]);
        }
    }
}
