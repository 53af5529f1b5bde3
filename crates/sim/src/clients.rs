//! The clients: each makes real calls of the four services, over few names, and notes what it was told.

mod blobs;
mod files;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use bytes::Bytes;
use content::map::MapCollector;
use engine::{EngineError, collector};
use engine_embedded::{EmbeddedEngine, virtual_time};
use histories::{Dice, History, Ticket};
use service::HttpService;
use service::testing::request;
use wire::http::{ErrorReply, FixedBody, Head, Reply, ReplyBody};

use crate::models::{
    BlobCall, Container, EntityWrite, FileCall, Object, PEEK_MAX, Partition, Path, Queue, QueueAnswer, QueueCall,
    Receipt, TableAnswer, TableCall, Told, Tree, Value,
};
use crate::story::Story;

const ACCOUNT: u64 = 1;
pub const CONTAINERS: usize = 2;
const BLOBS: u8 = 4;
const ROWS: u8 = 4;
/// How much a client does of each kind, out of the sum.
const BLOB_SHARE: u64 = 45;
const QUEUE_SHARE: u64 = 15;
const TABLE_SHARE: u64 = 15;
const FILE_SHARE: u64 = 20;
const SWEEP_SHARE: u64 = 5;

/// The services over one engine, for one life.
#[derive(Debug)]
pub struct World {
    engine: Arc<EmbeddedEngine>,
    blobs: blob::BlobService,
    queues: queue::QueueService,
    tables: table::TableService,
    files: file::FileService,
    notes: Arc<Notes>,
}

/// All that clients note. It outlives the machine.
#[derive(Debug)]
pub struct Notes {
    pub story: Arc<Story>,
    pub containers: Vec<Record<Container>>,
    pub queue: Record<Queue>,
    pub partition: Record<Partition>,
    pub share: Record<Tree>,
    /// What is wrong whatever the history says: bytes that were never written, errors where none may be.
    pub wrong: Mutex<Vec<String>>,
    /// Whether the disk does as it is told, so that no call may fail.
    pub is_calm: AtomicBool,
    known: Mutex<Known>,
}

/// What a client can have heard of and use.
#[derive(Debug, Default)]
struct Known {
    next_value: Value,
    etags: Vec<(usize, u8, String)>,
    snapshots: BTreeSet<(usize, u8, String)>,
    share_snapshots: BTreeSet<String>,
    tickets: Vec<Receipt>,
    entity_etags: Vec<(u8, String)>,
}

/// The calls on one object, over all lives.
#[derive(Debug)]
pub struct Record<O: Object> {
    pub history: History<O::Call, Told<O::Answer>>,
    /// The order of the whole story for each order of this history, which begins at 1.
    orders: Mutex<Vec<u64>>,
}

impl<O: Object> Default for Record<O> {
    fn default() -> Self {
        Record { history: History::default(), orders: Mutex::default() }
    }
}

/// How a call ended.
#[derive(Debug)]
enum Outcome<A> {
    Told(Told<A>),
    /// An error that says nothing about whether it was done, or a client that went away.
    Unknown,
}

impl<O: Object> Record<O> {
    fn begin(&self, story: &Story, name: &str, client: usize, call: &O::Call) -> Ticket {
        story.tell(format_args!("client {client} {name}: {call:?}"));
        self.next_order(story);
        self.history.begin(client as u64, call.clone(), now())
    }

    fn end(&self, story: &Story, name: &str, client: usize, ticket: &Ticket, outcome: Outcome<O::Answer>) {
        story.tell(format_args!("client {client} {name} -> {outcome:?}"));
        if let Outcome::Told(told) = outcome {
            self.next_order(story);
            self.history.end(ticket, told, now());
        }
    }

    /// The machine has stopped: what was not answered has happened, or never will.
    fn settle(&self, story: &Story, second: u64) {
        self.next_order(story);
        self.history.settle(second);
    }

    fn next_order(&self, story: &Story) {
        self.orders.lock().expect("nothing panics under this lock").push(story.order());
    }

    /// The first order of this history that is not before an order of the story.
    pub fn order_from(&self, order: u64) -> u64 {
        let orders = self.orders.lock().expect("nothing panics under this lock");
        orders.partition_point(|known| *known < order) as u64 + 1
    }

    /// When each value began to be written, and which values were seen from an order on; both as orders of the story.
    pub fn values(&self, from: u64) -> (Vec<(Value, u64)>, Vec<Value>) {
        let orders = self.orders.lock().expect("nothing panics under this lock");
        let (mut written, mut seen) = (Vec::new(), Vec::new());
        let order_of = |own: u64| usize::try_from(own - 1).ok().and_then(|at| orders.get(at).copied()).unwrap_or(0);
        for call in self.history.calls() {
            let begin = order_of(call.begin.order);
            written.extend(O::written(&call.call).into_iter().map(|value| (value, begin)));
            if let (true, Some(Told::Answer(answer))) = (begin >= from, &call.answer) {
                seen.extend(O::seen(answer));
            }
        }
        (written, seen)
    }
}

/// Virtual time in seconds, the unit of the histories.
fn now() -> u64 {
    virtual_time::now().as_secs()
}

impl Notes {
    #[must_use]
    pub fn new(story: Arc<Story>) -> Notes {
        Notes {
            story,
            containers: (0..CONTAINERS).map(|_| Record::default()).collect(),
            queue: Record::default(),
            partition: Record::default(),
            share: Record::default(),
            wrong: Mutex::default(),
            is_calm: AtomicBool::new(true),
            known: Mutex::default(),
        }
    }

    /// The machine has stopped.
    pub fn settle(&self, second: u64) {
        self.containers.iter().for_each(|record| record.settle(&self.story, second));
        self.queue.settle(&self.story, second);
        self.partition.settle(&self.story, second);
        self.share.settle(&self.story, second);
    }

    /// When each value began to be written, and which were seen from an order on.
    pub fn values(&self, from: u64) -> (Vec<(Value, u64)>, Vec<Value>) {
        let (mut written, mut seen) = self.queue.values(from);
        let others = self
            .containers
            .iter()
            .map(|record| record.values(from))
            .chain([self.partition.values(from), self.share.values(from)]);
        for (more_written, more_seen) in others {
            written.extend(more_written);
            seen.extend(more_seen);
        }
        (written, seen)
    }

    pub fn wrong(&self, what: String) {
        self.story.tell(format_args!("WRONG: {what}"));
        self.wrong.lock().expect("nothing panics under this lock").push(what);
    }

    fn known<T>(&self, look: impl FnOnce(&mut Known) -> T) -> T {
        look(&mut self.known.lock().expect("nothing panics under this lock"))
    }

    fn fresh(&self) -> Value {
        self.known(|known| {
            known.next_value += 1;
            known.next_value
        })
    }
}

/// How a request failed.
#[derive(Debug)]
enum Trouble {
    Refused(ErrorReply),
    Failed(EngineError),
    /// The client went away before the answer came.
    GaveUp,
}

impl<E> From<service::Failure<E>> for Trouble
where
    ErrorReply: From<E>,
{
    fn from(failure: service::Failure<E>) -> Trouble {
        match failure {
            service::Failure::Refused(error) => Trouble::Refused(error.into()),
            service::Failure::Failed(error) => Trouble::Failed(error),
            service::Failure::Body(_) => Trouble::GaveUp,
        }
    }
}

/// What an error says about whether the call was done.
fn unanswered<A>(notes: &Notes, error: &EngineError) -> Outcome<A> {
    if notes.is_calm.load(Ordering::Acquire) {
        notes.wrong(format!("a call failed though the disk is well: {error}"));
    }
    match error {
        EngineError::Busy | EngineError::Full => Outcome::Told(Told::NotDone),
        EngineError::Closed | EngineError::Unavailable(_) => Outcome::Unknown,
        EngineError::Corrupt(what) => {
            notes.wrong(format!("stored data cannot be read: {what}"));
            Outcome::Unknown
        }
        EngineError::TooLarge { .. } => {
            notes.wrong("a row was too large".into());
            Outcome::Told(Told::NotDone)
        }
        EngineError::Elsewhere { .. } => {
            notes.wrong("there is no other node".into());
            Outcome::Told(Told::NotDone)
        }
    }
}

/// Runs a request, or drops it after it had to wait `patience` times.
fn run<T>(patience: Option<u64>, request: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
    let mut request = Box::pin(request);
    let mut waited = 0;
    shuttle::future::block_on(std::future::poll_fn(move |context| match request.as_mut().poll(context) {
        Poll::Ready(answer) => Poll::Ready(answer),
        Poll::Pending => {
            waited += 1;
            if patience.is_some_and(|patience| waited > patience) {
                return Poll::Ready(Err(Trouble::GaveUp));
            }
            Poll::Pending
        }
    }))
}

impl World {
    #[must_use]
    pub fn new(engine: Arc<EmbeddedEngine>, notes: Arc<Notes>) -> World {
        World {
            blobs: blob::BlobService::new(engine.clone()),
            queues: queue::QueueService::new(engine.clone()),
            tables: table::TableService::new(engine.clone()),
            files: file::FileService::new(engine.clone(), Arc::new(file::opens::Opens::new(1))),
            engine,
            notes,
        }
    }

    /// Makes the queue, the table and the share unless they are there. `false`: they could not be made.
    pub fn prepare(&self) -> bool {
        let queue = run(None, async { Ok::<_, Trouble>(self.queue_call("PUT", "que", b"").await) });
        let table = run(None, async { Ok::<_, Trouble>(self.table_call("POST", "Tables", &[], TABLE).await) });
        let share = run(None, async { Ok::<_, Trouble>(self.file_call("PUT", files::SHARE, &[], vec![]).await) });
        let is_there = |made: Result<Result<Reply, Trouble>, Trouble>| match made {
            Ok(Ok(_)) => true,
            Ok(Err(Trouble::Refused(reply))) => {
                matches!(reply.code, "QueueAlreadyExists" | "TableAlreadyExists" | "ShareAlreadyExists")
            }
            Ok(Err(Trouble::Failed(_) | Trouble::GaveUp)) | Err(_) => false,
        };
        let (queue, table, share) = (is_there(queue), is_there(table), is_there(share));
        queue && table && share
    }

    /// Reads everything that there is. With the calls of the last life it shows what the crash has left.
    pub fn read_back(&self) {
        let reader = Client { number: 0, random: Dice::new(1), world: self, dropping: 0, large: false };
        let snapshots: Vec<_> = self.notes.known(|known| known.snapshots.iter().cloned().collect());
        for container in 0..CONTAINERS {
            reader.blob(container, BlobCall::List);
            (0..BLOBS).for_each(|blob| reader.blob(container, BlobCall::Get { blob }));
        }
        for (container, blob, id) in snapshots {
            reader.blob(container, BlobCall::GetSnapshot { blob, id });
        }
        reader.queue(QueueCall::Peek);
        reader.table(TableCall::Query);
        reader.file(FileCall::Stats);
        reader.file(FileCall::List { path: Path::new() });
        let snapshots: Vec<String> = self.notes.known(|known| known.share_snapshots.iter().cloned().collect());
        for (time, path) in snapshots.iter().flat_map(|time| files::paths().into_iter().map(move |path| (time, path))) {
            reader.file(FileCall::GetSnapshot { time: time.clone(), path });
        }
        for path in files::paths() {
            reader.file(FileCall::List { path: path.clone() });
            reader.file(FileCall::Get { path });
        }
        self.check_shares();
    }

    /// The rows of the File service agree with each other. Nothing else is at work.
    fn check_shares(&self) {
        let mut problems = Vec::new();
        let checked =
            shuttle::future::block_on(file::check(&*self.engine, &mut |problem: String| problems.push(problem)));
        if let Err(EngineError::Corrupt(what)) = checked {
            problems.push(what);
        }
        problems.into_iter().for_each(|problem| self.notes.wrong(format!("the rows of shares: {problem}")));
    }

    async fn blob_call(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Reply, Trouble> {
        let head = request(method, url, headers);
        let op = blob::Op::named_by(&head).map_err(service::Failure::Refused)?;
        Ok(self.blobs.run(op, &head, ACCOUNT, &mut FixedBody::new(Bytes::from(body))).await?)
    }

    async fn queue_call(&self, method: &str, url: &str, body: &[u8]) -> Result<Reply, Trouble> {
        let head = request(method, url, &[]);
        let op = queue::Op::named_by(&head).map_err(service::Failure::Refused)?;
        Ok(self.queues.run(op, &head, ACCOUNT, &mut FixedBody::new(Bytes::copy_from_slice(body))).await?)
    }

    async fn table_call(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Reply, Trouble> {
        let head = request(method, url, headers);
        let head = Head { endpoint: TABLES.into(), version: "2019-02-02".into(), ..head };
        let op = table::Op::named_by(&head).map_err(service::Failure::Refused)?;
        Ok(self.tables.run(op, &head, ACCOUNT, &mut FixedBody::new(Bytes::copy_from_slice(body.as_bytes()))).await?)
    }

    fn sweep(&self) {
        let handlers: [&dyn collector::Handler; 5] =
            [&self.blobs, &self.queues, &self.tables, &self.files, &MapCollector];
        let swept = shuttle::future::block_on(collector::sweep(&*self.engine, &handlers));
        self.notes.story.tell(format_args!("swept: {swept:?}"));
        if let Err(EngineError::Corrupt(what)) = swept {
            self.notes.wrong(format!("the sweeper cannot read stored data: {what}"));
        }
    }
}

const TABLE: &str = r#"{"TableName":"tab"}"#;
const TABLES: &str = "http://127.0.0.1:10002/acct";

/// One client. Its choices follow from its own source of randomness.
#[derive(Debug)]
pub struct Client<'a> {
    pub number: usize,
    pub random: Dice,
    pub world: &'a World,
    /// Out of 100 requests, how many are dropped while they wait.
    pub dropping: u64,
    /// Whether its contents are all too large for the log.
    pub large: bool,
}

impl Client<'_> {
    /// The first clients make the containers and a directory, so that few calls find none.
    pub fn begin(&self) {
        if self.number == 1 {
            self.file(FileCall::MakeDirectory { path: vec![0] });
        }
        if let Some(container) = self.number.checked_sub(1).filter(|container| *container < CONTAINERS) {
            self.blob(container, BlobCall::CreateContainer);
        }
    }

    pub fn call(&mut self) {
        let all = BLOB_SHARE + QUEUE_SHARE + TABLE_SHARE + FILE_SHARE + SWEEP_SHARE;
        match self.random.below(all) {
            kind if kind < BLOB_SHARE => {
                let container = usize::try_from(self.random.below(CONTAINERS as u64)).unwrap_or(0);
                let call = self.choose_blob_call(container);
                let is_write = matches!(call, BlobCall::Put { .. } | BlobCall::Delete { .. });
                let patience = if is_write { self.patience() } else { None };
                self.blob_as(container, call, patience);
            }
            kind if kind < BLOB_SHARE + QUEUE_SHARE => {
                let call = self.choose_queue_call();
                self.queue(call);
            }
            kind if kind < BLOB_SHARE + QUEUE_SHARE + TABLE_SHARE => {
                let call = self.choose_table_call();
                self.table(call);
            }
            kind if kind < BLOB_SHARE + QUEUE_SHARE + TABLE_SHARE + FILE_SHARE => {
                let call = self.choose_file_call();
                self.file(call);
            }
            _ => self.world.sweep(),
        }
    }

    fn patience(&self) -> Option<u64> {
        let mut random = self.random.clone();
        random.roll();
        random.chance(self.dropping).then(|| random.below(3))
    }

    fn notes(&self) -> &Notes {
        &self.world.notes
    }

    fn one_of<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() {
            return None;
        }
        from.get(usize::try_from(self.random.below(from.len() as u64)).unwrap_or(0)).cloned()
    }

    fn choose_queue_call(&mut self) -> QueueCall {
        let tickets = self.notes().known(|known| known.tickets.clone());
        let ticket = self.one_of(&tickets);
        match (self.random.below(10), ticket) {
            (4..7, _) | (7..9, None) => QueueCall::Get { hide_secs: *self.random.pick(&[1, 5, 30]) },
            (7..8, Some(ticket)) => QueueCall::Update { ticket, hide_secs: *self.random.pick(&[0, 5, 30]) },
            (8..10, Some(ticket)) => QueueCall::Delete { ticket },
            (9.., None) => QueueCall::Peek,
            _ if self.random.chance(15) => QueueCall::Peek,
            _ => QueueCall::Put { value: self.notes().fresh(), hidden_secs: *self.random.pick(&[0, 0, 0, 5]) },
        }
    }

    fn queue(&self, call: QueueCall) {
        let notes = self.notes();
        let ticket = notes.queue.begin(&notes.story, "queue", self.number, &call);
        let patience = if matches!(call, QueueCall::Delete { .. }) { self.patience() } else { None };
        let outcome = match run(patience, self.queue_request(&call)) {
            Ok(answer) => {
                if let QueueAnswer::Put(ticket) | QueueAnswer::Got(Some((_, ticket, _))) = &answer {
                    notes.known(|known| known.tickets.push(ticket.clone()));
                }
                Outcome::Told(Told::Answer(answer))
            }
            Err(Trouble::Refused(reply)) => Outcome::Told(Told::Answer(QueueAnswer::Refused(reply.code.into()))),
            Err(Trouble::Failed(error)) => unanswered(notes, &error),
            Err(Trouble::GaveUp) => Outcome::Unknown,
        };
        notes.queue.end(&notes.story, "queue", self.number, &ticket, outcome);
    }

    async fn queue_request(&self, call: &QueueCall) -> Result<QueueAnswer, Trouble> {
        let world = self.world;
        let url_of = |ticket: &Receipt| {
            let receipt = ticket.receipt.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
            format!("que/messages/{}?popreceipt={receipt}", ticket.id)
        };
        match call {
            QueueCall::Put { value, hidden_secs } => {
                let body = format!("<QueueMessage><MessageText>{value}</MessageText></QueueMessage>");
                let url = format!("que/messages?visibilitytimeout={hidden_secs}");
                let reply = world.queue_call("POST", &url, body.as_bytes()).await?;
                let text = String::from_utf8_lossy(&bytes(reply).await?).into_owned();
                Ok(QueueAnswer::Put(ticket_in(&text)))
            }
            QueueCall::Get { hide_secs } => {
                let url = format!("que/messages?numofmessages=1&visibilitytimeout={hide_secs}");
                let text =
                    String::from_utf8_lossy(&bytes(world.queue_call("GET", &url, b"").await?).await?).into_owned();
                let message = between(&text, "<QueueMessage>", "</QueueMessage>").first().map(|message| {
                    (number_in(message, "MessageText"), ticket_in(message), number_in(message, "DequeueCount"))
                });
                Ok(QueueAnswer::Got(message))
            }
            QueueCall::Peek => {
                let url = format!("que/messages?peekonly=true&numofmessages={PEEK_MAX}");
                let text =
                    String::from_utf8_lossy(&bytes(world.queue_call("GET", &url, b"").await?).await?).into_owned();
                let messages = between(&text, "<QueueMessage>", "</QueueMessage>");
                Ok(QueueAnswer::Peeked(messages.into_iter().map(|message| number_in(message, "MessageText")).collect()))
            }
            QueueCall::Delete { ticket } => {
                world.queue_call("DELETE", &url_of(ticket), b"").await?;
                Ok(QueueAnswer::Deleted)
            }
            QueueCall::Update { ticket, hide_secs } => {
                let url = format!("{}&visibilitytimeout={hide_secs}", url_of(ticket));
                let reply = world.queue_call("PUT", &url, b"").await?;
                Ok(QueueAnswer::Updated { receipt: header(&reply, "x-ms-popreceipt") })
            }
        }
    }

    fn choose_table_call(&mut self) -> TableCall {
        if self.random.chance(35) {
            return TableCall::Query;
        }
        let mut rows: Vec<u8> = (0..ROWS).collect();
        let count = 1 + self.random.below(3);
        let value = self.notes().fresh();
        let etags = self.notes().known(|known| known.entity_etags.clone());
        let mut writes = Vec::new();
        for _ in 0..count {
            let row = rows.swap_remove(usize::try_from(self.random.below(rows.len() as u64)).unwrap_or(0));
            let etag = etags.iter().rev().find(|(known, _)| *known == row).map(|(_, etag)| etag.clone());
            let write = match (self.random.below(10), etag) {
                (0..5, _) | (5..8, None) => EntityWrite::Upsert(value),
                (5..7, Some(etag)) => EntityWrite::Update { etag, value },
                (7..9, Some(etag)) => EntityWrite::Delete { etag },
                _ => EntityWrite::Insert(value),
            };
            writes.push((row, write));
        }
        TableCall::Group(writes)
    }

    fn table(&self, call: TableCall) {
        let notes = self.notes();
        let ticket = notes.partition.begin(&notes.story, "table", self.number, &call);
        let patience = if matches!(call, TableCall::Query) { None } else { self.patience() };
        let outcome = match run(patience, self.table_request(&call)) {
            Ok(answer) => {
                if let TableAnswer::Found(found) = &answer {
                    let etags = found.iter().map(|(row, _, etag)| (*row, etag.clone()));
                    notes.known(|known| known.entity_etags.extend(etags));
                }
                Outcome::Told(Told::Answer(answer))
            }
            Err(Trouble::Refused(reply)) => Outcome::Told(Told::Answer(TableAnswer::Refused(reply.code.into()))),
            Err(Trouble::Failed(error)) => unanswered(notes, &error),
            Err(Trouble::GaveUp) => Outcome::Unknown,
        };
        notes.partition.end(&notes.story, "table", self.number, &ticket, outcome);
    }

    async fn table_request(&self, call: &TableCall) -> Result<TableAnswer, Trouble> {
        match call {
            TableCall::Query => {
                let headers = [("accept", "application/json;odata=fullmetadata")];
                let reply = self.world.table_call("GET", "tab()", &headers, "").await?;
                let text = String::from_utf8_lossy(&bytes(reply).await?).into_owned();
                Ok(TableAnswer::Found(entities_in(&text)))
            }
            TableCall::Group(writes) => {
                let headers = [("content-type", "multipart/mixed; boundary=batch_1")];
                let reply = self.world.table_call("POST", "$batch", &headers, &change_set(writes)).await?;
                let text = String::from_utf8_lossy(&bytes(reply).await?).into_owned();
                let refused = text.contains("HTTP/1.1 4");
                let code = between(&text, "\"code\":\"", "\"").first().map(|code| (*code).to_owned());
                Ok(if refused { TableAnswer::Refused(code.unwrap_or_default()) } else { TableAnswer::Done })
            }
        }
    }
}

fn header(reply: &Reply, name: &str) -> String {
    reply.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

async fn bytes(reply: Reply) -> Result<Vec<u8>, Trouble> {
    let mut stream = match reply.body {
        ReplyBody::Empty => return Ok(Vec::new()),
        ReplyBody::Bytes(bytes) => return Ok(bytes.to_vec()),
        ReplyBody::Open(stream) | ReplyBody::Stream { stream, .. } => stream,
    };
    let mut whole = Vec::new();
    while let Some(bytes) = stream.next().await {
        whole.extend_from_slice(&bytes.map_err(|error| Trouble::Failed(cut_off(&error)))?);
    }
    Ok(whole)
}

/// A download that ends early. Clients see only that; here it is known why.
fn cut_off(error: &impl Debug) -> EngineError {
    EngineError::Corrupt(format!("a download was cut off: {error:?}"))
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Vec<&'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split_once(after)).map(|(inner, _)| inner).collect()
}

fn element<'a>(text: &'a str, name: &str) -> &'a str {
    between(text, &format!("<{name}>"), "</").first().copied().unwrap_or_default()
}

fn number_in(text: &str, name: &str) -> u64 {
    element(text, name).parse().unwrap_or(u64::MAX)
}

fn ticket_in(message: &str) -> Receipt {
    Receipt { id: element(message, "MessageId").into(), receipt: element(message, "PopReceipt").into() }
}

fn entities_in(text: &str) -> Vec<(u8, Value, String)> {
    let page: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let entities = page["value"].as_array().cloned().unwrap_or_default();
    let read = |entity: &serde_json::Value| {
        let row = entity["RowKey"].as_str().and_then(|row| row.parse().ok()).unwrap_or(u8::MAX);
        let value = entity["v"].as_str().and_then(|value| value.parse().ok()).unwrap_or(u64::MAX);
        (row, value, entity["odata.etag"].as_str().unwrap_or_default().to_owned())
    };
    entities.iter().map(read).collect()
}

fn change_set(writes: &[(u8, EntityWrite)]) -> String {
    let mut body = "--batch_1\r\nContent-Type: multipart/mixed; boundary=\"changeset_1\"\r\n\r\n".to_owned();
    for (row, write) in writes {
        let entity = format!("{TABLES}/tab(PartitionKey='p',RowKey='{row}')");
        let keys = format!("\"PartitionKey\":\"p\",\"RowKey\":\"{row}\"");
        let (line, headers, json) = match write {
            EntityWrite::Insert(value) => {
                (format!("POST {TABLES}/tab"), String::new(), format!("{{{keys},\"v\":\"{value}\"}}"))
            }
            EntityWrite::Upsert(value) => (format!("PUT {entity}"), String::new(), format!("{{\"v\":\"{value}\"}}")),
            EntityWrite::Update { etag, value } => {
                (format!("PUT {entity}"), format!("If-Match: {etag}\r\n"), format!("{{\"v\":\"{value}\"}}"))
            }
            EntityWrite::Delete { etag } => {
                (format!("DELETE {entity}"), format!("If-Match: {etag}\r\n"), String::new())
            }
        };
        let kind = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary";
        body.push_str(&format!("--changeset_1\r\n{kind}\r\n\r\n{line} HTTP/1.1\r\n{headers}\r\n{json}\r\n"));
    }
    body + "--changeset_1--\r\n--batch_1--\r\n"
}
