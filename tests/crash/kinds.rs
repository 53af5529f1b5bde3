//! Every kind of operation under kill -9, the collection of what they leave behind included.
//!
//! Each writer has a blob and a copy of it, and goes round: put block list, tags, snapshot, copy, put block list, copy back,
//! tags, delete, undelete. Whatever it was doing when the server died was done whole or not at all: the content, the ETag, the
//! tags, the index that finds by them, and every snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::client::{Answer, Client};
use crate::ledger::{ask, content};
use crate::xml::Element;

/// What is known of a blob by who alone writes to it.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Known {
    base: Option<State>,
    /// By version, in order.
    snapshots: Vec<u64>,
    /// What is deleted, and comes back with Undelete Blob.
    deleted: Option<State>,
    deleted_snapshots: Vec<u64>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct State {
    version: u64,
    colour: Option<u64>,
    /// If its writer was told.
    etag: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    PutBlockList,
    SetTags,
    Snapshot,
    CopyBlob,
    CopyBack,
    Delete,
    Undelete,
}

use Kind::{CopyBack, CopyBlob, Delete, PutBlockList, SetTags, Snapshot, Undelete};

const ROUND: [Kind; 9] = [PutBlockList, SetTags, Snapshot, CopyBlob, PutBlockList, CopyBack, SetTags, Delete, Undelete];

/// A writer's two blobs, and what it asked for and was not answered.
#[derive(Clone, Default, Debug)]
pub struct Pair {
    main: Known,
    copy: Known,
    steps: u64,
    in_flight: Option<Kind>,
}

pub type Pairs = Arc<Mutex<BTreeMap<String, Pair>>>;

impl Known {
    /// What was there is kept as a deleted snapshot.
    fn replace(&mut self, state: State) {
        self.deleted_snapshots.extend(self.base.replace(state).map(|before| before.version));
        self.sort();
    }

    fn sort(&mut self) {
        self.snapshots.sort_unstable();
        self.deleted_snapshots.sort_unstable();
    }

    /// As far as a client sees it.
    fn visible(&self) -> (Option<(u64, Option<u64>)>, &[u64]) {
        (self.base.as_ref().map(|state| (state.version, state.colour)), &self.snapshots)
    }

    fn forget_deleted(&mut self) {
        self.deleted = None;
        self.deleted_snapshots.clear();
    }
}

impl Pair {
    /// What comes next: the round, unless what it needs is not there.
    fn next(&self) -> Kind {
        match (ROUND[(self.steps % ROUND.len() as u64) as usize], &self.main.base, &self.main.deleted) {
            (_, None, Some(_)) => Undelete,
            (_, None, None) => PutBlockList,
            (CopyBack, _, _) if self.copy.base.is_none() => PutBlockList,
            (kind, Some(_), _) => kind,
        }
    }

    /// The two blobs once it is done.
    fn after(&self, kind: Kind, etag: Option<&str>) -> Pair {
        let mut pair = Pair { steps: self.steps + 1, in_flight: None, ..self.clone() };
        let etag = etag.map(str::to_owned);
        let copied =
            |from: &Known| from.base.as_ref().map(|state| State { colour: None, etag: etag.clone(), ..*state });
        match kind {
            PutBlockList => pair.main.replace(State { version: self.steps, colour: None, etag }),
            SetTags => pair.main.base.iter_mut().for_each(|state| state.colour = Some(self.steps)),
            Snapshot => pair.main.snapshots.extend(self.main.base.iter().map(|state| state.version)),
            CopyBlob => copied(&self.main).into_iter().for_each(|state| pair.copy.replace(state)),
            CopyBack => copied(&self.copy).into_iter().for_each(|state| pair.main.replace(state)),
            Delete => {
                pair.main.deleted = pair.main.base.take();
                pair.main.deleted_snapshots.append(&mut pair.main.snapshots);
            }
            Undelete => {
                pair.main.base = pair.main.base.take().or(pair.main.deleted.take());
                pair.main.snapshots.append(&mut pair.main.deleted_snapshots);
            }
        }
        pair.main.sort();
        pair
    }
}

/// Asks for it. `None`: the server died first.
fn write(client: &Client, name: &str, pair: &Pair, kind: Kind) -> Option<Answer> {
    let blob = format!("kinds/{name}");
    let from = |source: &str| client.url(&format!("kinds/{source}"));
    let answer = match kind {
        PutBlockList => {
            let version = pair.steps.to_string();
            let bytes = content("", pair.steps);
            let mut list = String::from("<BlockList>");
            for (id, part) in ["AAAA", "AAAB", "AAAC"].iter().zip(bytes.chunks(bytes.len().div_ceil(3))) {
                let staged = ask(client, &format!("PUT {blob}?comp=block&blockid={id}"), &[], part)?;
                assert_eq!(staged.status, 201, "{name}: {}", staged.said());
                list += &format!("<Latest>{id}</Latest>");
            }
            let line = format!("PUT {blob}?comp=blocklist");
            ask(client, &line, &[("x-ms-meta-version", &version)], list + "</BlockList>")?
        }
        SetTags => {
            let tag = format!("<Tag><Key>colour</Key><Value>{:08}</Value></Tag>", pair.steps);
            ask(client, &format!("PUT {blob}?comp=tags"), &[], format!("<Tags><TagSet>{tag}</TagSet></Tags>"))?
        }
        Snapshot => ask(client, &format!("PUT {blob}?comp=snapshot"), &[], "")?,
        CopyBlob => ask(client, &format!("PUT {blob}-copy"), &[("x-ms-copy-source", &from(name))], "")?,
        CopyBack => ask(client, &format!("PUT {blob}"), &[("x-ms-copy-source", &from(&format!("{name}-copy")))], "")?,
        Delete => ask(client, &format!("DELETE {blob}"), &[("x-ms-delete-snapshots", "include")], "")?,
        Undelete => ask(client, &format!("PUT {blob}?comp=undelete"), &[], "")?,
    };
    assert!(answer.is_success(), "{name} {kind:?}: {}, {pair:?}", answer.said());
    Some(answer)
}

/// Goes round until the server is gone.
pub fn writer(number: u64, address: SocketAddr, pairs: &Pairs, stop: &AtomicBool) {
    let client = Client::new(address);
    let name = format!("{number}");
    while !stop.load(Ordering::Acquire) {
        let pair = {
            let mut pairs = pairs.lock().expect("no writer panics with it");
            // Each begins at another place.
            let pair = pairs.entry(name.clone()).or_insert_with(|| Pair { steps: number * 100, ..Pair::default() });
            pair.in_flight = Some(pair.next());
            pair.clone()
        };
        let kind = pair.next();
        let Some(answer) = write(&client, &name, &pair, kind) else { return };
        let after = pair.after(kind, answer.header("etag"));
        pairs.lock().expect("no writer panics with it").insert(name.clone(), after);
    }
}

/// Holds what the server has against what it acknowledged, takes over what happened without an answer, and says what was
/// being done.
pub fn verify(client: &Client, pairs: &Pairs) -> BTreeSet<Kind> {
    let list = client.call("GET kinds?restype=container&comp=list&include=snapshots,metadata", &[], "").ok().xml();
    let mut interrupted = BTreeSet::new();
    let mut colours = BTreeMap::new();
    for (name, pair) in pairs.lock().expect("nobody else runs").iter_mut() {
        let found = [name.clone(), format!("{name}-copy")].map(|blob| look(client, &list, &blob));
        let is_so = |pair: &Pair| {
            [&pair.main, &pair.copy].iter().zip(&found).all(|(known, found)| {
                let etag = known.base.as_ref().and_then(|state| state.etag.as_ref());
                let found_etag = found.base.as_ref().and_then(|state| state.etag.as_ref());
                known.visible() == found.visible() && (etag.is_none() || etag == found_etag)
            })
        };
        let done = pair.in_flight.map(|kind| pair.after(kind, None));
        interrupted.extend(pair.in_flight);
        let settled = [Some(&*pair), done.as_ref()].into_iter().flatten().find(|pair| is_so(pair)).cloned();
        let Some(settled) = settled else { panic!("{name}: found {found:?}, but {pair:?}") };
        *pair = Pair { in_flight: None, ..settled };
        for (known, blob) in [(&pair.main, name.clone()), (&pair.copy, format!("{name}-copy"))] {
            colours.extend(known.base.as_ref().and_then(|state| Some((blob, format!("{:08}", state.colour?)))));
        }
    }
    // The index finds what the blobs say of themselves, and nothing else.
    let index = client.call("GET kinds?restype=container&comp=blobs&where=colour%3E%27%27", &[], "").ok().xml();
    let tag = |blob: &Element| Some((blob.text_of("Name")?, blob.text_of("Tags/TagSet/Tag/Value")?));
    let indexed: BTreeMap<String, String> = index.all("Blobs").iter().filter_map(tag).collect();
    assert_eq!(indexed, colours, "the index of tags");
    interrupted
}

/// What there is of a blob. Every content must be that of the version that it says it is.
fn look(client: &Client, list: &Element, blob: &str) -> Known {
    let mut known = Known::default();
    for entry in list.all("Blobs").iter().filter(|entry| entry.text_of("Name").as_deref() == Some(blob)) {
        let version = entry.text_of("Metadata/version").and_then(|text| text.parse().ok()).expect("a version");
        let snapshot = entry.text_of("Snapshot").filter(|id| !id.is_empty());
        let which = snapshot.as_ref().map(|id| format!("?snapshot={}", id.replace(':', "%3A"))).unwrap_or_default();
        let read = client.call(&format!("GET kinds/{blob}{which}"), &[], "").ok();
        assert!(read.body == content("", version), "{blob}{which}: the bytes are not those of version {version}");
        match snapshot {
            Some(_) => known.snapshots.push(version),
            None => {
                let tags = client.call(&format!("GET kinds/{blob}?comp=tags"), &[], "").ok().xml();
                let colour = tags.text_of("TagSet/Tag/Value").and_then(|text| text.parse().ok());
                known.base = Some(State { version, colour, etag: Some(read.etag()) });
            }
        }
    }
    known.sort();
    known
}

/// The time is over in which what was deleted can come back.
pub fn forget_deleted(pairs: &Pairs) {
    for pair in pairs.lock().expect("nobody else runs").values_mut() {
        pair.main.forget_deleted();
        pair.copy.forget_deleted();
    }
}
