//! Where the bytes are: `s3://bucket/prefix?endpoint=http://host:port&region=name`.

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Address {
    pub bucket: String,
    /// Objects are under this, so that a bucket can be shared.
    pub prefix: String,
    /// `None`: AWS.
    pub endpoint: Option<String>,
    pub region: Option<String>,
}

impl std::str::FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        let wrong = |what: &str| format!("the address of the byte store {what}: s3://BUCKET[/PREFIX][?endpoint=URL]");
        let rest = text.strip_prefix("s3://").ok_or_else(|| wrong("must begin with s3://"))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        if bucket.is_empty() || bucket.contains(['@', ':']) {
            return Err(wrong("names a bucket and nothing else before the slash"));
        }
        let mut address =
            Address { bucket: bucket.into(), prefix: prefix.trim_matches('/').into(), ..Address::default() };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("endpoint", url)) if url.starts_with("http://") || url.starts_with("https://") => {
                    address.endpoint = Some(url.trim_end_matches('/').into());
                }
                Some(("endpoint", _)) => return Err(wrong("has an endpoint that is no http or https URL")),
                Some(("region", region)) => address.region = Some(region.into()),
                _ => return Err(wrong("has a setting other than endpoint and region")),
            }
        }
        Ok(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_where() {
        let whole: Address = "s3://bytes/a/b/?endpoint=http://127.0.0.1:8333/&region=eu".parse().unwrap();
        let expected = Address {
            bucket: "bytes".into(),
            prefix: "a/b".into(),
            endpoint: Some("http://127.0.0.1:8333".into()),
            region: Some("eu".into()),
        };
        assert_eq!(whole, expected);
        assert_eq!("s3://bytes".parse(), Ok(Address { bucket: "bytes".into(), ..Address::default() }));
    }

    #[test]
    fn what_is_no_address_is_refused_and_keys_have_no_place_in_it() {
        for text in ["bytes", "s3://", "s3:///x", "s3://key:secret@bytes", "s3://b?endpoint=ftp://x", "s3://b?key=x"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
