//! Decisions and reads made of steps, and what they see. All of it follows from the plan and the rows: nothing from time or
//! chance, so that a plan can be run again on a model.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use engine::{Changes, Content, ContentId, Key, Partitions, Rows, Timestamp, Unread, Visit, space};
use histories::Dice;

use crate::Contents;

const SPACE: u8 = 0x71;
/// The last one has thousands of rows.
const PARTITIONS: u64 = 4;
const MANY: u64 = PARTITIONS - 1;
const ROWS_FEW: u64 = 40;
/// More than what an engine looks at in a decision's turn.
const ROWS_MANY: u64 = 1_400;
/// Old enough that what is due is due at once.
const PAST: Timestamp = Timestamp(1);

/// One thing that a client asks for: steps, run in order.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Every value that it writes says so.
    label: u64,
    /// The partitions that it names: its own first.
    partitions: Vec<u64>,
    steps: Vec<Step>,
}

/// A row, by partition and number.
type Place = (u64, u64);

#[derive(Clone, Debug)]
enum Step {
    /// Rows of 20 bytes where none were, without looking.
    Fill(Vec<Place>),
    Get(Place),
    Scan(Scan),
    /// A row with so many bytes.
    Put(Place, usize),
    /// The number of rows in the range is where the new row goes: who misses one writes over another's.
    Count(Scan, u64),
    Delete(Place),
    DeleteRange(Scan),
    Store(Place),
    /// The row of a content, once more: both refer to it.
    Copy(Place, Place),
    Open(Place),
    /// All contents of a range.
    OpenAll(Scan),
    RefuseIfThere(Place),
    /// If what was seen so far says so.
    RefuseSometimes,
}

#[derive(Clone, Debug)]
struct Scan {
    partition: u64,
    from: u64,
    to: u64,
    /// After each row, go on so many numbers further.
    skip: Option<u64>,
    stop_after: usize,
    about: usize,
}

/// What a plan saw, the same for every engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    Done(Vec<Sight>),
    Refused(Vec<Sight>),
}

#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum Sight {
    /// The label of a row, or that there is none.
    Row(Option<u64>),
    /// How many rows, and a digest over their places and labels.
    Range(usize, u64),
}

/// What came of one run.
#[derive(Debug)]
pub struct Seen {
    pub outcome: Outcome,
    pub contents: Vec<(u64, Content)>,
    pub changes: Changes,
}

/// The rows that everything begins with.
pub fn first(seed: u64) -> Vec<Plan> {
    let mut dice = Dice::new(seed ^ 0xF1);
    let mut fill = |partition: u64, rows: u64, percent: u64| {
        let places = (0..rows).filter(|_| dice.chance(percent)).map(|number| (partition, number));
        Plan { label: 1 + partition, partitions: vec![partition], steps: vec![Step::Fill(places.collect())] }
    };
    let mut plans: Vec<Plan> = (0..MANY).map(|partition| fill(partition, ROWS_FEW, 50)).collect();
    plans.push(fill(MANY, ROWS_MANY, 100));
    plans
}

impl Plan {
    pub fn random(dice: &mut Dice, label: u64, reach: Reach) -> Plan {
        let mut partition = dice.below(PARTITIONS);
        let mut steps: Vec<Step> = (0..1 + dice.below(4)).map(|_| Step::random(dice, partition, reach)).collect();
        if dice.chance(8) {
            // Counts what another partition has, and notes it in its own; or the other way round.
            let other = reach.partition(dice, partition);
            steps = vec![Step::Count(Scan::whole(other), partition)];
            if reach != Reach::Downwards && dice.chance(30) {
                partition = other;
            }
        }
        let mut partitions = vec![partition];
        if reach == Reach::AnywhereNamed {
            partitions.extend(steps.iter().flat_map(Step::touches));
        }
        Plan { label, partitions, steps }
    }

    /// A read of all rows.
    pub fn look_at_everything() -> Plan {
        let scans = (0..PARTITIONS).map(|partition| Step::OpenAll(Scan::whole(partition)));
        Plan { label: 0, partitions: vec![0], steps: scans.collect() }
    }

    pub fn delete_everything() -> Vec<Plan> {
        let steps = |partition| vec![Step::DeleteRange(Scan::whole(partition))];
        let delete = |partition| Plan { label: 0, partitions: vec![partition], steps: steps(partition) };
        (0..PARTITIONS).map(delete).collect()
    }

    pub fn partitions(&self) -> Partitions {
        Partitions::of(self.partitions.iter().map(|partition| Key::new(SPACE).number(*partition)))
    }

    /// Whether a key is one of the rows that plans write.
    pub fn is_row(key: &[u8]) -> bool {
        key.first() == Some(&SPACE)
    }

    /// Otherwise it is a read.
    pub fn writes(&self) -> bool {
        self.steps.iter().any(|step| !matches!(step, Step::Get(_) | Step::Scan(_) | Step::Open(_) | Step::OpenAll(_)))
    }

    /// The contents that it stores.
    pub fn labels(&self) -> impl Iterator<Item = u64> {
        let stores = self.steps.iter().filter(|step| matches!(step, Step::Store(_))).count() as u64;
        let label = self.label;
        (0..stores).map(move |number| content_label(label, number))
    }

    pub fn run(&self, rows: &dyn Rows, staged: &Contents) -> Result<Seen, Unread> {
        let mut run =
            Run { plan: self, rows, sights: Vec::new(), contents: Vec::new(), changes: Changes::none(), owners: 0 };
        let mut staged = staged.iter();
        for step in &self.steps {
            let is_refused = match step {
                Step::Fill(places) => run.fill(places),
                Step::Get(place) => run.get(*place).map(|_| false)?,
                Step::Scan(scan) => run.scan(scan).map(|_| false)?,
                Step::Put(place, length) => {
                    let row = Row { label: self.label, content: None };
                    run.set(*place, Some((row, *length)))?
                }
                Step::Count(scan, partition) => {
                    let count = run.scan(scan)?.len() as u64;
                    let place = (*partition, if *partition == MANY { count } else { count % ROWS_FEW });
                    let row = Row { label: self.label * 100_000 + count, content: None };
                    run.set(place, Some((row, 20)))?
                }
                Step::Delete(place) => run.set(*place, None)?,
                Step::DeleteRange(scan) => run.delete_range(scan)?,
                Step::Store(place) => {
                    let (label, content) = staged.next().expect("every content of a plan is staged");
                    run.changes.contents.push(content.clone());
                    let row = Row { label: *label, content: Some((content.id().0, run.owner())) };
                    run.refer(*place, row)?
                }
                Step::Copy(from, to) => match run.get(*from)? {
                    Some(Row { label, content: Some((id, _)) }) if from != to => {
                        let row = Row { label, content: Some((id, run.owner())) };
                        run.refer(*to, row)?
                    }
                    _ => false,
                },
                Step::Open(place) => run.open(*place)?,
                Step::OpenAll(scan) => run.open_all(scan)?,
                Step::RefuseIfThere(place) => run.get(*place)?.is_some(),
                Step::RefuseSometimes => run.digest().is_multiple_of(3),
            };
            if is_refused {
                return Ok(Seen {
                    outcome: Outcome::Refused(run.sights),
                    contents: run.contents,
                    changes: Changes::none(),
                });
            }
        }
        Ok(Seen { outcome: Outcome::Done(run.sights), contents: run.contents, changes: run.changes })
    }
}

impl Step {
    fn random(dice: &mut Dice, own: u64, reach: Reach) -> Step {
        // Mostly at home, sometimes elsewhere: to look at, and to write to.
        let seen = if dice.chance(75) { own } else { reach.partition(dice, own) };
        let written = if reach == Reach::Downwards { own } else { seen };
        match dice.below(18) {
            0..=2 => Step::Get(place(dice, seen)),
            3..=5 => Step::Scan(Scan::random(dice, seen)),
            6..=8 => Step::Put(place(dice, written), *dice.pick(&[0, 10, 300, 3_000])),
            9 => Step::Delete(place(dice, written)),
            10 => {
                let from = place(dice, written).1;
                Step::DeleteRange(Scan { from, to: from + 3, skip: None, ..Scan::random(dice, written) })
            }
            11..=12 => Step::Store(few(dice, written)),
            13 => Step::Copy(few(dice, seen), few(dice, own)),
            14..=15 => Step::Open(few(dice, seen)),
            16 => Step::RefuseIfThere(place(dice, seen)),
            _ => Step::RefuseSometimes,
        }
    }

    /// The partitions whose rows it looks at or writes.
    fn touches(&self) -> Vec<u64> {
        match self {
            Step::Fill(places) => places.iter().map(|(partition, _)| *partition).collect(),
            Step::Get(place)
            | Step::Put(place, _)
            | Step::Delete(place)
            | Step::Store(place)
            | Step::Open(place)
            | Step::RefuseIfThere(place) => vec![place.0],
            Step::Scan(scan) | Step::DeleteRange(scan) | Step::OpenAll(scan) => vec![scan.partition],
            Step::Count(scan, partition) => vec![scan.partition, *partition],
            Step::Copy(from, to) => vec![from.0, to.0],
            Step::RefuseSometimes => Vec::new(),
        }
    }
}

/// Which partitions a decision looks at and writes to besides its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// All of them, naming only its own.
    Anywhere,
    /// All of them, and it names each that it looks at or writes to.
    AnywhereNamed,
    /// It writes to its own, and looks at those before it. So no two decisions rely each on what the other one writes, which engines
    /// of many machines do not judge.
    Downwards,
}

impl Reach {
    fn partition(self, dice: &mut Dice, own: u64) -> u64 {
        match self {
            Reach::Anywhere | Reach::AnywhereNamed => dice.below(PARTITIONS),
            Reach::Downwards => dice.below(own + 1),
        }
    }
}

fn place(dice: &mut Dice, partition: u64) -> Place {
    let rows = if partition == MANY { ROWS_MANY } else { ROWS_FEW };
    // A little beyond what was there at first, so that rows appear where scans end.
    (partition, dice.below(rows + rows / 8))
}

/// A place where contents may be.
fn few(dice: &mut Dice, partition: u64) -> Place {
    (partition, dice.below(ROWS_FEW))
}

impl Scan {
    fn whole(partition: u64) -> Scan {
        let to = if partition == MANY { ROWS_MANY * 2 } else { ROWS_FEW * 2 };
        Scan { partition, from: 0, to, skip: None, stop_after: usize::MAX, about: 100 }
    }

    fn random(dice: &mut Dice, partition: u64) -> Scan {
        if dice.chance(40) {
            return Scan::whole(partition);
        }
        let (one, other) = (place(dice, partition).1, place(dice, partition).1);
        Scan {
            partition,
            from: one.min(other),
            to: one.max(other),
            skip: dice.chance(30).then(|| 1 + dice.below(20)),
            stop_after: if dice.chance(30) { 1 + dice.below(30) as usize } else { usize::MAX },
            about: dice.below(50) as usize,
        }
    }
}

/// What a row says: who wrote it, or which content it names, with the number of the reference.
#[derive(Clone, Copy, Debug)]
struct Row {
    label: u64,
    content: Option<(u64, u64)>,
}

impl Row {
    fn encode(self, length: usize) -> Bytes {
        let (id, owner) = self.content.unwrap_or_default();
        let mut bytes: Vec<u8> = [self.label, id, owner].iter().flat_map(|number| number.to_be_bytes()).collect();
        bytes.resize(24 + length, 0xAB);
        Bytes::from(bytes)
    }

    fn decode(bytes: &[u8]) -> Row {
        let number = |place: usize| {
            let part = bytes.get(place * 8..place * 8 + 8).expect("a row of a plan has three numbers");
            u64::from_be_bytes(part.try_into().expect("eight bytes"))
        };
        Row { label: number(0), content: Some((number(1), number(2))).filter(|(id, _)| *id != 0) }
    }
}

fn content_label(plan: u64, number: u64) -> u64 {
    plan * 100 + number
}

/// The bytes of a content: some travel with their commit, some do not.
pub fn bytes_of(label: u64) -> Vec<u8> {
    let mut dice = Dice::new(label);
    let length = match label % 5 {
        0 => 0,
        1 | 2 => 1 + dice.below(2_000) as usize,
        3 => engine::INLINE_MAX - 1 + dice.below(3) as usize,
        _ => 150_000,
    };
    let mut bytes: Vec<u8> =
        std::iter::repeat_with(|| dice.roll().to_le_bytes()).take(length.div_ceil(8)).flatten().collect();
    bytes.truncate(length);
    bytes
}

fn key(place: Place) -> Key {
    Key::new(SPACE).number(place.0).number(place.1)
}

/// One run over one state. What it writes it does not see itself, as ever at the seam.
struct Run<'a> {
    plan: &'a Plan,
    rows: &'a dyn Rows,
    sights: Vec<Sight>,
    contents: Vec<(u64, Content)>,
    changes: Changes,
    owners: u64,
}

impl Run<'_> {
    /// The number of the next reference.
    fn owner(&mut self) -> u64 {
        self.owners += 1;
        self.plan.label * 1_000 + self.owners
    }

    fn get(&mut self, place: Place) -> Result<Option<Row>, Unread> {
        let row = self.rows.get(&key(place))?.map(|bytes| Row::decode(&bytes));
        self.sights.push(Sight::Row(row.map(|row| row.label)));
        Ok(row)
    }

    fn scan(&mut self, scan: &Scan) -> Result<Vec<(Place, Row)>, Unread> {
        let mut found = Vec::new();
        let mut hasher = DefaultHasher::new();
        let (from, to) = (key((scan.partition, scan.from)), key((scan.partition, scan.to)));
        self.rows.scan(&from, &to, scan.about, &mut |at, value| {
            let number = u64::from_be_bytes(at[9..17].try_into().expect("eight bytes"));
            let row = Row::decode(value);
            (number, row.label, value.len()).hash(&mut hasher);
            found.push(((scan.partition, number), row));
            match scan.skip {
                _ if found.len() >= scan.stop_after => Visit::Stop,
                Some(skip) => Visit::SkipTo(key((scan.partition, number + skip))),
                None => Visit::Next,
            }
        })?;
        self.sights.push(Sight::Range(found.len(), hasher.finish()));
        Ok(found)
    }

    /// Never refused.
    fn set(&mut self, place: Place, row: Option<(Row, usize)>) -> Result<bool, Unread> {
        // What this plan has already written there: the state does not show it.
        let own = self.changes.rows.iter().rev().find(|(at, _)| *at == key(place)).map(|(_, value)| value.clone());
        let before = match own {
            Some(written) => written.map(|bytes| Row::decode(&bytes)),
            None => self.get(place)?,
        };
        self.let_go(before);
        match row {
            Some((row, length)) => self.changes.put(key(place), row.encode(length)),
            None => self.changes.delete(key(place)),
        };
        Ok(false)
    }

    fn let_go(&mut self, row: Option<Row>) {
        if let Some(Row { content: Some((id, owner)), .. }) = row {
            self.changes.unrefer(space::CONTENT, id, owner, PAST);
        }
    }

    fn refer(&mut self, place: Place, row: Row) -> Result<bool, Unread> {
        let (id, owner) = row.content.expect("a row with a content");
        self.changes.refer(id, owner);
        self.set(place, Some((row, 0)))
    }

    fn delete_range(&mut self, scan: &Scan) -> Result<bool, Unread> {
        for (place, _) in self.scan(scan)? {
            self.set(place, None)?;
        }
        self.changes.frees_space = true;
        Ok(false)
    }

    fn open(&mut self, place: Place) -> Result<bool, Unread> {
        let row = self.get(place)?;
        self.open_content(row)
    }

    fn open_all(&mut self, scan: &Scan) -> Result<bool, Unread> {
        for (_, row) in self.scan(scan)? {
            self.open_content(Some(row))?;
        }
        Ok(false)
    }

    fn open_content(&mut self, row: Option<Row>) -> Result<bool, Unread> {
        if let Some(Row { label, content: Some((id, _)) }) = row {
            self.contents.push((label, self.rows.content(ContentId(id))?));
        }
        Ok(false)
    }

    fn fill(&mut self, places: &[Place]) -> bool {
        for place in places {
            let row = Row { label: self.plan.label, content: None };
            self.changes.put(key(*place), row.encode(20));
        }
        false
    }

    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.sights.hash(&mut hasher);
        hasher.finish() >> 3
    }
}
