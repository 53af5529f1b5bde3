//! Starts a server of its own for a test, and signs the client's requests for it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, Secret, TokenCredential, TokenRequestOptions};
use azure_core::error::ErrorKind;
use azure_core::hmac::hmac_sha256;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{ClientOptions, Context, Request, RetryOptions, Transport, Url};
use azure_core::time::{Duration, OffsetDateTime, to_rfc7231};
use azure_storage_blob::{
    BlobClient, BlobClientOptions, BlobContainerClient, BlobContainerClientOptions, BlobServiceClient,
    BlobServiceClientOptions,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tempfile::TempDir;

pub const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const SERVICES: [&str; 6] = ["blob", "queue", "table", "file", "dfs", "admin"];

/// A server process on free ports with its own data folder; both go when it is dropped.
#[derive(Debug)]
pub struct Server {
    process: Child,
    urls: BTreeMap<String, String>,
    folder: TempDir,
    options: Vec<String>,
}

impl Server {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let (process, urls) = spawn(&folder, &options);
        Self { process, urls, folder, options }
    }

    /// Starts again on the same folder after `kill -9`. The ports are new.
    pub fn kill_and_restart(&mut self) {
        self.kill();
        (self.process, self.urls) = spawn(&self.folder, &self.options);
    }

    /// A client with the key of the account.
    pub fn service(&self) -> BlobServiceClient {
        let client_options = ClientOptions { per_try_policies: vec![Arc::new(SharedKey)], ..self.client_options() };
        let options = BlobServiceClientOptions { client_options, ..BlobServiceClientOptions::default() };
        BlobServiceClient::new(self.url(&[]), None, Some(options)).expect("a client")
    }

    /// A client that comes the way the library itself offers: with an account SAS in the URL.
    pub fn service_by_sas(&self, permissions: &str) -> BlobServiceClient {
        let (services, types, expiry, version) = ("b", "sco", "2099-01-01T00:00:00Z", "2021-08-06");
        let signature = sign(&format!("{ACCOUNT}\n{permissions}\n{services}\n{types}\n\n{expiry}\n\n\n{version}\n\n"));
        let mut url = self.url(&[]);
        let fields = [("sp", permissions), ("ss", services), ("srt", types), ("se", expiry), ("sv", version)];
        url.query_pairs_mut().extend_pairs(fields).append_pair("sig", &signature);
        let options =
            BlobServiceClientOptions { client_options: self.client_options(), ..BlobServiceClientOptions::default() };
        BlobServiceClient::new(url, None, Some(options)).expect("a client")
    }

    /// A client with a token that ends in so many seconds. Nobody has signed it.
    pub fn service_by_token(&self, seconds: i64) -> BlobServiceClient {
        let credential = Arc::new(Token { ends: OffsetDateTime::now_utc() + Duration::seconds(seconds) });
        let options =
            BlobServiceClientOptions { client_options: self.client_options(), ..BlobServiceClientOptions::default() };
        BlobServiceClient::new(self.url(&[]), Some(credential), Some(options)).expect("a client")
    }

    /// With a signature, or with nothing.
    pub fn container(&self, container: &str, sas: &[(&str, String)]) -> BlobContainerClient {
        let mut url = self.url(&[container]);
        url.query_pairs_mut().extend_pairs(sas);
        let options = BlobContainerClientOptions {
            client_options: self.client_options(),
            ..BlobContainerClientOptions::default()
        };
        BlobContainerClient::new(url, None, Some(options)).expect("a client")
    }

    /// The same.
    pub fn blob(&self, container: &str, blob: &str, sas: &[(&str, String)]) -> BlobClient {
        let mut url = self.url(&[container, blob]);
        url.query_pairs_mut().extend_pairs(sas);
        self.blob_at(url)
    }

    /// With a signature as text.
    pub fn blob_by(&self, container: &str, blob: &str, sas: &str) -> BlobClient {
        let mut url = self.url(&[container, blob]);
        url.set_query(Some(sas));
        self.blob_at(url)
    }

    fn blob_at(&self, url: Url) -> BlobClient {
        let options = BlobClientOptions { client_options: self.client_options(), ..BlobClientOptions::default() };
        BlobClient::new(url, None, Some(options)).expect("a client")
    }

    fn url(&self, below: &[&str]) -> Url {
        let path: String = below.iter().map(|segment| format!("/{segment}")).collect();
        Url::parse(&format!("{}/{ACCOUNT}{path}", self.urls["blob"])).expect("the server prints a URL")
    }

    /// Clients report the first answer they get: a retry would hide what the server said. They trust the certificate that
    /// the server has made, if it has made one.
    fn client_options(&self) -> ClientOptions {
        // Another test of this process may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let certificate = std::fs::read(self.folder.path().join("tls/cert.pem")).ok();
        let transport = certificate.map(|pem| {
            let certificate = reqwest::Certificate::from_pem(&pem).expect("a certificate");
            let client = reqwest::Client::builder().tls_certs_only([certificate]).build();
            Transport::new(Arc::new(client.expect("a client")))
        });
        ClientOptions { retry: RetryOptions::none(), transport, ..ClientOptions::default() }
    }

    /// Moves the server's time forward.
    pub fn advance(&self, seconds: u32) {
        let address = self.urls["admin"].trim_start_matches("http://").trim_end_matches('/');
        let body = format!("{{\"advance_seconds\": {seconds}}}");
        let mut stream = TcpStream::connect(address).expect("the admin port");
        write!(
            stream,
            "POST /test/clock HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    fn kill(&mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it is ours");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

#[expect(clippy::zombie_processes, reason = "a server that does not start ends the test")]
fn spawn(folder: &TempDir, options: &Vec<String>) -> (Child, BTreeMap<String, String>) {
    let mut command = Command::new(binary());
    command.arg("--location").arg(folder.path()).arg("--test-clock").args(options);
    for service in SERVICES {
        command.arg(format!("--{service}-port")).arg("0");
    }
    let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the server starts");
    let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
    let mut urls = BTreeMap::new();
    loop {
        let line = lines.next().expect("the server ended before it was ready").expect("text");
        if line.trim() == "Ready." {
            // Goes on reading, so that the server never blocks on a full pipe.
            thread::spawn(move || lines.for_each(drop));
            return (process, urls);
        }
        if let Some((name, url)) = line.split_once(" is listening at ") {
            urls.insert(name.trim_end_matches(" service").to_lowercase(), url.trim().to_owned());
        }
    }
}

fn binary() -> PathBuf {
    std::env::var_os("LAZURITE_BIN")
        .map_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target/debug/lazurite").into(), PathBuf::from)
}

/// Shared Key, which the client itself does not offer: signs each request with the account's key.
#[derive(Debug)]
struct SharedKey;

#[async_trait]
impl Policy for SharedKey {
    async fn send(&self, context: &Context, request: &mut Request, next: &[Arc<dyn Policy>]) -> PolicyResult {
        request.insert_header("x-ms-date", to_rfc7231(&OffsetDateTime::now_utc()));
        let signature = hmac_sha256(&string_to_sign(request), &Secret::new(KEY))?;
        request.insert_header("authorization", format!("SharedKey {ACCOUNT}:{signature}"));
        next[0].send(context, request, &next[1..]).await
    }
}

/// Signs with the account's key.
pub fn sign(text: &str) -> String {
    hmac_sha256(text, &Secret::new(KEY)).expect("the key is base64")
}

/// Says who somebody is, signed by nobody: `--oauth basic` looks at the claims only.
#[derive(Debug)]
struct Token {
    ends: OffsetDateTime,
}

#[async_trait]
impl TokenCredential for Token {
    async fn get_token(&self, _: &[&str], _: Option<TokenRequestOptions<'_>>) -> azure_core::Result<AccessToken> {
        let (tenant, person) = ("11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222");
        let (ends, began) = (self.ends.unix_timestamp(), self.ends.unix_timestamp() - 7200);
        let claims = format!(
            "{{\"aud\":\"https://storage.azure.com\",\"iss\":\"https://sts.windows.net/{tenant}/\",\"iat\":{began},\
             \"nbf\":{began},\"exp\":{ends},\"oid\":\"{person}\",\"tid\":\"{tenant}\"}}"
        );
        let [header, claims] = ["{\"alg\":\"HS256\"}", &claims].map(|part| URL_SAFE_NO_PAD.encode(part));
        // The client itself would not send one that it knows to be over.
        let said = OffsetDateTime::now_utc() + Duration::hours(1);
        Ok(AccessToken::new(format!("{header}.{claims}.bm9ib2R5"), said))
    }
}

fn string_to_sign(request: &Request) -> String {
    let headers: BTreeMap<String, String> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str().to_lowercase(), value.as_str().trim().to_owned()))
        .collect();
    let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
    let length = request.body().len().filter(|length| *length > 0).map(|length| length.to_string());

    let mut text = request.method().to_string();
    for value in [
        header("content-encoding"),
        header("content-language"),
        length.unwrap_or_default(),
        header("content-md5"),
        header("content-type"),
        String::new(), // The date is in x-ms-date.
        header("if-modified-since"),
        header("if-match"),
        header("if-none-match"),
        header("if-unmodified-since"),
        header("range"),
    ] {
        text += &format!("\n{value}");
    }
    for (name, value) in headers.iter().filter(|(name, _)| name.starts_with("x-ms-")) {
        text += &format!("\n{name}:{value}");
    }
    text += &format!("\n/{ACCOUNT}{}", request.url().path());
    let mut query: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in request.url().query_pairs() {
        query.entry(name.to_lowercase()).or_default().push(value.into_owned());
    }
    for (name, mut values) in query {
        values.sort();
        text += &format!("\n{name}:{}", values.join(","));
    }
    text
}

/// The call must have failed with exactly this status and error code.
#[track_caller]
pub fn refused<T>(answer: azure_core::Result<T>, status: u16, code: &str) {
    let Err(error) = answer else { panic!("expected {status} {code}, but it succeeded") };
    let ErrorKind::HttpResponse { status: found, raw_response, .. } = error.kind() else {
        panic!("no answer: {error}")
    };
    let headers = raw_response.as_ref().expect("an answer").headers();
    let found_code = headers.get_optional_str(&"x-ms-error-code".into());
    assert_eq!((u16::from(*found), found_code), (status, Some(code)), "{error}");
}
