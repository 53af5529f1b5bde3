//! Every kind of credential that a program written with azure_storage_blob can come with: what it opens and what not.

use azure_core::Result;
use azure_core::http::{RequestContent, XmlFormat};
use azure_core::time::{Duration, OffsetDateTime};
use azure_storage_blob::models::*;
use azure_storage_blob::{BlobClient, BlobContainerClient};
use azure_storage_sas::SasBuilder;
use futures::TryStreamExt;
use rust_client_tests::{ACCOUNT, Server, refused};

const VERSION: &str = "2021-08-06";
const LATER: &str = "2099-01-01T00:00:00Z";

async fn read(blob: &BlobClient) -> Result<Vec<u8>> {
    Ok(blob.download(None).await?.body.collect().await?.to_vec())
}

async fn names(container: &BlobContainerClient) -> Result<Vec<String>> {
    let items: Vec<_> = container.list_blobs(None)?.try_collect().await?;
    Ok(items.into_iter().filter_map(|item| item.name).collect())
}

/// A container with the blob "b" in it.
async fn filled(server: &Server) -> Result<BlobContainerClient> {
    let container = server.service().blob_container_client("box");
    container.create(None).await?;
    container.blob_client("b").upload(RequestContent::from(b"content".to_vec()), None).await?;
    Ok(container)
}

/// A service signature: for a blob (`b`) or a container (`c`), by itself or by a stored policy.
fn service_sas(kind: &str, path: &str, permissions: &str, policy: &str) -> Vec<(&'static str, String)> {
    let expiry = if policy.is_empty() { LATER } else { "" };
    let text =
        format!("{permissions}\n\n{expiry}\n/blob/{ACCOUNT}/{path}\n{policy}\n\n\n{VERSION}\n{kind}\n\n\n\n\n\n\n");
    let fields = [("sv", VERSION), ("sr", kind), ("sp", permissions), ("se", expiry), ("si", policy)];
    let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
    let signature = rust_client_tests::sign(&text);
    fields.map(|(name, value)| (name, value.to_owned())).chain([("sig", signature)]).collect()
}

#[tokio::test]
async fn a_service_signature_opens_what_it_names() -> Result<()> {
    let server = Server::start();
    filled(&server).await?;
    let blob = |name: &str, sas: &[(&str, String)]| server.blob("box", name, sas);
    let for_b = service_sas("b", "box/b", "r", "");
    assert_eq!(read(&blob("b", &for_b)).await?, b"content");
    refused(blob("b", &for_b).delete(None).await, 403, "AuthorizationPermissionMismatch");
    refused(blob("other", &for_b).download(None).await, 403, "AuthenticationFailed");
    let for_box = service_sas("c", "box", "rl", "");
    assert_eq!(read(&blob("b", &for_box)).await?, b"content");
    assert_eq!(names(&server.container("box", &for_box)).await?, ["b"]);
    refused(server.container("box", &for_box).get_properties(None).await, 403, "AuthorizationFailure");
    Ok(())
}

#[tokio::test]
async fn a_policy_signature_ends_with_its_policy() -> Result<()> {
    let server = Server::start();
    let container = filled(&server).await?;
    let policy = |permission: &str| {
        let now = OffsetDateTime::now_utc();
        let policy = AccessPolicy {
            start: Some(now - Duration::hours(1)),
            expiry: Some(now + Duration::hours(1)),
            permission: Some(permission.to_owned()),
        };
        SignedIdentifiers {
            items: Some(vec![SignedIdentifier { id: Some("readers".to_owned()), access_policy: Some(policy) }]),
        }
    };
    let sas = service_sas("c", "box", "", "readers");
    let blob = server.blob("box", "b", &sas);
    refused(blob.download(None).await, 403, "AuthenticationFailed");
    container.set_access_policy(policy("r").try_into()?, None).await?;
    assert_eq!(read(&blob).await?, b"content");
    refused(blob.delete(None).await, 403, "AuthorizationPermissionMismatch");
    container.set_access_policy(SignedIdentifiers::default().try_into()?, None).await?;
    refused(blob.download(None).await, 403, "AuthenticationFailed");
    Ok(())
}

#[tokio::test]
async fn who_brings_nothing_sees_what_is_public() -> Result<()> {
    let server = Server::start();
    let container = filled(&server).await?;
    let (blob, listing) = (server.blob("box", "b", &[]), server.container("box", &[]));
    refused(blob.download(None).await, 401, "NoAuthenticationInformation");
    let open = async |access: PublicAccessType| {
        let none: RequestContent<SignedIdentifiers, XmlFormat> = SignedIdentifiers::default().try_into()?;
        let options = BlobContainerClientSetAccessPolicyOptions { access: Some(access), ..Default::default() };
        container.set_access_policy(none, Some(options)).await.map(drop)
    };
    open(PublicAccessType::Blob).await?;
    assert_eq!(read(&blob).await?, b"content");
    refused(listing.list_blobs(None)?.try_collect::<Vec<_>>().await, 401, "NoAuthenticationInformation");
    open(PublicAccessType::Container).await?;
    assert_eq!(names(&listing).await?, ["b"]);
    refused(blob.delete(None).await, 401, "NoAuthenticationInformation");
    Ok(())
}

#[tokio::test]
async fn a_token_opens_everything_over_https() -> Result<()> {
    let server = Server::start_with(&["--tls", "auto", "--oauth", "basic"]);
    let service = server.service_by_token(3600);
    let container = service.blob_container_client("box");
    container.create(None).await?;
    container.blob_client("b").upload(RequestContent::from(b"content".to_vec()), None).await?;
    assert_eq!(read(&container.blob_client("b")).await?, b"content");
    assert_eq!(names(&container).await?, ["b"]);
    let expired = server.service_by_token(-3600);
    refused(expired.blob_client("box", "b").download(None).await, 401, "InvalidAuthenticationInfo");
    Ok(())
}

#[tokio::test]
async fn a_user_delegates_what_he_may() -> Result<()> {
    let server = Server::start_with(&["--tls", "auto", "--oauth", "basic"]);
    filled(&server).await?;
    let now = OffsetDateTime::now_utc();
    let wanted = KeyInfo { start: Some(now), expiry: Some(now + Duration::hours(2)), ..Default::default() };
    refused(
        server.service().get_user_delegation_key(wanted.clone().try_into()?, None).await,
        403,
        "AuthenticationFailed",
    );
    let service = server.service_by_token(3600);
    let key = service.get_user_delegation_key(wanted.try_into()?, None).await?.into_model()?;
    let sas = SasBuilder::new(ACCOUNT, &key, now + Duration::hours(1))?.blob("box", "b").read().build();
    let blob = server.blob_by("box", "b", &sas);
    assert_eq!(read(&blob).await?, b"content");
    refused(blob.delete(None).await, 403, "AuthorizationPermissionMismatch");
    refused(server.blob_by("box", "other", &sas).download(None).await, 403, "AuthenticationFailed");
    let sas = SasBuilder::new(ACCOUNT, &key, now + Duration::hours(1))?.container("box").read().list().build();
    assert_eq!(read(&server.blob_by("box", "b", &sas)).await?, b"content");
    let sas = SasBuilder::new(ACCOUNT, &key, now - Duration::minutes(1))?.blob("box", "b").read().build();
    refused(server.blob_by("box", "b", &sas).download(None).await, 403, "AuthenticationFailed");
    Ok(())
}
