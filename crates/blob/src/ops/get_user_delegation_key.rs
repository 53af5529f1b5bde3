//! Get User Delegation Key: a key with which the holder of a bearer token makes shared access signatures, for up to seven days.

use auth::Service;
use service::user_delegation_key;
use wire::http::{Body, Reply};

use super::Call;
use crate::Failure;

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    user_delegation_key(Service::Blob, call.asker, call.head, body).await
}

#[cfg(test)]
mod tests {
    use auth::delegation::Secret;
    use auth::{Bearer, Caller};
    use service::RequestError;
    use wire::http::{FixedBody, Reply};

    use crate::testing::{Bench, bytes, refusal, request};
    use crate::{Asker, BlobError, Failure, Op};

    const URL: &str = "?restype=service&comp=userdelegationkey";

    async fn ask(caller: &Caller, info: &str) -> Result<Reply, Failure> {
        let now = wire::dates::parse_iso("2026-01-01T00:00:00Z").unwrap();
        let asker = Asker { caller, now, secret: Secret(Some(&[7; 32])), ..Asker::OWNER };
        let mut body = FixedBody::new(format!("<KeyInfo>{info}</KeyInfo>"));
        let head = request("POST", URL, &[]);
        let bench = Bench::new().await;
        bench.service.run_for(asker, Op::GetUserDelegationKey, &head, 1, &mut body).await
    }

    #[tokio::test]
    async fn a_key_for_the_holder_of_a_token() {
        let caller = Caller::Bearer(Bearer { oid: "o".into(), tid: "t".into() });
        let told = ask(&caller, "<Start>2026-01-01</Start><Expiry>2026-01-03T00:00:00Z</Expiry>").await;
        let told = String::from_utf8(bytes(told.unwrap()).await).unwrap();
        for part in [
            "<SignedOid>o</SignedOid><SignedTid>t</SignedTid><SignedStart>2026-01-01T00:00:00Z</SignedStart>",
            "<SignedExpiry>2026-01-03T00:00:00Z</SignedExpiry><SignedService>b</SignedService>",
            "<SignedVersion>2026-10-06</SignedVersion><Value>",
        ] {
            assert!(told.contains(part), "{told}");
        }
        let late = ask(&caller, "<Expiry>2026-01-09T00:00:00Z</Expiry>").await;
        let value = "2026-01-09T00:00:00Z".to_owned();
        assert_eq!(refusal(late), BlobError::Request(RequestError::InvalidXmlNodeValue { node: "Expiry", value }));
        assert_eq!(
            refusal(ask(&caller, "").await),
            BlobError::Request(RequestError::MissingRequiredXmlNode { node: "Expiry" })
        );
    }

    #[tokio::test]
    async fn nobody_else_gets_one() {
        assert_eq!(
            refusal(ask(&Caller::Owner, "<Expiry>2026-01-03</Expiry>").await),
            BlobError::Request(RequestError::NotImplemented)
        );
    }
}
