//! Set Blob Service Properties: change the settings that the document names; the others stay.

use engine::{Changes, Commit, commit};
use wire::http::{Body, Reply, StatusCode, collect};
use wire::xml::ServiceProperties;

use super::Call;
use super::get_blob_service_properties::{find, key, row};
use crate::error::BlobError;
use crate::{Failure, reply};

const BODY_BYTES_MAX: usize = 64 * 1024;

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
    let (account, first_days) = (call.account, call.asker.settings.blob_soft_delete_days);
    commit::<_, BlobError, _>(call.engine, key(account), move |rows, _| {
        let properties = decide(find(rows, account, first_days)?, &asked);
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
    async fn the_account_says_how_long_deleted_blobs_are_kept_until_somebody_sets_it() {
        let policy = |days: u16| {
            format!("<DeleteRetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></DeleteRetentionPolicy>")
        };
        let mut bench = Bench::new().await;
        assert!(
            bench
                .text("GET", URL)
                .await
                .contains("<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>")
        );
        bench.settings.blob_soft_delete_days = Some(7);
        assert!(bench.text("GET", URL).await.contains(&policy(7)));
        bench.call("PUT", URL, &[], document("<Cors/>").as_bytes()).await.unwrap();
        bench.settings.blob_soft_delete_days = Some(9);
        assert!(bench.text("GET", URL).await.contains(&policy(7)));
        bench.call("PUT", URL, &[], document(&policy(5)).as_bytes()).await.unwrap();
        assert!(bench.text("GET", URL).await.contains(&policy(5)));
    }

    #[tokio::test]
    async fn what_is_no_document_is_refused() {
        let bench = Bench::new().await;
        let refused = bench.call("PUT", URL, &[], b"<a/>").await;
        assert_eq!(refusal(refused), BlobError::InvalidXmlDocument);
    }
}
