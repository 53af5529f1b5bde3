//! The messages of one queue, as one decision finds and changes them.
//!
//! Taking a message reads the queue's row, its marks, the first message and its text, however many messages the queue
//! holds or has held. Putting, updating and deleting one is as cheap. Three things make it so:
//!
//! - A scan begins at the low mark, so it does not walk over the deleted rows of messages before it.
//! - An expired message is removed by the decision that comes across it, or by the sweeper, which finds it by its text;
//!   one due row for each queue wakes the sweeper. Clients do not see an expired message, removed or not.
//! - The sweeper finds the text of an expired message. It finds the message's row too if the message is still at the
//!   position it was put at. If not, the row stays behind; such a row is called a ghost. A ghost is removed by the
//!   decision that comes across it; and when there are more ghosts than messages, the sweeper walks over all rows once
//!   and removes them.

use bytes::Bytes;
use concurrency::{PopReceipt, Timestamp};
use engine::collector::delete_some;
use engine::due::{self, Due};
use engine::{Changes, Key, KeyReader, Rows, Tick, Unread, Visit};
use service::codec;
use service::space;
use wire::names::QueueName;

use crate::model::{
    Halt, Marks, Message, MessagePosition, NEVER, Text, find_marks, generation, marks_key, message_key, messages_of,
    queue_key, text_key, texts_of,
};

/// How many expired messages one Get Messages removes while it looks for visible ones.
const DROPPED_MAX: usize = 100;
/// Get Messages that finds nothing leaves a low mark that is no farther behind than this: many clients may be polling,
/// and moving the mark is a write.
const LOW_BEHIND_TICKS: u64 = Timestamp::TICKS_PER_SECOND / 10;
/// How many expired texts are subtracted from the message count; more are not looked for.
const EXPIRED_COUNTED_MAX: u64 = 1_000;
/// How many messages a step of the sweeper looks at.
const ROWS_PER_STEP: usize = 100;
/// How many rows one step of a purge removes.
const ROWS_PER_PURGE: usize = 500;
/// With fewer ghosts than this the sweeper does not search for them.
const GHOSTS_MIN: u64 = 1_000;

/// The messages of a queue, as a decision in its partition sees and changes them.
pub struct Shelf<'a> {
    rows: &'a dyn Rows,
    /// The key of the queue's row; a due row carries it.
    queue: Key,
    generation: u64,
    marks: Marks,
    found: Marks,
    changes: Changes,
}

/// What Get Messages gives out.
#[derive(Debug, Default)]
pub struct TakenMessages {
    pub messages: Vec<(Message, String)>,
    /// Expired messages or ghosts were in the way; there may be visible messages behind them.
    pub unfinished: bool,
}

impl<'a> Shelf<'a> {
    /// Opens the messages of a queue, which must exist.
    pub fn open(rows: &'a dyn Rows, account: u64, name: &QueueName) -> Result<Shelf<'a>, Halt> {
        let generation = generation(rows, account, name)?;
        Ok(Shelf::of(rows, queue_key(account, name), generation)?)
    }

    /// The same, for a decision about the message that the receipt names.
    pub fn open_for(
        rows: &'a dyn Rows,
        account: u64,
        name: &QueueName,
        receipt: &PopReceipt,
    ) -> Result<Shelf<'a>, Halt> {
        let generation = generation(rows, account, name)?;
        rows.prefetch(&[marks_key(generation), message_key(generation, named_place(receipt))]);
        Ok(Shelf::of(rows, queue_key(account, name), generation)?)
    }

    pub fn of(rows: &'a dyn Rows, queue: Key, generation: u64) -> Result<Shelf<'a>, Unread> {
        let marks = find_marks(rows, generation)?;
        Ok(Shelf { rows, queue, generation, found: marks.clone(), marks, changes: Changes::none() })
    }

    /// Adds a new message.
    pub fn put(&mut self, message: &Message, text: &str) {
        let stored = Text { text: text.to_owned(), first: message.place().at };
        self.changes.put(self.text_key(message), codec::encode(&stored));
        self.stand(message);
        self.marks.count += 1;
        self.marks.swept = self.marks.swept.min(message.expires);
        if message.expires < NEVER {
            self.wake_at(message.expires);
        }
    }

    /// Gives out up to `most` visible messages.
    pub fn take(&mut self, most: usize, invisible_secs: u64, tick: Tick) -> Result<TakenMessages, Unread> {
        let mut taken = TakenMessages::default();
        let mut found = Vec::new();
        let mut expired = Vec::new();
        let mut last = None;
        self.each_visible(tick.now, most, |place, message| {
            last = Some(place);
            if message.is_expired(tick.now) {
                expired.push(message)
            } else {
                found.push(message)
            }
            taken.unfinished = expired.len() == DROPPED_MAX;
            if found.len() == most || taken.unfinished { Visit::Stop } else { Visit::Next }
        })?;
        let stopped = found.len() == most || taken.unfinished;
        let (expired_texts, texts) = (self.text_keys(&expired), self.text_keys(&found));
        self.rows.prefetch(&expired_texts);
        self.rows.prefetch(&texts);
        for (message, text) in expired.iter().zip(&expired_texts) {
            self.drop_expired(message, text)?;
        }
        for (message, key) in found.into_iter().zip(&texts) {
            let Some(text) = find_text(self.rows, key)? else {
                // A ghost: the message expired and was swept before the clock was set back.
                self.drop_ghost(&message);
                taken.unfinished |= stopped;
                continue;
            };
            let moved = message.taken(invisible_secs, tick);
            self.leave(&message);
            self.stand(&moved);
            taken.messages.push((moved, text.text));
        }
        match last {
            Some(last) if stopped => self.marks.low = self.marks.low.max(last.next()),
            Some(_) => self.raise_low(tick.now),
            None if self.marks.low.at.plus_ticks(LOW_BEHIND_TICKS) < tick.now => self.raise_low(tick.now),
            None => {}
        }
        Ok(taken)
    }

    /// The message at the position that the pop receipt names, unless it has expired.
    pub fn find(&self, receipt: &PopReceipt, now: Timestamp) -> Result<Option<Message>, Unread> {
        let row = self.rows.get(&message_key(self.generation, named_place(receipt)))?;
        let message = row.map(|row| codec::decode::<Message>(&row)).transpose()?;
        let Some(message) = message.filter(|message| !message.is_expired(now)) else { return Ok(None) };
        // It may be a ghost whose text was swept before the clock was set back. Most queues were never swept, and have
        // none.
        let may_be_ghost = self.marks.swept > Timestamp::default();
        if may_be_ghost && find_text(self.rows, &self.text_key(&message))?.is_none() {
            Ok(None)
        } else {
            Ok(Some(message))
        }
    }

    /// Replaces `old` by `new`, with a new text if there is one.
    pub fn replace(&mut self, old: &Message, new: &Message, text: Option<&str>) {
        self.leave(old);
        self.stand(new);
        if let Some(text) = text {
            // The sweeper finds the message at this position until it is given out.
            let stored = Text { text: text.to_owned(), first: new.place().at };
            self.changes.put(self.text_key(new), codec::encode(&stored));
        }
    }

    /// Removes a message and its text.
    pub fn remove(&mut self, message: &Message) {
        self.leave(message);
        self.changes.delete(self.text_key(message));
        self.count_down();
    }

    /// One text less. `lazurite check` compares the count with the texts there are.
    fn count_down(&mut self) {
        self.marks.count = self.marks.count.checked_sub(1).expect("every text is counted");
    }

    /// Leaves all messages to the background purge. The caller makes sure that this generation is not found again.
    pub fn abandon(mut self, now: Timestamp, changes: &mut Changes) {
        if self.marks != Marks::default() {
            self.changes.put(purge_due(now, self.generation), Bytes::new());
            // A sweep that is under way ends here. The purge uses `hunted` for its position among the texts, so a
            // position among the messages, left by the search for ghosts, must go.
            self.set_due(None);
            self.marks.hunted = None;
        }
        self.close(changes);
    }

    /// Adds what has changed to the changes of the decision.
    pub fn close(mut self, changes: &mut Changes) {
        changes.rows.append(&mut self.changes.rows);
        if self.marks == self.found {
            return;
        }
        let key = marks_key(self.generation);
        // Empty marks are not stored: nothing would remove the row together with its queue.
        if self.marks == Marks::default() {
            changes.delete(key);
        } else {
            changes.put(key, codec::encode(&self.marks));
        }
    }

    fn text_key(&self, message: &Message) -> Key {
        text_key(self.generation, message.expires, message.id.number())
    }

    fn text_keys(&self, messages: &[Message]) -> Vec<Key> {
        messages.iter().map(|message| self.text_key(message)).collect()
    }

    fn stand(&mut self, message: &Message) {
        // After the clock was set back, a message may be put before the low mark.
        self.marks.low = self.marks.low.min(message.place());
        self.changes.put(message_key(self.generation, message.place()), codec::encode(message));
    }

    fn leave(&mut self, message: &Message) {
        self.changes.delete(message_key(self.generation, message.place()));
    }

    /// No message that is visible at `now` is left.
    fn raise_low(&mut self, now: Timestamp) {
        self.marks.low = self.marks.low.max(MessagePosition::after(now));
    }

    /// Removes an expired message, or its ghost.
    fn drop_expired(&mut self, message: &Message, text: &Key) -> Result<(), Unread> {
        if self.rows.get(text)?.is_some() {
            self.remove(message);
        } else {
            self.drop_ghost(message);
        }
        Ok(())
    }

    fn drop_ghost(&mut self, message: &Message) {
        self.leave(message);
        // Only about so many: the search for ghosts ends with zero, and there may be some that cannot be seen yet.
        self.marks.ghosts = self.marks.ghosts.saturating_sub(1);
    }

    fn each_visible(
        &self,
        now: Timestamp,
        about: usize,
        visit: impl FnMut(MessagePosition, Message) -> Visit,
    ) -> Result<(), Unread> {
        each_message(self.rows, self.generation, self.marks.low, now, about, visit)
    }

    /// Makes sure that the sweeper runs soon after `expires`, or earlier.
    fn wake_at(&mut self, expires: Timestamp) {
        let at = whole_second_after(expires);
        if self.marks.due.is_none_or(|due| at < due) {
            self.set_due(Some(at));
        }
    }

    fn set_due(&mut self, at: Option<Timestamp>) {
        if let Some(old) = self.marks.due {
            self.changes.delete(expiry_due(old, self.generation, &self.queue));
        }
        if let Some(new) = at {
            self.changes.put(expiry_due(new, self.generation, &self.queue), Bytes::new());
        }
        self.marks.due = at;
    }

    /// One step of the sweeper, for the due row at the time `woken`. Returns whether another step must follow.
    pub fn sweep(&mut self, woken: Timestamp, now: Timestamp) -> Result<bool, Unread> {
        if self.marks.due != Some(woken) {
            // The due row is out of date; the sweeper removes it.
            return Ok(false);
        }
        if self.marks.hunted.is_none() && self.sweep_texts(now)? {
            return Ok(true);
        }
        let is_haunted = self.marks.hunted.is_some() || self.marks.ghosts > GHOSTS_MIN.max(self.marks.count);
        if is_haunted && self.hunt_ghosts(now)? {
            return Ok(true);
        }
        let next = self.next_expiry(now)?;
        // At most once a second: a queue that gets short-lived messages all the time must not keep the sweeper busy.
        self.set_due(next.map(|expires| whole_second_after(expires.max(now))));
        Ok(false)
    }

    /// Removes expired texts, and their messages if they are still where they were put. Returns whether there are more.
    fn sweep_texts(&mut self, now: Timestamp) -> Result<bool, Unread> {
        let Some((from, to)) = expired_texts(self.generation, &self.marks, now) else { return Ok(false) };
        let mut expired = Vec::new();
        let mut more = false;
        self.rows.scan(&from, &to, ROWS_PER_STEP + 1, &mut |key, row| {
            more = expired.len() == ROWS_PER_STEP;
            if more {
                return Visit::Stop;
            }
            expired.push(self.expired_text(key, row));
            Visit::Next
        })?;
        let expired = expired.into_iter().collect::<Result<Vec<_>, Unread>>()?;
        let firsts: Vec<Key> = expired.iter().map(|(_, _, first)| first.clone()).collect();
        self.rows.prefetch(&firsts);
        for (key, place, first) in expired {
            if self.rows.get(&first)?.is_some() {
                self.changes.delete(first);
            } else {
                self.marks.ghosts += 1;
            }
            self.changes.delete(key);
            self.count_down();
            self.marks.swept = place.at;
        }
        Ok(more)
    }

    /// The key of an expired text, the place of its message, and the key that the message had at first.
    fn expired_text(&self, key: &[u8], row: &Bytes) -> Result<(Key, MessagePosition, Key), Unread> {
        let (place, text) = (place_of(key)?, codec::decode::<Text>(row)?);
        let first = message_key(self.generation, MessagePosition { at: text.first, ..place });
        Ok((Key::from_bytes(key), place, first))
    }

    /// Continues the search for ghosts. Returns whether there are more rows to look at.
    fn hunt_ghosts(&mut self, now: Timestamp) -> Result<bool, Unread> {
        let from = self.marks.hunted.unwrap_or_default().max(self.marks.low);
        let mut seen = Vec::new();
        each_message(self.rows, self.generation, from, now, ROWS_PER_STEP, |place, message| {
            seen.push((place, message));
            if seen.len() == ROWS_PER_STEP { Visit::Stop } else { Visit::Next }
        })?;
        let more = seen.len() == ROWS_PER_STEP;
        let last = seen.last().map(|(place, _)| *place);
        let expired: Vec<Message> =
            seen.into_iter().map(|(_, message)| message).filter(|message| message.is_expired(now)).collect();
        let texts = self.text_keys(&expired);
        self.rows.prefetch(&texts);
        for (message, text) in expired.iter().zip(&texts) {
            self.drop_expired(message, text)?;
        }
        self.marks.hunted = last.filter(|_| more).map(MessagePosition::next);
        if !more {
            // The rest was removed by the requests that came across it.
            self.marks.ghosts = 0;
        }
        Ok(more)
    }

    fn next_expiry(&self, now: Timestamp) -> Result<Option<Timestamp>, Unread> {
        let from = texts_of(self.generation).number(now.0.saturating_add(1));
        let to = texts_of(self.generation).number(NEVER.0);
        let mut next = None;
        self.rows.scan(&from, &to, 1, &mut |key, _| {
            next = Some(place_of(key));
            Visit::Stop
        })?;
        Ok(next.transpose()?.map(|place| place.at))
    }
}

/// Up to `most` visible messages, unchanged.
pub fn peek(rows: &dyn Rows, generation: u64, most: usize, now: Timestamp) -> Result<Vec<(Message, String)>, Unread> {
    let mut from = find_marks(rows, generation)?.low;
    let mut shown = Vec::new();
    loop {
        let wanted = most - shown.len();
        let mut found = Vec::new();
        each_message(rows, generation, from, now, wanted, |place, message| {
            from = place.next();
            if !message.is_expired(now) {
                found.push(message);
            }
            if found.len() == wanted { Visit::Stop } else { Visit::Next }
        })?;
        let is_last = found.len() < wanted;
        let texts: Vec<Key> =
            found.iter().map(|message| text_key(generation, message.expires, message.id.number())).collect();
        rows.prefetch(&texts);
        for (message, key) in found.into_iter().zip(&texts) {
            // A ghost has no text; it is skipped.
            if let Some(text) = find_text(rows, key)? {
                shown.push((message, text.text));
            }
        }
        if is_last || shown.len() == most {
            return Ok(shown);
        }
    }
}

/// Where the message stands that the receipt was given for.
fn named_place(receipt: &PopReceipt) -> MessagePosition {
    MessagePosition { at: receipt.place, number: receipt.message.number() }
}

fn find_text(rows: &dyn Rows, key: &Key) -> Result<Option<Text>, Unread> {
    rows.get(key)?.map(|row| codec::decode(&row)).transpose()
}

/// How many messages have not expired. If very many expired within the last second, some of those are counted.
pub fn count(rows: &dyn Rows, generation: u64, now: Timestamp) -> Result<u64, Unread> {
    let marks = find_marks(rows, generation)?;
    let Some((from, to)) = expired_texts(generation, &marks, now) else { return Ok(marks.count) };
    let mut expired = 0;
    rows.scan(&from, &to, 1, &mut |_, _| {
        expired += 1;
        if expired == EXPIRED_COUNTED_MAX { Visit::Stop } else { Visit::Next }
    })?;
    Ok(marks.count.saturating_sub(expired))
}

/// The range in which expired texts may be: it begins where the sweeper has stopped, and is empty before the sweeper is
/// due.
fn expired_texts(generation: u64, marks: &Marks, now: Timestamp) -> Option<(Key, Key)> {
    let first = Timestamp(marks.due?.0 - Timestamp::TICKS_PER_SECOND).max(marks.swept);
    let range = || texts_of(generation);
    (first <= now).then(|| (range().number(first.0), range().number(now.0.saturating_add(1))))
}

/// Removes some rows of a generation whose queue was deleted or cleared. Returns whether there are more.
///
/// The marks stay until the last step and hold the progress: `low` in the messages, `hunted` in the texts.
pub fn purge(rows: &dyn Rows, generation: u64, changes: &mut Changes) -> Result<bool, Unread> {
    let mut marks = find_marks(rows, generation)?;
    let from = message_key(generation, marks.low);
    let mut last = remove_some(rows, &from, &messages_of(generation), changes)?;
    if let Some(place) = last {
        marks.low = place.next();
    } else {
        let MessagePosition { at, number } = marks.hunted.unwrap_or_default();
        let from = text_key(generation, at, number);
        last = remove_some(rows, &from, &texts_of(generation), changes)?;
        marks.hunted = last.map(MessagePosition::next);
    }
    let row = last.map(|_| codec::encode(&marks));
    changes.rows.push((marks_key(generation), row));
    Ok(last.is_some())
}

/// Removes rows of one range. Returns the position of the last one, if there was any.
fn remove_some(
    rows: &dyn Rows,
    from: &Key,
    all: &Key,
    changes: &mut Changes,
) -> Result<Option<MessagePosition>, Unread> {
    let mut last = None;
    delete_some(rows, from, &all.after_all(), ROWS_PER_PURGE, changes, |key, _, _| last = Some(place_of(key)))?;
    last.transpose()
}

/// Visits the messages that are visible at `now`, from a position on, in their order; expired ones are among them.
fn each_message(
    rows: &dyn Rows,
    generation: u64,
    from: MessagePosition,
    now: Timestamp,
    about: usize,
    mut visit: impl FnMut(MessagePosition, Message) -> Visit,
) -> Result<(), Unread> {
    let to = message_key(generation, MessagePosition::after(now));
    let mut failed = None;
    rows.scan(&message_key(generation, from), &to, about, &mut |_, row| match codec::decode::<Message>(row) {
        Ok(message) => visit(message.place(), message),
        Err(error) => {
            failed = Some(error);
            Visit::Stop
        }
    })?;
    failed.map_or(Ok(()), Err)
}

/// The position in the key of a message, or the time of expiry and the number in the key of a text.
pub fn place_of(key: &[u8]) -> Result<MessagePosition, Unread> {
    let mut reader = KeyReader::new(key);
    let _generation = reader.number();
    match (reader.number(), reader.number()) {
        (Some(at), Some(number)) => Ok(MessagePosition { at: Timestamp(at), number }),
        _ => Err(codec::corrupt("the key of a message")),
    }
}

fn whole_second_after(at: Timestamp) -> Timestamp {
    at.whole_seconds().plus_seconds(1)
}

/// The due row that wakes the sweeper when messages of a queue expire.
fn expiry_due(at: Timestamp, generation: u64, queue: &Key) -> Key {
    due::key(at, space::MESSAGE_TEXT, &[&generation.to_be_bytes()[..], queue.as_bytes()].concat())
}

/// The due row for the purge of a generation whose queue was deleted or cleared.
fn purge_due(now: Timestamp, generation: u64) -> Key {
    due::key(now, space::QUEUE_MARKS, &generation.to_be_bytes())
}

/// The work that a due row of this service stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DueWork {
    /// Remove the expired messages of a queue.
    Expiry { generation: u64, queue: Key },
    /// Remove all messages of a generation.
    Purge { generation: u64 },
}

impl DueWork {
    pub fn of(due: &Due) -> Option<DueWork> {
        let (generation, queue) = due.owner.split_first_chunk::<8>()?;
        let generation = u64::from_be_bytes(*generation);
        match due.space {
            space::MESSAGE_TEXT => Some(DueWork::Expiry { generation, queue: Key::from_bytes(queue) }),
            space::QUEUE_MARKS => Some(DueWork::Purge { generation }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
