//! What it costs each request to see whether the accounts' file has changed: `cargo bench -p lazurite --bench reload`.

#[allow(dead_code)]
#[path = "../src/reload.rs"]
mod reload;

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use reload::{Files, Reload};

const ROUNDS: u32 = 200_000;

fn main() {
    let file = std::env::temp_dir().join(format!("lazurite-reload-cost-{}", std::process::id()));
    std::fs::write(&file, "one").expect("a file");
    // As if it had been written long ago.
    let opened = std::fs::File::options().write(true).open(&file).expect("the file");
    opened.set_modified(SystemTime::now() - Duration::from_secs(10)).expect("a time");
    measure("a file that is there", &file);
    std::fs::remove_file(&file).expect("the file");
    measure("a file that is not there", &file);
}

fn measure(what: &str, file: &Path) {
    let reload = Reload::new(Files::now([file]), || Ok(()));
    let nanoseconds = |look: &dyn Fn()| {
        let began = Instant::now();
        (0..ROUNDS).for_each(|_| look());
        began.elapsed().as_nanos() / u128::from(ROUNDS)
    };
    let (looks, glances) = (nanoseconds(&|| reload.look()), nanoseconds(&|| reload.glance()));
    println!("{what}: {looks} ns each time, {glances} ns at a glance");
}
