//! The embedded engine does what every engine must.

mod common;

use common::{cramped_options, in_folder};
use engine_embedded::Options;

mod full {
    use super::*;
    engine::conformance_tests!(in_folder(Options::default()));
}

/// With tiny budgets everything happens often: logs end, memtables are written out, rows leave the cache.
mod cramped {
    use super::*;
    engine::conformance_tests!(in_folder(cramped_options()));
}

mod relaxed {
    use super::*;
    engine::conformance_tests!(in_folder(Options {
        durability: engine_embedded::Durability::Relaxed,
        ..Options::default()
    }));
}
