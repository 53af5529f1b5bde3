//! `lazurite check DIR`: is everything in this data folder as it should be?

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use engine::Engine;
use engine_embedded::{Progress, Report};

use crate::flags::Wrong;
use crate::greeting::say;

const BAR_WIDTH: usize = 30;
/// A terminal is not told more often than this.
const BAR_PAUSE: Duration = Duration::from_millis(100);

/// Ends with 1 when something is wrong.
pub fn run(folder: &Path) -> Result<ExitCode, Wrong> {
    let mut bar = Bar::new(std::io::stderr().is_terminal());
    let report = report(folder, &mut |progress| bar.show(&progress));
    bar.clear();
    let report = report?;
    say(&format!("{report}\n"));
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(folder: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Report, Wrong> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Wrong(format!("This folder cannot be checked: {error}.")))?;
    let report = engine_embedded::check_with(folder, &blob::REFERRED, progress, &mut |engine, report| {
        runtime.block_on(services(engine, report));
    });
    report.map_err(|error| Wrong(format!("This folder cannot be checked: {error}.")))
}

/// What only the services can tell of their rows.
async fn services(engine: &dyn Engine, report: &mut Report) {
    if let Err(error) = queue::check(engine, &mut |problem| report.problem(problem)).await {
        report.problem(format!("rows of the Queue service: {error}"));
    }
    if let Err(error) = blob::check(engine, &mut |problem| report.problem(problem)).await {
        report.problem(format!("rows of the Blob service: {error}"));
    }
    if let Err(error) = file::check(engine, &mut |problem| report.problem(problem)).await {
        report.problem(format!("rows of the File service: {error}"));
    }
}

/// A progress bar on a terminal; nothing elsewhere.
struct Bar {
    on_terminal: bool,
    shown: Option<Instant>,
}

impl Bar {
    fn new(on_terminal: bool) -> Bar {
        Bar { on_terminal, shown: None }
    }

    fn show(&mut self, progress: &Progress) {
        let is_last = progress.done >= progress.total;
        if !self.on_terminal || !is_last && self.shown.is_some_and(|shown| shown.elapsed() < BAR_PAUSE) {
            return;
        }
        self.shown = Some(Instant::now());
        write(&format!("\r\x1b[K{}", line(progress)));
    }

    fn clear(&mut self) {
        if self.shown.is_some() {
            write("\r\x1b[K");
        }
    }
}

fn line(progress: &Progress) -> String {
    let total = progress.total.max(1);
    let done = progress.done.min(total);
    let filled = usize::try_from(u128::from(done) * BAR_WIDTH as u128 / u128::from(total)).unwrap_or(BAR_WIDTH);
    let percent = u128::from(done) * 100 / u128::from(total);
    format!("[{}{}] {percent:3} % {}", "#".repeat(filled), "-".repeat(BAR_WIDTH - filled), progress.what)
}

fn write(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::{Changes, Commit, Key, commit};
    use engine_embedded::{EmbeddedEngine, Options};
    use service::space;

    /// A row that no engine can know to be wrong.
    #[test]
    fn what_the_services_find_is_reported() {
        let folder = std::env::temp_dir().join(format!("lazurite-check-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let text = Key::new(space::MESSAGE_TEXT).number(7).number(1).number(1);
        let place = Key::new(space::PLACE).number(7).number(1);
        let tag = Key::new(space::TAG).number(1).text("key").text("value").number(1).text("blob");
        let engine = EmbeddedEngine::open(&folder, Options::default()).unwrap();
        runtime.block_on(async {
            let put = commit::<_, std::convert::Infallible, _>(&*engine, tag.clone(), move |_, _| {
                let mut changes = Changes::none();
                changes.put(text.clone(), Vec::new());
                changes.put(tag.clone(), Vec::new());
                changes.put(place.clone(), Vec::new());
                Ok(Commit { changes, outcome: () })
            });
            put.await.unwrap();
            engine.close().await.unwrap();
        });
        drop(engine);
        let report = report(&folder, &mut |_| {}).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(report.problem_count, 3, "{report}");
        for sentence in ["belongs to no queue", "is left behind", "a row cannot be read"] {
            assert!(report.problems.iter().any(|problem| problem.contains(sentence)), "{report}");
        }
    }

    #[test]
    fn the_bar_fills() {
        let at = |done, total| line(&Progress { done, total, what: "rows" });
        assert_eq!(at(0, 10), format!("[{}]   0 % rows", "-".repeat(30)));
        assert_eq!(at(5, 10), format!("[{}{}]  50 % rows", "#".repeat(15), "-".repeat(15)));
        assert_eq!(at(10, 10), format!("[{}] 100 % rows", "#".repeat(30)));
        assert_eq!(at(0, 0), at(0, 10));
        assert_eq!(at(20, 10), at(10, 10));
    }
}
