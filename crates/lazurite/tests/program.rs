//! The program as a person or a test tool starts it: its lines, its refusals, its end.

#![allow(clippy::unwrap_used)] // Clippy sees tests only inside #[test]; all of this is one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
const WELL_KNOWN_KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A process of this test's own. Only it is ever signalled.
struct Program {
    child: Child,
    lines: mpsc::Receiver<String>,
    said: Vec<String>,
}

impl Program {
    fn start(folder: &Folder, options: &[&str]) -> Program {
        let mut program = Program::spawn(&mut command(folder, options));
        program.wait_for("Ready.");
        program
    }

    fn spawn(command: &mut Command) -> Program {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || out.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        Program { child, lines, said: Vec::new() }
    }

    fn wait_for(&mut self, text: &str) -> String {
        loop {
            let line =
                self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {text:?} after {:?}", self.said));
            self.said.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    fn address(&self, who: &str) -> SocketAddr {
        let line = self.said.iter().find(|line| line.starts_with(who)).unwrap();
        line.rsplit('/').next().unwrap().parse().unwrap()
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    fn wait(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn stop(mut self) -> Vec<String> {
        self.signal("-TERM");
        assert_eq!(self.wait().code(), Some(0));
        self.said.extend(self.lines.iter());
        std::mem::take(&mut self.said)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn data(&self) -> PathBuf {
        self.0.join("data")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The program on free ports with nothing from the environment.
fn command(folder: &Folder, options: &[&str]) -> Command {
    let mut command = bare(env!("CARGO_BIN_EXE_lazurite"));
    command.current_dir(&folder.0).arg("--location").arg(folder.data());
    for name in ["blob", "queue", "table", "file", "dfs", "admin"] {
        command.args([&format!("--{name}-port"), "0"]);
    }
    command.args(options);
    command
}

fn bare(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LAZURITE_") || name.starts_with("AZURITE_"))
    {
        command.env_remove(name);
    }
    command
}

/// Runs a program that is to refuse, and returns what it says.
fn refusal(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn ask(address: SocketAddr, request: &str) -> String {
    let mut tcp = TcpStream::connect(address).unwrap();
    tcp.set_read_timeout(Some(PATIENCE)).unwrap();
    tcp.write_all(request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn it_says_where_it_listens_and_how_to_connect() {
    let folder = Folder::new("greeting");
    let program = Program::start(&folder, &[]);
    for who in ["Blob service", "Queue service", "Table service", "File service", "Dfs service"] {
        let answer = ask(program.address(who), "GET /devstoreaccount1?comp=list HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 "), "{who}: {answer}");
    }
    let answer = ask(program.address("Admin"), "GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let said = program.said.join("\n");
    assert!(said.contains(&format!("Data folder: {}", folder.data().display())), "{said}");
    assert!(said.contains("Durability: full") && said.contains("AccountName=devstoreaccount1;"), "{said}");
    program.stop();
}

#[test]
fn silent_is_silent() {
    let folder = Folder::new("silent");
    let program = Program::start(&folder, &["--silent"]);
    ask(program.address("Blob"), "GET /devstoreaccount1/c/b HTTP/1.1\r\nHost: x\r\n\r\n");
    let said = program.stop();
    assert_eq!(said.len(), 7, "{said:?}");
    assert!(
        said.iter().all(|line| line.contains(" is listening at http://127.0.0.1:") || line == "Ready."),
        "{said:?}"
    );
}

#[test]
fn the_access_log_has_every_request_and_no_signature() {
    let folder = Folder::new("log");
    let program = Program::start(&folder, &[]);
    let request = "GET /devstoreaccount1/c/b?sv=2021-12-02&sig=topsecret HTTP/1.1\r\nHost: x\r\n\r\n";
    ask(program.address("Blob"), request);
    let said = program.stop().join("\n");
    assert!(said.contains("\"GET /devstoreaccount1/c/b?sv=2021-12-02&sig=REDACTED HTTP/1.1\" 403 "), "{said}");
    assert!(!said.contains("topsecret"));
}

#[test]
fn a_port_in_use_is_named_with_its_flag() {
    let folder = Folder::new("port");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = refusal(&mut command(&folder, &["--table-port", &port]));
    assert!(said.contains(&port) && said.contains("--table-port") && said.lines().count() == 1, "{said}");
    assert!(!folder.data().exists(), "the data folder was touched");
}

#[test]
fn a_data_folder_has_one_server() {
    let folder = Folder::new("twice");
    let program = Program::start(&folder, &[]);
    let said = refusal(&mut command(&folder, &[]));
    assert!(said.contains("in use"), "{said}");
    program.stop();
}

#[test]
fn the_key_that_everybody_knows_stays_on_loopback() {
    let folder = Folder::new("key");
    let said = refusal(&mut command(&folder, &["--host", "0.0.0.0"]));
    assert!(said.contains("everybody knows") && said.contains("--azurite-compat"), "{said}");
    Program::start(&folder, &["--host", "0.0.0.0", "--azurite-compat"]).stop();
    let mut own_key = command(&folder, &["--host", "0.0.0.0"]);
    let mut program = Program::spawn(own_key.env("AZURITE_ACCOUNTS", "mine:c2VjcmV0"));
    program.wait_for("Ready.");
    assert!(program.said.iter().all(|line| !line.contains("c2VjcmV0")), "{:?}", program.said);
    program.stop();
}

#[test]
fn tls_that_is_not_there_is_not_replaced_by_nothing() {
    let folder = Folder::new("tls");
    let said = refusal(&mut command(&folder, &["--cert", "a.pem", "--key", "b.pem"]));
    assert!(said.contains("TLS") && said.lines().count() == 1, "{said}");
}

#[test]
fn accounts_from_a_file() {
    let folder = Folder::new("accounts");
    let config = folder.0.join("accounts.toml");
    let text = format!("[accounts.first]\nkeys = [\"{WELL_KNOWN_KEY}\"]\nversioning = true\n");
    std::fs::write(&config, text).unwrap();
    let program = Program::start(&folder, &["--config", config.to_str().unwrap()]);
    let request = |account| format!("GET /{account}/c/b HTTP/1.1\r\nHost: x\r\nx-ms-version: 2021-12-02\r\n\r\n");
    assert!(ask(program.address("Blob"), &request("first")).starts_with("HTTP/1.1 401 "));
    assert!(ask(program.address("Blob"), &request("devstoreaccount1")).starts_with("HTTP/1.1 404 "));
    program.stop();
    std::fs::write(&config, "[accounts.first]\nkeys = [\"not base64\"]").unwrap();
    let said = refusal(&mut command(&folder, &["--config", config.to_str().unwrap()]));
    assert!(said.contains("base64") && !said.contains("not base64\""), "{said}");
}

#[test]
fn under_azurites_name_it_has_azurites_manners() {
    let folder = Folder::new("azurite");
    let link = folder.0.join("azurite-blob");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_lazurite"), &link).unwrap();
    std::fs::write(folder.0.join("package.json"), "{}").unwrap();
    let mut program = Program::spawn(bare(&link).current_dir(&folder.0).args(["--blobPort", "0", "-s"]));
    program.wait_for("Ready.");
    let said = program.said.join("\n");
    assert!(said.contains("Azurite Blob service is starting at http://127.0.0.1:"), "{said}");
    assert!(said.contains("Azurite Blob service is successfully listening at http://127.0.0.1:"), "{said}");
    assert!(!said.contains("Queue") && !said.contains("Admin"), "{said}");
    program.stop();
}

#[test]
fn the_test_clock_goes_forward_and_stays_there() {
    let folder = Folder::new("clock");
    let advance = |program: &Program| {
        let body = "{\"advance_seconds\": 60}";
        let length = body.len();
        let request = format!("POST /test/clock HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
        ask(program.address("Admin"), &request)
    };
    let program = Program::start(&folder, &["--test-clock"]);
    assert!(advance(&program).ends_with("{\"offset_seconds\":60}"));
    program.stop();
    let program = Program::start(&folder, &["--test-clock"]);
    assert!(advance(&program).ends_with("{\"offset_seconds\":120}"));
    program.stop();
    let program = Program::start(&folder, &[]);
    assert!(advance(&program).starts_with("HTTP/1.1 404 "));
    program.stop();
}

#[test]
fn check_says_whether_a_folder_is_clean() {
    let folder = Folder::new("check");
    Program::start(&folder, &[]).stop();
    let output = bare(env!("CARGO_BIN_EXE_lazurite")).arg("check").arg(folder.data()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().ends_with("clean\n"));
    let said = refusal(bare(env!("CARGO_BIN_EXE_lazurite")).arg("check").arg(folder.0.join("nothing")));
    assert!(said.contains("cannot be checked"), "{said}");
}

#[test]
fn both_signals_end_it_in_good_order_under_load() {
    for signal in ["-TERM", "-INT"] {
        let folder = Folder::new(&format!("signal{signal}"));
        let mut program = Program::start(&folder, &["--silent"]);
        let address = program.address("Blob");
        let (stop, whole, cut) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let clients: Vec<_> = (0..8)
            .map(|_| {
                let (stop, whole, cut) = (Arc::clone(&stop), Arc::clone(&whole), Arc::clone(&cut));
                std::thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        match one_request(address) {
                            Some(true) => whole.fetch_add(1, Ordering::Relaxed),
                            Some(false) => cut.fetch_add(1, Ordering::Relaxed),
                            None => 0,
                        };
                    }
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300));
        program.signal(signal);
        assert_eq!(program.wait().code(), Some(0));
        stop.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|client| client.join().unwrap());
        assert!(whole.load(Ordering::Relaxed) > 0);
        assert_eq!(cut.load(Ordering::Relaxed), 0, "answers were cut off");
    }
}

/// Whether an answer came whole; `None`: nothing came at all, so the request never began.
fn one_request(address: SocketAddr) -> Option<bool> {
    let mut tcp = TcpStream::connect(address).ok()?;
    tcp.set_read_timeout(Some(PATIENCE)).ok()?;
    tcp.write_all(b"GET /devstoreaccount1/c/b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    let read = tcp.read_to_string(&mut answer);
    if answer.is_empty() {
        return None;
    }
    Some(read.is_ok() && answer.ends_with("</Error>"))
}
