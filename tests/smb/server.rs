//! The program with an SMB port, and a client on a socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use smb::Status;
use smb::testing::{Asked, Client, Told, USUAL, body};
use smb::wire::header::Command;

/// Only against hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server of one's own, killed when the value goes.
pub struct Program {
    process: Child,
    folder: PathBuf,
    options: Vec<String>,
    pub smb: SocketAddr,
    /// The File service over REST.
    pub file: SocketAddr,
    admin: SocketAddr,
}

/// Where a process listens.
struct Ports {
    smb: SocketAddr,
    file: SocketAddr,
    admin: SocketAddr,
}

impl Program {
    pub fn start(options: &[&str]) -> Program {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("lazurite-smb-{}-{number}", std::process::id()));
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let (process, Ports { smb, file, admin }) = launch(&folder, &options);
        Program { process, folder, options, smb, file, admin }
    }

    fn launch_again(&mut self) {
        let (process, Ports { smb, file, admin }) = launch(&self.folder, &self.options);
        (self.process, self.smb, self.file, self.admin) = (process, smb, file, admin);
    }

    /// `kill -9`, and a new process on what is left.
    pub fn kill_and_restart(&mut self) {
        self.kill_and_check();
        self.launch_again();
    }

    /// `kill -9`; what is left in the folder is whole.
    pub fn kill_and_check(&mut self) {
        self.process.kill().and_then(|()| self.process.wait()).expect("killed");
        let checked = Process::new(env!("CARGO_BIN_EXE_lazurite")).env_clear().arg("check").arg(&self.folder).output();
        let checked = checked.expect("the check runs");
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    }

    /// A new process on what is left.
    pub fn restart(&mut self) {
        self.launch_again();
    }

    /// Bytes that the process has in memory now.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
    }

    /// Asks the server to end, and starts a new process on what it left. Whether it ended in good order.
    pub fn stop_and_restart(&mut self) -> bool {
        let was_well = self.ended();
        self.launch_again();
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

fn launch(folder: &PathBuf, options: &[String]) -> (Child, Ports) {
    let mut command = Process::new(env!("CARGO_BIN_EXE_lazurite"));
    command.env_clear().arg("--location").arg(folder).args(["--smb-port", "0", "--admin-port", "0", "--silent"]);
    for service in ["blob", "queue", "table", "dfs"] {
        command.args([&format!("--{service}-port"), "off"]);
    }
    command.args(["--file-port", "0"]);
    let mut process = command.args(options).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    let (mut smb, mut file, mut admin) = (None, None, None);
    loop {
        let line = lines.next().expect("the program gets ready").expect("a line");
        let address = |line: &str| line.split("://").nth(1)?.split(' ').next()?.parse().ok();
        match line.split(' ').next() {
            Some("SMB") => smb = address(&line),
            Some("File") => file = address(&line),
            Some("Admin") => admin = address(&line),
            Some("Ready.") => break,
            _ => {}
        }
    }
    // Nobody may block on a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    let ports = Ports {
        smb: smb.expect("an SMB port"),
        file: file.expect("a port for files"),
        admin: admin.expect("an admin port"),
    };
    (process, ports)
}

/// A client with a socket.
pub struct Wire {
    pub client: Client,
    pub socket: TcpStream,
}

impl Wire {
    pub fn connected(program: &Program) -> Wire {
        Wire::connected_to(program.smb).expect("the SMB port")
    }

    pub fn connected_to(address: SocketAddr) -> io::Result<Wire> {
        let socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Wire { client: Client::new(USUAL, true), socket })
    }

    /// Logs on at an address, where nobody may answer.
    #[allow(dead_code)] // Not every suite has many servers.
    pub fn log_on_at(address: SocketAddr, key: &str) -> io::Result<(Wire, Status)> {
        let mut wire = Wire::connected_to(address)?;
        let frame = wire.client.negotiate();
        let answer = wire.try_exchange(&frame)?;
        let frame = wire.client.log_on(&answer, "devstoreaccount1", key);
        let answer = wire.try_exchange(&frame)?;
        let frame = wire.client.prove(&answer);
        let answer = wire.try_exchange(&frame)?;
        let status = wire.client.proven(&answer);
        Ok((wire, status))
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
        self.try_receive().expect("a frame")
    }

    pub fn try_receive(&mut self) -> io::Result<Vec<u8>> {
        let mut frame = vec![0; 4];
        self.socket.read_exact(&mut frame)?;
        let length = u32::from_be_bytes([0, frame[1], frame[2], frame[3]]) as usize;
        frame.resize(4 + length, 0);
        self.socket.read_exact(&mut frame[4..])?;
        Ok(frame)
    }

    pub fn try_exchange(&mut self, frame: &[u8]) -> io::Result<Vec<u8>> {
        self.socket.write_all(frame)?;
        self.try_receive()
    }

    pub fn exchange(&mut self, frame: &[u8]) -> Vec<u8> {
        self.send(frame);
        self.receive()
    }

    /// The final answer to a request.
    pub fn ask(&mut self, command: Command, body: Vec<u8>) -> Told {
        self.try_ask(command, body).expect("an answer")
    }

    /// The same of a server that may go away.
    pub fn try_ask(&mut self, command: Command, body: Vec<u8>) -> io::Result<Told> {
        Ok(self.try_ask_all(vec![Asked::new(command, body)])?.remove(0))
    }

    /// The final answers to the requests of one frame, in their order.
    pub fn ask_all(&mut self, asked: Vec<Asked>) -> Vec<Told> {
        self.try_ask_all(asked).expect("answers")
    }

    /// The same of a server that may go away.
    pub fn try_ask_all(&mut self, asked: Vec<Asked>) -> io::Result<Vec<Told>> {
        let count = asked.len();
        let frame = self.client.frame(asked);
        self.socket.write_all(&frame)?;
        let mut told = Vec::new();
        while told.len() < count {
            let frame = self.try_receive()?;
            let answers = self.client.answers(&frame);
            told.extend(answers.into_iter().filter(|answer| answer.status() != Status::PENDING));
        }
        Ok(told)
    }

    /// Opens a file: access, share access, disposition and options as in CREATE.
    pub fn open(&mut self, name: &str, access: u32, share: u32, disposition: u32, options: u32) -> Told {
        self.ask(Command::Create, body::create(name, access, share, disposition, options))
    }

    /// Asks until there are credits for several large requests.
    pub fn gather_credits(&mut self) {
        for _ in 0..20 {
            assert_eq!(self.ask(Command::Echo, body::empty()).status(), Status::SUCCESS);
        }
    }

    /// Logged on and connected to the share `data`.
    pub fn on_data(program: &Program) -> Wire {
        let mut wire = Wire::logged_on(program, crate::KEY);
        wire.connect("data");
        wire
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
