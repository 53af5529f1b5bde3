//! A share: directories and files by their paths, and the same of its snapshots. A file is some cells, each of which was written by one
//! call or is zeros.

use std::collections::BTreeMap;

use concurrency::Timestamp;

use super::{Object, Value};

/// The names from the root down. Empty: the root.
pub type Path = Vec<u8>;

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Tree(BTreeMap<Path, Node>, BTreeMap<String, BTreeMap<Path, Node>>);

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Node {
    /// `None` until somebody is told.
    id: Option<String>,
    etag: Option<String>,
    /// What was written to each cell of a file, 0 for zeros. `None`: it is a directory.
    cells: Option<Vec<Value>>,
}

#[derive(Clone, Debug)]
pub enum FileCall {
    MakeDirectory {
        path: Path,
    },
    Create {
        path: Path,
        cells: usize,
    },
    Write {
        path: Path,
        first: usize,
        count: usize,
        value: Value,
    },
    Clear {
        path: Path,
        first: usize,
        count: usize,
    },
    Resize {
        path: Path,
        cells: usize,
    },
    Rename {
        from: Path,
        to: Path,
        is_directory: bool,
        replaces: bool,
    },
    DeleteFile {
        path: Path,
    },
    DeleteDirectory {
        path: Path,
    },
    Get {
        path: Path,
    },
    List {
        path: Path,
    },
    /// The usage of the share.
    Stats,
    Snapshot,
    /// The time of a snapshot names it.
    DropSnapshot {
        time: String,
    },
    GetSnapshot {
        time: String,
        path: Path,
    },
    ListSnapshot {
        time: String,
        path: Path,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileAnswer {
    /// Not every answer tells the id.
    Changed {
        id: Option<String>,
        etag: String,
    },
    Deleted,
    Read {
        cells: Vec<Value>,
        id: String,
        etag: String,
    },
    /// Name, id, and how many cells a file has.
    Listed(Vec<(u8, String, Option<usize>)>),
    /// In cells.
    Used(usize),
    /// The time that names it.
    Taken(String),
    Refused(String),
}

impl Object for Tree {
    type Call = FileCall;
    type Answer = FileAnswer;

    fn step(&self, call: &FileCall, answer: Option<&FileAnswer>, _: Timestamp) -> Vec<Tree> {
        match (self.judge(call), answer) {
            (Err(code), Some(FileAnswer::Refused(told))) if code == told => vec![self.clone()],
            (Err(_), _) | (Ok(()), Some(FileAnswer::Refused(_))) => vec![],
            (Ok(()), _) => self.after(call, answer).into_iter().collect(),
        }
    }

    fn written(call: &FileCall) -> Vec<Value> {
        if let FileCall::Write { value, .. } = call { vec![*value] } else { vec![] }
    }

    fn seen(answer: &FileAnswer) -> Vec<Value> {
        if let FileAnswer::Read { cells, .. } = answer {
            cells.iter().copied().filter(|value| *value != 0).collect()
        } else {
            vec![]
        }
    }
}

impl Tree {
    /// What stands at a path. The directories above must be there.
    fn find(&self, path: &[u8]) -> Result<Option<&Node>, &'static str> {
        let is_directory = |end: usize| self.0.get(&path[..end]).is_some_and(|node| node.cells.is_none());
        if (1..path.len()).all(is_directory) { Ok(self.0.get(path)) } else { Err("ParentNotFound") }
    }

    /// The cells of a file that is changed.
    fn file(&self, path: &[u8]) -> Result<&Vec<Value>, &'static str> {
        let node = self.find(path)?.ok_or("ResourceNotFound")?;
        node.cells.as_ref().ok_or("ResourceTypeMismatch")
    }

    fn below<'a>(&'a self, path: &'a [u8]) -> impl Iterator<Item = (&'a Path, &'a Node)> {
        self.0.iter().filter(|(other, _)| other.len() > path.len() && other.starts_with(path))
    }

    /// Whether the call is done, or with which code it is refused.
    fn judge(&self, call: &FileCall) -> Result<(), &'static str> {
        match call {
            FileCall::MakeDirectory { path } => match self.find(path)? {
                Some(_) => Err("ResourceAlreadyExists"),
                None => Ok(()),
            },
            FileCall::Create { path, .. } => match self.find(path)? {
                Some(Node { cells: None, .. }) => Err("ResourceTypeMismatch"),
                Some(_) | None => Ok(()),
            },
            FileCall::Write { path, first, count, .. } | FileCall::Clear { path, first, count } => {
                if first + count > self.file(path)?.len() { Err("InvalidRange") } else { Ok(()) }
            }
            FileCall::Resize { path, .. } | FileCall::DeleteFile { path } => self.file(path).map(|_| ()),
            FileCall::Rename { from, to, is_directory, replaces } => {
                self.judge_rename(from, to, *is_directory, *replaces)
            }
            FileCall::DeleteDirectory { path } => {
                let node = self.find(path)?.ok_or("ResourceNotFound")?;
                if node.cells.is_some() {
                    return Err("ResourceTypeMismatch");
                }
                if self.below(path).next().is_some() { Err("DirectoryNotEmpty") } else { Ok(()) }
            }
            FileCall::Get { path } => {
                let node = self.find(path)?.ok_or("ResourceNotFound")?;
                node.cells.as_ref().map(|_| ()).ok_or("ResourceNotFound")
            }
            FileCall::List { path } if path.is_empty() => Ok(()),
            FileCall::List { path } => {
                let node = self.find(path)?.ok_or("ResourceNotFound")?;
                if node.cells.is_some() { Err("ResourceNotFound") } else { Ok(()) }
            }
            FileCall::Stats | FileCall::Snapshot => Ok(()),
            FileCall::DropSnapshot { time } => self.snapshot(time).map(|_| ()),
            FileCall::GetSnapshot { time, path } => self.snapshot(time)?.judge(&FileCall::Get { path: path.clone() }),
            FileCall::ListSnapshot { time, path } => self.snapshot(time)?.judge(&FileCall::List { path: path.clone() }),
        }
    }

    /// What a snapshot sees.
    fn snapshot(&self, time: &str) -> Result<Tree, &'static str> {
        self.1.get(time).map(|nodes| Tree(nodes.clone(), BTreeMap::new())).ok_or("ShareNotFound")
    }

    /// What a read of a snapshot shows.
    fn shown_in_snapshot(&self, time: &str, call: &FileCall, answer: Option<&FileAnswer>) -> Option<Tree> {
        let seen = self.snapshot(time).ok()?.shown(call, answer)?;
        let mut tree = self.clone();
        tree.1.insert(time.to_owned(), seen.0);
        Some(tree)
    }

    fn judge_rename(&self, from: &[u8], to: &[u8], is_directory: bool, replaces: bool) -> Result<(), &'static str> {
        let source = self.find(from).map_err(|_| "ResourceNotFound")?;
        let target = self.find(to)?;
        let source = source.ok_or("ResourceNotFound")?;
        if source.cells.is_none() != is_directory {
            return Err("ResourceTypeMismatch");
        }
        if to.len() > from.len() && to.starts_with(from) {
            return Err("InvalidInput");
        }
        match target {
            Some(_) if from == to => Ok(()),
            Some(Node { cells: Some(_), .. }) if replaces => Ok(()),
            Some(_) => Err("ResourceAlreadyExists"),
            None => Ok(()),
        }
    }

    /// The tree after a call that is done, if it can have had this answer.
    fn after(&self, call: &FileCall, answer: Option<&FileAnswer>) -> Option<Tree> {
        let mut tree = self.clone();
        let changed = match call {
            FileCall::MakeDirectory { path } => {
                tree.0.insert(path.clone(), Node::default());
                path
            }
            FileCall::Create { path, cells } => {
                // A file that is replaced keeps its id.
                let before = tree.0.remove(path).unwrap_or_default();
                tree.0.insert(path.clone(), Node { cells: Some(vec![0; *cells]), ..before });
                path
            }
            FileCall::Write { path, first, count, value } => tree.fill(path, *first, *count, *value)?,
            FileCall::Clear { path, first, count } => tree.fill(path, *first, *count, 0)?,
            FileCall::Resize { path, cells } => {
                tree.0.get_mut(path)?.cells.as_mut()?.resize(*cells, 0);
                path
            }
            FileCall::Rename { from, to, .. } => {
                tree.rename(from, to);
                to
            }
            FileCall::DeleteFile { path } | FileCall::DeleteDirectory { path } => {
                tree.0.remove(path);
                return matches!(answer, None | Some(FileAnswer::Deleted)).then_some(tree);
            }
            FileCall::Snapshot => {
                return match answer {
                    // No client knows its time.
                    None => Some(tree),
                    // It is later than that of any other.
                    Some(FileAnswer::Taken(time)) if tree.1.keys().all(|other| other < time) => {
                        tree.1.insert(time.clone(), self.0.clone());
                        Some(tree)
                    }
                    Some(_) => None,
                };
            }
            FileCall::DropSnapshot { time } => {
                tree.1.remove(time);
                return matches!(answer, None | Some(FileAnswer::Deleted)).then_some(tree);
            }
            FileCall::GetSnapshot { time, path } => {
                return self.shown_in_snapshot(time, &FileCall::Get { path: path.clone() }, answer);
            }
            FileCall::ListSnapshot { time, path } => {
                return self.shown_in_snapshot(time, &FileCall::List { path: path.clone() }, answer);
            }
            FileCall::Get { .. } | FileCall::List { .. } | FileCall::Stats => return self.shown(call, answer),
        };
        match answer {
            None => {
                tree.0.get_mut(changed)?.etag = None;
                Some(tree)
            }
            Some(FileAnswer::Changed { id, etag }) => {
                // Every change has an ETag of its own.
                let is_new = self.0.values().all(|node| node.etag.as_ref() != Some(etag));
                let tree = if is_new { tree.told(changed, id.as_ref())? } else { return None };
                tree.with_etag(changed, etag)
            }
            Some(_) => None,
        }
    }

    /// What a read shows. It may be the first to tell an id or an ETag.
    fn shown(&self, call: &FileCall, answer: Option<&FileAnswer>) -> Option<Tree> {
        match (call, answer) {
            (_, None) => Some(self.clone()),
            (FileCall::Get { path }, Some(FileAnswer::Read { cells, id, etag })) => {
                let node = self.0.get(path)?;
                let is_so = node.cells.as_ref() == Some(cells) && node.etag.as_ref().is_none_or(|known| known == etag);
                if is_so { self.clone().told(path, Some(id))?.with_etag(path, etag) } else { None }
            }
            (FileCall::List { path }, Some(FileAnswer::Listed(listed))) => {
                let inside = || self.below(path).filter(|(other, _)| other.len() == path.len() + 1);
                let names = inside().map(|(other, node)| (other[path.len()], node.cells.as_ref().map(Vec::len)));
                if !names.eq(listed.iter().map(|(name, _, cells)| (*name, *cells))) {
                    return None;
                }
                let mut tree = self.clone();
                for (name, id, _) in listed {
                    tree = tree.told(&[path.as_slice(), &[*name]].concat(), Some(id))?;
                }
                Some(tree)
            }
            (FileCall::Stats, Some(FileAnswer::Used(used))) => {
                let all: usize = self.0.values().filter_map(|node| node.cells.as_ref().map(Vec::len)).sum();
                (all == *used).then(|| self.clone())
            }
            (_, Some(_)) => None,
        }
    }

    fn fill<'a>(&mut self, path: &'a Path, first: usize, count: usize, value: Value) -> Option<&'a Path> {
        self.0.get_mut(path)?.cells.as_mut()?[first..first + count].fill(value);
        Some(path)
    }

    /// Everything below goes along.
    fn rename(&mut self, from: &[u8], to: &[u8]) {
        let moved: Vec<Path> = self.0.keys().filter(|path| path.starts_with(from)).cloned().collect();
        let moved: Vec<(Path, Node)> = moved.into_iter().filter_map(|path| self.0.remove_entry(&path)).collect();
        self.0.remove(to);
        self.0.extend(moved.into_iter().map(|(path, node)| ([to, &path[from.len()..]].concat(), node)));
    }

    /// Somebody is told an id: it stays, and nothing else has it.
    fn told(mut self, path: &[u8], id: Option<&String>) -> Option<Tree> {
        let Some(id) = id else { return Some(self) };
        if self.0.iter().any(|(other, node)| other.as_slice() != path && node.id.as_ref() == Some(id)) {
            return None;
        }
        let node = self.0.get_mut(path)?;
        if node.id.get_or_insert_with(|| id.clone()) == id { Some(self) } else { None }
    }

    fn with_etag(mut self, path: &[u8], etag: &str) -> Option<Tree> {
        self.0.get_mut(path)?.etag = Some(etag.to_owned());
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(calls: &[(FileCall, FileAnswer)]) -> Option<Tree> {
        calls.iter().try_fold(Tree::default(), |tree, (call, answer)| {
            tree.step(call, Some(answer), Timestamp(0)).into_iter().next()
        })
    }

    fn changed(id: &str, etag: &str) -> FileAnswer {
        FileAnswer::Changed { id: Some(id.into()), etag: etag.into() }
    }

    fn begun() -> Vec<(FileCall, FileAnswer)> {
        let (path, first, count) = (vec![0, 1], 1, 1);
        vec![
            (FileCall::MakeDirectory { path: vec![0] }, changed("d", "1")),
            (FileCall::Create { path: path.clone(), cells: 2 }, changed("f", "2")),
            (FileCall::Write { path, first, count, value: 7 }, FileAnswer::Changed { id: None, etag: "3".into() }),
        ]
    }

    fn renamed() -> FileCall {
        FileCall::Rename { from: vec![0], to: vec![1], is_directory: true, replaces: false }
    }

    #[test]
    fn a_renamed_directory_takes_its_files_along() {
        let read = |path, cells: &[Value], id: &str, etag: &str| {
            (FileCall::Get { path }, FileAnswer::Read { cells: cells.to_vec(), id: id.into(), etag: etag.into() })
        };
        let mut calls = begun();
        calls.push((renamed(), changed("d", "4")));
        assert!(steps(&calls).is_some());
        for (wrong, call) in [
            (false, read(vec![1, 1], &[0, 7], "f", "3")),
            // A byte, an id, an ETag and a path that are not so.
            (true, read(vec![1, 1], &[7, 7], "f", "3")),
            (true, read(vec![1, 1], &[0, 7], "g", "3")),
            (true, read(vec![1, 1], &[0, 7], "f", "2")),
            (true, read(vec![0, 1], &[0, 7], "f", "3")),
            (false, (FileCall::Get { path: vec![0, 1] }, FileAnswer::Refused("ParentNotFound".into()))),
            (false, (FileCall::List { path: vec![] }, FileAnswer::Listed(vec![(1, "d".into(), None)]))),
            (true, (FileCall::List { path: vec![] }, FileAnswer::Listed(vec![(0, "d".into(), None)]))),
            (false, (FileCall::Stats, FileAnswer::Used(2))),
            (true, (FileCall::Stats, FileAnswer::Used(4))),
        ] {
            let all = [calls.clone(), vec![call.clone()]].concat();
            assert_eq!(steps(&all).is_none(), wrong, "{call:?}");
        }
    }

    #[test]
    fn a_snapshot_shows_what_was_there() {
        let time = || "1".to_owned();
        let path = || vec![0, 1];
        let read = |cells: &[Value]| {
            let answer = FileAnswer::Read { cells: cells.to_vec(), id: "f".into(), etag: "3".into() };
            (FileCall::GetSnapshot { time: time(), path: path() }, answer)
        };
        let mut calls = begun();
        calls.push((FileCall::Snapshot, FileAnswer::Taken(time())));
        calls.push((FileCall::DeleteFile { path: path() }, FileAnswer::Deleted));
        let listed = |name| {
            let answer = FileAnswer::Listed(vec![(name, "f".into(), Some(2))]);
            (FileCall::ListSnapshot { time: time(), path: vec![0] }, answer)
        };
        let dropped = || (FileCall::DropSnapshot { time: time() }, FileAnswer::Deleted);
        let gone = (read(&[]).0, FileAnswer::Refused("ShareNotFound".into()));
        for (wrong, more) in [
            (false, vec![read(&[0, 7]), listed(1)]),
            (true, vec![read(&[7, 7])]),
            (true, vec![listed(0)]),
            (true, vec![dropped(), read(&[0, 7])]),
            (false, vec![dropped(), gone]),
            (true, vec![(FileCall::Snapshot, FileAnswer::Taken(time()))]),
        ] {
            assert_eq!(steps(&[calls.clone(), more.clone()].concat()).is_none(), wrong, "{more:?}");
        }
    }

    #[test]
    fn ids_and_etags_are_never_used_twice() {
        let again = |id, etag| [begun(), vec![(renamed(), changed(id, etag))]].concat();
        assert!(steps(&again("d", "4")).is_some());
        assert!(steps(&again("d", "3")).is_none() && steps(&again("f", "4")).is_none());
    }
}
