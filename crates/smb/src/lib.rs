//! SMB 2.1 to 3.1.1, the half that knows no files: bytes to requests, answers to bytes, keys, logon and the share list. Nothing here waits,
//! reads a clock or opens a socket; randomness and time are arguments.
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
//! How a server goes on from here: read the prefix of a frame ([`wire::frame::decode`]) and the frame; [`connection::Connection::receive`]
//! gives its requests. Answer NEGOTIATE and SESSION_SETUP with the connection's own functions, each other request by its command: a header
//! ([`wire::header::Header::answer`], with what [`connection::Connection::grant`] grants) and a [`wire::Response`] make an
//! [`wire::compound::Outgoing`]; [`session::frame_of`] makes a frame of all answers, signed or encrypted.

pub mod connection;
pub mod credits;
pub mod crypto;
#[cfg(feature = "testing")]
pub mod fuzzing;
pub mod logon;
pub mod ntlm;
pub mod pipe;
#[cfg(any(test, feature = "testing"))]
mod samples;
pub mod session;
pub mod spnego;
pub mod status;
pub mod wire;

pub use status::Status;
