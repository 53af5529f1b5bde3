//! Set Blob Service Properties: change the settings that the document names; the others stay.

use wire::http::{Body, Reply, StatusCode};

use super::Call;
use crate::model::service_properties::PROPERTIES;
use crate::{Failure, reply};

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    PROPERTIES.set(call.engine, call.account, call.asker.settings, body).await?;
    Ok(reply::reply(StatusCode::ACCEPTED))
}

#[cfg(test)]
mod tests {
    use service::RequestError;

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
        assert_eq!(refusal(refused), BlobError::Request(RequestError::InvalidXmlDocument));
    }

    #[tokio::test]
    async fn rules_are_seen_as_soon_as_they_are_set() {
        let bench = Bench::new().await;
        let set = async |origins: &[&str]| {
            let rules = origins.iter().map(|origin| {
                format!(
                    "<CorsRule><AllowedOrigins>{origin}</AllowedOrigins><AllowedMethods>GET</AllowedMethods>\
                     <AllowedHeaders/><ExposedHeaders/><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule>"
                )
            });
            let rules: String = rules.collect();
            let document = format!("<StorageServiceProperties><Cors>{rules}</Cors></StorageServiceProperties>");
            bench.call("PUT", URL, &[], document.as_bytes()).await.unwrap();
        };
        let origins = async || {
            let rules = bench.service.cors(1).await.unwrap();
            rules.map(|rules| rules.iter().map(|rule| rule.allowed_origins[0].clone()).collect::<Vec<_>>())
        };
        assert_eq!(origins().await, None);
        for _ in 0..2 {
            set(&["http://a", "http://b"]).await;
            assert_eq!(origins().await, Some(vec!["http://a".into(), "http://b".into()]));
            assert_eq!(origins().await, Some(vec!["http://a".into(), "http://b".into()]));
            set(&["*"]).await;
            assert_eq!(origins().await, Some(vec!["*".into()]));
            set(&[]).await;
            assert_eq!(origins().await, None);
        }
        assert_eq!(bench.service.cors(2).await, Ok(None), "the rules of another account");
    }
}
