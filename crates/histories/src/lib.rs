//! What many clients saw at once, held against sequential models. For tests; no I/O, no clock, no threads.
//!
//! A test notes in a [`History`] when each call to one object begins and what it was answered. [`check`] then looks for an
//! order of the calls in which every answer is right by the object's [`Model`], where no call comes before one that had ended
//! when it began. If there is none, the service has done what no server that does one thing after another could have done.
//!
//! A call without an answer (the server died, the answer was lost, the server said that it does not know) may have happened at any
//! time after it began, or never. [`History::settle`] says from when on it can no longer happen; [`History::take_back`] that it never
//! left its client.

mod check;
mod container;
mod dice;
mod group;
mod history;
mod lease;
mod message;
mod register;

pub use check::{CONFIGURATIONS_MAX, Forgetting, Model, Verdict, check, check_forgetting};
pub use container::{Container, ContainerAnswer, ContainerCall};
pub use dice::Dice;
pub use group::{Group, GroupAnswer, GroupCall, GroupWrite};
pub use history::{Call, History, Moment, Span, Ticket};
pub use lease::{Lease, LeaseAnswer, LeaseCall};
pub use message::{Message, MessageAnswer, MessageCall, Receipt};
pub use register::{Condition, Register, RegisterAnswer, RegisterCall};
