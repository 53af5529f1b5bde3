//! Counts of SMB requests by command.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use smb::Status;
use smb::server::Answered;
use smb::wire::header::Command;

use crate::metrics::Exposition;

/// There are nineteen commands, numbered from 0 on.
const COMMANDS: usize = Command::ALL.len();

/// One command.
#[derive(Debug, Default)]
struct Counts {
    answered: AtomicU64,
    refused: AtomicU64,
    micros: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
}

/// All commands, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct SmbMetrics([Counts; COMMANDS]);

impl SmbMetrics {
    /// A request has its final answer.
    pub(crate) fn answered(&self, answered: &Answered<'_>) {
        let Some(counts) = self.0.get(answered.command as usize) else { return };
        // A logon takes two answers; the first one is no refusal.
        match answered.status.is_error() && answered.status != Status::MORE_PROCESSING_REQUIRED {
            true => counts.refused.fetch_add(1, Relaxed),
            false => counts.answered.fetch_add(1, Relaxed),
        };
        counts.micros.fetch_add(u64::try_from(answered.took.as_micros()).unwrap_or(u64::MAX), Relaxed);
        counts.received.fetch_add(answered.received, Relaxed);
        counts.sent.fetch_add(answered.sent, Relaxed);
    }

    /// Nothing is told of commands that nobody sent.
    pub(crate) fn tell(&self, out: &mut Exposition) {
        let of = |counts: &Counts| counts.answered.load(Relaxed) + counts.refused.load(Relaxed);
        let used: Vec<(&Command, &Counts)> =
            Command::ALL.iter().zip(&self.0).filter(|(_, counts)| of(counts) > 0).collect();
        if used.is_empty() {
            return;
        }
        let name = "lazurite_smb_requests_total";
        out.family(name, "counter", "SMB requests that were answered, by command.");
        for (command, counts) in &used {
            for (status, count) in [("success", &counts.answered), ("error", &counts.refused)] {
                let labels = format!("command=\"{}\",status=\"{status}\"", command.name());
                out.line(name, &labels, count.load(Relaxed));
            }
        }
        let name = "lazurite_smb_request_seconds_total";
        out.family(name, "counter", "Time from an SMB request to its answer, by command.");
        for (command, counts) in &used {
            out.line(name, &label(command), counts.micros.load(Relaxed) as f64 / 1e6);
        }
        let name = "lazurite_smb_received_bytes_total";
        out.family(name, "counter", "Bytes of SMB requests, by command.");
        for (command, counts) in &used {
            out.line(name, &label(command), counts.received.load(Relaxed));
        }
        let name = "lazurite_smb_sent_bytes_total";
        out.family(name, "counter", "Bytes of SMB answers, by command.");
        for (command, counts) in &used {
            out.line(name, &label(command), counts.sent.load(Relaxed));
        }
    }
}

fn label(command: &Command) -> String {
    format!("command=\"{}\"", command.name())
}
