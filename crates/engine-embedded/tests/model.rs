//! Random decisions on the embedded engine: as it is by default, with tiny budgets, and with relaxed durability.

mod common;

use common::{cramped_options, in_folder};
use engine_embedded::{Durability, Options};

mod full {
    use super::*;
    engine_model::model_tests!(Some(vec![in_folder(Options::default())]));
}

mod cramped {
    use super::*;
    engine_model::model_tests!(Some(vec![in_folder(cramped_options())]));
}

mod relaxed {
    use super::*;
    engine_model::model_tests!(Some(vec![in_folder(Options {
        durability: Durability::Relaxed,
        ..Options::default()
    })]));
}
