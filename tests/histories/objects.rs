//! The objects that clients share, how each is asked over HTTP, and what its answers mean to its model.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use histories::{
    Condition, Container, ContainerAnswer, ContainerCall, Dice, Group, GroupAnswer, GroupCall, GroupWrite, History,
    Lease, LeaseAnswer, LeaseCall, Message, MessageAnswer, MessageCall, Model, Register, RegisterAnswer, RegisterCall,
    Ticket, check,
};

use crate::client::{Answer, Client, Headers, NoAnswer};

const REGISTERS: u64 = 2;
const LEASES: u64 = 2;
const ENTITIES: u64 = 5;
const BLOBS: u64 = 3;
const LEASE_SECONDS: u64 = 15;
/// How many messages a history may have: each take is noted for all of them.
const MESSAGES_MAX: usize = 150;
/// How many messages a take asks for.
const TAKEN_MAX: usize = 4;
/// How long a client waits after a call without an answer.
const REST: Duration = Duration::from_millis(100);
/// More than a commit carries with it: such contents go to a segment, or to the byte store of a cluster.
const LARGE_BYTES: usize = 70_000;

/// Where the services listen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Door {
    pub blob: SocketAddr,
    pub queue: SocketAddr,
    pub table: SocketAddr,
}

/// The servers that clients ask. Each client has one of them, by its number; a dead one can be replaced.
pub struct Doors(Mutex<Vec<Door>>);

impl Doors {
    pub fn new(doors: impl IntoIterator<Item = Door>) -> Doors {
        Doors(Mutex::new(doors.into_iter().collect()))
    }

    /// Which server a client asks.
    pub fn place_of(&self, client: u64) -> usize {
        client as usize % self.lock().len()
    }

    pub fn of(&self, client: u64) -> Door {
        let place = self.place_of(client);
        self.lock()[place]
    }

    /// Another server is where a dead one was.
    pub fn replace(&self, place: usize, door: Door) {
        self.lock()[place] = door;
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Door>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type HistoryOf<M> = History<<M as Model>::Call, <M as Model>::Answer>;

pub struct Objects {
    began: Instant,
    registers: Vec<Shared<Register>>,
    /// The last ETag that anybody was told, of each.
    etags: Vec<Mutex<String>>,
    leases: Vec<Shared<Lease>>,
    queue: Mutex<Queue>,
    group: Shared<Group>,
    container: Shared<Container>,
    next: AtomicU64,
}

/// The messages by text, and the takes that are under way: each is noted in the history of every message that was there before it
/// ended.
#[derive(Default)]
struct Queue {
    messages: BTreeMap<u64, Arc<HistoryOf<Message>>>,
    takes: BTreeMap<u64, Take>,
}

struct Take {
    client: u64,
    call: MessageCall,
    began: u64,
    tickets: BTreeMap<u64, Ticket>,
}

impl Take {
    fn note(&mut self, value: u64, history: &HistoryOf<Message>) {
        self.tickets.insert(value, history.begin(self.client, self.call.clone(), self.began));
    }
}

struct Shared<M: Model>(HistoryOf<M>);

impl<M: Model> Default for Shared<M> {
    fn default() -> Shared<M> {
        Shared(History::default())
    }
}

impl Default for Objects {
    fn default() -> Objects {
        Objects {
            began: Instant::now(),
            registers: (0..REGISTERS).map(|_| Shared::default()).collect(),
            etags: (0..REGISTERS).map(|_| Mutex::new("\"0x8D00000000000000\"".to_owned())).collect(),
            leases: (0..LEASES).map(|_| Shared::default()).collect(),
            queue: Mutex::default(),
            group: Shared::default(),
            container: Shared::default(),
            next: AtomicU64::new(1),
        }
    }
}

/// One client's connections.
struct Hand {
    number: u64,
    door: Door,
    blob: Client,
    queue: Client,
    table: Client,
    dice: Dice,
    /// Messages that it has taken: text, id and receipt.
    taken: Vec<(u64, String, String)>,
}

impl Hand {
    fn at(door: Door, number: u64, seed: u64) -> Hand {
        Hand {
            number,
            door,
            blob: Client::new(door.blob),
            queue: Client::new(door.queue),
            table: Client::of_tables(door.table),
            dice: Dice::new(seed),
            taken: Vec::new(),
        }
    }

    /// Goes on at another server, if there is one by now.
    fn move_to(&mut self, door: Door) {
        if door != self.door {
            let Hand { number, dice, taken, .. } = std::mem::replace(self, Hand::at(door, 0, 0));
            *self = Hand { dice, taken, ..Hand::at(door, number, 0) };
        }
    }
}

/// What an answer says. One of 500 or above says nothing: a request that was given up may still be carried out.
fn ask(client: &Client, line: &str, headers: Headers<'_>, body: impl AsRef<[u8]>) -> Result<Answer, NoAnswer> {
    let answer = client.try_call(line, headers, body)?;
    if answer.status < 500 { Ok(answer) } else { Err(NoAnswer::Lost) }
}

/// The answer to a call that was begun. A call that no server has seen is taken back; any other without an answer stays open.
fn settled<C, A>(asked: Result<Answer, NoAnswer>, history: &History<C, A>, ticket: Ticket) -> Option<(Answer, Ticket)> {
    match asked {
        Ok(answer) => Some((answer, ticket)),
        Err(NoAnswer::NotSent) => {
            history.take_back(ticket);
            None
        }
        Err(NoAnswer::Lost) => None,
    }
}

/// The content of a blob whose value this is. Every fifth is large.
fn content_of(value: u64) -> String {
    let line = format!("{value}\n");
    if value.is_multiple_of(5) { line.repeat(LARGE_BYTES.div_ceil(line.len())) } else { line }
}

/// The value whose content this is. Pieces of two contents have none.
fn value_of(content: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(content);
    let value = text.lines().next().and_then(|line| line.parse().ok()).unwrap_or_else(|| panic!("no number: {text:?}"));
    assert!(text == content_of(value), "{} bytes begin with {value} and go on with something else", text.len());
    value
}

/// Asks again as long as a server is too busy to answer.
fn until_answered(mut ask: impl FnMut() -> Option<()>) {
    const TRIES: u32 = 20;
    assert!(
        (0..TRIES).any(|_| {
            let answered = ask().is_some();
            if !answered {
                std::thread::sleep(REST);
            }
            answered
        }),
        "no server answers"
    );
}

fn unexpected(line: &str, answer: &Answer) -> ! {
    panic!("{line}: {} {}", answer.said(), String::from_utf8_lossy(&answer.body))
}

impl Objects {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).expect("a test is shorter than that")
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no client panics with it")
    }

    /// A number that no other write has.
    fn fresh(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// What every history needs to be there and no model knows.
    pub fn prepare(&self, door: Door) {
        let (blob, queue, table) = (Client::new(door.blob), Client::new(door.queue), Client::of_tables(door.table));
        let done = |answer: Answer| assert!(answer.is_success() || answer.status == 409, "{}", answer.said());
        done(blob.call("PUT hist?restype=container", &[], ""));
        done(queue.call("PUT hist", &[], ""));
        done(table.call("POST Tables", JSON, r#"{"TableName":"hist"}"#));
        for number in 0..LEASES {
            let absent = [("x-ms-blob-type", "BlockBlob"), ("if-none-match", "*")];
            let made = blob.call(&format!("PUT hist/lease{number}"), &absent, "");
            // It may be leased, which is said first.
            assert!(matches!(made.status, 201 | 409 | 412), "{}", made.said());
        }
    }

    /// The server that was asked is dead.
    pub fn settle(&self) {
        self.settle_those(|_| true);
    }

    /// The server that these clients asked is dead, and nothing that it had begun is under way any more.
    pub fn settle_those(&self, is_settled: impl Fn(u64) -> bool + Copy) {
        let now = self.now();
        self.registers.iter().for_each(|shared| shared.0.settle_those(now, is_settled));
        self.leases.iter().for_each(|shared| shared.0.settle_those(now, is_settled));
        self.queue().messages.values().for_each(|history| history.settle_those(now, is_settled));
        self.group.0.settle_those(now, is_settled);
        self.container.0.settle_those(now, is_settled);
    }

    /// Asks until it is stopped.
    pub fn client(&self, number: u64, doors: &Doors, seed: u64, gives_up: bool, stop: &AtomicBool) {
        let mut hand = Hand::at(doors.of(number), number, seed * 100 + number);
        while !stop.load(Ordering::Acquire) {
            let answered = match hand.dice.below(10) {
                0..=2 => self.use_register(&mut hand),
                3 | 4 => self.use_lease(&mut hand),
                5 | 6 => self.use_queue(&mut hand),
                7 | 8 => self.use_group(&mut hand),
                _ => self.use_container(&mut hand),
            };
            if answered.is_none() {
                if gives_up {
                    return;
                }
                std::thread::sleep(REST);
                hand.move_to(doors.of(number));
            }
        }
    }

    fn use_register(&self, hand: &mut Hand) -> Option<()> {
        let number = hand.dice.below(REGISTERS);
        let etag = self.etags[number as usize].lock().expect("no client panics with it").clone();
        let condition = match hand.dice.below(5) {
            0 => Condition::Absent,
            1 | 2 => Condition::None,
            _ => Condition::Is(etag),
        };
        let call = match hand.dice.below(6) {
            0 | 1 => RegisterCall::Get,
            2 if condition != Condition::Absent => RegisterCall::Delete(condition),
            _ => RegisterCall::Put(self.fresh(), condition),
        };
        self.register(hand, number, call)
    }

    fn register(&self, hand: &Hand, number: u64, call: RegisterCall) -> Option<()> {
        let history = &self.registers[number as usize].0;
        let ticket = history.begin(hand.number, call.clone(), self.now());
        let (line, body, condition) = match &call {
            RegisterCall::Get => (format!("GET hist/reg{number}"), String::new(), None),
            RegisterCall::Put(value, condition) => {
                (format!("PUT hist/reg{number}"), content_of(*value), Some(condition))
            }
            RegisterCall::Delete(condition) => (format!("DELETE hist/reg{number}"), String::new(), Some(condition)),
        };
        let mut headers = match call {
            RegisterCall::Put(..) => vec![("x-ms-blob-type", "BlockBlob")],
            RegisterCall::Get | RegisterCall::Delete(_) => Vec::new(),
        };
        match condition {
            Some(Condition::Is(etag)) => headers.push(("if-match", etag.as_str())),
            Some(Condition::Absent) => headers.push(("if-none-match", "*")),
            Some(Condition::None) | None => {}
        }
        let (answer, ticket) = settled(ask(&hand.blob, &line, &headers, body), history, ticket)?;
        let said = match (&call, answer.status) {
            (RegisterCall::Get, 200) => RegisterAnswer::Found(value_of(&answer.body), answer.etag()),
            (RegisterCall::Get | RegisterCall::Delete(_), 404) => RegisterAnswer::Missing,
            (RegisterCall::Put(..), 201) => RegisterAnswer::Stored(answer.etag()),
            (RegisterCall::Delete(_), 202) => RegisterAnswer::Deleted,
            (RegisterCall::Put(..) | RegisterCall::Delete(_), 409 | 412) => RegisterAnswer::Refused,
            _ => unexpected(&line, &answer),
        };
        history.end(&ticket, said.clone(), self.now());
        if let RegisterAnswer::Stored(etag) | RegisterAnswer::Found(_, etag) = said {
            *self.etags[number as usize].lock().expect("no client panics with it") = etag;
        }
        Some(())
    }

    fn use_lease(&self, hand: &mut Hand) -> Option<()> {
        let number = hand.dice.below(LEASES);
        // Mostly its own, sometimes that of another.
        let id = if hand.dice.chance(80) { hand.number } else { hand.dice.below(6) };
        let call = match hand.dice.below(10) {
            0..=2 => LeaseCall::Acquire { id, duration: Some(LEASE_SECONDS * 1_000) },
            3 => LeaseCall::Renew(id),
            4 | 5 => LeaseCall::Release(id),
            6 => LeaseCall::Break,
            7 | 8 => LeaseCall::Write(Some(id)),
            _ => LeaseCall::Write(None),
        };
        let text = |id: u64| format!("00000000-0000-0000-0000-{:012}", id + 1);
        let (action, id) = match &call {
            LeaseCall::Acquire { id, .. } => ("acquire", Some(text(*id))),
            LeaseCall::Renew(id) => ("renew", Some(text(*id))),
            LeaseCall::Release(id) => ("release", Some(text(*id))),
            LeaseCall::Break => ("break", None),
            LeaseCall::Write(id) => ("", id.map(text)),
        };
        let seconds = LEASE_SECONDS.to_string();
        let mut headers: Vec<(&str, &str)> = Vec::new();
        let comp = if action.is_empty() { "metadata" } else { "lease" };
        match &call {
            LeaseCall::Acquire { .. } => headers.push(("x-ms-lease-duration", &seconds)),
            LeaseCall::Break => headers.push(("x-ms-lease-break-period", "0")),
            LeaseCall::Renew(_) | LeaseCall::Release(_) | LeaseCall::Write(_) => {}
        }
        if !action.is_empty() {
            headers.push(("x-ms-lease-action", action));
        }
        if let Some(id) = &id {
            headers.push((if action == "acquire" { "x-ms-proposed-lease-id" } else { "x-ms-lease-id" }, id));
        }
        let history = &self.leases[number as usize].0;
        let ticket = history.begin(hand.number, call, self.now());
        let line = format!("PUT hist/lease{number}?comp={comp}");
        let (answer, ticket) = settled(ask(&hand.blob, &line, &headers, ""), history, ticket)?;
        let said = match answer.status {
            200..300 => LeaseAnswer::Done,
            409 | 412 => LeaseAnswer::Refused,
            _ => unexpected(&line, &answer),
        };
        history.end(&ticket, said, self.now());
        Some(())
    }

    fn use_queue(&self, hand: &mut Hand) -> Option<()> {
        match hand.dice.below(8) {
            0 | 1 => self.put_message(hand),
            2..=4 => self.take_messages(hand, 1 + hand.number % 2, TAKEN_MAX),
            5 => self.update_message(hand),
            _ => self.delete_message(hand),
        }
    }

    fn put_message(&self, hand: &Hand) -> Option<()> {
        let value = self.fresh();
        let history = Arc::new(HistoryOf::<Message>::default());
        {
            let mut queue = self.queue();
            if queue.messages.len() >= MESSAGES_MAX {
                return Some(());
            }
            queue.takes.values_mut().for_each(|take| take.note(value, &history));
            queue.messages.insert(value, Arc::clone(&history));
        }
        let ticket = history.begin(hand.number, MessageCall::Put { hidden_for: 0 }, self.now());
        let line = "POST hist/messages?messagettl=-1";
        let body = format!("<QueueMessage><MessageText>{value}</MessageText></QueueMessage>");
        let (answer, ticket) = settled(ask(&hand.queue, line, &[], body), &history, ticket)?;
        if answer.status != 201 {
            unexpected(line, &answer);
        }
        let receipt = answer.xml().text_of("QueueMessage/PopReceipt").expect("a receipt");
        history.end(&ticket, MessageAnswer::Receipt(receipt), self.now());
        Some(())
    }

    fn take_messages(&self, hand: &mut Hand, seconds: u64, most: usize) -> Option<()> {
        let number = self.fresh();
        {
            let mut queue = self.queue();
            let call = MessageCall::Take { hidden_for: seconds * 1_000 };
            let mut take = Take { client: hand.number, call, began: self.now(), tickets: BTreeMap::new() };
            queue.messages.iter().for_each(|(value, history)| take.note(*value, history));
            queue.takes.insert(number, take);
        }
        let line = format!("GET hist/messages?numofmessages={most}&visibilitytimeout={seconds}");
        let answer = ask(&hand.queue, &line, &[], "");
        let (messages, take) = {
            let mut queue = self.queue();
            let take = queue.takes.remove(&number).expect("it is under way");
            (queue.messages.clone(), take)
        };
        let answer = match answer {
            Ok(answer) if answer.status == 200 => answer,
            Ok(answer) => unexpected(&line, &answer),
            Err(NoAnswer::NotSent) => {
                take.tickets.into_iter().for_each(|(value, ticket)| messages[&value].take_back(ticket));
                return None;
            }
            Err(NoAnswer::Lost) => return None,
        };
        let list = answer.xml();
        let mut got = BTreeMap::new();
        for message in &list.children {
            let text = |name: &str| message.text_of(name).unwrap_or_else(|| panic!("{line}: no {name}"));
            let value: u64 = text("MessageText").parse().expect("a number");
            let count: u64 = text("DequeueCount").parse().expect("a number");
            let before = got.insert(value, (text("MessageId"), text("PopReceipt"), count));
            assert!(before.is_none(), "message {value} comes twice in one answer");
        }
        let (count, now) = (got.len(), self.now());
        for (value, ticket) in &take.tickets {
            let said = match got.remove(value) {
                Some((id, receipt, taken)) => {
                    hand.taken.push((*value, id, receipt.clone()));
                    MessageAnswer::Taken { receipt, taken }
                }
                None if count < most => MessageAnswer::NotSeen,
                None => MessageAnswer::Untold,
            };
            messages[value].end(ticket, said, now);
        }
        assert!(got.is_empty(), "messages that nobody put: {got:?}");
        Some(())
    }

    fn history_of(&self, value: u64) -> Arc<HistoryOf<Message>> {
        Arc::clone(self.queue().messages.get(&value).unwrap_or_else(|| panic!("nobody put message {value}")))
    }

    fn update_message(&self, hand: &mut Hand) -> Option<()> {
        let Some((value, id, receipt)) = hand.taken.pop() else { return Some(()) };
        let history = self.history_of(value);
        let seconds = hand.dice.below(3);
        let call = MessageCall::Update { receipt: receipt.clone(), hidden_for: seconds * 1_000 };
        let ticket = history.begin(hand.number, call, self.now());
        let receipt = wire::percent::encode_value(&receipt);
        let line = format!("PUT hist/messages/{id}?popreceipt={receipt}&visibilitytimeout={seconds}");
        let (answer, ticket) = settled(ask(&hand.queue, &line, &[], ""), &history, ticket)?;
        let said = match answer.status {
            204 => {
                let new = answer.header("x-ms-popreceipt").expect("a receipt").to_owned();
                hand.taken.push((value, id, new.clone()));
                MessageAnswer::Receipt(new)
            }
            404 => MessageAnswer::Missing,
            400 => MessageAnswer::OtherReceipt,
            _ => unexpected(&line, &answer),
        };
        history.end(&ticket, said, self.now());
        Some(())
    }

    fn delete_message(&self, hand: &mut Hand) -> Option<()> {
        let Some((value, id, receipt)) = hand.taken.pop() else { return Some(()) };
        let history = self.history_of(value);
        let ticket = history.begin(hand.number, MessageCall::Delete { receipt: receipt.clone() }, self.now());
        let line = format!("DELETE hist/messages/{id}?popreceipt={}", wire::percent::encode_value(&receipt));
        let (answer, ticket) = settled(ask(&hand.queue, &line, &[], ""), &history, ticket)?;
        let said = match answer.status {
            204 => MessageAnswer::Deleted,
            404 => MessageAnswer::Missing,
            400 => MessageAnswer::OtherReceipt,
            _ => unexpected(&line, &answer),
        };
        history.end(&ticket, said, self.now());
        Some(())
    }

    fn use_group(&self, hand: &mut Hand) -> Option<()> {
        let call = match hand.dice.below(5) {
            0 => GroupCall::Get(hand.dice.below(ENTITIES)),
            1 => GroupCall::Query,
            _ => {
                let first = hand.dice.below(ENTITIES);
                let count = 1 + hand.dice.below(3);
                let keys = (0..count).map(|place| (first + place) % ENTITIES);
                let mut write = |key| match hand.dice.below(5) {
                    0 => GroupWrite::Insert(key, self.fresh()),
                    1 => GroupWrite::Replace(key, self.fresh()),
                    2 => GroupWrite::Delete(key),
                    _ => GroupWrite::Upsert(key, self.fresh()),
                };
                GroupCall::Transaction(keys.map(&mut write).collect())
            }
        };
        self.group(hand, call)
    }

    fn group(&self, hand: &Hand, call: GroupCall) -> Option<()> {
        let history = &self.group.0;
        let ticket = history.begin(hand.number, call.clone(), self.now());
        let (line, headers, body) = match &call {
            GroupCall::Get(key) => (format!("GET hist(PartitionKey='p',RowKey='{key}')"), JSON, String::new()),
            GroupCall::Query => ("GET hist()?$filter=PartitionKey%20eq%20'p'".to_owned(), JSON, String::new()),
            GroupCall::Transaction(writes) => ("POST $batch".to_owned(), BATCH, change_set(writes)),
        };
        let (answer, ticket) = settled(ask(&hand.table, &line, headers, body), history, ticket)?;
        let value_of = |entity: &serde_json::Value| entity["v"].as_u64().expect("a number");
        let said = match (&call, answer.status) {
            (GroupCall::Get(_), 200) => GroupAnswer::Entity(Some(value_of(&answer.json()))),
            (GroupCall::Get(_), 404) => GroupAnswer::Entity(None),
            (GroupCall::Query, 200) => {
                let page = answer.json();
                let entities = page["value"].as_array().expect("entities").iter();
                let key = |entity: &serde_json::Value| entity["RowKey"].as_str().and_then(|key| key.parse().ok());
                GroupAnswer::Entities(entities.map(|entity| (key(entity).expect("a key"), value_of(entity))).collect())
            }
            (GroupCall::Transaction(_), 202) => {
                let text = String::from_utf8_lossy(&answer.body).into_owned();
                match text.split_once("\"value\":\"") {
                    None => GroupAnswer::Committed,
                    Some((_, message)) => {
                        let number = message.split(':').next().and_then(|number| number.parse().ok());
                        GroupAnswer::Refused(number.unwrap_or_else(|| unexpected(&line, &answer)))
                    }
                }
            }
            _ => unexpected(&line, &answer),
        };
        history.end(&ticket, said, self.now());
        Some(())
    }

    fn use_container(&self, hand: &mut Hand) -> Option<()> {
        let name = hand.dice.below(BLOBS);
        let call = match hand.dice.below(10) {
            0 | 1 => ContainerCall::Create,
            2 => ContainerCall::Delete,
            3..=5 => ContainerCall::PutBlob(name, self.fresh()),
            6 => ContainerCall::DeleteBlob(name),
            7 | 8 => ContainerCall::GetBlob(name),
            _ => ContainerCall::List,
        };
        self.container(hand, call)
    }

    fn container(&self, hand: &Hand, call: ContainerCall) -> Option<()> {
        let history = &self.container.0;
        let ticket = history.begin(hand.number, call.clone(), self.now());
        let mut headers: Headers<'_> = &[];
        let mut body = String::new();
        let line = match &call {
            ContainerCall::Create => "PUT life?restype=container".to_owned(),
            ContainerCall::Delete => "DELETE life?restype=container".to_owned(),
            ContainerCall::PutBlob(name, value) => {
                headers = &[("x-ms-blob-type", "BlockBlob")];
                body = content_of(*value);
                format!("PUT life/{name}")
            }
            ContainerCall::DeleteBlob(name) => format!("DELETE life/{name}"),
            ContainerCall::GetBlob(name) => format!("GET life/{name}"),
            ContainerCall::List => "GET life?restype=container&comp=list".to_owned(),
        };
        let (answer, ticket) = settled(ask(&hand.blob, &line, headers, body), history, ticket)?;
        let said = match (&call, answer.said().as_str()) {
            (ContainerCall::GetBlob(_), "200") => ContainerAnswer::Blob(value_of(&answer.body)),
            (ContainerCall::List, "200") => {
                let list = answer.xml();
                let name = |blob: &crate::xml::Element| blob.text_of("Name").and_then(|name| name.parse().ok());
                ContainerAnswer::Blobs(list.all("Blobs").iter().map(|blob| name(blob).expect("a name")).collect())
            }
            (_, "201" | "202") => ContainerAnswer::Done,
            (ContainerCall::Create, "409 ContainerAlreadyExists") => ContainerAnswer::Exists,
            (_, "404 ContainerNotFound") => ContainerAnswer::NoContainer,
            (_, "404 BlobNotFound") => ContainerAnswer::NoBlob,
            _ => unexpected(&line, &answer),
        };
        history.end(&ticket, said, self.now());
        Some(())
    }

    /// Nobody else asks any more: reads everything, and takes messages until none is left, so that what was lost is missed.
    pub fn look_at_everything(&self, door: Door) {
        let mut hand = Hand::at(door, 99, 0);
        for number in 0..REGISTERS {
            until_answered(|| self.register(&hand, number, RegisterCall::Get));
        }
        until_answered(|| self.group(&hand, GroupCall::Query));
        until_answered(|| self.container(&hand, ContainerCall::List));
        // Until everything that was taken can be seen again.
        std::thread::sleep(Duration::from_millis(3_500));
        for _ in 0..=MESSAGES_MAX / 32 {
            until_answered(|| self.take_messages(&mut hand, 600, 32));
        }
    }

    /// Holds every history against its model.
    pub fn judge(&self, slack: u64, seed: u64) {
        let mut calls = 0;
        let mut judge = |what: String, verdict: histories::Verdict, count: usize| {
            calls += count;
            verdict.expect_fine(&format!("seed {seed}, {what}"));
        };
        for (number, shared) in self.registers.iter().enumerate() {
            let history = shared.0.calls();
            judge(format!("blob {number}"), check(Register::default(), &history, slack), history.len());
        }
        for (number, shared) in self.leases.iter().enumerate() {
            let history = shared.0.calls();
            judge(format!("lease {number}"), check(Lease::default(), &history, slack), history.len());
        }
        for (value, shared) in &self.queue().messages {
            let history = shared.calls();
            judge(format!("message {value}"), check(Message::default(), &history, slack), history.len());
        }
        let history = self.group.0.calls();
        judge("entities".into(), check(Group::default(), &history, slack), history.len());
        let history = self.container.0.calls();
        judge("container".into(), check(Container::default(), &history, slack), history.len());
        eprintln!("{calls} calls judged");
        assert!(calls > 100, "the clients hardly asked");
    }
}

const JSON: Headers<'static> = &[("accept", "application/json;odata=nometadata"), ("content-type", "application/json")];
const BATCH: Headers<'static> =
    &[("accept", "application/json;odata=nometadata"), ("content-type", "multipart/mixed; boundary=b")];

fn change_set(writes: &[GroupWrite]) -> String {
    let mut text = String::from("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n");
    for write in writes {
        let (method, key, value, condition) = match write {
            GroupWrite::Insert(key, value) => ("POST", key, Some(value), ""),
            GroupWrite::Upsert(key, value) => ("PUT", key, Some(value), ""),
            GroupWrite::Replace(key, value) => ("PUT", key, Some(value), "If-Match: *\r\n"),
            GroupWrite::Delete(key) => ("DELETE", key, None, "If-Match: *\r\n"),
        };
        let target = match method {
            "POST" => "hist".to_owned(),
            _ => format!("hist(PartitionKey='p',RowKey='{key}')"),
        };
        let entity = value
            .map(|value| format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{key}\",\"v\":{value}}}"))
            .unwrap_or_default();
        text += &format!(
            "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             {method} http://h/devstoreaccount1/{target} HTTP/1.1\r\nContent-Type: application/json\r\n\
             Accept: application/json;odata=nometadata\r\n{condition}\r\n{entity}\r\n"
        );
    }
    text + "--c--\r\n--b--\r\n"
}
