//! The program with an SMB port, and a client on a socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use smb::Status;
use smb::testing::{Client, Told, USUAL, body};
use smb::wire::header::Command;

/// Only against hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server of one's own, killed when the value goes.
pub struct Program {
    process: Child,
    folder: PathBuf,
    options: Vec<String>,
    pub smb: SocketAddr,
    admin: SocketAddr,
}

impl Program {
    pub fn start(options: &[&str]) -> Program {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("lazurite-smb-{}-{number}", std::process::id()));
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let (process, smb, admin) = launch(&folder, &options);
        Program { process, folder, options, smb, admin }
    }

    /// `kill -9`, and a new process on what is left.
    pub fn kill_and_restart(&mut self) {
        self.process.kill().and_then(|()| self.process.wait()).expect("killed");
        (self.process, self.smb, self.admin) = launch(&self.folder, &self.options);
    }

    /// Asks the server to end, and starts a new process on what it left. Whether it ended in good order.
    pub fn stop_and_restart(&mut self) -> bool {
        let was_well = self.ended();
        (self.process, self.smb, self.admin) = launch(&self.folder, &self.options);
        was_well
    }

    /// Asks the server to end. Whether it did so in good order.
    pub fn stop(mut self) -> bool {
        self.ended()
    }

    fn ended(&mut self) -> bool {
        let id = self.process.id().to_string();
        let asked = Process::new("kill").args(["-TERM", &id]).status().expect("kill runs");
        asked.success() && self.process.wait().expect("it ends").success()
    }

    pub fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(self.admin).expect("the admin port");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill().and_then(|()| self.process.wait());
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn launch(folder: &PathBuf, options: &[String]) -> (Child, SocketAddr, SocketAddr) {
    let mut command = Process::new(env!("CARGO_BIN_EXE_lazurite"));
    command.env_clear().arg("--location").arg(folder).args(["--smb-port", "0", "--admin-port", "0", "--silent"]);
    for service in ["blob", "queue", "table", "file", "dfs"] {
        command.args([&format!("--{service}-port"), "off"]);
    }
    let mut process = command.args(options).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    let (mut smb, mut admin) = (None, None);
    loop {
        let line = lines.next().expect("the program gets ready").expect("a line");
        let address = |line: &str| line.split("://").nth(1)?.split(' ').next()?.parse().ok();
        match line.split(' ').next() {
            Some("SMB") => smb = address(&line),
            Some("Admin") => admin = address(&line),
            Some("Ready.") => break,
            _ => {}
        }
    }
    // Nobody may block on a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    (process, smb.expect("an SMB port"), admin.expect("an admin port"))
}

/// A client with a socket.
pub struct Wire {
    pub client: Client,
    pub socket: TcpStream,
}

impl Wire {
    pub fn connected(program: &Program) -> Wire {
        let socket = TcpStream::connect(program.smb).expect("the SMB port");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        Wire { client: Client::new(USUAL, true), socket }
    }

    /// NEGOTIATE and the first of two tokens; gives the second one, which was not sent.
    pub fn half_logged_on(program: &Program, key: &str) -> (Wire, Vec<u8>) {
        Wire::connected(program).half_log_on(key)
    }

    fn half_log_on(mut self, key: &str) -> (Wire, Vec<u8>) {
        let wire = &mut self;
        let frame = wire.client.negotiate();
        let answer = wire.exchange(&frame);
        let frame = wire.client.log_on(&answer, "devstoreaccount1", key);
        let answer = wire.exchange(&frame);
        let proof = wire.client.prove(&answer);
        (self, proof)
    }

    pub fn log_on(program: &Program, key: &str) -> (Wire, Status) {
        Wire::connected(program).log_on_here(key)
    }

    /// Logged on with a session that takes the place of an earlier one.
    pub fn logged_on_again(program: &Program, key: &str, previous_session: u64) -> Wire {
        let mut wire = Wire::connected(program);
        wire.client.previous_session = previous_session;
        let (wire, status) = wire.log_on_here(key);
        assert_eq!(status, Status::SUCCESS);
        wire
    }

    fn log_on_here(self, key: &str) -> (Wire, Status) {
        let (mut wire, proof) = self.half_log_on(key);
        let answer = wire.exchange(&proof);
        let status = wire.client.proven(&answer);
        (wire, status)
    }

    pub fn logged_on(program: &Program, key: &str) -> Wire {
        let (wire, status) = Wire::log_on(program, key);
        assert_eq!(status, Status::SUCCESS);
        wire
    }

    pub fn send(&mut self, frame: &[u8]) {
        self.socket.write_all(frame).expect("sent");
    }

    pub fn receive(&mut self) -> Vec<u8> {
        let mut frame = vec![0; 4];
        self.socket.read_exact(&mut frame).expect("a prefix");
        let length = u32::from_be_bytes([0, frame[1], frame[2], frame[3]]) as usize;
        frame.resize(4 + length, 0);
        self.socket.read_exact(&mut frame[4..]).expect("a frame");
        frame
    }

    pub fn exchange(&mut self, frame: &[u8]) -> Vec<u8> {
        self.send(frame);
        self.receive()
    }

    pub fn ask(&mut self, command: Command, body: Vec<u8>) -> Told {
        let frame = self.client.ask(command, body);
        let frame = self.exchange(&frame);
        self.client.answers(&frame).remove(0)
    }

    /// Asks until there are credits for several large requests.
    pub fn gather_credits(&mut self) {
        for _ in 0..20 {
            assert_eq!(self.ask(Command::Echo, body::empty()).status(), Status::SUCCESS);
        }
    }

    pub fn connect(&mut self, share: &str) {
        let told = self.ask(Command::TreeConnect, body::tree_connect(share));
        assert_eq!(told.status(), Status::SUCCESS);
        self.client.tree_id = told.header.tree_id().expect("a tree");
    }

    /// Reads until the server closes, and says whether it does: not when time is up.
    pub fn ends(mut self) -> bool {
        let mut rest = Vec::new();
        match self.socket.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}
