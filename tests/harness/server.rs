//! A server of one's own: any free ports, a fresh folder, a clock that tests may move.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::client::{ACCOUNT, Client, KEY, plain_get, plain_post};
use super::cluster::{self, Environment};

/// Ends with the value: the process is killed, what it leaves behind is checked, and its folder removed.
///
/// Under `scripts/cluster` it is a cluster with a database of its own, of one or more nodes.
pub struct Server {
    node: Node,
    /// Further nodes of a cluster.
    others: Vec<Node>,
    /// What leads nodes to what they share; nothing for a server with a folder.
    cluster: Environment,
    folder: PathBuf,
    service: Service,
}

struct Node {
    process: Child,
    address: SocketAddr,
    /// Where blobs are, beside files.
    blobs: Option<SocketAddr>,
    /// Where files are mounted, on nodes of a cluster.
    smb: Option<SocketAddr>,
    admin: SocketAddr,
}

/// The service that a suite is about; the others have no port, except that files have blobs beside them.
#[allow(dead_code)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Service {
    Blob,
    Queue,
    Table,
    File,
}

impl Service {
    pub fn name(self) -> &'static str {
        match self {
            Service::Blob => "Blob",
            Service::Queue => "Queue",
            Service::Table => "Table",
            Service::File => "File",
        }
    }
}

// Not every suite has a use for all of it.
#[allow(dead_code)]
impl Server {
    pub fn start() -> Server {
        Server::start_in(fresh_folder(), Service::Blob)
    }

    pub fn serving(service: Service) -> Server {
        Server::start_in(fresh_folder(), service)
    }

    /// With lines of the account in the configuration file.
    pub fn with_settings(settings: &str) -> Server {
        let folder = fresh_folder();
        fs::create_dir(folder.join("data")).expect("a folder in the folder");
        configure(&folder, settings);
        Server::start_in(folder, Service::Blob)
    }

    /// On a copy of a data folder. `None`: a cluster has no folder.
    pub fn with_data(from: &Path) -> Option<Server> {
        if std::env::var_os("LAZURITE_TEST_METADATA").is_some() {
            return None;
        }
        let folder = fresh_folder();
        copy_folder(from, &folder.join("data"));
        // Git keeps no empty folders.
        fs::create_dir_all(folder.join("data/rows/tables")).expect("a folder in the folder");
        Some(Server::start_in(folder, Service::Blob))
    }

    /// Changes those lines. The server notices after a while.
    pub fn configure(&self, settings: &str) {
        configure(&self.folder, settings);
    }

    /// A cluster whose nodes find what a variable names where `way` leads, given where it is.
    pub fn start_through(variable: &str, way: impl FnOnce(&str) -> String) -> Server {
        let folder = fresh_folder();
        let mut cluster = cluster::make(&folder);
        let place = cluster.iter_mut().find(|(name, _)| *name == variable).expect("a cluster");
        place.1 = way(&place.1);
        Server::start_on(folder, Service::Blob, cluster)
    }

    /// Nodes on what a cluster has left.
    pub fn start_again(cluster: Environment) -> Server {
        Server::start_on(fresh_folder(), Service::Blob, cluster)
    }

    /// What leads nodes to what they share.
    pub fn environment(&self) -> Environment {
        self.cluster.clone()
    }

    fn start_in(folder: PathBuf, service: Service) -> Server {
        let cluster = cluster::make(&folder);
        Server::start_on(folder, service, cluster)
    }

    fn start_on(folder: PathBuf, service: Service, cluster: Environment) -> Server {
        let node = launch(&folder, service, 0, &cluster);
        let others = (1..cluster::nodes(&cluster)).map(|_| launch(&folder, service, 0, &cluster)).collect();
        Server { node, others, cluster, folder, service }
    }

    /// `kill -9`, and a new process on what is left, at the same address. All nodes of a cluster die together.
    pub fn kill_and_restart(&mut self) {
        for node in std::iter::once(&mut self.node).chain(&mut self.others) {
            node.process.kill().and_then(|()| node.process.wait()).expect("killed");
        }
        for node in std::iter::once(&mut self.node).chain(&mut self.others) {
            *node = launch(&self.folder, self.service, node.address.port(), &self.cluster);
        }
    }

    /// Runs the program beside the nodes of a cluster, on what they share, and returns what it says.
    pub fn command(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lazurite"));
        command.env_clear().envs(self.cluster.iter().cloned()).current_dir(&self.folder).args(arguments);
        let said = command.output().expect("the program runs");
        assert!(said.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8_lossy(&said.stdout).into_owned()
    }

    /// Where the nodes of a cluster listen.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        std::iter::once(&self.node).chain(&self.others).map(|node| node.address).collect()
    }

    /// `kill -9` of the last node, for good; the others are not told.
    pub fn lose_a_node(&mut self) {
        let mut node = self.others.pop().expect("there are others");
        assert!(!node.kill(), "it had ended before");
    }

    /// Where the nodes of a cluster speak SMB.
    pub fn smb_addresses(&self) -> Vec<SocketAddr> {
        std::iter::once(&self.node).chain(&self.others).filter_map(|node| node.smb).collect()
    }

    /// The number of the node that serves SMB for all of them, if there is one now.
    pub fn smb_owner(&self) -> Option<usize> {
        let mut nodes = std::iter::once(&self.node).chain(&self.others);
        nodes.position(|node| plain_get(node.admin, "/metrics").contains("\nlazurite_smb_owner 1"))
    }

    /// The process of a node.
    pub fn process(&self, number: usize) -> u32 {
        std::iter::once(&self.node).chain(&self.others).nth(number).expect("a node").process.id()
    }

    /// `kill -9` of a node, for good. The others move up.
    pub fn lose_node(&mut self, number: usize) {
        let last = self.others.len() - 1;
        match number {
            0 => std::mem::swap(&mut self.node, &mut self.others[last]),
            number => self.others.swap(number - 1, last),
        }
        self.lose_a_node();
    }

    /// A client with a connection of its own, speaking for the owner of the account.
    pub fn client(&self) -> Client {
        let client = match self.service {
            Service::Blob | Service::Queue | Service::File => Client::new(self.node.address),
            Service::Table => Client::of_tables(self.node.address),
        };
        client.with_others(self.others.iter().map(|node| node.address).collect())
    }

    /// The same for the blobs beside the files.
    #[allow(dead_code)]
    pub fn blob_client(&self) -> Client {
        Client::new(self.node.blobs.expect("a server of files"))
    }

    /// Whether the killed server has left everything in order: every row readable, every content whole, no reference
    /// to nothing.
    fn check(&self) -> Result<(), String> {
        if !self.cluster.is_empty() {
            return Ok(());
        }
        let mut check = Command::new(env!("CARGO_BIN_EXE_lazurite"));
        let report = check.env_clear().arg("check").arg(self.folder.join("data")).output().expect("the check runs");
        let said = [report.stdout, report.stderr].concat();
        if report.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&said).into_owned()) }
    }

    /// Whether the server says that it is alive and can be used.
    pub fn is_healthy(&self) -> bool {
        let is_well = |path| plain_get(self.node.admin, path).starts_with("HTTP/1.1 200 ");
        is_well("/health/live") && is_well("/health/ready")
    }

    /// What the server has counted.
    pub fn metrics(&self) -> String {
        plain_get(self.node.admin, "/metrics")
    }

    /// How much memory the server takes, where that can be told.
    pub fn resident_bytes(&self) -> Option<u64> {
        self.node.memory("VmRSS:")
    }

    /// How much it has ever taken.
    pub fn peak_bytes(&self) -> Option<u64> {
        self.node.memory("VmHWM:")
    }

    /// Lets time pass.
    pub fn advance(&self, seconds: u64) {
        // The clock is everybody's; the others are asked for it, so that they know at once.
        let others = self.others.iter().map(|node| (node, 0));
        for (node, seconds) in std::iter::once((&self.node, seconds)).chain(others) {
            let answer = plain_post(node.admin, "/test/clock", &format!("{{\"advance_seconds\": {seconds}}}"));
            assert!(answer.starts_with("HTTP/1.1 200 "), "the clock did not move: {answer}");
        }
    }
}

/// The file is there at once and whole, because the server may be looking.
fn configure(folder: &Path, settings: &str) {
    let (file, new) = (folder.join("data/lazurite.toml"), folder.join("new.toml"));
    let text = format!("[accounts.{ACCOUNT}]\nkeys = [\"{KEY}\"]\n{settings}\n");
    fs::write(&new, text).and_then(|()| fs::rename(new, file)).expect("a file in the folder");
}

impl Drop for Server {
    fn drop(&mut self) {
        let nodes = std::iter::once(&mut self.node).chain(&mut self.others);
        let ended_early = nodes.map(Node::kill).filter(|early| *early).count() > 0;
        let errors = fs::read_to_string(self.folder.join("stderr.txt")).unwrap_or_default();
        let is_calm = !ended_early && !errors.contains("panick");
        let failed_already = std::thread::panicking();
        let checked = if is_calm && !failed_already { self.check() } else { Ok(()) };
        let _ = fs::remove_dir_all(&self.folder);
        if failed_already {
            eprintln!("The server said:\n{errors}");
        } else {
            assert!(is_calm, "the server did not stay alive and calm:\n{errors}");
            assert_eq!(checked, Ok(()), "the server left a folder that is not in order");
        }
    }
}

impl Node {
    #[allow(dead_code)] // Not every suite asks.
    fn memory(&self, name: &str) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
    }

    /// Kills it. Whether it had ended by itself before.
    fn kill(&mut self) -> bool {
        let ended_early = self.process.try_wait().is_ok_and(|ended| ended.is_some());
        let _ = self.process.kill();
        let _ = self.process.wait();
        ended_early
    }
}

fn launch(folder: &Path, service: Service, port: u16, cluster: &Environment) -> Node {
    let errors = OpenOptions::new().create(true).append(true).open(folder.join("stderr.txt"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_lazurite"));
    command.env_clear().envs(cluster.iter().cloned()).arg("--location").arg(folder.join("data"));
    for one in ["blob", "queue", "table", "file", "dfs"] {
        let is_wanted = one.eq_ignore_ascii_case(service.name());
        // Files are copied from blobs, and blobs from files.
        let is_beside = service == Service::File && one == "blob";
        let port = if is_wanted { port } else { 0 };
        let port = if is_wanted || is_beside { port.to_string() } else { "off".to_owned() };
        command.arg(format!("--{one}-port")).arg(port);
    }
    if service == Service::File && !cluster.is_empty() {
        command.args(["--smb-port", "0"]);
    }
    command.args(["--admin-port", "0", "--test-clock", "--silent", "--copy-sources", "loopback"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors.expect("a file in the folder"));
    let mut process = command.spawn().expect("the server starts");
    let said = BufReader::new(process.stdout.take().expect("standard output is ours"));
    let said: Vec<String> = said.lines().map(|line| line.expect("text")).take_while(|line| line != "Ready.").collect();
    let port_of = |who: &str| {
        let begin = format!("{who} is listening at http://");
        let address = said.iter().find_map(|line| line.strip_prefix(&begin)?.parse().ok());
        address.unwrap_or_else(|| panic!("no {who} in {said:?}; see {}", folder.display()))
    };
    let address = port_of(&format!("{} service", service.name()));
    let blobs = (service == Service::File).then(|| port_of("Blob service"));
    let smb =
        said.iter().find_map(|line| line.strip_prefix("SMB is listening at smb://")?.split(' ').next()?.parse().ok());
    Node { process, address, blobs, smb, admin: port_of("Admin") }
}

#[allow(dead_code)] // Not every suite has folders of before.
fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder in the folder");
    for entry in fs::read_dir(from).expect("a folder that is kept") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy_folder(&entry.path(), &to),
            false => _ = fs::copy(entry.path(), to).expect("copied"),
        }
    }
}

fn fresh_folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("lazurite-test-{}-{count}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a fresh folder");
    folder
}
