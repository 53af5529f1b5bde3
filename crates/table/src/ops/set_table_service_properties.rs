//! Set Table Service Properties: change the settings that the document names; the others keep their values.

use wire::http::{Body, Reply, StatusCode};

use super::Call;
use super::get_table_service_properties::PROPERTIES;
use crate::Failure;

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    PROPERTIES.set(call.engine, call.account, call.asker.settings, body).await?;
    Ok(Reply::new(StatusCode::ACCEPTED))
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, refusal, text};
    use service::{HttpService, RequestError};

    const URL: &str = "?restype=service&comp=properties";

    #[tokio::test]
    async fn what_is_left_out_stays() {
        let bench = Bench::new();
        let set = async |inner: &str| {
            let document = format!("<StorageServiceProperties>{inner}</StorageServiceProperties>");
            bench.call("PUT", URL, &[], document.as_bytes()).await
        };
        let cors = "<Cors><CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET,MERGE</AllowedMethods>\
            <AllowedHeaders>x</AllowedHeaders><ExposedHeaders>y</ExposedHeaders><MaxAgeInSeconds>5</MaxAgeInSeconds>\
            </CorsRule></Cors>";
        assert_eq!(set(cors).await.unwrap().status, 202);
        let retention = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>";
        set(&format!("<HourMetrics><Version>1.0</Version><Enabled>false</Enabled>{retention}</HourMetrics>"))
            .await
            .unwrap();
        assert!(text(bench.call("GET", URL, &[], b"").await.unwrap()).await.contains(cors));
        assert_eq!(bench.service.cors(1).await.unwrap().unwrap().len(), 1);
        assert_eq!(refusal(set("<Cors>").await), RequestError::InvalidXmlDocument.into());
    }

    #[tokio::test]
    async fn a_browser_may_ask() {
        let bench = Bench::new();
        let ask = [("origin", "http://a"), ("access-control-request-method", "GET")];
        let refused = refusal(bench.call("OPTIONS", "tab", &ask, b"").await);
        assert_eq!(refused, RequestError::CorsPreflightFailure.into());
    }
}
