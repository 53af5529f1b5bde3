//! Everything has a limit, and the limit has a name.

use std::time::Duration;

/// The head of a request with all its headers. Azure's own front end refuses at about 32 KiB; a client may sign into
/// the query what is long, so we leave room.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// What one connection may have read ahead or wait to write. hyper keeps the head in the same buffer.
pub const CONNECTION_BUFFER_BYTES: usize = 128 * 1024;
/// So much is read at once from a client that has not been let in. hyper's buffer grows with what is read at once, so that
/// everybody could have [`CONNECTION_BUFFER_BYTES`] of each connection filled with requests that wait for their refusal.
pub const STRANGER_READ_BYTES: usize = 4 * 1024;
/// A head may have this many bytes before it ends, however much others have sent of theirs: most heads come in one piece.
pub const UNFINISHED_HEAD_BYTES_FREE: usize = 4 * 1024;
/// An answer up to this size is not counted against [`Limits::public_answers`]: a download holds as much, a piece at a time.
pub const PUBLIC_ANSWER_BYTES_FREE: usize = 256 * 1024;
/// A client's own id for its request is repeated up to this length; from the REST reference.
pub const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;
/// Connections waiting to be accepted, per port.
pub const BACKLOG: u32 = 1024;
/// How often the server makes its allocator give back what is free.
pub const MEMORY_PAUSE: Duration = Duration::from_secs(5);
/// An allocation of this size is large for the allocator: to free it makes it give back what is free.
pub const LARGE_BYTES: usize = 8 * 1024 * 1024;
/// How often a port without a free place looks whether a silent connection can be closed for the next one.
pub const PLACES_PAUSE: Duration = Duration::from_millis(100);
/// After a failed accept (out of file descriptors, mostly) wait this long.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// What is read of a refused body to keep the connection for the next request.
pub const DRAIN_BYTES_MAX: u64 = 256 * 1024;
/// And for how long: a client that has stopped sending should hear why it is refused.
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(1);
/// What is read, after the answer, of a refused body that is longer: a connection closed over unread bytes is reset,
/// and the reset can overtake the answer.
pub const LINGER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// A body of the admin port.
pub const ADMIN_BODY_BYTES_MAX: usize = 4 * 1024;
/// The farthest one call may move the test clock: a hundred years.
pub const CLOCK_ADVANCE_SECONDS_MAX: u64 = 100 * 366 * 86_400;
/// What the access log holds back when nobody takes its lines; beyond that, lines are dropped and counted.
pub const ACCESS_LOG_BYTES_MAX: usize = 1024 * 1024;
/// How long lines of the access log wait for company.
pub const ACCESS_LOG_PAUSE: Duration = Duration::from_millis(100);
/// A line of the log that would come again and again comes this seldom.
pub const LOG_PAUSE: Duration = Duration::from_secs(10);
/// An address may fail to sign in this often before its refusals begin to wait.
pub const FAILED_SIGN_INS_BURST: f64 = 1_000.0;
/// So many failures of an address are forgiven in a second; refusals that wait go out at this rate.
pub const FAILED_SIGN_INS_PER_SECOND: f64 = 100.0;
/// No refusal waits longer than this.
pub const FAILED_SIGN_IN_WAIT_MAX: Duration = Duration::from_secs(5);
/// Addresses of which failures are remembered.
pub const FAILED_SIGN_IN_ADDRESSES_MAX: usize = 4_096;
/// An SMB client must have logged on this long after it connected, however slowly it sends its tokens.
pub const SMB_LOGON_TIME_MAX: Duration = Duration::from_secs(30);
/// An SMB connection without open files may be silent this long, as on Windows.
pub const SMB_IDLE: Duration = Duration::from_secs(15 * 60);
/// The other side of an SMB connection that has been silent this long is asked (TCP keepalive) whether it is still there. A client or node
/// that was lost says nothing, and its opens and locks would stay for ever.
pub const SMB_PROBE_AFTER: Duration = Duration::from_secs(30);
/// How often it is asked again.
pub const SMB_PROBE_PAUSE: Duration = Duration::from_secs(10);
/// After so many questions without an answer the connection ends.
pub const SMB_PROBES: u32 = 3;
/// How often a silent SMB connection looks whether the keys of its accounts were replaced.
pub const SMB_KEYS_PAUSE: Duration = Duration::from_secs(1);
/// Room for the bytes of an SMB frame is made in steps of at least this size.
pub const SMB_FRAME_ROOM_BYTES: usize = 1024 * 1024;
/// An SMB client that takes less than [`SMB_WINDOW_BYTES_MIN`] of its answers in this time, while there are some to be taken, loses its
/// connection if requests of others wait for memory.
pub const SMB_WINDOW: Duration = Duration::from_secs(5);
/// What an SMB client must take in [`SMB_WINDOW`] when memory is short.
pub const SMB_WINDOW_BYTES_MIN: usize = 1024 * 1024;
/// Files that SMB has marked for deletion and that are deleted at once in the background.
pub const DELETIONS_AT_ONCE_MAX: usize = 64;
/// How often it is looked which of those that failed have rested for long enough.
pub const DELETION_RESTS_LOOK: Duration = Duration::from_secs(1);
/// How often shutdown looks whether they are done.
pub const DELETIONS_LOOK: Duration = Duration::from_millis(20);
/// A body up to this size can still be forwarded to another node after an operation has read it.
pub const KEPT_BODY_BYTES_MAX: u64 = 64 * 1024;
/// Pieces of a forwarded body on their way from one connection to the other.
pub const FORWARDED_PIECES_MAX: usize = 2;
/// The owner of SMB has this much longer to answer a forwarded request than the request has by itself.
pub const FORWARDING_TIME: Duration = Duration::from_secs(5);
/// What one node tells another about a client counts this long, either way: their clocks differ.
pub const NODE_MESSAGE_AGE_MAX: Duration = Duration::from_secs(300);
/// How often a node looks who serves SMB.
pub const SMB_OWNER_LOOK: Duration = Duration::from_secs(1);
/// How long an SMB client waits for a node that serves SMB, before its connection ends.
pub const SMB_OWNER_WAIT_MAX: Duration = Duration::from_secs(20);
/// How long a node may take to connect to the owner of SMB.
pub const RELAY_CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes of a relayed SMB connection that wait, in each direction.
pub const RELAY_BUFFER_BYTES: usize = 16 * 1024;
/// How often the sweeper looks when nothing is due.
pub const SWEEP_PAUSE: Duration = Duration::from_secs(1);

/// How many sweeps a move of the test clock waits for.
pub const SWEEPS_AT_ONCE_MAX: usize = 1_000;

/// The limits that differ between a server and a test of its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once, on each port of a service. More wait in the backlog.
    pub connections: usize,
    /// And of those from one address. More are closed at once, unless one of them can be closed instead.
    pub connections_per_address: usize,
    /// The same on the admin port, which has to answer when all other ports are full; half of them for one address.
    pub admin_connections: usize,
    /// A connection may be silent this long (after it was made, after its last answer) before a request on it was signed,
    /// or served because what it asked for is public. A client connects because it has something to ask; one that does not
    /// ask takes places from those that do.
    pub first_request: Duration,
    /// A connection of this age on which no request was signed is closed for another when places run short.
    pub displaced: Duration,
    /// A request's head must be there this long after its first byte.
    pub head: Duration,
    /// Bytes of heads that have begun and not ended, on all connections together: each of them is held in memory, and nobody
    /// knows yet who sends them. Beyond that, connections are closed whose head is longer than most.
    pub unfinished_heads: usize,
    /// Bytes of answers that wait to be taken by clients without a credential, on all connections together. A list of a public
    /// container has megabytes, and whoever asks for one need not read it. More of them are told to come again.
    pub public_answers: usize,
    /// The handshake of TLS must be done this long after the connection was accepted.
    pub handshake: Duration,
    /// A connection may be silent this long between two requests.
    pub idle: Duration,
    /// A client may pause this long within a body it sends.
    pub body_pause: Duration,
    /// A client may take nothing for this long of an answer it asked for.
    pub write_pause: Duration,
    /// The rest of a refused body is read for this long.
    pub linger: Duration,
    /// What runs at shutdown has this long to end.
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 8_192,
            connections_per_address: 4_096,
            admin_connections: 64,
            first_request: Duration::from_secs(10),
            displaced: Duration::from_secs(1),
            head: Duration::from_secs(30),
            unfinished_heads: 32 * 1024 * 1024,
            public_answers: 128 * 1024 * 1024,
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(180),
            body_pause: Duration::from_secs(60),
            write_pause: Duration::from_secs(60),
            linger: Duration::from_secs(5),
            shutdown: Duration::from_secs(15),
        }
    }
}
