//! By whose key a blob is encrypted: a key that the client brings with every request, or a scope of the account.
//!
//! **Customer-provided keys** (`x-ms-encryption-key` and its two companions): content, metadata and the MD5 that the service
//! computes are sealed with the key (`sealing`), which is stored nowhere. What is stored of it is its SHA-256, which clients
//! send themselves, which listings show, and which says nothing about a key of 32 random bytes. It is what a request is held
//! against; the seal is what keeps the bytes.
//!
//! **Encryption scopes** (`x-ms-encryption-scope`) are names that the account is configured with. A blob says which it
//! belongs to, and later writes must name the same; the bytes are not encrypted by them.

use content::sealing::{self, KEY_BYTES, Salt, Secret};
use engine::Unread;
use ring::digest::{SHA256, digest};
use service::codec;

use crate::error::{BlobError, Failure};
use crate::model::encryption::{Encryption, Sealed};
use crate::model::{Committed, ContainerGuard, Halt, Pairs, refuse};

/// A key as a request brings it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CustomerKey {
    pub secret: Secret,
    pub sha256: [u8; 32],
}

/// The scope of whatever has none of its own.
pub const ACCOUNT_SCOPE: &str = "$account-encryption-key";

impl CustomerKey {
    pub fn new(secret: [u8; KEY_BYTES]) -> CustomerKey {
        let sha256 = digest(&SHA256, &secret).as_ref().try_into().unwrap_or_default();
        CustomerKey { secret: Secret(secret), sha256 }
    }

    fn seal(&self, note: &[u8]) -> Result<Vec<u8>, Failure> {
        Ok(sealing::seal_note(&self.secret, Salt::random()?, note))
    }
}

/// How a write is to be encrypted. The key itself stays outside of what is decided and stored.
#[derive(Clone, Debug, Default)]
pub struct WriteEncryption {
    pub key: Option<CustomerKey>,
    pub encryption: Option<Encryption>,
}

impl WriteEncryption {
    pub fn by_key(key: CustomerKey) -> WriteEncryption {
        let sealed = Sealed { sha256: key.sha256.to_vec(), ..Sealed::default() };
        WriteEncryption { encryption: Some(Encryption::Key(sealed)), key: Some(key) }
    }

    pub fn by_scope(scope: &str) -> WriteEncryption {
        WriteEncryption { encryption: Some(Encryption::Scope(scope.to_owned())), key: None }
    }

    /// Takes the metadata away and seals it, if there is a key to do that with.
    pub fn seal_metadata(&mut self, metadata: &mut Pairs) -> Result<(), Failure> {
        if let (Some(key), Some(Encryption::Key(sealed))) = (&self.key, &mut self.encryption)
            && !metadata.is_empty()
        {
            sealed.metadata = Some(key.seal(&codec::encode(&std::mem::take(metadata)))?);
        }
        Ok(())
    }

    /// The same for the MD5 of a content.
    pub fn seal_md5(&mut self, md5: &mut Option<[u8; 16]>) -> Result<(), Failure> {
        if let (Some(key), Some(Encryption::Key(sealed))) = (&self.key, &mut self.encryption)
            && let Some(md5) = md5.take()
        {
            sealed.md5 = Some(key.seal(&md5)?);
        }
        Ok(())
    }
}

/// How something new in the container becomes encrypted: as is asked, or by the scope of the container.
pub fn effective(container: &ContainerGuard, asked: Option<&Encryption>) -> Result<Option<Encryption>, Halt> {
    match (asked, &container.default_scope) {
        (Some(Encryption::Scope(scope)), Some(default)) if scope == default => Ok(asked.cloned()),
        (Some(_), _) if container.denies_other_scopes => {
            Err(refuse(BlobError::RequestForbiddenByContainerEncryptionPolicy))
        }
        (Some(_), _) => Ok(asked.cloned()),
        (None, default) => Ok(default.clone().map(Encryption::Scope)),
    }
}

/// Whether what is there may be changed by a request that asks for this; and what it becomes encrypted by.
pub fn same_as(
    container: &ContainerGuard,
    asked: Option<&Encryption>,
    stored: Option<&Encryption>,
) -> Result<Option<Encryption>, Halt> {
    let effective = effective(container, asked)?;
    matches(stored, effective.as_ref()).map_err(refuse)?;
    Ok(effective)
}

/// Whether two are the same: by the same key, or by the same scope.
pub fn matches(stored: Option<&Encryption>, asked: Option<&Encryption>) -> Result<(), BlobError> {
    match (stored, asked) {
        (None, None) => Ok(()),
        (Some(Encryption::Key(stored)), Some(Encryption::Key(asked))) if stored.sha256 == asked.sha256 => Ok(()),
        (Some(Encryption::Scope(stored)), Some(Encryption::Scope(asked))) if stored == asked => Ok(()),
        (Some(_), Some(_)) => Err(BlobError::BlobCustomerSpecifiedEncryptionMismatch),
        (Some(_), None) => Err(BlobError::BlobUsesCustomerSpecifiedEncryption),
        (None, Some(_)) => Err(BlobError::BlobDoesNotUseCustomerSpecifiedEncryption),
    }
}

/// Whether it is sealed with a customer-provided key, which every read must bring.
pub fn is_sealed(stored: Option<&Encryption>) -> bool {
    matches!(stored, Some(Encryption::Key(_)))
}

/// Whether a read with this key may see the state. Scopes are the account's, so a read need not know them.
pub fn check_read(stored: Option<&Encryption>, key: Option<&CustomerKey>) -> Result<(), BlobError> {
    match (stored, key) {
        (None | Some(Encryption::Scope(_)), None) => Ok(()),
        (None | Some(Encryption::Scope(_)), Some(_)) => Err(BlobError::BlobDoesNotUseCustomerSpecifiedEncryption),
        (Some(Encryption::Key(_)), None) => Err(BlobError::BlobUsesCustomerSpecifiedEncryption),
        (Some(Encryption::Key(sealed)), Some(key)) if sealed.sha256 == key.sha256 => Ok(()),
        (Some(Encryption::Key(_)), Some(_)) => Err(BlobError::BlobCustomerSpecifiedEncryptionMismatch),
    }
}

/// Opens the sealed metadata and MD5 with the key of the read.
pub fn reveal(state: &mut Committed, key: Option<&CustomerKey>) -> Result<(), Unread> {
    let (Some(Encryption::Key(sealed)), Some(key)) = (&state.encryption, key) else { return Ok(()) };
    let open = |note: &Vec<u8>| {
        sealing::open_note(&key.secret, note).map_err(|sealing::Forged| codec::corrupt("the seal of a blob"))
    };
    if let Some(metadata) = &sealed.metadata {
        state.metadata = codec::decode(&open(metadata)?)?;
    }
    if let (None, Some(md5)) = (&state.headers.content_md5, &sealed.md5) {
        state.headers.content_md5 = Some(open(md5)?);
    }
    Ok(())
}

/// Gives a state the sealed metadata that a request brought. It has been seen that both are by the same key.
pub fn with_metadata_of(stored: &mut Option<Encryption>, asked: Option<&Encryption>) {
    if let (Some(Encryption::Key(stored)), Some(Encryption::Key(asked))) = (stored, asked) {
        stored.metadata = asked.metadata.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encryption_headers::{ALGORITHM, KEY, OF_BLOB, OF_SOURCE, SCOPE, SHA256_OF_KEY, customer_key};
    use crate::testing::{Bench, bytes, header, refusal};
    use auth::Settings;
    use service::RequestError;
    use wire::base64;
    use wire::http::Reply;

    /// Three headers of a key, made of one byte.
    struct Key([(&'static str, String); 3]);

    fn key(byte: u8) -> Key {
        let secret = [byte; KEY_BYTES];
        let sha256 = digest(&SHA256, &secret);
        Key([
            (KEY, base64::encode(&secret)),
            (SHA256_OF_KEY, base64::encode(sha256.as_ref())),
            (ALGORITHM, "AES256".to_owned()),
        ])
    }

    impl Key {
        fn with<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
            let own = self.0.iter().map(|(name, value)| (*name, value.as_str()));
            own.chain(more.iter().copied()).collect()
        }

        fn sha256(&self) -> Option<&str> {
            Some(&self.0[1].1)
        }

        /// As the key of a copy's source.
        fn of_source(&self) -> [(&str, &str); 3] {
            let names = OF_SOURCE.all();
            std::array::from_fn(|at| (names[at], self.0[at].1.as_str()))
        }
    }

    type Headers<'a> = &'a [(&'a str, &'a str)];

    const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
    const APPEND: (&str, &str) = ("x-ms-blob-type", "AppendBlob");
    const PAGES: &[(&str, &str)] = &[("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "200192")];
    const USES: BlobError = BlobError::BlobUsesCustomerSpecifiedEncryption;
    const OTHER: BlobError = BlobError::BlobCustomerSpecifiedEncryptionMismatch;
    const NONE: BlobError = BlobError::BlobDoesNotUseCustomerSpecifiedEncryption;

    async fn put(bench: &Bench, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Reply, Failure> {
        bench.call("PUT", url, headers, body).await
    }

    /// Whether these bytes stand anywhere in what is stored.
    async fn is_stored(bench: &Bench, text: &[u8]) -> bool {
        let text = text.to_vec();
        let found = engine::read::<_, std::convert::Infallible, _>(&*bench.engine, move |rows, _| {
            let mut found = false;
            let all = (engine::Key::new(0), engine::Key::new(u8::MAX));
            rows.scan(&all.0, &all.1, 1_000, &mut |_, row| {
                found |= row.windows(text.len()).any(|window| *window == text);
                engine::Visit::Next
            })?;
            Ok(found)
        });
        found.await.unwrap()
    }

    #[tokio::test]
    async fn what_a_key_seals_only_that_key_opens() {
        let bench = Bench::with_container().await;
        let (mine, yours) = (key(1), key(2));
        let content: Vec<u8> = (0..200_192_u32).map(|n| (n / 100) as u8).collect();
        let meta = ("x-ms-meta-colour", "ultramarine");

        let answer = put(&bench, "cont/block", &mine.with(&[BLOCK, meta]), &content).await.unwrap();
        assert_eq!(header(&answer, SHA256_OF_KEY), mine.sha256());
        assert_eq!(header(&answer, "x-ms-request-server-encrypted"), Some("true"));
        put(&bench, "cont/append", &mine.with(&[APPEND, meta]), b"").await.unwrap();
        for part in content.chunks(100_096) {
            let answer = put(&bench, "cont/append?comp=appendblock", &mine.with(&[]), part).await.unwrap();
            assert_eq!(header(&answer, SHA256_OF_KEY), mine.sha256());
        }
        put(&bench, "cont/pages", &mine.with(&[PAGES, &[meta]].concat()), b"").await.unwrap();
        for (range, part) in [("bytes=0-511", &content[..512]), ("bytes=512-200191", &content[512..])] {
            let headers = mine.with(&[("x-ms-page-write", "update"), ("x-ms-range", range)]);
            put(&bench, "cont/pages?comp=page", &headers, part).await.unwrap();
        }
        for (id, part) in [("QQ==", &content[..70_000]), ("Qg==", &content[70_000..])] {
            let url = format!("cont/listed?comp=block&blockid={id}");
            put(&bench, &url, &mine.with(&[]), part).await.unwrap();
        }
        let list = b"<BlockList><Latest>QQ==</Latest><Latest>Qg==</Latest></BlockList>";
        put(&bench, "cont/listed?comp=blocklist", &mine.with(&[meta]), list).await.unwrap();

        for blob in ["block", "append", "pages", "listed"] {
            let url = format!("cont/{blob}");
            let got = bench.call("GET", &url, &mine.with(&[]), b"").await.unwrap();
            assert_eq!(header(&got, SHA256_OF_KEY), mine.sha256(), "{blob}");
            assert_eq!(header(&got, meta.0), Some(meta.1), "{blob}");
            assert!(bytes(got).await == content, "{blob}");
            for (first, last) in [(0, 0), (65_535, 65_536), (65_536, 131_071), (131_072, 200_191), (199_999, 250_000)] {
                let range = format!("bytes={first}-{last}");
                let got = bench.call("GET", &url, &mine.with(&[("range", &range)]), b"").await.unwrap();
                assert!(bytes(got).await == content[first..content.len().min(last + 1)], "{blob} {range}");
            }
            for (method, url) in [("GET", url.clone()), ("HEAD", url.clone()), ("GET", format!("{url}?comp=metadata"))]
            {
                let call = async |headers: &[(&str, &str)]| refusal(bench.call(method, &url, headers, b"").await);
                assert_eq!((call(&[]).await, call(&yours.with(&[])).await), (USES, OTHER), "{method} {url}");
            }
        }
        let sum = bench.call("HEAD", "cont/block", &mine.with(&[]), b"").await.unwrap();
        let md5 = wire::checksum::Md5::of(&content);
        assert_eq!(header(&sum, "content-md5"), Some(base64::encode(&md5).as_str()));

        let listed = bench.text("GET", "cont?restype=container&comp=list&include=metadata").await;
        let named = format!("<CustomerProvidedKeySha256>{}</CustomerProvidedKeySha256>", mine.sha256().unwrap());
        assert_eq!((listed.matches(&named).count(), listed.matches("<Metadata Encrypted=\"true\"").count()), (4, 4));
        assert!(!listed.contains("ultramarine") && !listed.contains(&base64::encode(&md5)));
        put(&bench, "cont/open", &[BLOCK, ("x-ms-meta-colour", "vermilion")], b"x").await.unwrap();
        assert!(is_stored(&bench, b"vermilion").await);
        for text in [&b"ultramarine"[..], &md5, &[1; KEY_BYTES]] {
            assert!(!is_stored(&bench, text).await);
        }
        // What needs no bytes needs no key.
        bench.call("GET", "cont/pages?comp=pagelist", &[], b"").await.unwrap();
        bench.call("GET", "cont/listed?comp=blocklist", &[], b"").await.unwrap();
        bench.call("DELETE", "cont?restype=container", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures(), (0, 0));
    }

    #[tokio::test]
    async fn writes_must_bring_the_same_key() {
        let bench = Bench::with_container().await;
        let (mine, yours) = (key(1), key(2));
        let page = [("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-511")];
        put(&bench, "cont/append", &mine.with(&[APPEND]), b"").await.unwrap();
        put(&bench, "cont/pages", &mine.with(PAGES), b"").await.unwrap();
        put(&bench, "cont/block", &mine.with(&[BLOCK]), b"x").await.unwrap();
        put(&bench, "cont/plain", &[BLOCK], b"x").await.unwrap();
        put(&bench, "cont/block?comp=block&blockid=QQ==", &mine.with(&[]), b"y").await.unwrap();
        let list: &[u8] = b"<BlockList><Latest>QQ==</Latest></BlockList>";
        let before = bench.figures();
        let writes: [(&str, Headers<'_>, &[u8]); 5] = [
            ("cont/append?comp=appendblock", &[], b"z"),
            ("cont/pages?comp=page", &page, &[1; 512]),
            ("cont/block?comp=metadata", &[], b""),
            ("cont/block?comp=snapshot", &[], b""),
            ("cont/block?comp=blocklist", &[], list),
        ];
        for (url, more, body) in writes {
            assert_eq!(refusal(put(&bench, url, more, body).await), USES, "{url}");
            assert_eq!(refusal(put(&bench, url, &yours.with(more), body).await), OTHER, "{url}");
        }
        let plain = put(&bench, "cont/plain?comp=metadata", &mine.with(&[]), b"").await;
        assert_eq!(refusal(plain), NONE);
        let plain = bench.call("GET", "cont/plain", &mine.with(&[]), b"").await;
        assert_eq!(refusal(plain), NONE);
        assert_eq!(bench.figures(), before);
        // A stale condition is said first, as of anything else that is wrong.
        let stale = [("if-match", "\"0x1\"")];
        assert_eq!(refusal(put(&bench, "cont/block?comp=metadata", &stale, b"").await), BlobError::ConditionNotMet);

        for (url, more, body) in writes {
            put(&bench, url, &mine.with(more), body).await.unwrap();
        }
        // Whoever replaces a blob whole may take another key, or none.
        put(&bench, "cont/block", &yours.with(&[BLOCK]), b"new").await.unwrap();
        assert_eq!(bytes(bench.call("GET", "cont/block", &yours.with(&[]), b"").await.unwrap()).await, b"new");
        put(&bench, "cont/block", &[BLOCK], b"open").await.unwrap();
        assert_eq!(bench.get("cont/block").await, b"open");
    }

    #[tokio::test]
    async fn blocks_of_different_keys_do_not_mix() {
        let bench = Bench::with_container().await;
        let (mine, yours) = (key(1), key(2));
        for (id, key) in [("QQ==", Some(&mine)), ("Qg==", Some(&yours)), ("Qw==", None)] {
            let headers = key.map(|key| key.with(&[])).unwrap_or_default();
            put(&bench, &format!("cont/blob?comp=block&blockid={id}"), &headers, b"x").await.unwrap();
        }
        let list = |ids: &[&str]| {
            let entries: String = ids.iter().map(|id| format!("<Latest>{id}</Latest>")).collect();
            format!("<BlockList>{entries}</BlockList>").into_bytes()
        };
        let commit = async |headers: &[(&str, &str)], ids: &[&str]| {
            put(&bench, "cont/blob?comp=blocklist", headers, &list(ids)).await
        };
        assert_eq!(refusal(commit(&mine.with(&[]), &["QQ==", "Qg=="]).await), OTHER);
        assert_eq!(refusal(commit(&mine.with(&[]), &["QQ==", "Qw=="]).await), NONE);
        assert_eq!(refusal(commit(&[], &["Qw==", "QQ=="]).await), USES);
        commit(&mine.with(&[]), &["QQ==", "QQ=="]).await.unwrap();
        assert_eq!(bytes(bench.call("GET", "cont/blob", &mine.with(&[]), b"").await.unwrap()).await, b"xx");
        // The committed ones are the blob's.
        assert_eq!(refusal(commit(&yours.with(&[]), &["QQ=="]).await), OTHER);
        commit(&mine.with(&[]), &["QQ=="]).await.unwrap();
    }

    /// The operations that take bytes from a URL, each with what else it needs, and where it leaves them.
    const FROM_URL: [(&str, Headers<'static>, &str); 4] = [
        ("cont/made", &[BLOCK], "cont/made"),
        ("cont/listed?comp=block&blockid=QQ==", &[], "cont/listed"),
        ("cont/append?comp=appendblock", &[], "cont/append"),
        (
            "cont/pages?comp=page",
            &[("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-200191"), ("x-ms-source-range", "bytes=0-200191")],
            "cont/pages",
        ),
    ];

    fn keyed<'a>(key: Option<&'a Key>, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        key.map_or_else(|| more.to_vec(), |key| key.with(more))
    }

    #[tokio::test]
    async fn bytes_from_a_sealed_source_are_sealed_anew() {
        let (first, second, third) = (key(1), key(2), key(3));
        let content: Vec<u8> = (0..200_192_u32).map(|n| (n / 100) as u8).collect();
        let list = b"<BlockList><Latest>QQ==</Latest></BlockList>";
        // From one key to another, to the same, to none, and from none to one.
        for (from, to) in
            [(Some(&first), Some(&second)), (Some(&first), Some(&first)), (Some(&first), None), (None, Some(&second))]
        {
            let bench = Bench::with_container().await;
            let sealed = keyed(from, &[]);
            let source = [&[BLOCK, ("x-ms-meta-colour", "ultramarine")][..], &sealed].concat();
            put(&bench, "cont/source", &source, &content).await.unwrap();
            put(&bench, "cont/append", &keyed(to, &[APPEND]), b"").await.unwrap();
            put(&bench, "cont/pages", &keyed(to, PAGES), b"").await.unwrap();
            let url = crate::testing::url("cont/source");
            let opens = from.map(Key::of_source);
            for (target, more, blob) in FROM_URL {
                let ask = [&[("x-ms-copy-source", url.as_str())][..], more].concat();
                let before = bench.figures();
                if from.is_some() {
                    let (wrong, right) = (third.of_source(), opens.unwrap());
                    for (keys, code) in [
                        (&[][..], "BlobUsesCustomerSpecifiedEncryption"),
                        (&wrong[..], "BlobCustomerSpecifiedEncryptionMismatch"),
                    ] {
                        let refused = put(&bench, target, &keyed(to, &[&ask[..], keys].concat()), b"").await;
                        let BlobError::CannotVerifyCopySource(fault) = refusal(refused) else { panic!("{target}") };
                        assert_eq!((fault.status, fault.source_code.as_deref()), (409, Some(code)), "{target}");
                    }
                    let half = put(&bench, target, &keyed(to, &[&ask[..], &right[..2]].concat()), b"").await;
                    let missing = RequestError::MissingRequiredHeader { name: OF_SOURCE.algorithm };
                    assert_eq!(refusal(half), BlobError::Request(missing), "{target}");
                } else {
                    let needless = put(&bench, target, &keyed(to, &[&ask[..], &third.of_source()].concat()), b"").await;
                    let BlobError::CannotVerifyCopySource(fault) = refusal(needless) else { panic!("{target}") };
                    let code = "BlobDoesNotUseCustomerSpecifiedEncryption";
                    assert_eq!(fault.source_code.as_deref(), Some(code), "{target}");
                }
                assert_eq!(bench.figures(), before, "{target}");
                let keys = opens.as_ref().map_or(&[][..], |keys| &keys[..]);
                let answer = put(&bench, target, &keyed(to, &[&ask[..], keys].concat()), b"").await.unwrap();
                assert_eq!(header(&answer, SHA256_OF_KEY), to.and_then(Key::sha256), "{target}");
                if blob == "cont/listed" {
                    put(&bench, "cont/listed?comp=blocklist", &keyed(to, &[]), list).await.unwrap();
                }
                let got = bench.call("GET", blob, &keyed(to, &[]), b"").await.unwrap();
                if blob == "cont/made" {
                    assert_eq!(header(&got, "x-ms-meta-colour"), Some("ultramarine"));
                }
                assert!(bytes(got).await == content, "{target}");
                let other = bench.call("GET", blob, &third.with(&[]), b"").await;
                assert_eq!(refusal(other), if to.is_some() { OTHER } else { NONE }, "{target}");
            }
            // Nothing needs the source any longer.
            bench.call("DELETE", "cont/source", &[], b"").await.unwrap();
            bench.sweep().await;
            for (_, _, blob) in FROM_URL {
                assert!(bytes(bench.call("GET", blob, &keyed(to, &[]), b"").await.unwrap()).await == content, "{blob}");
            }
            bench.call("DELETE", "cont?restype=container", &[], b"").await.unwrap();
            bench.sweep().await;
            assert_eq!(bench.figures(), (0, 0));
        }
    }

    /// Copies that know where they came from take no keys, as the reference has it: neither for themselves nor for their source.
    #[tokio::test]
    async fn copies_take_no_keys() {
        let bench = Bench::with_container().await;
        let mine = key(1);
        put(&bench, "cont/source", &mine.with(&[BLOCK]), b"x").await.unwrap();
        put(&bench, "cont/plain", &[BLOCK], b"x").await.unwrap();
        let (sealed, plain) = (crate::testing::url("cont/source"), crate::testing::url("cont/plain"));
        for how in [&[][..], &[("x-ms-requires-sync", "true")]] {
            let ask = |from| [&[("x-ms-copy-source", from)][..], how].concat();
            let own = put(&bench, "cont/blob", &mine.with(&ask(&plain)), b"").await;
            assert_eq!(refusal(own), BlobError::UnsupportedHeader { name: KEY });
            let source = put(&bench, "cont/blob", &[&ask(&sealed)[..], &mine.of_source()].concat(), b"").await;
            assert_eq!(refusal(source), BlobError::UnsupportedHeader { name: OF_SOURCE.key });
            let without = refusal(put(&bench, "cont/blob", &ask(&sealed), b"").await).to_reply();
            assert_eq!(without.status, 409);
        }
    }

    #[tokio::test]
    async fn metadata_is_set_and_kept_under_the_key() {
        let bench = Bench::with_container().await;
        let mine = key(1);
        put(&bench, "cont/blob", &mine.with(&[BLOCK, ("x-ms-meta-a", "first")]), b"x").await.unwrap();
        let snapshot = async |headers: &[(&str, &str)]| {
            let made = put(&bench, "cont/blob?comp=snapshot", &mine.with(headers), b"").await.unwrap();
            format!("cont/blob?snapshot={}", header(&made, "x-ms-snapshot").unwrap())
        };
        let same = snapshot(&[]).await;
        let own = snapshot(&[("x-ms-meta-a", "second")]).await;
        put(&bench, "cont/blob?comp=metadata", &mine.with(&[("x-ms-meta-a", "third")]), b"").await.unwrap();
        for (url, expected) in [(same.as_str(), "first"), (own.as_str(), "second"), ("cont/blob", "third")] {
            let told = bench.call("HEAD", url, &mine.with(&[]), b"").await.unwrap();
            assert_eq!(header(&told, "x-ms-meta-a"), Some(expected), "{url}");
            assert_eq!(refusal(bench.call("HEAD", url, &[], b"").await), USES, "{url}");
        }
        put(&bench, "cont/blob?comp=metadata", &mine.with(&[]), b"").await.unwrap();
        let told = bench.call("HEAD", "cont/blob", &mine.with(&[]), b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-meta-a"), None);
    }

    #[test]
    fn key_headers() {
        let parse =
            |headers: &[(&str, &str)]| customer_key(&crate::testing::request("GET", "cont/blob", headers), &OF_BLOB);
        let mine = key(1);
        let all = mine.with(&[]);
        assert_eq!(parse(&[]), Ok(None));
        assert_eq!(parse(&all).unwrap().unwrap().secret, Secret([1; KEY_BYTES]));
        for missing in 0..3 {
            let name = all[missing].0;
            let two: Vec<_> = all.iter().copied().filter(|(other, _)| *other != name).collect();
            let name = [KEY, SHA256_OF_KEY, ALGORITHM][missing];
            assert_eq!(parse(&two), Err(BlobError::Request(RequestError::MissingRequiredHeader { name })));
        }
        let with = |at: usize, value: &'static str| {
            let mut headers = all.clone();
            headers[at].1 = value;
            parse(&headers).unwrap_err()
        };
        for bad in ["AAAA", "not base64"] {
            assert_eq!(with(0, bad), BlobError::header(KEY, ""), "a key is not repeated");
        }
        assert_eq!(with(1, "AAAA"), BlobError::header(SHA256_OF_KEY, "AAAA"));
        assert_eq!(with(2, "AES128"), BlobError::header(ALGORITHM, "AES128"));
        assert!(!format!("{:?}", parse(&all)).contains("[1, 1"));
    }

    fn scoped(name: &str) -> [(&str, &str); 1] {
        [(SCOPE, name)]
    }

    #[tokio::test]
    async fn scopes() {
        let settings = Settings { encryption_scopes: vec!["one".into(), "two".into()], ..Settings::default() };
        let bench = Bench { settings, ..Bench::with_container().await };
        let unknown = put(&bench, "cont/blob", &[BLOCK, (SCOPE, "three")], b"x").await;
        assert_eq!(refusal(unknown), BlobError::header(SCOPE, "three"));
        let both = put(&bench, "cont/blob", &key(1).with(&[BLOCK, (SCOPE, "one")]), b"x").await;
        assert_eq!(refusal(both), BlobError::header(SCOPE, "one"));
        let made = put(&bench, "cont/blob", &[BLOCK, (SCOPE, "one")], b"x").await.unwrap();
        assert_eq!(header(&made, SCOPE), Some("one"));
        let told = bench.call("GET", "cont/blob", &[], b"").await.unwrap();
        assert_eq!(header(&told, SCOPE), Some("one"));
        let metadata = "cont/blob?comp=metadata";
        assert_eq!(refusal(put(&bench, metadata, &[], b"").await), USES);
        assert_eq!(refusal(put(&bench, metadata, &scoped("two"), b"").await), OTHER);
        put(&bench, metadata, &scoped("one"), b"").await.unwrap();
        let listed = bench.text("GET", "cont?restype=container&comp=list").await;
        assert!(listed.contains("<EncryptionScope>one</EncryptionScope>"));

        let (default, deny) = ("x-ms-default-encryption-scope", "x-ms-deny-encryption-scope-override");
        let create = async |url: &str, headers: &[(&str, &str)]| put(&bench, url, headers, b"").await;
        assert!(create("soft?restype=container", &[(default, "one")]).await.is_err());
        assert!(create("soft?restype=container", &[(default, "three"), (deny, "false")]).await.is_err());
        create("soft?restype=container", &[(default, "one"), (deny, "false")]).await.unwrap();
        create("hard?restype=container", &[(default, "one"), (deny, "true")]).await.unwrap();
        for (container, scope, expected) in
            [("soft", None, "one"), ("soft", Some("two"), "two"), ("hard", None, "one"), ("hard", Some("one"), "one")]
        {
            let url = format!("{container}/blob");
            let mut headers = vec![APPEND];
            headers.extend(scope.map(|scope| (SCOPE, scope)));
            let made = put(&bench, &url, &headers, b"").await.unwrap();
            assert_eq!(header(&made, SCOPE), Some(expected), "{container} {scope:?}");
            headers.remove(0);
            let appended = put(&bench, &format!("{url}?comp=appendblock"), &headers, b"x").await.unwrap();
            assert_eq!(header(&appended, SCOPE), Some(expected), "{container} {scope:?}");
        }
        for headers in [vec![BLOCK, (SCOPE, "two")], key(1).with(&[BLOCK])] {
            let refused = put(&bench, "hard/other", &headers, b"x").await;
            assert_eq!(refusal(refused), BlobError::RequestForbiddenByContainerEncryptionPolicy);
        }
        let told = bench.call("GET", "hard?restype=container", &[], b"").await.unwrap();
        assert_eq!((header(&told, default), header(&told, deny)), (Some("one"), Some("true")));
    }
}
