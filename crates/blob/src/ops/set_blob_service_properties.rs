//! Set Blob Service Properties: change the settings that the document names; the others stay.

use engine::{Changes, Commit, commit};
use wire::http::{Body, Reply, StatusCode, collect};
use wire::xml::ServiceProperties;

use super::Call;
use super::get_blob_service_properties::{find, key, row};
use crate::error::BlobError;
use crate::{Failure, reply};

const BODY_BYTES_MAX: usize = 64 * 1024;

/// Blobs that are deleted are gone, so a promise to keep them for a while must not be made.
fn check(asked: &ServiceProperties) -> Result<(), BlobError> {
    match &asked.delete_retention {
        Some(retention) if retention.enabled => Err(BlobError::NotImplemented),
        _ => Ok(()),
    }
}

fn decide(found: ServiceProperties, asked: &ServiceProperties) -> ServiceProperties {
    let asked = asked.clone();
    ServiceProperties {
        logging: asked.logging.or(found.logging),
        hour_metrics: asked.hour_metrics.or(found.hour_metrics),
        minute_metrics: asked.minute_metrics.or(found.minute_metrics),
        cors: asked.cors.or(found.cors),
        default_service_version: asked.default_service_version.or(found.default_service_version),
        delete_retention: asked.delete_retention.or(found.delete_retention),
        static_website: asked.static_website.or(found.static_website),
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let document = collect(body, BODY_BYTES_MAX).await?;
    let asked = ServiceProperties::parse(&document).map_err(BlobError::from)?;
    check(&asked)?;
    let account = call.account;
    commit::<_, BlobError, _>(call.engine, key(account), move |rows, _| {
        let properties = decide(find(rows, account)?, &asked);
        let mut changes = Changes::none();
        changes.put(key(account), row(&properties));
        Ok(Commit { changes, outcome: () })
    })
    .await?;
    Ok(reply::reply(StatusCode::ACCEPTED))
}

#[cfg(test)]
mod tests {
    use crate::BlobError;
    use crate::testing::{Bench, refusal};

    const URL: &str = "?restype=service&comp=properties";

    fn document(inner: &str) -> String {
        format!("<StorageServiceProperties>{inner}</StorageServiceProperties>")
    }

    #[tokio::test]
    async fn what_is_left_out_stays() {
        let bench = Bench::new().await;
        assert!(bench.text("GET", URL).await.contains("<Cors />"));
        let cors = "<Cors><CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods>\
            <AllowedHeaders>x</AllowedHeaders><ExposedHeaders>y</ExposedHeaders><MaxAgeInSeconds>5</MaxAgeInSeconds>\
            </CorsRule></Cors>";
        let set = bench.call("PUT", URL, &[], document(cors).as_bytes()).await.unwrap();
        assert_eq!(set.status, 202);
        let version = "<DefaultServiceVersion>2020-10-02</DefaultServiceVersion>";
        bench.call("PUT", URL, &[], document(version).as_bytes()).await.unwrap();
        let told = bench.text("GET", URL).await;
        assert!(told.contains(cors) && told.contains(version) && told.contains("<Logging>"), "{told}");
        bench.call("PUT", URL, &[], document("<Cors/>").as_bytes()).await.unwrap();
        assert!(bench.text("GET", URL).await.contains("<Cors />"));
    }

    #[tokio::test]
    async fn what_cannot_be_kept_is_not_promised() {
        let bench = Bench::new().await;
        let policy = "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>5</Days></DeleteRetentionPolicy>";
        let refused = bench.call("PUT", URL, &[], document(policy).as_bytes()).await;
        assert_eq!(refusal(refused), BlobError::NotImplemented);
        let refused = bench.call("PUT", URL, &[], b"<a/>").await;
        assert_eq!(refusal(refused), BlobError::InvalidXmlDocument);
    }
}
