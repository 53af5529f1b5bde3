//! A server that is going to die.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub struct Victim {
    process: Child,
    pub blob: SocketAddr,
    pub queue: SocketAddr,
    pub table: SocketAddr,
    pub file: SocketAddr,
    /// Of a server whose clock can be moved.
    pub admin: Option<SocketAddr>,
}

impl Victim {
    /// Starts on a folder, whatever was left in it.
    pub fn start(folder: &Path) -> Victim {
        Victim::start_with(folder, &["--admin-port", "off"])
    }

    /// The same with a clock that can be moved.
    pub fn start_with_clock(folder: &Path) -> Victim {
        Victim::start_with(folder, &["--admin-port", "0", "--test-clock"])
    }

    /// The same with writes acknowledged before they are synced.
    pub fn start_relaxed(folder: &Path) -> Victim {
        Victim::start_with(folder, &["--admin-port", "off", "--durability", "relaxed"])
    }

    /// A node on what the environment leads to.
    pub fn start_node(folder: &Path, environment: &[(&'static str, String)]) -> Victim {
        Victim::start_on(folder, &["--admin-port", "off"], environment)
    }

    fn start_with(folder: &Path, options: &[&str]) -> Victim {
        Victim::start_on(folder, options, &[])
    }

    fn start_on(folder: &Path, options: &[&str], environment: &[(&'static str, String)]) -> Victim {
        let mut process = Command::new(env!("CARGO_BIN_EXE_lazurite"))
            .env_clear()
            .envs(environment.iter().cloned())
            .arg("--location")
            .arg(folder)
            .args(["--blob-port", "0", "--queue-port", "0", "--table-port", "0", "--file-port", "0"])
            .args(["--dfs-port", "off", "--silent"])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let said = BufReader::new(process.stdout.take().expect("standard output is ours"));
        let lines: Vec<String> = said.lines().map_while(Result::ok).take_while(|line| line != "Ready.").collect();
        let door = |who: &str| {
            let begins = format!("{who} is listening at http://");
            lines.iter().find_map(|line| line.strip_prefix(&begins)?.parse().ok())
        };
        match ["Blob", "Queue", "Table", "File"].map(|service| door(&format!("{service} service"))) {
            [Some(blob), Some(queue), Some(table), Some(file)] => {
                Victim { process, blob, queue, table, file, admin: door("Admin") }
            }
            _ => panic!("the server did not start again: {:?}", process.wait()),
        }
    }

    /// What the process holds in memory, as the system counts it.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<u64>().map_or(0, |kilobytes| kilobytes * 1024)
    }

    /// The local ports of its TCP connections, as the system lists them.
    pub fn ports(&self) -> Vec<u16> {
        let process = format!("/proc/{}", self.process.id());
        let files = std::fs::read_dir(format!("{process}/fd")).expect("the process is there");
        let sockets: Vec<String> = files
            .filter_map(|file| std::fs::read_link(file.ok()?.path()).ok()?.to_str().map(str::to_owned))
            .filter_map(|link| link.strip_prefix("socket:[")?.strip_suffix(']').map(str::to_owned))
            .collect();
        // Number, local address, remote address, state, and so on; the tenth is the socket.
        let table = std::fs::read_to_string(format!("{process}/net/tcp")).expect("the table of connections");
        let port = |line: &str| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let is_its = sockets.iter().any(|socket| columns.get(9) == Some(&socket.as_str()));
            let (_, port) = columns.get(1)?.split_once(':')?;
            is_its.then(|| u16::from_str_radix(port, 16).ok())?
        };
        table.lines().filter_map(port).collect()
    }

    /// Asks the server to end in good order, and waits until it has.
    pub fn stop(mut self) {
        self.signal("TERM");
        let ended = self.process.wait().expect("gone");
        assert!(ended.success(), "an orderly end: {ended}");
    }

    /// Sends it a signal by name: STOP and CONT make a pause.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.process.id().to_string()).status();
        assert!(sent.is_ok_and(|sent| sent.success()), "kill -{name}: the server is gone already");
    }

    pub fn kill(mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("gone");
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `lazurite check` finds nothing wrong. What it says.
pub fn check(folder: &Path) -> String {
    let checked = Command::new(env!("CARGO_BIN_EXE_lazurite")).env_clear().arg("check").arg(folder).output();
    let checked = checked.expect("the check runs");
    let said = String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{said}");
    said
}

pub fn fresh_folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("lazurite-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a fresh folder");
    folder
}
