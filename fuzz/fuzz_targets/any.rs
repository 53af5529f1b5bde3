//! The decoder that this program is named after.
#![no_main]

use std::sync::LazyLock;

static DECODE: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let program = std::env::args().next().unwrap_or_default();
    let name = std::path::Path::new(&program).file_name().map(|name| name.to_string_lossy().into_owned());
    let target = fuzzing::TARGETS.iter().find(|(target, _)| name.as_deref() == Some(*target));
    target.unwrap_or_else(|| panic!("{program} is no target")).1
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| DECODE(bytes));
