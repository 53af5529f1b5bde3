//! Set File Service Properties: change the settings that the document names; the others keep their values.

use wire::http::{Body, Reply, StatusCode};

use super::Call;
use super::get_file_service_properties::PROPERTIES;
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
        let mut bench = Bench::new();
        bench.settings.share_soft_delete_days = Some(7);
        let told = bench.text("GET", URL).await;
        assert!(
            told.contains("<Cors />") && told.contains("<HourMetrics>") && told.contains("<MinuteMetrics>"),
            "{told}"
        );
        let days = "<ShareDeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days></ShareDeleteRetentionPolicy>";
        let single = "<SMB><Multichannel><Enabled>false</Enabled></Multichannel></SMB>";
        assert!(told.contains(days) && told.contains(single) && !told.contains("<Logging>"), "{told}");
        let cors = "<Cors><CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods>\
            <AllowedHeaders>x</AllowedHeaders><ExposedHeaders>y</ExposedHeaders><MaxAgeInSeconds>5</MaxAgeInSeconds>\
            </CorsRule></Cors>";
        let days = "<ShareDeleteRetentionPolicy><Enabled>true</Enabled><Days>30</Days></ShareDeleteRetentionPolicy>";
        let smb = "<ProtocolSettings><SMB><Versions>SMB3.1.1</Versions></SMB></ProtocolSettings>";
        for inner in [cors, days, smb] {
            assert_eq!(bench.call("PUT", URL, &[], document(inner).as_bytes()).await.unwrap().status, 202);
        }
        let told = bench.text("GET", URL).await;
        let both = "<SMB><Multichannel><Enabled>false</Enabled></Multichannel><Versions>SMB3.1.1</Versions></SMB>";
        assert!(told.contains(cors) && told.contains(days) && told.contains(both), "{told}");
        assert_eq!(bench.service.cors(1).await.unwrap().unwrap()[0].allowed_origins, ["*"]);
    }

    #[tokio::test]
    async fn what_files_do_not_have_is_refused() {
        let bench = Bench::new();
        let version = document("<DefaultServiceVersion>2020-10-02</DefaultServiceVersion>");
        let logging = document("<Logging/>");
        for document in [&version, &logging, "<a/>", ""] {
            let refused = bench.call("PUT", URL, &[], document.as_bytes()).await;
            assert_eq!(refusal(refused), RequestError::InvalidXmlDocument.into(), "{document}");
        }
    }

    #[tokio::test]
    async fn a_browser_is_told_what_the_rules_say() {
        let bench = Bench::new();
        let origin = [("origin", "http://site"), ("access-control-request-method", "GET")];
        assert!(bench.call("OPTIONS", "share/file", &origin, b"").await.is_err());
        let cors = "<Cors><CorsRule><AllowedOrigins>http://site</AllowedOrigins><AllowedMethods>GET</AllowedMethods>\
            <AllowedHeaders/><ExposedHeaders/><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors>";
        bench.call("PUT", URL, &[], document(cors).as_bytes()).await.unwrap();
        assert_eq!(bench.call("OPTIONS", "share/file", &origin, b"").await.unwrap().status, 200);
    }
}
