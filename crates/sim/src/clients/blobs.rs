//! Calls of the Blob service, on few containers.

use concurrency::{BreakPeriod, LeaseDuration, LeaseId};
use histories::Dice;
use wire::http::Reply;

use super::{BLOBS, Client, Outcome, Trouble, between, bytes, header, run, unanswered};
use crate::models::{BlobAnswer, BlobCall, LeaseAction, Told, Value, When};

/// This one is written in blocks and never leased: a blob that has only blocks yet can be leased too, which the model leaves out.
const IN_BLOCKS: u8 = 3;
/// The first of the numbers by which a client chooses Put Blob.
const PUT_BLOB: u64 = 8;
/// A value with this bit is a large blob.
const LARGE: Value = 1 << 40;

impl Client<'_> {
    pub(super) fn choose_blob_call(&mut self, container: usize) -> BlobCall {
        let blob = u8::try_from(self.random.below(u64::from(BLOBS))).unwrap_or(0);
        let in_blocks = blob == IN_BLOCKS;
        let lease = if !in_blocks && self.random.chance(25) { Some(lease_id(self.random.below(2))) } else { None };
        let kind = if self.large && self.random.chance(50) { PUT_BLOB } else { self.random.below(100) };
        match kind {
            0..6 => BlobCall::CreateContainer,
            6..PUT_BLOB => BlobCall::DeleteContainer,
            PUT_BLOB..45 => {
                let size = if self.large { LARGE } else { 0 };
                let (value, mut when) = (self.notes().fresh() | size, self.choose_when(container, blob));
                // Whoever holds the lease may write a new blob over the old one all the same.
                if when == When::IsNew && lease.is_some() {
                    when = When::Always;
                }
                BlobCall::Put { blob, value, when, lease, in_blocks }
            }
            45..62 => BlobCall::Get { blob },
            62..70 => {
                // A delete that wants the blob to be new makes no sense.
                let when = Some(self.choose_when(container, blob)).filter(|when| *when != When::IsNew);
                BlobCall::Delete { blob, when: when.unwrap_or(When::Always), lease, in_blocks }
            }
            70..75 => BlobCall::Snapshot { blob },
            75..80 => {
                let known = self.notes().known(|known| known.snapshots.iter().cloned().collect::<Vec<_>>());
                let mine: Vec<_> = known.into_iter().filter(|(there, _, _)| *there == container).collect();
                match self.one_of(&mine) {
                    Some((_, blob, id)) => BlobCall::GetSnapshot { blob, id },
                    None => BlobCall::Snapshot { blob },
                }
            }
            80..84 => BlobCall::List,
            _ => BlobCall::Lease { blob: blob % IN_BLOCKS, action: self.choose_lease_action() },
        }
    }

    fn choose_lease_action(&mut self) -> LeaseAction {
        let id = lease_id(self.random.below(2));
        match self.random.below(10) {
            0..5 => {
                let durations = [LeaseDuration::Infinite, seconds(15), seconds(30)];
                LeaseAction::Acquire(id, *self.random.pick(&durations))
            }
            5..7 => LeaseAction::Renew(id),
            7..9 => LeaseAction::Release(id),
            _ => LeaseAction::Break(BreakPeriod::from_header_value(i64::try_from(self.random.below(20)).unwrap_or(0))),
        }
    }

    fn choose_when(&mut self, container: usize, blob: u8) -> When {
        match self.random.below(10) {
            0..6 => When::Always,
            6..8 => When::IsNew,
            _ => {
                let etags = self.notes().known(|known| {
                    let mine = known.etags.iter().filter(|(there, name, _)| *there == container && *name == blob);
                    mine.map(|(_, _, etag)| etag.clone()).collect::<Vec<_>>()
                });
                etags.last().map_or(When::Always, |etag| When::Matches(etag.clone()))
            }
        }
    }

    pub(super) fn blob(&self, container: usize, call: BlobCall) {
        self.blob_as(container, call, None);
    }

    pub(super) fn blob_as(&self, container: usize, call: BlobCall, patience: Option<u64>) {
        let (notes, name) = (self.notes(), format!("c{container}"));
        let ticket = notes.containers[container].begin(&notes.story, &name, self.number, &call);
        let outcome = match run(patience, self.blob_request(container, &call)) {
            Ok(answer) => {
                self.learn_blob(container, &call, &answer);
                Outcome::Told(Told::Answer(answer))
            }
            Err(Trouble::Refused(reply)) => Outcome::Told(Told::Answer(BlobAnswer::Refused(reply.code.into()))),
            Err(Trouble::Failed(error)) => unanswered(notes, &error),
            Err(Trouble::GaveUp) => Outcome::Unknown,
        };
        notes.containers[container].end(&notes.story, &name, self.number, &ticket, outcome);
    }

    fn learn_blob(&self, container: usize, call: &BlobCall, answer: &BlobAnswer) {
        self.notes().known(|known| match (call, answer) {
            (BlobCall::Put { blob, .. }, BlobAnswer::Written { etag })
            | (BlobCall::Get { blob }, BlobAnswer::Read { etag, .. }) => {
                known.etags.push((container, *blob, etag.clone()));
            }
            (BlobCall::Snapshot { blob }, BlobAnswer::Snapshot { id }) => {
                known.snapshots.insert((container, *blob, id.clone()));
            }
            _ => {}
        });
    }

    async fn blob_request(&self, container: usize, call: &BlobCall) -> Result<BlobAnswer, Trouble> {
        let world = self.world;
        let path = |blob: &u8| format!("cont{container}/b{blob}");
        let read = |reply: Reply| async { self.read_blob(reply).await };
        match call {
            BlobCall::CreateContainer => {
                world.blob_call("PUT", &format!("cont{container}?restype=container"), &[], vec![]).await?;
                Ok(BlobAnswer::Done)
            }
            BlobCall::DeleteContainer => {
                world.blob_call("DELETE", &format!("cont{container}?restype=container"), &[], vec![]).await?;
                Ok(BlobAnswer::Done)
            }
            BlobCall::Put { blob, value, when, lease, in_blocks } => {
                let headers = Conditions::new(when, *lease);
                let reply = if *in_blocks {
                    self.put_in_blocks(&path(blob), *value, &headers).await?
                } else {
                    let mut headers = headers.list();
                    headers.push(("x-ms-blob-type", "BlockBlob"));
                    world.blob_call("PUT", &path(blob), &headers, content(*value)).await?
                };
                Ok(BlobAnswer::Written { etag: header(&reply, "etag") })
            }
            BlobCall::Delete { blob, when, lease, .. } => {
                let headers = Conditions::new(when, *lease);
                let mut headers = headers.list();
                headers.push(("x-ms-delete-snapshots", "include"));
                world.blob_call("DELETE", &path(blob), &headers, vec![]).await?;
                Ok(BlobAnswer::Done)
            }
            BlobCall::Get { blob } => read(world.blob_call("GET", &path(blob), &[], vec![]).await?).await,
            BlobCall::GetSnapshot { blob, id } => {
                let url = format!("{}?snapshot={id}", path(blob));
                read(world.blob_call("GET", &url, &[], vec![]).await?).await
            }
            BlobCall::Snapshot { blob } => {
                let reply = world.blob_call("PUT", &format!("{}?comp=snapshot", path(blob)), &[], vec![]).await?;
                Ok(BlobAnswer::Snapshot { id: header(&reply, "x-ms-snapshot") })
            }
            BlobCall::List => {
                let url = format!("cont{container}?restype=container&comp=list");
                let reply = world.blob_call("GET", &url, &[], vec![]).await?;
                let text = String::from_utf8_lossy(&bytes(reply).await?).into_owned();
                let blobs = between(&text, "<Blob>", "</Blob>").into_iter().map(|blob| {
                    let name = between(blob, "<Name>b", "</Name>").first().and_then(|name| name.parse().ok());
                    let etag = between(blob, "<Etag>", "</Etag>").first().map(|etag| format!("\"{etag}\""));
                    (name.unwrap_or(u8::MAX), etag.unwrap_or_default())
                });
                Ok(BlobAnswer::Listed(blobs.collect()))
            }
            BlobCall::Lease { blob, action } => {
                let headers = lease_headers(*action);
                let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                world.blob_call("PUT", &format!("{}?comp=lease", path(blob)), &headers, vec![]).await?;
                Ok(BlobAnswer::Done)
            }
        }
    }

    /// The same contents, sent as two blocks and then committed.
    async fn put_in_blocks(&self, path: &str, value: Value, headers: &Conditions) -> Result<Reply, Trouble> {
        let bytes = content(value);
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let mut list = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
        let lease: Vec<(&str, &str)> =
            headers.list().into_iter().filter(|(name, _)| *name == "x-ms-lease-id").collect();
        for (number, part) in [(0, first), (1, second)] {
            let id = wire::base64::encode(format!("{value:015}{number}").as_bytes());
            let url =
                format!("{path}?comp=block&blockid={}", id.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D"));
            self.world.blob_call("PUT", &url, &lease, part.to_vec()).await?;
            list.push_str(&format!("<Latest>{id}</Latest>"));
        }
        list.push_str("</BlockList>");
        self.world.blob_call("PUT", &format!("{path}?comp=blocklist"), &headers.list(), list.into_bytes()).await
    }

    async fn read_blob(&self, reply: Reply) -> Result<BlobAnswer, Trouble> {
        let etag = header(&reply, "etag");
        let bytes = bytes(reply).await?;
        let value = bytes.first_chunk::<8>().map(|number| u64::from_le_bytes(*number)).unwrap_or(0);
        if bytes != content(value) {
            self.notes().wrong(format!("a blob was read whose {} bytes were never written", bytes.len()));
        }
        Ok(BlobAnswer::Read { value, etag })
    }
}

/// The headers of a condition and a lease.
struct Conditions(Vec<(&'static str, String)>);

impl Conditions {
    fn new(when: &When, lease: Option<LeaseId>) -> Conditions {
        let mut headers = Vec::new();
        match when {
            When::Always => {}
            When::Matches(etag) => headers.push(("if-match", etag.clone())),
            When::IsNew => headers.push(("if-none-match", "*".into())),
        }
        headers.extend(lease.map(|id| ("x-ms-lease-id", id.to_string())));
        Conditions(headers)
    }

    fn list(&self) -> Vec<(&str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }
}

fn lease_id(number: u64) -> LeaseId {
    LeaseId([u8::try_from(number + 1).unwrap_or(1); 16])
}

fn seconds(seconds: i64) -> LeaseDuration {
    LeaseDuration::from_header_value(seconds).expect("between 15 and 60")
}

fn duration_header(duration: LeaseDuration) -> String {
    match duration {
        LeaseDuration::Infinite => "-1".into(),
        LeaseDuration::Seconds(seconds) => seconds.to_string(),
    }
}

fn lease_headers(action: LeaseAction) -> Vec<(&'static str, String)> {
    let named = |name: &str, id: LeaseId| vec![("x-ms-lease-action", name.into()), ("x-ms-lease-id", id.to_string())];
    match action {
        LeaseAction::Acquire(id, duration) => vec![
            ("x-ms-lease-action", "acquire".into()),
            ("x-ms-proposed-lease-id", id.to_string()),
            ("x-ms-lease-duration", duration_header(duration)),
        ],
        LeaseAction::Renew(id) => named("renew", id),
        LeaseAction::Release(id) => named("release", id),
        LeaseAction::Break(period) => {
            let mut headers = vec![("x-ms-lease-action", "break".into())];
            headers.extend(period.map(|period| ("x-ms-lease-break-period", period.seconds().to_string())));
            headers
        }
    }
}

/// The bytes of a blob. Their beginning says whose they are; some are short, some go to data segments.
fn content(value: Value) -> Vec<u8> {
    let kind = Dice::new(value).roll();
    let length = match kind % 10 {
        _ if value & LARGE != 0 => 66_000 + kind / 10 % 140_000,
        0..5 => 8 + kind / 10 % 2_000,
        5..7 => 4_000 + kind / 10 % 60_000,
        _ => 66_000 + kind / 10 % 140_000,
    };
    let mut random = Dice::new(kind);
    let mut bytes = value.to_le_bytes().to_vec();
    let length = usize::try_from(length).unwrap_or(8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.roll().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
