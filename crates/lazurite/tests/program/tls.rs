//! https: certificates from files, of our own making, and their replacement.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::support::*;

/// One request to a server whose certificate is this one.
pub fn ask_https(address: SocketAddr, name: &str, certificate: &Path, request: &str) -> Result<String, String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let tcp = TcpStream::connect(address).unwrap();
    tcp.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = StreamOwned::new(client, tcp);
    let request = request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(|error| error.to_string())?;
    Ok(answer)
}

fn request() -> String {
    signed("devstoreaccount1", WELL_KNOWN_KEY)
}

/// A certificate for localhost and its key.
fn certificate(folder: &Folder, name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let path = |end: &str| folder.0.join(format!("{name}.{end}")).to_str().unwrap().to_owned();
    std::fs::write(path("pem"), made.cert.pem()).unwrap();
    std::fs::write(path("key"), made.signing_key.serialize_pem()).unwrap();
    (path("pem"), path("key"))
}

#[test]
fn a_certificate_of_our_own_is_made_once() {
    let folder = Folder::new("tls-auto");
    let mut program = Program::start(&folder, &["--tls", "auto"]);
    let file = folder.data().join("tls/cert.pem");
    let said = program.said.join("\n");
    for words in ["REQUESTS_CA_BUNDLE='", "SSL_CERT_FILE='", "NODE_EXTRA_CA_CERTS='"] {
        assert!(said.contains(&format!("{words}{}'", file.display())), "{said}");
    }
    assert!(
        said.contains("DefaultEndpointsProtocol=https;") && said.contains("BlobEndpoint=https://127.0.0.1:"),
        "{said}"
    );
    let first = std::fs::read(&file).unwrap();
    for turn in 0..2 {
        let blob = program.address("Blob");
        for name in ["localhost", "127.0.0.1", "::1"] {
            let answer = ask_https(blob, name, &file, &request()).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 "), "{turn} {name}: {answer}");
        }
        assert!(ask_https(blob, "example.org", &file, &request()).is_err());
        assert_eq!(std::fs::read(&file).unwrap(), first);
        program.stop();
        program = Program::start(&folder, &["--tls", "auto"]);
    }
    program.stop();
}

#[test]
fn pem_files_are_used_and_read_again() {
    let folder = Folder::new("tls-pem");
    let (cert, key) = certificate(&folder, "used");
    let program = Program::start(&folder, &["--cert", &cert, "--key", &key, "--silent"]);
    let blob = program.address("Blob");
    let first = folder.0.join("first.pem");
    std::fs::copy(&cert, &first).unwrap();
    assert!(ask_https(blob, "localhost", &first, &request()).unwrap().starts_with("HTTP/1.1 200 "));
    let (new_cert, new_key) = certificate(&folder, "new");
    std::fs::rename(&new_key, &key).unwrap();
    std::fs::rename(&new_cert, &cert).unwrap();
    ask_until("HTTP/1.1 200 ", || ask_https(blob, "localhost", Path::new(&cert), &request()).unwrap_or_default());
    assert!(ask_https(blob, "localhost", &first, &request()).is_err());
    program.stop();
}

#[cfg(feature = "pfx")]
#[test]
fn a_pfx_file_is_opened_with_its_password() {
    let folder = Folder::new("tls-pfx");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let pem = folder.0.join("cert.pem");
    std::fs::write(&pem, made.cert.pem()).unwrap();
    let key = p12_keystore::PrivateKey::from_der(&made.signing_key.serialize_der()).unwrap();
    let cert = p12_keystore::Certificate::from_der(made.cert.der()).unwrap();
    let mut store = p12_keystore::KeyStore::new();
    let chain = p12_keystore::PrivateKeyChain::new(b"1".to_vec(), key, [cert]);
    store.add_entry("server", p12_keystore::KeyStoreEntry::PrivateKeyChain(chain));
    let pfx = folder.0.join("cert.pfx");
    std::fs::write(&pfx, store.writer("open sesame").write().unwrap()).unwrap();

    let pfx = pfx.to_str().unwrap();
    let program = Program::start(&folder, &["--cert", pfx, "--pwd", "open sesame"]);
    let answer = ask_https(program.address("Blob"), "localhost", &pem, &request()).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(program.stop().iter().all(|line| !line.contains("sesame")));
    let said = refusal(&mut command(&folder, &["--cert", pfx, "--pwd", "wrong password"]));
    assert!(said.contains("--pwd") && !said.contains("wrong password") && said.lines().count() == 1, "{said}");
}

#[test]
fn bad_files_are_named_in_a_sentence_and_the_data_is_not_touched() {
    let folder = Folder::new("tls-bad");
    let (cert, key) = certificate(&folder, "one");
    let (_, other_key) = certificate(&folder, "other");
    for (cert, key, word) in [
        (cert.as_str(), other_key.as_str(), "does not belong"),
        (key.as_str(), key.as_str(), "no certificate"),
        (cert.as_str(), cert.as_str(), "no private key"),
        ("nowhere.pem", key.as_str(), "nowhere.pem cannot be read"),
    ] {
        let said = refusal(&mut command(&folder, &["--cert", cert, "--key", key]));
        assert!(said.contains(word) && said.lines().count() == 1, "{said}");
    }
    assert!(refusal(&mut command(&folder, &["--cert", &cert])).contains("--key"));
    assert!(!folder.data().exists());
}

#[test]
fn plain_http_is_refused_where_tls_is_spoken() {
    let folder = Folder::new("tls-plain");
    let program = Program::start(&folder, &["--tls", "auto", "--in-memory"]);
    let answer = ask(program.address("Blob"), &request());
    assert!(!answer.contains("HTTP/1.1 2"), "{answer}");
    program.stop();
}
