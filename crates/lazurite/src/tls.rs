//! TLS: the certificate from PEM or PFX files, or one of our own making for this machine.
//!
//! The certificate is a value that can be replaced while the server runs: a renewal needs no restart.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, ServerConfig};
use server::{Manners, Shared};
use time::{Duration, OffsetDateTime};

use crate::flags::{Tls, Wrong};
use crate::private_file::Replacement;
use crate::secret::Secret;

/// Some systems take no certificate that is valid for more than 825 days.
const OWN_DAYS: i64 = 820;
/// One that ends sooner than this is made anew at the start.
const OWN_DAYS_LEFT_MIN: i64 = 30;
/// Stands before the certificate, where readers of PEM pass it over; then the seconds since 1970 when it ends.
const OWN_MARK: &str = "Made by lazurite --tls auto for this machine. Ends: ";

/// Where the certificate comes from, with the folder of our own one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Own(Own),
    Pem { cert: PathBuf, key: PathBuf },
    Pfx { cert: PathBuf, password: Option<Secret> },
}

/// The files of the certificate that we make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    pub cert: PathBuf,
    key: PathBuf,
}

impl Source {
    /// `None`: no TLS.
    pub fn of(tls: &Tls, data_folder: &Path) -> Option<Source> {
        match tls {
            Tls::Off => None,
            Tls::Auto => Some(Source::Own(Own::within(data_folder))),
            Tls::Pem { cert, key } => Some(Source::Pem { cert: cert.clone(), key: key.clone() }),
            Tls::Pfx { cert, password } => Some(Source::Pfx { cert: cert.clone(), password: password.clone() }),
        }
    }

    pub fn files(&self) -> Vec<&Path> {
        match self {
            Source::Own(Own { cert, key }) | Source::Pem { cert, key } => vec![cert, key],
            Source::Pfx { cert, .. } => vec![cert],
        }
    }

    /// Reads the certificate and its key.
    pub fn load(&self, manners: Manners) -> Result<CertifiedKey, Wrong> {
        match self {
            Source::Own(own) => load_pem(&own.cert, &own.key, Manners::Azure),
            Source::Pem { cert, key } => load_pem(cert, key, manners),
            Source::Pfx { cert, password } => load_pfx(cert, password.as_ref(), manners),
        }
    }
}

/// The certificate in use.
#[derive(Debug)]
pub struct Certificate(Shared<CertifiedKey>);

impl Certificate {
    pub fn new(certified: CertifiedKey) -> Arc<Certificate> {
        Arc::new(Certificate(Shared::new(certified)))
    }

    /// Connections from now on get this one.
    pub fn set(&self, certified: CertifiedKey) {
        self.0.set(certified);
    }

    /// What the server speaks with it.
    pub fn config(self: &Arc<Certificate>) -> Result<Arc<ServerConfig>, Wrong> {
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Wrong(format!("TLS cannot be set up: {error}.")))?;
        let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::clone(self) as _);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.get())
    }
}

fn provider() -> CryptoProvider {
    ring::default_provider()
}

fn load_pem(cert: &Path, key: &Path, manners: Manners) -> Result<CertifiedKey, Wrong> {
    let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&read(cert)?).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| Wrong(format!("{} holds no certificate in PEM form.", cert.display())))?;
    let private = PrivateKeyDer::from_pem_slice(&read(key)?)
        .map_err(|_| Wrong(format!("{} holds no private key in PEM form, or one that is encrypted.", key.display())))?;
    certified(chain, private, (cert, key), manners)
}

#[cfg(feature = "pfx")]
fn load_pfx(cert: &Path, password: Option<&Secret>, manners: Manners) -> Result<CertifiedKey, Wrong> {
    use p12_keystore::{KeyStore, Pkcs12ImportPolicy};
    use rustls::pki_types::PrivatePkcs8KeyDer;
    let password = password.map_or("", Secret::expose);
    let store = KeyStore::from_pkcs12(&read(cert)?, password, Pkcs12ImportPolicy::Relaxed)
        .map_err(|_| Wrong(format!("{} is not a PFX file that the given password opens (--pwd).", cert.display())))?;
    let (_, chain) = store
        .private_key_chain()
        .ok_or_else(|| Wrong(format!("{} holds no certificate together with its private key.", cert.display())))?;
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(chain.key().as_der().to_vec()));
    let chain = chain.certs().iter().map(|cert| CertificateDer::from(cert.as_der().to_vec())).collect();
    certified(chain, private, (cert, cert), manners)
}

#[cfg(not(feature = "pfx"))]
fn load_pfx(cert: &Path, _: Option<&Secret>, _: Manners) -> Result<CertifiedKey, Wrong> {
    Err(Wrong(format!(
        "This program was built without PFX files, so {} is not a PFX file for it: give PEM files with --cert and --key.",
        cert.display()
    )))
}

fn certified(
    chain: Vec<CertificateDer<'static>>,
    private: PrivateKeyDer<'static>,
    (cert, key): (&Path, &Path),
    manners: Manners,
) -> Result<CertifiedKey, Wrong> {
    let loaded = match CertifiedKey::from_der(chain.clone(), private.clone_key(), &provider()) {
        // Certificates of the first version of X.509 cannot even be held against their key. OpenSSL takes them, so Azurite
        // does; whether a client takes them is its own business.
        Err(rustls::Error::InvalidCertificate(_)) if manners == Manners::Azurite => {
            let key = provider().key_provider.load_private_key(private);
            key.map(|key| CertifiedKey::new(chain, key))
        }
        loaded => loaded,
    };
    loaded.map_err(|error| {
        let (cert, key) = (cert.display(), key.display());
        Wrong(match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                format!("The key in {key} does not belong to the certificate in {cert}.")
            }
            error => format!("The certificate in {cert} with the key in {key} cannot be used: {error}."),
        })
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Wrong> {
    std::fs::read(path).map_err(|error| Wrong(format!("{} cannot be read: {error}.", path.display())))
}

impl Own {
    fn within(data_folder: &Path) -> Own {
        let folder = data_folder.join("tls");
        Own { cert: folder.join("cert.pem"), key: folder.join("key.pem") }
    }

    /// Makes the certificate if there is none, or none that will do. One that somebody else put there is left alone.
    pub fn prepare(&self, now: OffsetDateTime) -> Result<(), Wrong> {
        let _lock = self.lock().map_err(|error| self.not_written(&error))?;
        let found = std::fs::read_to_string(&self.cert).ok();
        let is_good = found.is_some_and(|text| match ends(&text) {
            Some(end) => {
                end > now + Duration::days(OWN_DAYS_LEFT_MIN) && load_pem(&self.cert, &self.key, Manners::Azure).is_ok()
            }
            None => true,
        });
        if is_good { Ok(()) } else { self.make(now) }
    }

    fn make(&self, now: OffsetDateTime) -> Result<(), Wrong> {
        let end = now + Duration::days(OWN_DAYS);
        let (cert, key) =
            self_signed(now, end).map_err(|error| Wrong(format!("No certificate can be made: {error}.")))?;
        let cert = format!("{OWN_MARK}{}\n{cert}", end.unix_timestamp());
        self.write(&cert, &key).map_err(|error| self.not_written(&error))
    }

    fn not_written(&self, error: &std::io::Error) -> Wrong {
        Wrong(format!("The certificate {} cannot be written: {error}.", self.cert.display()))
    }

    /// Servers that keep their data in memory may share the folder and start at the same time.
    fn lock(&self) -> std::io::Result<std::fs::File> {
        let folder = self.cert.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let lock = std::fs::File::create(folder.join("LOCK"))?;
        #[cfg(unix)]
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)?;
        // What stands there now was cut off in an earlier run.
        for left in ["cert.pem.new", "key.pem.new"] {
            let _ = std::fs::remove_file(folder.join(left));
        }
        Ok(lock)
    }

    fn write(&self, cert: &str, key: &str) -> std::io::Result<()> {
        Replacement::begin(&self.key)?.put(key.as_bytes())?;
        Replacement::begin(&self.cert)?.put(cert.as_bytes())?;
        // The certificate is no secret; clients of other users need it.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&self.cert, std::fs::Permissions::from_mode(0o644))?;
        }
        Ok(())
    }
}

/// When a certificate of ours ends; `None`: it is not ours.
fn ends(text: &str) -> Option<OffsetDateTime> {
    let seconds = text.lines().next()?.strip_prefix(OWN_MARK)?.trim().parse().ok()?;
    OffsetDateTime::from_unix_timestamp(seconds).ok()
}

/// Signed by itself and no authority over others: whoever trusts it trusts this one server and nothing else.
fn self_signed(now: OffsetDateTime, end: OffsetDateTime) -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "Lazurite on this machine");
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // Clocks differ.
    params.not_before = now - Duration::days(1);
    params.not_after = end;
    let cert = params.self_signed(&key)?;
    Ok((cert.pem(), key.serialize_pem()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TestFolder(PathBuf);

    impl TestFolder {
        fn new(name: &str) -> TestFolder {
            let folder = std::env::temp_dir().join(format!("lazurite-tls-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder).unwrap();
            TestFolder(folder)
        }

        fn write(&self, name: &str, text: &str) -> PathBuf {
            std::fs::write(self.0.join(name), text).unwrap();
            self.0.join(name)
        }
    }

    impl Drop for TestFolder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn at(days: i64) -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + Duration::days(20_000 + days)
    }

    #[test]
    fn our_own_is_made_once_and_again_before_it_ends() {
        let place = TestFolder::new("own");
        let own = Own::within(&place.0);
        let cert_at = |days| {
            own.prepare(at(days)).unwrap();
            std::fs::read_to_string(&own.cert).unwrap()
        };
        let first = cert_at(0);
        assert!(Source::Own(own.clone()).load(Manners::Azure).is_ok());
        assert_eq!(cert_at(700), first);
        let second = cert_at(800);
        assert_ne!(second, first);
        std::fs::write(&own.key, "cut off").unwrap();
        std::fs::write(own.key.with_extension("pem.new"), "cut off").unwrap();
        let third = cert_at(801);
        assert_ne!(third, second);
        assert!(Source::Own(own.clone()).load(Manners::Azure).is_ok());
    }

    #[test]
    fn who_comes_at_the_same_time_gets_the_same() {
        let place = TestFolder::new("together");
        let own = Own::within(&place.0);
        let certs: Vec<_> = std::thread::scope(|scope| {
            let one = || {
                own.prepare(at(0)).unwrap();
                Source::Own(own.clone()).load(Manners::Azure).unwrap().cert
            };
            let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(certs.iter().all(|cert| *cert == certs[0]));
    }

    #[cfg(unix)]
    #[test]
    fn its_key_is_ours_alone() {
        use std::os::unix::fs::PermissionsExt;
        let place = TestFolder::new("mode");
        let own = Own::within(&place.0);
        own.prepare(at(0)).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&own.key), mode(&own.cert)), (0o600, 0o644));
    }

    #[test]
    fn somebody_elses_is_left_alone() {
        let place = TestFolder::new("theirs");
        let own = Own::within(&place.0);
        let (cert, key) = self_signed(at(0), at(1)).unwrap();
        std::fs::create_dir(place.0.join("tls")).unwrap();
        place.write("tls/cert.pem", &cert);
        place.write("tls/key.pem", &key);
        own.prepare(at(900)).unwrap();
        assert_eq!(std::fs::read_to_string(&own.cert).unwrap(), cert);
    }

    #[test]
    fn what_is_wrong_with_files_is_said() {
        let place = TestFolder::new("wrong");
        let (cert, key) = self_signed(at(0), at(1)).unwrap();
        let (_, other_key) = self_signed(at(0), at(1)).unwrap();
        let (cert, key, other) = (place.write("c", &cert), place.write("k", &key), place.write("o", &other_key));
        let none = place.0.join("none");
        assert!(load_pem(&cert, &key, Manners::Azure).is_ok());
        for (outcome, word) in [
            (load_pem(&none, &key, Manners::Azure), "cannot be read"),
            (load_pem(&cert, &none, Manners::Azure), "cannot be read"),
            (load_pem(&key, &key, Manners::Azure), "no certificate"),
            (load_pem(&cert, &cert, Manners::Azure), "no private key"),
            (load_pem(&cert, &other, Manners::Azure), "does not belong"),
            (load_pfx(&cert, None, Manners::Azure), "not a PFX"),
        ] {
            let Wrong(sentence) = outcome.unwrap_err();
            assert!(sentence.contains(word) && sentence.ends_with('.'), "{sentence}");
        }
    }

    /// Made by `openssl x509 -req` for these tests only.
    #[test]
    fn certificates_of_the_first_version_are_taken_in_azurites_place() {
        let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
        let (cert, key) = (files.join("first-version.crt"), files.join("first-version.key"));
        assert!(load_pem(&cert, &key, Manners::Azure).is_err());
        assert_eq!(load_pem(&cert, &key, Manners::Azurite).unwrap().cert.len(), 1);
    }
}
