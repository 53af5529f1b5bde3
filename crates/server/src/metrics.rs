//! What the server counts, and how it tells: the text format of Prometheus.
//!
//! Counting is a handful of relaxed additions to numbers of the operation's own, so that it costs next to nothing; only
//! errors take a lock, to be counted by their code. What an engine counts is told along with it, under its own names.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::service::Service;
use crate::services::Op;
use crate::smb_metrics::SmbMetrics;

/// The upper ends of the buckets of a latency: what it says, and as a number.
const BUCKETS: [(&str, Duration); 15] = [
    ("0.0001", Duration::from_micros(100)),
    ("0.00025", Duration::from_micros(250)),
    ("0.0005", Duration::from_micros(500)),
    ("0.001", Duration::from_millis(1)),
    ("0.0025", Duration::from_micros(2_500)),
    ("0.005", Duration::from_millis(5)),
    ("0.01", Duration::from_millis(10)),
    ("0.025", Duration::from_millis(25)),
    ("0.05", Duration::from_millis(50)),
    ("0.1", Duration::from_millis(100)),
    ("0.25", Duration::from_millis(250)),
    ("0.5", Duration::from_millis(500)),
    ("1", Duration::from_secs(1)),
    ("2.5", Duration::from_millis(2_500)),
    ("10", Duration::from_secs(10)),
];
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// Whose request it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Known(Op),
    /// It ended before it was known what it asked for.
    Unknown(Service),
}

impl RequestKind {
    pub(crate) fn service(self) -> Service {
        match self {
            RequestKind::Known(op) => op.service(),
            RequestKind::Unknown(service) => service,
        }
    }

    pub(crate) fn op(self) -> Option<Op> {
        match self {
            RequestKind::Known(op) => Some(op),
            RequestKind::Unknown(_) => None,
        }
    }

    pub(crate) fn operation(self) -> Option<&'static str> {
        self.op().map(Op::name)
    }

    /// Operations first, then what belongs to none.
    fn place(self) -> usize {
        match self {
            RequestKind::Known(op) => op.place(),
            RequestKind::Unknown(service) => Op::COUNT + service as usize,
        }
    }

    fn all() -> impl Iterator<Item = RequestKind> {
        let unknown = Service::ALL.into_iter().map(RequestKind::Unknown);
        Op::all().map(RequestKind::Known).chain(unknown)
    }
}

/// One operation. Aligned so that two of them never share a cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Operation {
    classes: [AtomicU64; CLASSES.len()],
    /// The last one has no upper end.
    buckets: [AtomicU64; BUCKETS.len() + 1],
    micros: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Metrics {
    began: Instant,
    began_at: SystemTime,
    operations: Box<[Operation]>,
    errors: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
    pub(crate) connections: AtomicU64,
    pub(crate) handshakes_failed: AtomicU64,
    pub(crate) connections_refused: AtomicU64,
    pub(crate) connections_displaced: AtomicU64,
    pub(crate) sign_ins_failed: AtomicU64,
    pub(crate) sign_ins_slowed: AtomicU64,
    /// Of a node of many: whether it serves SMB for all of them.
    pub(crate) smb_owner: OnceLock<AtomicBool>,
    pub(crate) smb: SmbMetrics,
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        Metrics {
            began: Instant::now(),
            began_at: SystemTime::now(),
            operations: RequestKind::all().map(|_| Operation::default()).collect(),
            errors: Mutex::default(),
            connections: AtomicU64::new(0),
            handshakes_failed: AtomicU64::new(0),
            connections_refused: AtomicU64::new(0),
            connections_displaced: AtomicU64::new(0),
            sign_ins_failed: AtomicU64::new(0),
            sign_ins_slowed: AtomicU64::new(0),
            smb_owner: OnceLock::new(),
            smb: SmbMetrics::default(),
        }
    }

    /// A request has its answer, though the answer's body may still have to go out.
    pub(crate) fn answered(
        &self,
        asked: RequestKind,
        status: u16,
        error: Option<&'static str>,
        took: Duration,
        received: u64,
    ) {
        let operation = &self.operations[asked.place()];
        let class = usize::from(status / 100).clamp(2, 5) - 2;
        let bucket = BUCKETS.iter().position(|(_, end)| took <= *end).unwrap_or(BUCKETS.len());
        operation.classes[class].fetch_add(1, Relaxed);
        operation.buckets[bucket].fetch_add(1, Relaxed);
        operation.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
        if received > 0 {
            operation.received.fetch_add(received, Relaxed);
        }
        if let Some(code) = error {
            let key = (asked.service().label(), code);
            *self.errors.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default() += 1;
        }
    }

    /// The body of an answer has gone out, as far as it went.
    pub(crate) fn sent(&self, asked: RequestKind, bytes: u64) {
        self.operations[asked.place()].sent.fetch_add(bytes, Relaxed);
    }

    /// Everything, with what others know: connections that are open, and the figures of the engine.
    pub(crate) fn text(&self, open: usize, engine: &[(&'static str, u64)]) -> String {
        let mut out = Exposition(String::with_capacity(16 * 1024));
        let used: Vec<(RequestKind, &Operation)> = RequestKind::all()
            .map(|asked| (asked, &self.operations[asked.place()]))
            .filter(|(_, operation)| operation.classes.iter().any(|class| class.load(Relaxed) > 0))
            .collect();
        self.tell_requests(&mut out, &used);
        tell_latencies(&mut out, &used);
        out.family("lazurite_connections_open", "gauge", "Connections that are open, on all ports.");
        out.line("lazurite_connections_open", "", open as u64);
        out.single("lazurite_connections_total", "Connections that were accepted.", &self.connections);
        let help = "Connections that never came to speak TLS.";
        out.single("lazurite_tls_handshakes_failed_total", help, &self.handshakes_failed);
        let help = "Connections that were closed because their address had too many.";
        out.single("lazurite_connections_refused_total", help, &self.connections_refused);
        let help = "Connections without a credential that were closed because others had no place.";
        out.single("lazurite_connections_displaced_total", help, &self.connections_displaced);
        let help = "Requests with a signature or token that was not good.";
        out.single("lazurite_authentication_failures_total", help, &self.sign_ins_failed);
        let help = "Of those, the ones whose refusal was slowed because their address had too many.";
        out.single("lazurite_authentication_failures_slowed_total", help, &self.sign_ins_slowed);
        self.smb.tell(&mut out);
        if let Some(is_owner) = self.smb_owner.get() {
            out.family(
                "lazurite_smb_owner",
                "gauge",
                "1 on the node that serves SMB for all of them, 0 on the others.",
            );
            out.line("lazurite_smb_owner", "", u8::from(is_owner.load(Relaxed)));
        }
        for (name, value) in engine {
            let name = format!("lazurite_engine_{name}");
            out.family(&name, "untyped", "A figure of the storage engine.");
            out.line(&name, "", value);
        }
        self.tell_process(&mut out);
        out.0
    }

    fn tell_requests(&self, out: &mut Exposition, used: &[(RequestKind, &Operation)]) {
        let name = "lazurite_requests_total";
        out.family(name, "counter", "Requests that were answered, by operation and kind of status.");
        for (asked, operation) in used {
            for (class, count) in CLASSES.iter().zip(&operation.classes) {
                let count = count.load(Relaxed);
                if count > 0 {
                    out.line(name, &format!("{},status=\"{class}\"", labels(*asked)), count);
                }
            }
        }
        let name = "lazurite_errors_total";
        out.family(name, "counter", "Refusals and failures, by the code that the client was given.");
        for ((service, code), count) in self.errors.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            out.line(name, &format!("service=\"{service}\",code=\"{code}\""), count);
        }
        let name = "lazurite_request_body_bytes_total";
        out.family(name, "counter", "Bytes of request bodies that were read.");
        for (asked, operation) in used {
            out.line(name, &labels(*asked), operation.received.load(Relaxed));
        }
        let name = "lazurite_response_body_bytes_total";
        out.family(name, "counter", "Bytes of answers' bodies that went out.");
        for (asked, operation) in used {
            out.line(name, &labels(*asked), operation.sent.load(Relaxed));
        }
    }

    fn tell_process(&self, out: &mut Exposition) {
        out.family("lazurite_uptime_seconds", "gauge", "How long the server has been running.");
        out.line("lazurite_uptime_seconds", "", self.began.elapsed().as_secs_f64());
        let began = self.began_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        out.family("process_start_time_seconds", "gauge", "When the server was started, in seconds since 1970.");
        out.line("process_start_time_seconds", "", began.as_secs_f64());
        if let Some(bytes) = resident_bytes() {
            out.family("process_resident_memory_bytes", "gauge", "Memory that the process has.");
            out.line("process_resident_memory_bytes", "", bytes);
        }
        out.family("lazurite_build_info", "gauge", "The version that is running.");
        out.line("lazurite_build_info", concat!("version=\"", env!("CARGO_PKG_VERSION"), "\""), 1);
    }
}

fn tell_latencies(out: &mut Exposition, used: &[(RequestKind, &Operation)]) {
    let name = "lazurite_request_duration_seconds";
    out.family(name, "histogram", "From the head of a request to the head of its answer.");
    let (bucket, sum, count) = (format!("{name}_bucket"), format!("{name}_sum"), format!("{name}_count"));
    for (asked, operation) in used {
        let labels = labels(*asked);
        let ends = BUCKETS.iter().map(|(end, _)| *end).chain(["+Inf"]);
        let mut so_far = 0;
        for (end, own) in ends.zip(&operation.buckets) {
            so_far += own.load(Relaxed);
            out.line(&bucket, &format!("{labels},le=\"{end}\""), so_far);
        }
        out.line(&sum, &labels, operation.micros.load(Relaxed) as f64 / 1e6);
        out.line(&count, &labels, so_far);
    }
}

fn labels(asked: RequestKind) -> String {
    let operation = asked.operation().unwrap_or("unknown");
    format!("service=\"{}\",operation=\"{operation}\"", asked.service().label())
}

/// Text in the making. All names and labels are our own, so nothing has to be escaped.
pub(crate) struct Exposition(String);

impl Exposition {
    pub(crate) fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub(crate) fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    fn single(&mut self, name: &str, help: &str, counter: &AtomicU64) {
        self.family(name, "counter", help);
        self.line(name, "", counter.load(Relaxed));
    }
}

/// `None` where the system does not tell.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_place_of_its_own() {
        let places: Vec<usize> = RequestKind::all().map(RequestKind::place).collect();
        assert_eq!(places, (0..Op::COUNT + Service::ALL.len()).collect::<Vec<_>>());
    }

    #[test]
    fn the_ends_of_the_buckets_are_what_they_say() {
        for (text, end) in BUCKETS {
            assert_eq!(text.parse::<f64>().unwrap(), end.as_secs_f64());
        }
        assert!(BUCKETS.is_sorted_by(|one, other| one.1 < other.1));
    }

    #[test]
    fn what_is_told() {
        let metrics = Metrics::new();
        let took = [Duration::from_micros(100), Duration::from_micros(101), Duration::from_secs(60)];
        for took in took {
            metrics.answered(RequestKind::Known(Op::Blob(blob::Op::PutBlob)), 201, None, took, 7);
        }
        metrics.answered(RequestKind::Known(Op::Blob(blob::Op::PutBlob)), 412, Some("ConditionNotMet"), took[0], 0);
        metrics.answered(RequestKind::Unknown(Service::Table), 501, Some("APINotImplemented"), took[0], 0);
        metrics.sent(RequestKind::Unknown(Service::Table), 9);
        let text = metrics.text(3, &[("commits", 5)]);
        let operation = "service=\"blob\",operation=\"PutBlob\"";
        for line in [
            format!("lazurite_requests_total{{{operation},status=\"2xx\"}} 3"),
            format!("lazurite_requests_total{{{operation},status=\"4xx\"}} 1"),
            "lazurite_requests_total{service=\"table\",operation=\"unknown\",status=\"5xx\"} 1".into(),
            "lazurite_errors_total{service=\"blob\",code=\"ConditionNotMet\"} 1".into(),
            format!("lazurite_request_body_bytes_total{{{operation}}} 21"),
            "lazurite_response_body_bytes_total{service=\"table\",operation=\"unknown\"} 9".into(),
            format!("lazurite_request_duration_seconds_bucket{{{operation},le=\"0.0001\"}} 2"),
            format!("lazurite_request_duration_seconds_bucket{{{operation},le=\"0.00025\"}} 3"),
            format!("lazurite_request_duration_seconds_bucket{{{operation},le=\"10\"}} 3"),
            format!("lazurite_request_duration_seconds_bucket{{{operation},le=\"+Inf\"}} 4"),
            format!("lazurite_request_duration_seconds_sum{{{operation}}} 60.000301"),
            format!("lazurite_request_duration_seconds_count{{{operation}}} 4"),
            "lazurite_connections_open 3".into(),
            "lazurite_engine_commits 5".into(),
        ] {
            assert!(text.lines().any(|told| told == line), "{line}\nis not in\n{text}");
        }
        assert!(!text.contains("GetBlob\""), "what never happened is left out");
        assert!(text.contains("\nprocess_resident_memory_bytes ") || !cfg!(target_os = "linux"));
    }

    /// Each family is described once, before its lines, and every line ends in a number.
    #[test]
    fn the_form_is_right() {
        let metrics = Metrics::new();
        for asked in RequestKind::all() {
            metrics.answered(asked, 200, Some("Code"), Duration::ZERO, 1);
        }
        let text = metrics.text(0, &[("commits", 5), ("syncs", 6)]);
        let mut described = Vec::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                described.push(rest.split(' ').next().unwrap());
            } else if !line.starts_with('#') {
                let name = line.split(['{', ' ']).next().unwrap();
                let family = described.last().unwrap();
                assert!(name.starts_with(family), "{line} under {family}");
                assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
            }
        }
        let mut once = described.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), described.len());
    }
}
