//! Every way to be turned away, with the words of the wire.

use std::fmt;

use concurrency::Timestamp;
use wire::dates;
use wire::http::ErrorReply;

use crate::grant::Service;

/// Why a caller is turned away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The credentials do not prove what they claim.
    AuthenticationFailed(Fault),
    /// The `Authorization` header is not of the right form.
    InvalidAuthenticationInfo,
    /// A header that is signed was sent more than once, so it cannot be told which one the caller meant.
    DuplicateHeader(String),
    /// The token does not prove what it claims. Newer clients are told where to get a better one.
    InvalidToken {
        fault: TokenFault,
        challenge: bool,
    },
    /// No token allows the operation, and the caller is not told whether there is anything.
    NotByBearer,
    /// The header must be there.
    MissingHeader(&'static str),
    /// The header must say something else.
    InvalidHeader(&'static str),
    /// The operation is not for anonymous callers.
    NoAuthenticationInformation,
    /// There is no such account, or the caller is not told what there is.
    AccountNotFound,
    SourceIpMismatch,
    ProtocolMismatch,
    ServiceMismatch,
    ResourceTypeMismatch,
    PermissionMismatch,
    /// No signature of this kind allows the operation.
    AuthorizationFailure,
}

/// What did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    SharedKeyMismatch {
        signature: String,
        string_to_sign: String,
    },
    SasMismatch {
        string_to_sign: String,
    },
    /// Also for a date too far ahead.
    DateTooOld {
        date: String,
    },
    OutsideTimeFrame {
        start: Option<Timestamp>,
        expiry: Timestamp,
        now: Timestamp,
    },
    /// The same for the key of a user delegation signature.
    OutsideKeyTimeFrame {
        start: Timestamp,
        expiry: Timestamp,
        now: Timestamp,
    },
    /// A field of a signature is missing, malformed or given twice.
    Field {
        name: &'static str,
        fault: &'static str,
    },
    /// The stored access policy and the signature both have this field.
    FieldInBoth {
        name: &'static str,
    },
    Other(&'static str),
}

/// What is wrong with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    Malformed,
    /// An algorithm that we do not take: `none` among them.
    Algorithm,
    /// Signed with a key that we do not have. The issuer may have a new one: fetch its keys again and ask once more.
    UnknownKey,
    Signature,
    Expired,
    NotYetValid,
    Audience,
    Issuer,
    MissingClaim(&'static str),
}

impl Refusal {
    pub(crate) fn field(name: &'static str, fault: &'static str) -> Refusal {
        Refusal::AuthenticationFailed(Fault::Field { name, fault })
    }

    pub(crate) fn other(fault: &'static str) -> Refusal {
        Refusal::AuthenticationFailed(Fault::Other(fault))
    }

    /// For an anonymous caller of something that is not public. Newer clients are asked for credentials; older ones are
    /// not told that there is anything.
    pub fn anonymous(version: Option<&str>) -> Refusal {
        match version {
            Some(version) if version >= "2019-12-12" => Refusal::NoAuthenticationInformation,
            _ => Refusal::AccountNotFound,
        }
    }

    /// The same for any service.
    pub fn anonymous_for(service: Service, version: Option<&str>) -> Refusal {
        match is_challenged(service, version) {
            true => Refusal::NoAuthenticationInformation,
            false => Refusal::AccountNotFound,
        }
    }

    pub fn status(&self) -> u16 {
        self.wire().0
    }

    pub fn code(&self) -> &'static str {
        self.wire().1
    }

    pub fn message(&self) -> &'static str {
        self.wire().2
    }

    /// The text of `AuthenticationErrorDetail`.
    pub fn detail(&self) -> Option<String> {
        match self {
            Refusal::AuthenticationFailed(fault) => Some(fault.to_string()),
            Refusal::InvalidToken { fault, .. } => Some(fault.to_string()),
            Refusal::InvalidAuthenticationInfo
            | Refusal::DuplicateHeader(_)
            | Refusal::NotByBearer
            | Refusal::MissingHeader(_)
            | Refusal::InvalidHeader(_)
            | Refusal::NoAuthenticationInformation
            | Refusal::AccountNotFound
            | Refusal::SourceIpMismatch
            | Refusal::ProtocolMismatch
            | Refusal::ServiceMismatch
            | Refusal::ResourceTypeMismatch
            | Refusal::PermissionMismatch
            | Refusal::AuthorizationFailure => None,
        }
    }

    /// The value of `WWW-Authenticate`. Clients look for the resource in it to know what to ask a token for.
    pub fn challenge(&self) -> Option<&'static str> {
        let asked =
            matches!(self, Refusal::NoAuthenticationInformation | Refusal::InvalidToken { challenge: true, .. });
        asked.then_some(
            "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize \
             resource_id=https://storage.azure.com",
        )
    }

    fn wire(&self) -> (u16, &'static str, &'static str) {
        match self {
            Refusal::AuthenticationFailed(_) | Refusal::InvalidToken { challenge: false, .. } => (
                403,
                "AuthenticationFailed",
                "Server failed to authenticate the request. Make sure the value of Authorization header is formed \
                 correctly including the signature.",
            ),
            Refusal::InvalidAuthenticationInfo => (
                400,
                "InvalidAuthenticationInfo",
                "Authentication information is not given in the correct format. Check the value of Authorization header.",
            ),
            Refusal::InvalidToken { challenge: true, .. } => (
                401,
                "InvalidAuthenticationInfo",
                "Server failed to authenticate the request. Please refer to the information in the www-authenticate \
                 header.",
            ),
            Refusal::MissingHeader(_) => {
                (400, "MissingRequiredHeader", "An HTTP header that's mandatory for this request is not specified.")
            }
            Refusal::DuplicateHeader(_) | Refusal::InvalidHeader(_) => {
                (400, "InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct format.")
            }
            Refusal::NoAuthenticationInformation => (
                401,
                "NoAuthenticationInformation",
                "Server failed to authenticate the request. Please refer to the information in the www-authenticate \
                 header.",
            ),
            Refusal::AccountNotFound | Refusal::NotByBearer => {
                (404, "ResourceNotFound", "The specified resource does not exist.")
            }
            Refusal::SourceIpMismatch => (
                403,
                "AuthorizationSourceIPMismatch",
                "This request is not authorized to perform this operation using this source IP.",
            ),
            Refusal::ProtocolMismatch => (
                403,
                "AuthorizationProtocolMismatch",
                "This request is not authorized to perform this operation using this protocol.",
            ),
            Refusal::ServiceMismatch => (
                403,
                "AuthorizationServiceMismatch",
                "This request is not authorized to perform this operation using this service.",
            ),
            Refusal::ResourceTypeMismatch => (
                403,
                "AuthorizationResourceTypeMismatch",
                "This request is not authorized to perform this operation using this resource type.",
            ),
            Refusal::PermissionMismatch => (
                403,
                "AuthorizationPermissionMismatch",
                "This request is not authorized to perform this operation using this permission.",
            ),
            Refusal::AuthorizationFailure => {
                (403, "AuthorizationFailure", "This request is not authorized to perform this operation.")
            }
        }
    }
}

/// Whether clients of this version understand a challenge.
pub(crate) fn is_challenged(service: Service, version: Option<&str>) -> bool {
    let since = match service {
        Service::Blob | Service::Queue => "2019-12-12",
        Service::Table => "2020-12-06",
        Service::File => "2022-11-02",
    };
    version.is_some_and(|version| version >= since)
}

impl fmt::Display for TokenFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenFault::Malformed => f.write_str("The token is not a JSON Web Token."),
            TokenFault::Algorithm => f.write_str("Signature validation failed. Signature algorithm not allowed."),
            TokenFault::UnknownKey => f.write_str("Signature validation failed. Signature key not found."),
            TokenFault::Signature => f.write_str("Signature validation failed. Signature did not match."),
            TokenFault::Expired => f.write_str("Lifetime validation failed. The token is expired."),
            TokenFault::NotYetValid => f.write_str("Lifetime validation failed. The token is not yet valid."),
            TokenFault::Audience => f.write_str("Audience validation failed. Audience did not match."),
            TokenFault::Issuer => f.write_str("Issuer validation failed. Issuer did not match."),
            TokenFault::MissingClaim(name) => write!(f, "The token has no claim {name}."),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::SharedKeyMismatch { signature, string_to_sign } => write!(
                f,
                "The MAC signature found in the HTTP request '{signature}' is not the same as any computed signature. \
                 Server used following string to sign: '{string_to_sign}'."
            ),
            Fault::SasMismatch { string_to_sign } => {
                write!(f, "Signature did not match. String to sign used was {string_to_sign}")
            }
            Fault::DateTooOld { date } => write!(f, "Request date header too old: '{date}'"),
            Fault::OutsideTimeFrame { start, expiry, now } => {
                let start = start.map(|start| dates::http_date(start).to_string()).unwrap_or_default();
                let (expiry, now) = (dates::http_date(*expiry), dates::http_date(*now));
                f.write_str("Signature not valid in the specified time frame: ")?;
                write!(f, "Start [{start}] - Expiry [{expiry}] - Current [{now}]")
            }
            Fault::OutsideKeyTimeFrame { start, expiry, now } => {
                let [start, expiry, now] = [start, expiry, now].map(|at| dates::http_date(*at));
                f.write_str("Signature not valid in the specified key time frame: ")?;
                write!(f, "Key start [{start}] - Key expiry [{expiry}] - Current [{now}]")
            }
            Fault::Field { name, fault } => write!(f, "{name} {fault}"),
            Fault::FieldInBoth { .. } => {
                f.write_str("Access policy fields can be associated with signature or SAS identifier but not both")
            }
            Fault::Other(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for ErrorReply {
    fn from(refusal: Refusal) -> ErrorReply {
        let mut reply = ErrorReply::new(refusal.status(), refusal.code(), refusal.message());
        if let Some(detail) = refusal.detail() {
            reply = reply.detail("AuthenticationErrorDetail", detail);
        }
        if let Refusal::DuplicateHeader(name) = &refusal {
            reply = reply.detail("HeaderName", name.as_str());
        }
        if let Refusal::MissingHeader(name) | Refusal::InvalidHeader(name) = &refusal {
            reply = reply.detail("HeaderName", *name);
        }
        if let Some(challenge) = refusal.challenge() {
            reply = reply.header("www-authenticate", challenge);
        }
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn details_in_the_words_of_the_service() {
        let mismatch = Fault::SharedKeyMismatch { signature: "s".into(), string_to_sign: "GET\n".into() };
        assert_eq!(
            Refusal::AuthenticationFailed(mismatch).detail().as_deref(),
            Some(
                "The MAC signature found in the HTTP request 's' is not the same as any computed signature. \
                 Server used following string to sign: 'GET\n'."
            )
        );
        let (start, expiry, now) = (Some(at("2026-01-01")), at("2026-01-02"), at("2026-01-03T01:02:03Z"));
        assert_eq!(
            Fault::OutsideTimeFrame { start, expiry, now }.to_string(),
            "Signature not valid in the specified time frame: Start [Thu, 01 Jan 2026 00:00:00 GMT] - \
             Expiry [Fri, 02 Jan 2026 00:00:00 GMT] - Current [Sat, 03 Jan 2026 01:02:03 GMT]"
        );
    }

    #[test]
    fn as_a_reply() {
        let reply = ErrorReply::from(Refusal::other("why"));
        assert_eq!((reply.status, reply.code), (403, "AuthenticationFailed"));
        assert_eq!(reply.details, [("AuthenticationErrorDetail", "why".to_owned())]);
        let reply = ErrorReply::from(Refusal::NoAuthenticationInformation);
        assert_eq!((reply.status, reply.headers[0].0), (401, "www-authenticate"));
        assert!(reply.headers[0].1.contains("resource_id=https://storage.azure.com"));
        let reply = ErrorReply::from(Refusal::DuplicateHeader("x-ms-date".into()));
        assert_eq!((reply.status, reply.code, reply.details[0].1.as_str()), (400, "InvalidHeaderValue", "x-ms-date"));
    }

    #[test]
    fn a_bad_token_as_a_reply() {
        let refused = |challenge| ErrorReply::from(Refusal::InvalidToken { fault: TokenFault::Expired, challenge });
        for (reply, status, code) in
            [(refused(true), 401, "InvalidAuthenticationInfo"), (refused(false), 403, "AuthenticationFailed")]
        {
            assert_eq!((reply.status, reply.code), (status, code));
            let detail = "Lifetime validation failed. The token is expired.".to_owned();
            assert_eq!(reply.details, [("AuthenticationErrorDetail", detail)]);
            assert_eq!(reply.headers.len(), usize::from(status == 401));
        }
        let reply = ErrorReply::from(Refusal::NotByBearer);
        assert_eq!((reply.status, reply.code), (404, "ResourceNotFound"));
        let reply = ErrorReply::from(Refusal::MissingHeader("x-ms-a"));
        assert_eq!((reply.status, reply.code, reply.details[0].1.as_str()), (400, "MissingRequiredHeader", "x-ms-a"));
    }

    #[test]
    fn each_service_began_to_challenge_with_a_version() {
        for (service, last_silent, first) in [
            (Service::Blob, "2019-10-10", "2019-12-12"),
            (Service::Queue, "2019-10-10", "2019-12-12"),
            (Service::Table, "2020-10-02", "2020-12-06"),
            (Service::File, "2021-12-02", "2022-11-02"),
        ] {
            assert_eq!(Refusal::anonymous_for(service, None).status(), 404);
            assert_eq!(Refusal::anonymous_for(service, Some(last_silent)).status(), 404);
            assert_eq!(Refusal::anonymous_for(service, Some(first)).status(), 401);
        }
    }

    #[test]
    fn old_clients_are_not_told_that_there_is_anything() {
        assert_eq!(Refusal::anonymous(Some("2019-12-12")).status(), 401);
        assert_eq!(Refusal::anonymous(Some("2019-07-07")).status(), 404);
        assert_eq!(Refusal::anonymous(None).status(), 404);
    }
}
