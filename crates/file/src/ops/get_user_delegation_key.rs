//! Get User Delegation Key: a key for the holder of a bearer token, who can make shared access signatures with it for up to seven
//! days.

use auth::Service;
use service::user_delegation_key;
use wire::http::{Body, Reply};

use super::Call;
use crate::Failure;

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    user_delegation_key(Service::File, call.asker, call.head, body).await
}

#[cfg(test)]
mod tests {
    use auth::delegation::Secret;
    use auth::{Bearer, Caller};
    use service::{Asker, HttpService, RequestError};
    use wire::http::FixedBody;

    use crate::testing::{Bench, refusal, request, text};
    use crate::{Failure, Op};

    async fn ask(caller: &Caller) -> Result<String, Failure> {
        let now = wire::dates::parse_iso("2026-01-01T00:00:00Z").unwrap();
        let asker = Asker { caller, now, secret: Secret(Some(&[7; 32])), ..Asker::OWNER };
        let head = request("POST", "?restype=service&comp=userdelegationkey", &[]);
        let info = "<KeyInfo><Start>2026-01-01</Start><Expiry>2026-01-03T00:00:00Z</Expiry></KeyInfo>";
        let bench = Bench::new();
        let told = bench.service.run_for(asker, Op::GetUserDelegationKey, &head, 1, &mut FixedBody::new(info)).await?;
        Ok(text(told).await)
    }

    #[tokio::test]
    async fn a_key_for_files_and_for_the_holder_of_a_token() {
        let told = ask(&Caller::Bearer(Bearer { oid: "o".into(), tid: "t".into() })).await.unwrap();
        assert!(
            told.contains("<SignedOid>o</SignedOid>") && told.contains("<SignedService>f</SignedService>"),
            "{told}"
        );
        assert_eq!(refusal(ask(&Caller::Owner).await), RequestError::NotImplemented.into());
    }
}
