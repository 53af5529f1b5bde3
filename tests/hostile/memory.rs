//! Memory and health while somebody sends what takes most of it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::harness::{Client, Server};

/// What the server may take while 32 of the most costly queries run: 12 MiB each for a record, a row of seven columns and their
/// answer, and as much again that was freed and that the allocator keeps for a second.
const PEAK_BYTES_MAX: u64 = 768 << 20;
/// What it may keep when they, or thousands of connections, have gone.
const KEPT_BYTES_MAX: u64 = 128 << 20;
/// How long that may take: the server looks every five seconds whether there is memory to give back.
const GIVEN_BACK_WITHIN: Duration = Duration::from_secs(60);
/// Health checks are given up by those who ask after about so long.
const HEALTH_WITHIN: Duration = Duration::from_secs(30);
/// Queries at once.
const QUERIES: usize = 32;
/// How long they are asked for.
const QUERYING: Duration = Duration::from_secs(10);
/// Connections at once, from one address, where this process may have so many.
const CROWD: usize = 4_000;
const CROWDS: usize = 3;
const MIB: usize = 1 << 20;

const BLOCK_BLOB: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

/// Queries that take as much memory or time as a query can.
fn costly() -> Vec<(&'static str, String)> {
    let columns = |count: usize| vec!["_1"; count].join(",");
    let between = (0..24).fold("_1".to_owned(), |inner, _| format!("({inner}) BETWEEN 0 AND 1"));
    let like = format!("%_{}b%", "a".repeat(200));
    vec![
        ("wide", format!("SELECT {} FROM BlobStorage", columns(300))),
        // As wide as a row may be.
        ("full", format!("SELECT {} FROM BlobStorage", columns(7))),
        ("between", format!("SELECT * FROM BlobStorage WHERE {between}")),
        ("between", format!("SELECT _1 FROM BlobStorage WHERE _1 {}", "BETWEEN 0 AND _1 ".repeat(24))),
        ("like", format!("SELECT COUNT(*) FROM BlobStorage WHERE _1 LIKE '{like}'")),
        ("upper", "SELECT UPPER(_1),LOWER(_1),TRIM(_1),UPPER(LOWER(_1)),_1 FROM BlobStorage".to_owned()),
    ]
}

fn query(expression: &str) -> String {
    let expression = expression.replace('&', "&amp;").replace('<', "&lt;");
    format!("<QueryRequest><QueryType>SQL</QueryType><Expression>{expression}</Expression></QueryRequest>")
}

/// Sends a query and reads its answer, or leaves it where it is, until time is up. The status.
fn ask(client: &Client, address: SocketAddr, expression: &str, reads: bool, end: Instant) -> Option<u16> {
    let body = query(expression);
    let head = client.head("POST cont/records?comp=query", &[], Some(body.len() as u64));
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_millis(500))).ok()?;
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).ok()?;
    let (mut first, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
    while Instant::now() < end {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => {
                first.extend_from_slice(&piece[..count.min(64 - first.len().min(64))]);
                if !reads || first.starts_with(b"HTTP/1.1 503") || first.starts_with(b"HTTP/1.1 400") {
                    break;
                }
            }
            Err(_) => {}
        }
    }
    if !reads {
        std::thread::sleep(end.saturating_duration_since(Instant::now()).min(Duration::from_secs(2)));
    }
    let _ = stream.shutdown(Shutdown::Both);
    String::from_utf8_lossy(&first).split(' ').nth(1)?.parse().ok()
}

/// Asks how the server is, again and again. Returns how often, and the longest wait.
fn watch(server: &Server, is_over: &AtomicBool) -> (u64, Duration) {
    let (mut count, mut longest) = (0, Duration::ZERO);
    while !is_over.load(Ordering::Acquire) {
        let asked = Instant::now();
        assert!(server.is_healthy(), "the server says that it is not well");
        longest = longest.max(asked.elapsed());
        assert!(longest < HEALTH_WITHIN, "health was told after {longest:?}");
        count += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    (count, longest)
}

/// Runs something while health is asked for.
fn watched(server: &Server, what: &str, work: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    let (count, longest) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch(server, &is_over));
        work();
        is_over.store(true, Ordering::Release);
        watching.join().expect("health was told")
    });
    assert!(count > 0, "nobody has asked");
    eprintln!("{what}: health was told {count} times, after {longest:?} at most");
}

#[test]
fn memory_and_health_stay_within_their_limits() {
    let server = Server::start();
    if server.peak_bytes().is_none() {
        return eprintln!("SKIPPED: this system does not tell how much memory a process has");
    }
    let client = server.client();
    client.call("PUT cont?restype=container", &[], "").ok();
    let record = [vec![b'a'; MIB - 1], vec![b'\n']].concat();
    client.call("PUT cont/records", &[BLOCK_BLOB], record.repeat(8)).ok();

    watched(&server, "queries", || ask_all(&server));
    let peak = server.peak_bytes().expect("it was told before");
    eprintln!("at most {} MiB while {QUERIES} queries ran", peak >> 20);
    assert!(peak < PEAK_BYTES_MAX, "the server has taken {} MiB", peak >> 20);
    await_little(&server, "queries");

    let request = b"GET /devstoreaccount1/cont/blob HTTP/1.1\r\nHost: x\r\n\r\n";
    watched(&server, "connections", || (0..CROWDS).for_each(|_| crowd(server.addresses()[0], request)));
    let peak = server.peak_bytes().expect("it was told before");
    assert!(peak < PEAK_BYTES_MAX, "the server has taken {} MiB", peak >> 20);

    // As long as a head can be, and no end of it.
    let unfinished = [b"GET / HTTP/1.1\r\nx-ms-meta-a: ".as_slice(), &vec![b'a'; 120 * 1024]].concat();
    watched(&server, "heads without end", || crowd(server.addresses()[0], &unfinished));
    let peak = server.peak_bytes().expect("it was told before");
    eprintln!("at most {} MiB with the heads", peak >> 20);
    assert!(peak < PEAK_BYTES_MAX, "the server has taken {} MiB", peak >> 20);

    await_little(&server, "connections");
}

/// Waits until the server has given back what it no longer needs.
fn await_little(server: &Server, what: &str) {
    let began = Instant::now();
    loop {
        let kept = server.resident_bytes().expect("it was told before");
        if kept < KEPT_BYTES_MAX {
            return eprintln!("{} MiB are kept, {:?} after the {what}", kept >> 20, began.elapsed());
        }
        assert!(began.elapsed() < GIVEN_BACK_WITHIN, "{} MiB were not given back after the {what}", kept >> 20);
        std::thread::sleep(Duration::from_millis(250));
    }
}

/// All queries, over and over, by many clients at once; every second client does not take its answers.
fn ask_all(server: &Server) {
    let (address, end, queries) = (server.addresses()[0], Instant::now() + QUERYING, costly());
    let statuses: [AtomicU64; 4] = Default::default();
    std::thread::scope(|scope| {
        for number in 0..QUERIES {
            let (queries, statuses, client) = (&queries, &statuses, server.client());
            scope.spawn(move || {
                for turn in (0..).take_while(|_| Instant::now() < end) {
                    let (_, expression) = &queries[(number + turn) % queries.len()];
                    let place = match ask(&client, address, expression, number % 2 == 0, end) {
                        Some(200) => 0,
                        Some(400) => 1,
                        Some(503) => 2,
                        Some(other) => panic!("{expression:.100}: {other}"),
                        None => 3,
                    };
                    statuses[place].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let [ran, refused, busy, silent] = statuses.map(AtomicU64::into_inner);
    eprintln!("{ran} queries ran, {refused} were refused, {busy} were told to come again, {silent} had no answer");
    assert!(ran > 0, "no query ran, so nothing was shown");
}

/// Opens as many connections as this process may have (its limit is raised as far as it can be), sends something on every second
/// one, and closes all.
fn crowd(address: SocketAddr, sent: &[u8]) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let allowed = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, rustix::process::Rlimit { current: allowed.maximum, ..allowed });
    let mut open = Vec::new();
    while open.len() < CROWD {
        let Ok(mut stream) = TcpStream::connect(address) else { break };
        if open.len() % 2 == 0 {
            // The server may have enough of it.
            let _ = stream.set_write_timeout(Some(Duration::from_secs(10)));
            let _ = stream.write_all(sent);
        }
        open.push(stream);
    }
    eprintln!("{} connections at once", open.len());
    assert!(open.len() > 100, "this process may have hardly any connection");
}
