//! The server is killed while SMB clients write, and comes back: nothing that it acknowledged is lost.
//!
//! Each writer has a directory with one file in it and goes round: create, write little and much, grow, cut, flush, rename, replace by a
//! rename, delete. What it was told is in its ledger; what it had asked for when the server died was done whole or not at all.
//! `LAZURITE_CRASH_ROUNDS` says how often the server is killed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use smb::Status;
use smb::testing::{Asked, Told, body};
use smb::wire::FileId;
use smb::wire::header::Command;

use crate::server::{Program, Wire};

const WRITERS: u64 = 6;
/// However slow the machine: a writer has done so much before the server dies.
const STEPS_MIN: u64 = 12;
const NAMES: [&str; 2] = ["First.bin", "Second.bin"];
const SMALL: usize = 700;
/// More than travels with a commit.
const LARGE: usize = 200_000;
const ALL: u32 = 0x1F_01FF;
const SHARE_ALL: u32 = 7;
const OPEN: u32 = 1;
const CREATE: u32 = 2;
const DIRECTORY: u32 = 1;
const INFO_FILE: u8 = 1;
const RENAME: u8 = 10;
const DISPOSITION: u8 = 13;
const END_OF_FILE: u8 = 20;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Step {
    Create,
    WriteSmall,
    WriteLarge,
    Flush,
    Grow,
    Cut,
    Rename,
    RenameOver,
    Delete,
}

use Step::{Create, Cut, Delete, Flush, Grow, Rename, RenameOver, WriteLarge, WriteSmall};

const ROUND: [Step; 12] =
    [Create, WriteSmall, WriteLarge, Flush, Rename, Grow, WriteSmall, Cut, RenameOver, WriteLarge, Rename, Delete];

/// What a writer knows of its file.
#[derive(Clone, Default, PartialEq, Eq)]
struct File {
    name: usize,
    content: Vec<u8>,
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sum = self.content.iter().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        write!(f, "{} of {} bytes, sum {sum:x}", NAMES[self.name], self.content.len())
    }
}

#[derive(Clone, Default, Debug)]
struct Ledger {
    file: Option<File>,
    steps: u64,
    in_flight: Option<Step>,
}

impl Ledger {
    /// The next step of the round, or the creation that it needs.
    fn next(&self) -> Step {
        match (&self.file, ROUND[(self.steps % ROUND.len() as u64) as usize]) {
            (None, _) => Create,
            (Some(_), Create) => WriteSmall,
            (Some(_), step) => step,
        }
    }

    /// The bytes that a step writes, and where: they tell which step it was.
    fn written(&self, step: Step) -> (u64, Vec<u8>) {
        let size = if step == WriteLarge { LARGE } else { SMALL };
        let bytes = (0..size as u64).map(|at| (self.steps * 7 + at % 251 + 1) as u8);
        (self.steps * 377 % 5_000, bytes.collect())
    }

    fn after(&self, step: Step) -> Ledger {
        let mut file = self.file.clone();
        match (step, &mut file) {
            (Create, file) => *file = Some(File::default()),
            (Delete, file) => *file = None,
            (WriteSmall | WriteLarge, Some(file)) => {
                let (offset, bytes) = self.written(step);
                let (first, end) = (offset as usize, offset as usize + bytes.len());
                file.content.resize(file.content.len().max(end), 0);
                file.content[first..end].copy_from_slice(&bytes);
            }
            (Flush, Some(_)) => {}
            (Grow, Some(file)) => file.content.resize(file.content.len() + 10_000, 0),
            (Cut, Some(file)) => file.content.truncate(file.content.len() / 2),
            (Rename | RenameOver, Some(file)) => file.name = 1 - file.name,
            (_, None) => unreachable!("there is a file"),
        }
        Ledger { file, steps: self.steps + 1, in_flight: None }
    }
}

type Ledgers = Arc<Mutex<Vec<Ledger>>>;

/// A writer's connection. Each call is none when the server has died.
struct Writer {
    wire: Wire,
    directory: String,
}

impl Writer {
    fn done(&mut self, command: Command, body: Vec<u8>) -> Option<Told> {
        let charge = 1 + (body.len() >> 16) as u16;
        let told = self.wire.try_ask_all(vec![Asked { charge, ..Asked::new(command, body) }]).ok()?.pop()?;
        assert_eq!(told.status(), Status::SUCCESS, "{command:?} in {}", self.directory);
        Some(told)
    }

    fn path(&self, name: usize) -> String {
        format!("{}\\{}", self.directory, NAMES[name])
    }

    fn open(&mut self, name: usize, disposition: u32) -> Option<FileId> {
        let body = body::create(&self.path(name), ALL, SHARE_ALL, disposition, 0);
        Some(self.done(Command::Create, body)?.file_id())
    }

    fn close(&mut self, id: FileId) -> Option<()> {
        self.done(Command::Close, body::close(id)).map(drop)
    }

    fn rename(&mut self, id: FileId, to: usize, replaces: bool) -> Option<()> {
        let name: Vec<u8> = self.path(to).encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut info = vec![u8::from(replaces), 0, 0, 0, 0, 0, 0, 0];
        info.extend([0; 8]);
        info.extend((name.len() as u32).to_le_bytes());
        info.extend(name);
        self.done(Command::SetInfo, body::set_info(id, INFO_FILE, RENAME, &info)).map(drop)
    }

    /// Does the step. What it prepares for it changes nothing that the ledger knows.
    fn step(&mut self, ledger: &Ledger, step: Step) -> Option<()> {
        let Some(file) = ledger.file.as_ref().filter(|_| step != Create) else {
            let id = self.open(0, CREATE)?;
            return self.close(id);
        };
        let id = self.open(file.name, OPEN)?;
        let set_end = |length: usize| body::set_info(id, INFO_FILE, END_OF_FILE, &(length as u64).to_le_bytes());
        match step {
            Create => unreachable!("done above"),
            WriteSmall | WriteLarge => {
                let (offset, bytes) = ledger.written(step);
                self.done(Command::Write, body::write(id, offset, &bytes))?;
            }
            Flush => drop(self.done(Command::Flush, body::flush(id))?),
            Grow => drop(self.done(Command::SetInfo, set_end(file.content.len() + 10_000))?),
            Cut => drop(self.done(Command::SetInfo, set_end(file.content.len() / 2))?),
            Rename => self.rename(id, 1 - file.name, false)?,
            RenameOver => self.rename(id, 1 - file.name, true)?,
            Delete => drop(self.done(Command::SetInfo, body::set_info(id, INFO_FILE, DISPOSITION, &[1]))?),
        }
        self.close(id)
    }
}

fn directory(number: usize) -> String {
    format!("writer{number}")
}

/// Goes round until the server is gone.
fn write(wire: Wire, number: usize, ledgers: &Ledgers) {
    let mut writer = Writer { wire, directory: directory(number) };
    loop {
        let ledger = {
            let mut ledgers = ledgers.lock().expect("no writer panics with it");
            let ledger = &mut ledgers[number];
            ledger.in_flight = Some(ledger.next());
            ledger.clone()
        };
        let step = ledger.next();
        if writer.step(&ledger, step).is_none() {
            return;
        }
        ledgers.lock().expect("no writer panics with it")[number] = ledger.after(step);
    }
}

/// What is in a writer's directory.
fn found(wire: &mut Wire, number: usize) -> Option<File> {
    let files: Vec<File> = (0..NAMES.len())
        .filter_map(|name| {
            let told = wire.open(&format!("{}\\{}", directory(number), NAMES[name]), ALL, SHARE_ALL, OPEN, 0);
            if told.status() == Status::OBJECT_NAME_NOT_FOUND {
                return None;
            }
            assert_eq!(told.status(), Status::SUCCESS);
            let (id, mut content) = (told.file_id(), Vec::new());
            loop {
                let told = wire.ask(Command::Read, body::read(id, content.len() as u64, 60_000));
                match told.status() {
                    Status::SUCCESS => content.extend(told.data()),
                    status => break assert_eq!(status, Status::END_OF_FILE),
                }
            }
            assert_eq!(wire.ask(Command::Close, body::close(id)).status(), Status::SUCCESS);
            Some(File { name, content })
        })
        .collect();
    assert!(files.len() <= 1, "{number}: one file under one name: {files:?}");
    files.into_iter().next()
}

/// Holds what is there against the ledgers, takes over what was done without an answer, and says what was under way.
fn verify(program: &Program, ledgers: &Ledgers) -> BTreeSet<Step> {
    let mut wire = Wire::on_data(program);
    let mut interrupted = BTreeSet::new();
    for (number, ledger) in ledgers.lock().expect("nobody else runs").iter_mut().enumerate() {
        let found = found(&mut wire, number);
        let step = ledger.in_flight.take();
        interrupted.extend(step);
        let done = step.map(|step| ledger.after(step));
        let fits = [Some(ledger.clone()), done].into_iter().flatten().find(|ledger| ledger.file == found);
        *ledger = fits.unwrap_or_else(|| panic!("{number}: {found:?} is there after {step:?} of {ledger:?}"));
    }
    interrupted
}

#[test]
fn kill_nine_under_smb_writers_loses_nothing() {
    let rounds = std::env::var("LAZURITE_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let mut program = Program::start(&["--create", "share:data"]);
    let mut wire = Wire::on_data(&program);
    // Each begins at another place of the round.
    let ledgers: Vec<Ledger> = (0..WRITERS).map(|number| Ledger { steps: number * 5, ..Ledger::default() }).collect();
    for number in 0..ledgers.len() {
        assert_eq!(wire.open(&directory(number), ALL, SHARE_ALL, CREATE, DIRECTORY).status(), Status::SUCCESS);
    }
    drop(wire);
    let ledgers = Arc::new(Mutex::new(ledgers));
    let mut interrupted = BTreeSet::new();
    for round in 0..rounds {
        let steps =
            |ledgers: &Ledgers| ledgers.lock().expect("no writer panics with it").iter().map(|l| l.steps).sum::<u64>();
        let before = steps(&ledgers);
        let writers: Vec<_> = (0..WRITERS as usize)
            .map(|number| {
                let (wire, ledgers) = (Wire::on_data(&program), Arc::clone(&ledgers));
                std::thread::spawn(move || write(wire, number, &ledgers))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(150 + round * 173 % 700));
        while steps(&ledgers) < before + STEPS_MIN * WRITERS && !writers.iter().any(|writer| writer.is_finished()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        program.kill_and_check();
        for writer in writers {
            writer.join().expect("a writer saw what it must not");
        }
        program.restart();
        interrupted.extend(verify(&program, &ledgers));
    }
    println!("{rounds} kills under {WRITERS} writers; under way were {interrupted:?}");
    assert!(interrupted.len() > 1, "the deaths met writers at one kind of step only");
}
