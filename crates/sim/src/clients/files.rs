//! Calls of the File service, on one share.

use bytes::Bytes;
use histories::Dice;
use service::HttpService;
use service::testing::request;
use wire::http::{FixedBody, Reply};

use super::{ACCOUNT, Client, Outcome, Trouble, World, between, bytes, element, header, number_in, run, unanswered};
use crate::models::{FileAnswer, FileCall, Path, Told, Value};

/// Few, so that clients meet.
const NAMES: u8 = 2;
/// The deepest path that a client names. A rename may put something deeper.
const DEPTH_MAX: usize = 3;
const CELLS_MAX: u64 = 3;
/// A write of one takes neighbours along, a write of three is too large for the log.
const CELL_BYTES: usize = 24_000;

const SNAPSHOTS_MAX: usize = 3;

pub const SHARE: &str = "share?restype=share";

impl World {
    pub(super) async fn file_call(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Reply, Trouble> {
        let head = request(method, url, headers);
        let op = file::Op::named_by(&head).map_err(service::Failure::Refused)?;
        Ok(self.files.run(op, &head, ACCOUNT, &mut FixedBody::new(Bytes::from(body))).await?)
    }
}

/// All paths that clients name, shortest first.
pub fn paths() -> Vec<Path> {
    let mut all = vec![Path::new()];
    let mut begin = 0;
    for _ in 0..DEPTH_MAX {
        let deepest = begin..all.len();
        begin = all.len();
        for at in deepest {
            all.extend((0..NAMES).map(|name| [all[at].as_slice(), &[name]].concat()).collect::<Vec<_>>());
        }
    }
    all.remove(0);
    all
}

fn url(path: &[u8]) -> String {
    path.iter().fold("share".to_owned(), |url, name| format!("{url}/n{name}"))
}

/// The bytes of a cell. They say by which call they were written, and where.
fn cell(value: Value, index: usize) -> Vec<u8> {
    if value == 0 {
        return vec![0; CELL_BYTES];
    }
    let mut random = Dice::new(value ^ ((index as u64) << 48));
    let mut bytes = value.to_le_bytes().to_vec();
    while bytes.len() < CELL_BYTES {
        bytes.extend_from_slice(&random.roll().to_le_bytes());
    }
    bytes.truncate(CELL_BYTES);
    bytes
}

impl Client<'_> {
    fn path(&mut self, longest: u64) -> Path {
        let length = 1 + self.random.below(longest);
        (0..length).map(|_| u8::try_from(self.random.below(u64::from(NAMES))).unwrap_or(0)).collect()
    }

    /// Some cells that follow each other: the first, and how many.
    fn cells(&mut self) -> (usize, usize) {
        let first = if self.large { 0 } else { self.random.below(CELLS_MAX) };
        let count = if self.large { CELLS_MAX } else { 1 + self.random.below(CELLS_MAX - first) };
        (usize::try_from(first).unwrap_or(0), usize::try_from(count).unwrap_or(1))
    }

    pub(super) fn choose_file_call(&mut self) -> FileCall {
        let path = self.path(DEPTH_MAX as u64);
        match self.random.below(110) {
            100..110 => self.choose_snapshot_call(path),
            0..12 => FileCall::MakeDirectory { path: self.path(2) },
            12..27 => {
                let cells = if self.random.chance(70) { CELLS_MAX } else { self.random.below(CELLS_MAX) };
                FileCall::Create { path, cells: usize::try_from(cells).unwrap_or(0) }
            }
            27..50 => {
                let (first, count) = self.cells();
                FileCall::Write { path, first, count, value: self.notes().fresh() }
            }
            50..57 => {
                let (first, count) = self.cells();
                FileCall::Clear { path, first, count }
            }
            57..64 => FileCall::Resize { path, cells: usize::try_from(self.random.below(CELLS_MAX + 1)).unwrap_or(0) },
            64..76 => {
                let is_directory = self.random.chance(50);
                let (from, to) = if is_directory { (self.path(2), self.path(2)) } else { (path, self.path(3)) };
                FileCall::Rename { from, to, is_directory, replaces: self.random.chance(50) }
            }
            76..82 => FileCall::DeleteFile { path },
            82..86 => FileCall::DeleteDirectory { path: self.path(2) },
            86..94 => FileCall::Get { path },
            94..98 => FileCall::List { path: if self.random.chance(50) { Path::new() } else { self.path(2) } },
            _ => FileCall::Stats,
        }
    }

    /// A few snapshots at a time: each of them is read as a whole after a crash.
    fn choose_snapshot_call(&mut self, path: Path) -> FileCall {
        let known: Vec<String> = self.notes().known(|known| known.share_snapshots.iter().cloned().collect());
        let Some(time) = known.get(usize::try_from(self.random.below(known.len().max(1) as u64)).unwrap_or(0)).cloned()
        else {
            return FileCall::Snapshot;
        };
        match self.random.below(10) {
            0..3 if known.len() < SNAPSHOTS_MAX => FileCall::Snapshot,
            0..4 => FileCall::DropSnapshot { time },
            4..7 => FileCall::ListSnapshot { time, path: if self.random.chance(50) { Path::new() } else { path } },
            _ => FileCall::GetSnapshot { time, path },
        }
    }

    fn learn_file(&self, call: &FileCall, answer: &FileAnswer) {
        self.notes().known(|known| match (call, answer) {
            (_, FileAnswer::Taken(time)) => _ = known.share_snapshots.insert(time.clone()),
            (FileCall::DropSnapshot { time }, _) => _ = known.share_snapshots.remove(time),
            _ => {}
        });
    }

    pub(super) fn file(&self, call: FileCall) {
        let notes = self.notes();
        let ticket = notes.share.begin(&notes.story, "share", self.number, &call);
        let is_read = matches!(
            call,
            FileCall::Get { .. }
                | FileCall::List { .. }
                | FileCall::Stats
                | FileCall::GetSnapshot { .. }
                | FileCall::ListSnapshot { .. }
        );
        let patience = if is_read { None } else { self.patience() };
        let outcome = match run(patience, self.file_request(&call)) {
            Ok(answer) => {
                self.learn_file(&call, &answer);
                Outcome::Told(Told::Answer(answer))
            }
            Err(Trouble::Refused(reply)) => {
                let answer = FileAnswer::Refused(reply.code.into());
                self.learn_file(&call, &answer);
                Outcome::Told(Told::Answer(answer))
            }
            Err(Trouble::Failed(error)) => unanswered(notes, &error),
            Err(Trouble::GaveUp) => Outcome::Unknown,
        };
        notes.share.end(&notes.story, "share", self.number, &ticket, outcome);
    }

    async fn file_request(&self, call: &FileCall) -> Result<FileAnswer, Trouble> {
        let world = self.world;
        let put = async |url: String, headers: &[(&str, &str)], body: Vec<u8>| {
            let reply = world.file_call("PUT", &url, headers, body).await?;
            let id = Some(header(&reply, "x-ms-file-id")).filter(|id| !id.is_empty());
            Ok(FileAnswer::Changed { id, etag: header(&reply, "etag") })
        };
        let range = |first: usize, count: usize| {
            let (begin, end) = (first * CELL_BYTES, (first + count) * CELL_BYTES);
            format!("bytes={begin}-{}", end - 1)
        };
        let delete = async |url: String| {
            world.file_call("DELETE", &url, &[], vec![]).await?;
            Ok(FileAnswer::Deleted)
        };
        match call {
            FileCall::MakeDirectory { path } => put(format!("{}?restype=directory", url(path)), &[], vec![]).await,
            FileCall::Create { path, cells } => {
                let length = (cells * CELL_BYTES).to_string();
                put(url(path), &[("x-ms-type", "file"), ("x-ms-content-length", &length)], vec![]).await
            }
            FileCall::Write { path, first, count, value } => {
                let body = (*first..first + count).flat_map(|index| cell(*value, index)).collect();
                let headers = [("x-ms-write", "update"), ("x-ms-range", &*range(*first, *count))];
                put(format!("{}?comp=range", url(path)), &headers, body).await
            }
            FileCall::Clear { path, first, count } => {
                let headers = [("x-ms-write", "clear"), ("x-ms-range", &*range(*first, *count))];
                put(format!("{}?comp=range", url(path)), &headers, vec![]).await
            }
            FileCall::Resize { path, cells } => {
                let length = (cells * CELL_BYTES).to_string();
                put(format!("{}?comp=properties", url(path)), &[("x-ms-content-length", &length)], vec![]).await
            }
            FileCall::Rename { from, to, is_directory, replaces } => {
                let source = format!("http://127.0.0.1:10000/acct/{}", url(from));
                let replaces = if *replaces { "true" } else { "false" };
                let headers = [("x-ms-file-rename-source", &*source), ("x-ms-file-rename-replace-if-exists", replaces)];
                let kind = if *is_directory { "restype=directory&" } else { "" };
                put(format!("{}?{kind}comp=rename", url(to)), &headers, vec![]).await
            }
            FileCall::DeleteFile { path } => delete(url(path)).await,
            FileCall::DeleteDirectory { path } => delete(format!("{}?restype=directory", url(path))).await,
            FileCall::Get { path } => self.read_file(world.file_call("GET", &url(path), &[], vec![]).await?).await,
            FileCall::List { path } => self.list_directory(format!("{}?restype=directory&comp=list", url(path))).await,
            FileCall::Snapshot => {
                let reply = world.file_call("PUT", &format!("{SHARE}&comp=snapshot"), &[], vec![]).await?;
                Ok(FileAnswer::Taken(header(&reply, "x-ms-snapshot")))
            }
            FileCall::DropSnapshot { time } => delete(format!("{SHARE}&sharesnapshot={time}")).await,
            FileCall::GetSnapshot { time, path } => {
                let url = format!("{}?sharesnapshot={time}", url(path));
                self.read_file(world.file_call("GET", &url, &[], vec![]).await?).await
            }
            FileCall::ListSnapshot { time, path } => {
                self.list_directory(format!("{}?restype=directory&comp=list&sharesnapshot={time}", url(path))).await
            }
            FileCall::Stats => {
                let reply = world.file_call("GET", &format!("{SHARE}&comp=stats"), &[], vec![]).await?;
                let text = String::from_utf8_lossy(&bytes(reply).await?).into_owned();
                let used = usize::try_from(number_in(&text, "ShareUsageBytes")).unwrap_or(usize::MAX);
                Ok(FileAnswer::Used(if used % CELL_BYTES == 0 { used / CELL_BYTES } else { usize::MAX }))
            }
        }
    }

    async fn list_directory(&self, url: String) -> Result<FileAnswer, Trouble> {
        let reply = self.world.file_call("GET", &url, &[], vec![]).await?;
        let text = String::from_utf8_lossy(&bytes(reply).await?).into_owned();
        Ok(FileAnswer::Listed(text.split("<Name>").skip(1).map(listed).collect()))
    }

    async fn read_file(&self, reply: Reply) -> Result<FileAnswer, Trouble> {
        let (id, etag) = (header(&reply, "x-ms-file-id"), header(&reply, "etag"));
        let bytes = bytes(reply).await?;
        let value = |bytes: &[u8]| bytes.first_chunk::<8>().map_or(0, |number| u64::from_le_bytes(*number));
        let cells: Vec<Value> = bytes.chunks(CELL_BYTES).map(value).collect();
        let whole: Vec<u8> = cells.iter().enumerate().flat_map(|(index, value)| cell(*value, index)).collect();
        if bytes != whole {
            self.notes().wrong(format!("a file was read whose {} bytes were never written so", bytes.len()));
        }
        Ok(FileAnswer::Read { cells, id, etag })
    }
}

/// An entry of a directory: the text from its name up to the next name.
fn listed(entry: &str) -> (u8, String, Option<usize>) {
    let name = entry.split('<').next().and_then(|name| name.strip_prefix('n')).and_then(|name| name.parse().ok());
    let length = between(entry, "<Content-Length>", "<").first().and_then(|length| length.parse::<usize>().ok());
    (name.unwrap_or(u8::MAX), element(entry, "FileId").to_owned(), length.map(|length| length / CELL_BYTES))
}
