//! A process that may have few files open: what it does when there is none left, and that connections do not take them all.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::support::*;

const KEY: &str = "c2VjcmV0";
const OTHER_KEY: &str = "b3RoZXI=";
const FILES: u64 = 160;
/// What the log may say of something that fails all the time, and of everything else.
const LOG_LINES_MAX: usize = 40;
/// More than is kept in the log of the engine, so that a file of its own is needed for it.
const LARGE: usize = 200_000;

/// The program under `ulimit -n`, with its account in a file and its log in another.
struct Small {
    program: Program,
    folder: Folder,
}

impl Small {
    fn start(name: &str, options: &[&str]) -> Small {
        let folder = Folder::new(name);
        std::fs::create_dir(folder.data()).unwrap();
        let small = |key: &str| format!("[accounts.first]\nkeys = [{key:?}]\n");
        std::fs::write(folder.data().join("lazurite.toml"), small(KEY)).unwrap();
        let inner = command(&folder, options);
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("ulimit -n {FILES}; exec \"$0\" \"$@\"")).arg(inner.get_program());
        shell.args(inner.get_args()).current_dir(&folder.0).env_clear().stdin(Stdio::null());
        let log = std::fs::File::create(folder.0.join("stderr.txt")).unwrap();
        let mut program = Program::spawn_with(&mut shell, log.into());
        program.wait_for("Ready.");
        Small { program, folder }
    }

    fn rotate(&self, key: &str) {
        let (file, new) = (self.folder.data().join("lazurite.toml"), self.folder.0.join("new.toml"));
        std::fs::write(&new, format!("[accounts.first]\nkeys = [{key:?}]\n")).unwrap();
        std::fs::rename(new, file).unwrap();
    }

    fn files_open(&self) -> u64 {
        std::fs::read_dir(format!("/proc/{}/fd", self.program.child.id())).unwrap().count() as u64
    }

    fn may_open(&self, files: u64) {
        let process = Pid::from_raw(self.program.child.id() as i32).unwrap();
        let limit = Rlimit { current: Some(files), maximum: Some(FILES) };
        prlimit(Some(process), Resource::Nofile, limit).unwrap();
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.0.join("stderr.txt")).unwrap()
    }

    fn connect(&self, who: &str) -> Kept {
        Kept::to(self.program.address(who))
    }
}

/// A connection that is kept for several requests.
struct Kept(TcpStream);

impl Kept {
    fn to(address: SocketAddr) -> Kept {
        let tcp = TcpStream::connect(address).unwrap();
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        Kept(tcp)
    }

    /// The status of the answer; its body, which must have a length, is read.
    fn ask(&mut self, request: &[u8]) -> Option<u16> {
        self.0.write_all(request).ok()?;
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        let head = loop {
            if let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            let read = self.0.read(&mut piece).ok().filter(|read| *read > 0)?;
            answer.extend_from_slice(&piece[..read]);
        };
        let text = String::from_utf8_lossy(&answer[..head]).to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        while answer.len() < head + length.unwrap_or(0) {
            let read = self.0.read(&mut piece).ok().filter(|read| *read > 0)?;
            answer.extend_from_slice(&piece[..read]);
        }
        text.split(' ').nth(1)?.parse().ok()
    }
}

const HEALTH: &[u8] = b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn make_container() -> Vec<u8> {
    signed_call(("first", KEY), "PUT first/cont?restype=container", &[], b"")
}

fn put_large(name: &str) -> Vec<u8> {
    signed_call(("first", KEY), &format!("PUT first/cont/{name}"), &[("x-ms-blob-type", "BlockBlob")], &[7; LARGE])
}

#[test]
fn out_of_files_it_says_come_again_and_recovers() {
    let small = Small::start("out-of-files", &["--silent"]);
    let (mut blob, mut admin) = (small.connect("Blob"), small.connect("Admin"));
    assert_eq!(blob.ask(&make_container()), Some(201));
    assert_eq!(admin.ask(HEALTH), Some(200));
    let list = |key| signed("first", key).into_bytes();
    assert_eq!(blob.ask(&list(KEY)), Some(200));

    // As if others had used them all up: what is open stays open.
    small.may_open(0);
    small.rotate(OTHER_KEY);
    // Connections wait; each failed accept could be a line in the log.
    let waiting: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(small.program.address("Blob")).unwrap()).collect();
    let (began, mut statuses) = (Instant::now(), Vec::new());
    while began.elapsed() < Duration::from_secs(5) {
        statuses.push(blob.ask(&put_large("large")).expect("an answer"));
        assert_eq!(admin.ask(HEALTH), Some(200));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!statuses.is_empty() && statuses.iter().all(|status| *status == 503), "{statuses:?}");
    let log = small.log();
    assert!(log.lines().count() < LOG_LINES_MAX, "{} lines: {log:.2000}", log.lines().count());

    small.may_open(FILES);
    drop(waiting);
    // A connection each time: until the server has seen the others go, it may close it.
    let ask_until = |status: u16, request: &dyn Fn() -> Vec<u8>, why: &str| {
        let began = Instant::now();
        while small.connect("Blob").ask(&request()) != Some(status) {
            assert!(began.elapsed() < PATIENCE, "{why}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    ask_until(403, &|| list(KEY), "a key that was taken away still opens");
    ask_until(200, &|| list(OTHER_KEY), "its successor does not open");
    small.rotate(KEY);
    ask_until(201, &|| put_large("large"), "uploads do not work again");
    small.program.stop();
}

#[test]
fn connections_leave_files_for_everything_else() {
    let most = ["--silent", "--connections", "8000", "--connections-per-address", "8000"];
    let small = Small::start("connections-and-files", &most);
    let mut first = small.connect("Blob");
    assert_eq!(first.ask(&make_container()), Some(201));
    // Let in, so that none of them makes room for another.
    let mut open = Vec::new();
    for service in ["Blob", "Queue", "Table", "File", "Data Lake"] {
        let Some(address) = small.program.said.iter().find(|line| line.starts_with(service)) else { continue };
        let address: SocketAddr = address.rsplit('/').next().unwrap().parse().unwrap();
        open.extend((0..FILES).map(|_| TcpStream::connect(address).unwrap()));
    }
    let admin = small.program.address("Admin");
    open.extend((0..FILES).map(|_| TcpStream::connect(admin).unwrap()));
    for stream in &mut open {
        let _ = stream.write_all(signed("first", KEY).as_bytes());
    }
    // Those on the admin port make room when they have been silent for a second.
    std::thread::sleep(Duration::from_millis(1_500));
    for round in 0..3 {
        assert_eq!(first.ask(&put_large(&format!("large{round}"))), Some(201), "round {round}");
        let mut asked = Kept::to(admin);
        assert_eq!(asked.ask(HEALTH), Some(200), "round {round}");
    }
    assert!(small.files_open() < FILES, "{} files are open", small.files_open());
    small.rotate(OTHER_KEY);
    let began = Instant::now();
    while first.ask(signed("first", KEY).as_bytes()) != Some(403) {
        assert!(began.elapsed() < PATIENCE, "a key that was taken away still opens");
        std::thread::sleep(Duration::from_millis(20));
    }
    let log = small.log();
    assert!(!log.contains("could not be accepted"), "{log:.2000}");
    drop(open);
}
