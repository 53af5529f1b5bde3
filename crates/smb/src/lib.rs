//! SMB 2.1 to 3.1.1 over the File service. No socket is opened here, and no rule about files is decided here: those are in `file::door`.
//!
//! The half that knows no files, does not wait, and has randomness and time as arguments:
//!
//! * [`status`]: NTSTATUS, what an answer says of its request.
//! * [`wire`]: messages, one file per command; header, compounds, frames, the header of encrypted messages, information classes.
//! * [`crypto`]: key derivation, signatures, encryption, the pre-authentication hash.
//! * [`ntlm`]: the server's side of NTLMv2.
//! * [`spnego`]: the tokens around NTLM.
//! * [`logon`]: both together, token in and token out.
//! * [`pipe`]: DCE/RPC on the pipe `srvsvc`, which lists shares.
//! * [`credits`]: how many requests a client may have on their way.
//! * [`connection`]: frames in, requests out; negotiation and logon. [`session`]: keys, and frames of answers.
//!
//! The half that is at work:
//!
//! * [`server`]: what all connections share. [`conversation`]: one connection, many requests at once. [`outbox`]: answers on their way.
//! * `breaks`: clients are told that they may not cache a file any more.
//! * [`durable`]: opens that outlive their connections. `lost`: how they are kept, given back and ended. `replay`: CREATE requests
//!   that are sent again.
//! * `user`: a session at work: its trees and opens. `command`: one file per command.
//! * [`logon_throttle`]: failed logons.
//!
//! A server reads the prefix of a frame ([`wire::frame::decode`]) and the frame, hands it to [`conversation::Conversation::receive`], and
//! sends what it takes from the outbox.

mod breaks;
mod command;
pub mod connection;
pub mod conversation;
pub mod credits;
pub mod crypto;
pub mod durable;
#[cfg(feature = "testing")]
pub mod fuzzing;
pub mod logon;
pub mod logon_throttle;
mod lost;
pub mod memory;
pub mod ntlm;
mod open;
pub mod outbox;
pub mod pipe;
mod replay;
#[cfg(any(test, feature = "testing"))]
mod samples;
pub mod server;
pub mod session;
pub mod spnego;
pub mod status;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod user;
pub mod wire;

pub use status::Status;
