//! Random decisions on a real PostgreSQL: one node, and two that share the rows.

mod common;

use std::sync::Arc;

use engine::Engine;
use engine::memory::MemoryBytes;

mod one_node {
    use super::*;
    engine_model::model_tests!(nodes(1).await, engine_model::Reach::Downwards);
}

mod two_nodes {
    use super::*;
    engine_model::model_tests!(nodes(2).await, engine_model::Reach::Downwards);
}

/// A decision that names all partitions it looks at may look at and write to any of them.
mod two_nodes_with_all_partitions_named {
    use super::*;
    engine_model::model_tests!(nodes(2).await, engine_model::Reach::AnywhereNamed);
}

/// Nodes on one database; `None` where there is no PostgreSQL.
async fn nodes(count: usize) -> Option<Vec<Arc<dyn Engine>>> {
    let url = common::postgres()?;
    let options = common::fresh(url).await;
    let store = Arc::new(MemoryBytes::default());
    let mut nodes: Vec<Arc<dyn Engine>> = Vec::new();
    for _ in 0..count {
        nodes.push(common::open(url, Arc::clone(&store) as _, &options).await);
    }
    Some(nodes)
}
