//! Hard links: a file that has several names is kept by its id, and each of its names refers to it.

use minicbor::data::Type;
use minicbor::decode::{Decoder, Error};
use minicbor::{Decode, Encode};

use super::{Node, NodePlace};

/// How many names a file may have: as many as in Azure Files.
pub const LINKS_MAX: usize = 178;

/// A row of a directory.
#[expect(clippy::large_enum_variant, reason = "nearly every entry is a file or directory itself")]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// A file or directory that has no other name.
    Node(Node),
    /// One of several names of a file.
    Link(HardLink),
}

/// One of several names of a file. How it is spelled, the row of the file knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(array)]
pub struct HardLink {
    /// The id of the file.
    #[n(0)]
    pub id: u64,
    /// The share's epoch in which the file got this name.
    #[n(1)]
    pub since: u64,
}

/// The row of a file or directory is a map, that of a hard link an array.
impl<'b, C> Decode<'b, C> for Entry {
    fn decode(d: &mut Decoder<'b>, context: &mut C) -> Result<Entry, Error> {
        match d.datatype()? {
            Type::Array | Type::ArrayIndef => HardLink::decode(d, context).map(Entry::Link),
            _ => Node::decode(d, context).map(Entry::Node),
        }
    }
}

impl Entry {
    /// The id of what the entry leads to.
    pub fn id(&self) -> u64 {
        match self {
            Entry::Node(node) => node.id,
            Entry::Link(link) => link.id,
        }
    }

    /// The share's epoch in which it became what it is.
    pub fn since(&self) -> u64 {
        match self {
            Entry::Node(node) => node.since,
            Entry::Link(link) => link.since,
        }
    }
}

/// The names of a file that has several, in the order in which it got them.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(transparent)]
pub struct Links(#[n(0)] Vec<LinkName>);

/// One of the names of a file.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(array)]
pub struct LinkName {
    #[n(0)]
    pub place: NodePlace,
    /// The name as its creator spelled it.
    #[n(1)]
    pub spelling: String,
}

impl Links {
    /// The names of a file that has one so far.
    pub fn new(place: NodePlace, spelling: &str) -> Links {
        Links(vec![LinkName { place, spelling: spelling.to_owned() }])
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub fn names(&self) -> &[LinkName] {
        &self.0
    }

    /// How the name at a place is spelled.
    pub fn spelling(&self, place: &NodePlace) -> Option<&str> {
        self.0.iter().find(|name| name.place == *place).map(|name| name.spelling.as_str())
    }

    /// The names with one more, or with the one at this place spelled anew.
    #[must_use]
    pub fn with(mut self, place: NodePlace, spelling: &str) -> Links {
        let name = LinkName { place, spelling: spelling.to_owned() };
        match self.0.iter_mut().find(|known| known.place == name.place) {
            Some(known) => *known = name,
            None => self.0.push(name),
        }
        self
    }

    /// The names without the one at a place.
    #[must_use]
    pub fn without(mut self, place: &NodePlace) -> Links {
        self.0.retain(|name| name.place != *place);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tick;
    use service::codec;

    fn place(name: &str) -> NodePlace {
        NodePlace { directory: 7, name: name.to_owned() }
    }

    #[test]
    fn names_come_are_spelled_anew_and_go() {
        let links = Links::new(place("A"), "a").with(place("B"), "b").with(place("A"), "A");
        assert_eq!((links.count(), links.spelling(&place("A")), links.spelling(&place("C"))), (2, Some("A"), None));
        let elsewhere = NodePlace { directory: 8, ..place("A") };
        assert_eq!(links.clone().without(&elsewhere), links, "the same name in another directory is another");
        let left = links.without(&place("A"));
        assert_eq!(left, Links::new(place("B"), "b"));
    }

    #[test]
    fn an_entry_is_a_node_or_a_link() {
        let key = crate::security::Permission::new(crate::security::root_directory()).unwrap().key();
        let node = Node::root(7, 1, super::super::Protocol::Nfs, key, tick());
        let link = HardLink { id: 9, since: 2 };
        assert_eq!(codec::decode(&codec::encode(&node)), Ok(Entry::Node(node)));
        assert_eq!(codec::decode(&codec::encode(&link)), Ok(Entry::Link(link)));
        assert!(codec::decode::<Entry>(&codec::encode(&7_u64)).is_err());
    }
}
