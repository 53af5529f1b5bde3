//! `--create`: containers, queues, tables and shares that are to be there from the start, in every account.

use std::fmt;
use std::sync::Arc;

use blob::{BlobError, CreateContainer};
use engine::Engine;
use file::{CreateShare, FileError};
use queue::{CreateQueue, QueueError};
use service::Failure;
use table::{CreateTable, TableError, TableName};
use wire::names::{ContainerName, QueueName, ShareName};

use crate::flags::Wrong;

/// One thing to make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InitialResource {
    Container(ContainerName),
    Queue(QueueName),
    Table(TableName),
    Share(ShareName),
}

impl fmt::Display for InitialResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InitialResource::Container(name) => write!(f, "Container {name}"),
            InitialResource::Queue(name) => write!(f, "Queue {name}"),
            InitialResource::Table(name) => write!(f, "Table {}", name.as_str()),
            InitialResource::Share(name) => write!(f, "Share {name}"),
        }
    }
}

/// Makes those that are missing; the others stay as they are.
pub async fn run(
    engine: &Arc<dyn Engine>,
    accounts: impl Iterator<Item = &str>,
    wanted: &[InitialResource],
) -> Result<(), Wrong> {
    if wanted.is_empty() {
        return Ok(());
    }
    for account in accounts {
        let id = engine::account::id(engine.as_ref(), account).await;
        let id = id.map_err(|error| Wrong(format!("The account {account} cannot be stored: {error}.")))?;
        for one in wanted {
            let made = make(engine, id, one).await;
            made.map_err(|why| Wrong(format!("{one} of account {account} cannot be made: {why}.")))?;
        }
    }
    Ok(())
}

async fn make(engine: &Arc<dyn Engine>, id: u64, wanted: &InitialResource) -> Result<(), String> {
    match wanted {
        InitialResource::Container(name) => {
            let create = CreateContainer::named(name.clone());
            match service::commit(engine.as_ref(), id, &Arc::new(create)).await {
                Ok(_) | Err(Failure::Refused(BlobError::ContainerAlreadyExists)) => Ok(()),
                Err(why) => Err(format!("{why:?}")),
            }
        }
        InitialResource::Queue(name) => {
            let create = CreateQueue { queue: name.clone(), metadata: Vec::new() };
            match service::commit(engine.as_ref(), id, &Arc::new(create)).await {
                Ok(_) | Err(Failure::Refused(QueueError::QueueAlreadyExists)) => Ok(()),
                Err(why) => Err(format!("{why:?}")),
            }
        }
        InitialResource::Table(name) => {
            let create = CreateTable { table: name.clone() };
            match service::commit(engine.as_ref(), id, &Arc::new(create)).await {
                Ok(()) | Err(Failure::Refused(TableError::TableAlreadyExists)) => Ok(()),
                Err(why) => Err(format!("{why:?}")),
            }
        }
        InitialResource::Share(name) => {
            let create = CreateShare::named(name.clone());
            match service::commit(engine.as_ref(), id, &Arc::new(create)).await {
                Ok(_) | Err(Failure::Refused(FileError::ShareAlreadyExists)) => Ok(()),
                Err(why) => Err(format!("{why:?}")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::memory::MemoryEngine;
    use queue::QueueCreated;
    use table::QueryTable;

    use super::*;

    #[tokio::test]
    async fn what_is_there_stays() {
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new(1));
        let containers = ["one", "two"].map(|name| InitialResource::Container(ContainerName::parse(name).unwrap()));
        let queues = ["one", "two"].map(|name| InitialResource::Queue(QueueName::parse(name).unwrap()));
        let tables = ["one", "two"].map(|name| InitialResource::Table(TableName::parse(name).unwrap()));
        let shares = ["one", "two"].map(|name| InitialResource::Share(ShareName::parse(name).unwrap()));
        let names = [containers, queues, tables, shares].concat();
        run(&engine, ["abc"].into_iter(), &names[..1]).await.unwrap();
        run(&engine, ["abc", "def"].into_iter(), &names).await.unwrap();
        run(&engine, ["abc", "def"].into_iter(), &names).await.unwrap();
        for account in ["abc", "def"] {
            let id = engine::account::id(engine.as_ref(), account).await.unwrap();
            for name in ["one", "two"] {
                let create = CreateContainer::named(ContainerName::parse(name).unwrap());
                let made = service::commit(engine.as_ref(), id, &Arc::new(create)).await;
                assert!(matches!(made, Err(Failure::Refused(BlobError::ContainerAlreadyExists))), "{account} {name}");
                let create = CreateQueue { queue: QueueName::parse(name).unwrap(), metadata: Vec::new() };
                let made = service::commit(engine.as_ref(), id, &Arc::new(create)).await;
                assert_eq!(made, Ok(QueueCreated::AlreadyThere), "{account} {name}");
                let query = QueryTable { table: TableName::parse(name).unwrap() };
                let found = service::read(engine.as_ref(), id, &Arc::new(query)).await;
                assert_eq!(found.as_deref(), Ok(name), "{account} {name}");
                let create = CreateShare::named(ShareName::parse(name).unwrap());
                let made = service::commit(engine.as_ref(), id, &Arc::new(create)).await;
                assert_eq!(made, Err(Failure::Refused(FileError::ShareAlreadyExists)), "{account} {name}");
            }
        }
    }
}
