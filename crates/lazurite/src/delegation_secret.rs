//! What user delegation keys are made from: made once, kept beside the data, because what was signed with such keys must
//! still count after a restart.

use std::convert::Infallible;
use std::path::Path;

use engine::{Changes, Commit, Engine, EngineError, Key, NotCommitted, Stop};
use service::space;

use crate::flags::Wrong;
use crate::private_file::Replacement;
use crate::secret::Secret;

const FILE: &str = "delegation-secret";
const BYTES: usize = 32;

/// `None`: nothing is kept. The folder must be open, so that nobody else makes one.
pub fn load(data_folder: Option<&Path>) -> Result<[u8; BYTES], Wrong> {
    let Some(folder) = data_folder else { return bytes(&random()?).ok_or_else(|| Wrong("No secret.".into())) };
    let path = folder.join(FILE);
    let wrong = |what: String| Wrong(format!("The secret of delegation keys {} {what}.", path.display()));
    let secret = match std::fs::read_to_string(&path) {
        Ok(text) => Secret::new(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let secret = random()?;
            // The folder is ours: what stands in the way was cut off in an earlier run.
            let _ = std::fs::remove_file(folder.join(format!("{FILE}.new")));
            let written = Replacement::begin(&path).and_then(|file| file.put(secret.expose().as_bytes()));
            written.map_err(|error| wrong(format!("cannot be written: {error}")))?;
            secret
        }
        Err(error) => return Err(wrong(format!("cannot be read: {error}"))),
    };
    bytes(&secret).ok_or_else(|| {
        wrong("is damaged: bring it back, or remove it to have a new one, which makes earlier keys void".into())
    })
}

/// The one that all nodes of a cluster share: whoever comes first makes it.
pub async fn shared(engine: &dyn Engine) -> Result<[u8; BYTES], Wrong> {
    let fresh = bytes(&random()?).ok_or_else(|| Wrong("No secret.".into()))?;
    let key = Key::new(space::SECRET).text(FILE);
    let found = engine::commit::<[u8; BYTES], Infallible, _>(engine, key.clone(), move |rows, _| {
        if let Some(row) = rows.get(&key)? {
            let damaged = || Stop::Unread(EngineError::Corrupt(format!("{key:?} has {} bytes", row.len())).into());
            return Ok(Commit::unchanged(row.as_ref().try_into().map_err(|_| damaged())?));
        }
        let mut changes = Changes::none();
        changes.put(key.clone(), fresh.to_vec());
        Ok(Commit { changes, outcome: fresh })
    });
    match found.await {
        Ok(secret) => Ok(secret),
        Err(NotCommitted::Failed(error)) => {
            Err(Wrong(format!("The secret of delegation keys cannot be had: {error}.")))
        }
        Err(NotCommitted::Refused(never)) => match never {},
    }
}

fn random() -> Result<Secret, Wrong> {
    Secret::random::<BYTES>().map_err(|error| Wrong(format!("The system gives no random bytes: {error}.")))
}

fn bytes(secret: &Secret) -> Option<[u8; BYTES]> {
    wire::base64::decode_exact(secret.expose().trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_nodes_have_the_same() {
        let engine = engine::memory::MemoryEngine::default();
        let first = shared(&engine).await.unwrap();
        assert_eq!(shared(&engine).await.unwrap(), first);
        assert_ne!(first, [0; BYTES]);
    }

    #[test]
    fn made_once_and_never_replaced() {
        let folder = std::env::temp_dir().join(format!("lazurite-secret-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("delegation-secret.new"), "cut off").unwrap();
        let first = load(Some(&folder)).unwrap();
        assert_eq!(load(Some(&folder)).unwrap(), first);
        std::fs::write(folder.join(FILE), "damaged").unwrap();
        let Wrong(sentence) = load(Some(&folder)).unwrap_err();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(sentence.contains("damaged") && sentence.ends_with("void."), "{sentence}");
        assert_ne!(load(None).unwrap(), load(None).unwrap());
    }
}
