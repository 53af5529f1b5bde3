//! Set Queue Service Properties: change the settings that the document names; the others keep their values.

use wire::http::{Body, Reply, StatusCode};

use super::Call;
use super::get_queue_service_properties::PROPERTIES;
use crate::Failure;

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    PROPERTIES.set(call.engine, call.account, call.asker.settings, body).await?;
    Ok(Reply::new(StatusCode::ACCEPTED))
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, refusal};
    use service::{HttpService, RequestError};

    const URL: &str = "?restype=service&comp=properties";

    fn document(inner: &str) -> String {
        format!("<StorageServiceProperties>{inner}</StorageServiceProperties>")
    }

    #[tokio::test]
    async fn what_is_left_out_stays() {
        let bench = Bench::new();
        let told = bench.text("GET", URL).await;
        assert!(told.contains("<Cors />") && told.contains("<Logging>") && told.contains("<MinuteMetrics>"), "{told}");
        assert!(!told.contains("StaticWebsite") && !told.contains("DeleteRetentionPolicy"), "{told}");
        let cors = "<Cors><CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods>\
            <AllowedHeaders>x</AllowedHeaders><ExposedHeaders>y</ExposedHeaders><MaxAgeInSeconds>5</MaxAgeInSeconds>\
            </CorsRule></Cors>";
        let logging = "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>false</Write>\
            <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>";
        assert_eq!(bench.call("PUT", URL, &[], document(cors).as_bytes()).await.unwrap().status, 202);
        bench.call("PUT", URL, &[], document(logging).as_bytes()).await.unwrap();
        let told = bench.text("GET", URL).await;
        assert!(told.contains(cors) && told.contains(logging), "{told}");
        assert_eq!(bench.service.cors(1).await.unwrap().unwrap()[0].allowed_origins, ["*"]);
        bench.call("PUT", URL, &[], document("<Cors/>").as_bytes()).await.unwrap();
        assert_eq!(bench.service.cors(1).await, Ok(None));
    }

    #[tokio::test]
    async fn what_queues_do_not_have_is_refused() {
        let bench = Bench::new();
        let version = document("<DefaultServiceVersion>2020-10-02</DefaultServiceVersion>");
        for document in [version.as_str(), "<a/>", ""] {
            let refused = bench.call("PUT", URL, &[], document.as_bytes()).await;
            assert_eq!(refusal(refused), RequestError::InvalidXmlDocument.into(), "{document}");
        }
    }
}
