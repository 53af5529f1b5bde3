//! Signals: the requests to end, and to read the files again.

use std::io;
#[cfg(unix)]
use std::io::IsTerminal;
use std::sync::mpsc;

/// Resolves at the first request to end; the second one ends the process at once. A hangup is a request to read the
/// files again, which goes to `reload`.
pub fn stop(reload: mpsc::Sender<()>) -> io::Result<impl Future<Output = ()>> {
    let mut signals = Signals::new(reload)?;
    Ok(async move {
        signals.next().await;
        tokio::spawn(async move {
            signals.next().await;
            std::process::exit(130);
        });
    })
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    reload: mpsc::Sender<()>,
    /// The terminal is one that a person uses.
    on_terminal: bool,
}

#[cfg(unix)]
impl Signals {
    fn new(reload: mpsc::Sender<()>) -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            reload,
            on_terminal: io::stdin().is_terminal(),
        })
    }

    async fn next(&mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => {}
            }
            // Closing the window is meant to end the server, not to let it go on unseen.
            if self.on_terminal && !io::stdin().is_terminal() {
                return;
            }
            let _ = self.reload.send(());
        }
    }
}

#[cfg(not(unix))]
struct Signals(mpsc::Sender<()>);

#[cfg(not(unix))]
impl Signals {
    fn new(reload: mpsc::Sender<()>) -> io::Result<Signals> {
        Ok(Signals(reload))
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
