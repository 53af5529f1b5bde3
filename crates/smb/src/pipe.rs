//! The pipe `srvsvc` of IPC$: DCE/RPC in, DCE/RPC out. It lists the shares of the account that is logged on.
//!
//! * [`rpc`]: packets, bindings, fragments (MS-RPCE).
//! * [`ndr`]: values in packets.
//! * [`srvsvc`]: the calls (MS-SRVS).
//!
//! A pipe has messages: a WRITE brings a packet, a READ takes one. PIPE_TRANSCEIVE is both.

pub mod ndr;
pub mod rpc;
pub mod srvsvc;

use std::collections::VecDeque;

use self::rpc::{Binding, Incoming};
use self::srvsvc::Server;
use crate::status::{Result, Status};

/// Bytes of answers that may wait to be read when the next call is made. One answer may have more: ten thousand shares have 2 MiB.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The name that a CREATE on IPC$ must have, in any case and with or without `\` in front.
#[must_use]
pub fn is_srvsvc(name: &str) -> bool {
    let name = name.strip_prefix('\\').unwrap_or(name);
    name.eq_ignore_ascii_case("srvsvc")
}

/// An open pipe.
#[derive(Debug, Default)]
pub struct Pipe {
    incoming: Incoming,
    binding: Binding,
    answers: VecDeque<Vec<u8>>,
}

/// What a READ gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipeRead {
    pub data: Vec<u8>,
    /// SUCCESS, or BUFFER_OVERFLOW when more of the message is left.
    pub status: Status,
}

/// How far the packets of a pipe are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All that are complete.
    Done,
    /// The next one is a call, and there is no server to answer it from.
    NeedsServer,
}

impl Pipe {
    /// Takes what a WRITE or PIPE_TRANSCEIVE brings and answers it. `server` is what calls are answered from.
    ///
    /// # Errors
    /// Those of [`Pipe::take`] and [`Pipe::answer`].
    pub fn write(&mut self, bytes: &[u8], server: &Server<'_>) -> Result<()> {
        self.take(bytes)?;
        self.answer(Some(server)).map(|_| ())
    }

    /// Takes what a WRITE or PIPE_TRANSCEIVE brings.
    ///
    /// # Errors
    /// PIPE_BUSY when answers wait that nobody reads; PIPE_DISCONNECTED for more bytes than calls have.
    pub fn take(&mut self, bytes: &[u8]) -> Result<()> {
        self.may_answer()?;
        self.incoming.push(bytes)
    }

    /// Answers the packets that are complete, and calls if there is a server to answer them from.
    ///
    /// # Errors
    /// PIPE_BUSY when answers wait that nobody reads: the packets behind them stay where they are. PIPE_DISCONNECTED after bytes that are
    /// no DCE/RPC: the pipe is of no use any more.
    pub fn answer(&mut self, server: Option<&Server<'_>>) -> Result<Progress> {
        const NOBODY: Server<'static> = Server { name: "", comment: "", shares: &[] };
        while let Some(is_call) = self.incoming.next_is_call()? {
            if is_call && server.is_none() {
                return Ok(Progress::NeedsServer);
            }
            self.may_answer()?;
            let Some(packet) = self.incoming.next_packet()? else { break };
            let answers = self.binding.answer(&packet, server.unwrap_or(&NOBODY))?;
            self.answers.extend(answers);
        }
        Ok(Progress::Done)
    }

    fn may_answer(&self) -> Result<()> {
        let waiting: usize = self.answers.iter().map(Vec::len).sum();
        if waiting > ANSWER_BYTES_MAX { Err(Status::PIPE_BUSY) } else { Ok(()) }
    }

    /// Takes up to `max` bytes of the next message.
    ///
    /// # Errors
    /// PIPE_EMPTY when there is none.
    pub fn read(&mut self, max: usize) -> Result<PipeRead> {
        let message = self.answers.front_mut().ok_or(Status::PIPE_EMPTY)?;
        if message.len() > max {
            let rest = message.split_off(max);
            return Ok(PipeRead { data: std::mem::replace(message, rest), status: Status::BUFFER_OVERFLOW });
        }
        let data = self.answers.pop_front().unwrap_or_default();
        Ok(PipeRead { data, status: Status::SUCCESS })
    }

    /// Bytes of the next message.
    #[must_use]
    pub fn available(&self) -> usize {
        self.answers.front().map_or(0, Vec::len)
    }
}

#[cfg(test)]
mod tests;
