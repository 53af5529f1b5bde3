//! The program in a process of its own, and raw requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(30);
pub const WELL_KNOWN_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A process of this test's own. Only it is ever signalled.
pub struct Program {
    pub child: Child,
    lines: mpsc::Receiver<String>,
    pub said: Vec<String>,
}

impl Program {
    pub fn start(folder: &Folder, options: &[&str]) -> Program {
        let mut program = Program::spawn(&mut command(folder, options));
        program.wait_for("Ready.");
        program
    }

    pub fn spawn(command: &mut Command) -> Program {
        Program::spawn_with(command, Stdio::piped())
    }

    pub fn spawn_with(command: &mut Command, log: Stdio) -> Program {
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || out.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        Program { child, lines, said: Vec::new() }
    }

    pub fn wait_for(&mut self, text: &str) -> String {
        loop {
            let line =
                self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {text:?} after {:?}", self.said));
            self.said.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    pub fn address(&self, who: &str) -> SocketAddr {
        let line = self.said.iter().find(|line| line.starts_with(who)).unwrap();
        line.rsplit('/').next().unwrap().parse().unwrap()
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    pub fn wait(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn stop(mut self) -> Vec<String> {
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
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    pub fn data(&self) -> PathBuf {
        self.0.join("data")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The program on free ports with nothing from the environment.
pub fn command(folder: &Folder, options: &[&str]) -> Command {
    let mut command = bare(env!("CARGO_BIN_EXE_lazurite"));
    command.current_dir(&folder.0).arg("--location").arg(folder.data());
    for name in ["blob", "queue", "table", "file", "dfs", "admin"] {
        command.args([&format!("--{name}-port"), "0"]);
    }
    command.args(options);
    command
}

pub fn bare(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LAZURITE_") || name.starts_with("AZURITE_"))
    {
        command.env_remove(name);
    }
    command
}

/// Runs a program that is to refuse, and returns what it says.
pub fn refusal(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

pub fn ask(address: SocketAddr, request: &str) -> String {
    let mut tcp = TcpStream::connect(address).unwrap();
    tcp.set_read_timeout(Some(PATIENCE)).unwrap();
    tcp.write_all(request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).unwrap();
    answer
}

/// Asks again until the answer begins like this: what is read again takes effect within a second or so.
pub fn ask_until(begin: &str, mut ask: impl FnMut() -> String) {
    let began = Instant::now();
    loop {
        let answer = ask();
        if answer.starts_with(begin) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "not {begin} but {answer}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// List Containers, signed with the key of the account.
pub fn signed(account: &str, key: &str) -> String {
    let date = wire::dates::http_date(now());
    let (date, version) = (date.as_str(), "2021-12-02");
    let lines = "\n".repeat(12);
    let text = format!("GET{lines}x-ms-date:{date}\nx-ms-version:{version}\n/{account}/{account}\ncomp:list");
    let signature = auth::Key::from_base64(key).unwrap().sign(text.as_bytes());
    format!(
        "GET /{account}?comp=list HTTP/1.1\r\nHost: x\r\nx-ms-date: {date}\r\nx-ms-version: {version}\r\n\
         Authorization: SharedKey {account}:{signature}\r\n\r\n"
    )
}

/// A whole request, signed with the key of the account. The names of headers must be in lower case. It is kept open.
pub fn signed_call((account, key): (&str, &str), line: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let (verb, target) = line.split_once(' ').unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let date = wire::dates::http_date(now());
    let mut signed = [headers, &[("x-ms-date", date.as_str()), ("x-ms-version", "2021-12-02")]].concat();
    signed.sort();
    let lines: String = signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let mut pairs: Vec<_> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    pairs.sort();
    let pairs: String = pairs.iter().map(|(name, value)| format!("\n{name}:{value}")).collect();
    let length = if body.is_empty() { String::new() } else { body.len().to_string() };
    // Who writes to the secondary signs for the account.
    let text = format!("{verb}\n\n\n{length}\n\n\n\n\n\n\n\n\n{lines}/{account}/{path}{pairs}");
    let signature = auth::Key::from_base64(key).unwrap().sign(text.as_bytes());
    let headers: String = signed.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "{verb} /{target} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{headers}Authorization: SharedKey {account}:{signature}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

pub fn now() -> concurrency::Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    concurrency::Timestamp::from_unix_seconds(since.as_secs() as i64)
}
