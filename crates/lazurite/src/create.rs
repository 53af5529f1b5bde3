//! `--create`: containers that are to be there from the start, in every account.

use std::sync::Arc;

use blob::{BlobError, BlobService, Failure, Op};
use engine::Engine;
use wire::http::{FixedBody, Head, HeaderMap, Method, Query};
use wire::names::ContainerName;

use crate::flags::Wrong;

/// Makes those that are missing; the others stay as they are.
pub async fn run(
    engine: &Arc<dyn Engine>,
    accounts: impl Iterator<Item = &str>,
    containers: &[ContainerName],
) -> Result<(), Wrong> {
    if containers.is_empty() {
        return Ok(());
    }
    let service = BlobService::new(Arc::clone(engine));
    for account in accounts {
        let id = engine::account::id(engine.as_ref(), account).await;
        let id = id.map_err(|error| Wrong(format!("The account {account} cannot be stored: {error}.")))?;
        for container in containers {
            let made = service.run(Op::CreateContainer, &head(account, container), id, &mut FixedBody::new("")).await;
            match made {
                Ok(_) | Err(Failure::Refused(BlobError::ContainerAlreadyExists)) => {}
                Err(why) => {
                    let container = container.as_str();
                    return Err(Wrong(format!("Container {container} of account {account} cannot be made: {why:?}.")));
                }
            }
        }
    }
    Ok(())
}

/// What a client would send.
fn head(account: &str, container: &ContainerName) -> Head {
    Head {
        method: Method::PUT,
        account: account.to_owned(),
        secondary: false,
        resource: container.as_str().to_owned(),
        raw_path: format!("/{account}/{}", container.as_str()),
        query: Query::new(vec![("restype".into(), "container".into())]),
        headers: HeaderMap::new(),
        endpoint: String::new(),
        version: server::version::NEWEST.to_owned(),
        request_id: "at-the-start".to_owned(),
        https: false,
    }
}

#[cfg(test)]
mod tests {
    use engine::memory::MemoryEngine;

    use super::*;

    #[tokio::test]
    async fn what_is_there_stays() {
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new(1));
        let names: Vec<ContainerName> = ["one", "two"].map(|name| ContainerName::parse(name).unwrap()).into();
        run(&engine, ["abc"].into_iter(), &names[..1]).await.unwrap();
        run(&engine, ["abc", "def"].into_iter(), &names).await.unwrap();
        let service = BlobService::new(Arc::clone(&engine));
        for account in ["abc", "def"] {
            let id = engine::account::id(engine.as_ref(), account).await.unwrap();
            for name in &names {
                let made = service.run(Op::CreateContainer, &head(account, name), id, &mut FixedBody::new("")).await;
                assert!(matches!(made, Err(Failure::Refused(BlobError::ContainerAlreadyExists))), "{account} {name:?}");
            }
        }
    }
}
