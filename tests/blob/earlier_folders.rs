//! Folders that earlier programs wrote.
//!
//! `folders/page-blobs` was written by the last program before page maps moved to the crate `content` and were shared with
//! files, and stopped in good order. The zeroes at the ends of its logs were cut off to keep it small. What it did is
//! [`Model::of_the_folder`].

use std::path::Path;

use crate::harness::{Client, Element, Server};

const PAGE: usize = 512;
const PAGES: usize = 2_048;

/// The pages of a blob as they must be. `None`: never written, or cleared.
#[derive(Clone)]
struct Model(Vec<Option<u8>>);

impl Model {
    fn write(&mut self, first: usize, count: usize, letter: u8) {
        for page in first..first + count {
            self.0[page] = Some(letter ^ page as u8);
        }
    }

    fn clear(&mut self, first: usize, count: usize) {
        self.0[first..first + count].fill(None);
    }

    /// The blob `disks/disk`, its snapshot, and the blob `disks/copy`.
    fn of_the_folder() -> (Model, Model, Model) {
        let mut disk = Model(vec![None; PAGES]);
        disk.write(0, 16, b'a');
        // More than a content that travels with its commit.
        disk.write(200, 136, b'b');
        disk.clear(2, 2);
        let snapshot = disk.clone();
        disk.write(1, 2, b'c');
        disk.clear(8, 8);
        disk.write(2_000, 48, b'd');
        let mut copy = disk.clone();
        copy.write(0, 1, b'e');
        disk.clear(0, 1);
        (disk, snapshot, copy)
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|page| [page.unwrap_or(0); PAGE]).collect()
    }

    fn ranges(&self) -> Vec<(usize, usize)> {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for (page, _) in self.0.iter().enumerate().filter(|(_, byte)| byte.is_some()) {
            match ranges.last_mut() {
                Some((_, end)) if *end == page => *end += 1,
                Some(_) | None => ranges.push((page, page + 1)),
            }
        }
        ranges
    }
}

/// Ranges of pages in a list, from and up to, by the name of their elements.
fn ranges(client: &Client, target: &str, name: &str) -> Vec<(usize, usize)> {
    let list = client.call(target, &[], "").ok().xml();
    let number = |range: &Element, name: &str| -> usize { range.text_of(name).unwrap().parse().unwrap() };
    let found = list.children.iter().filter(|child| child.name == name);
    found.map(|range| (number(range, "Start") / PAGE, (number(range, "End") + 1) / PAGE)).collect()
}

fn assert_reads(client: &Client, target: &str, expected: &Model) {
    assert!(client.call(&format!("GET {target}"), &[], "").ok().body == expected.bytes(), "{target}");
    let joint = if target.contains('?') { '&' } else { '?' };
    let listed = ranges(client, &format!("GET {target}{joint}comp=pagelist"), "PageRange");
    assert_eq!(listed, expected.ranges(), "{target}");
}

#[test]
fn page_blobs_of_before_read_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/blob/folders/page-blobs");
    let Some(mut server) = Server::with_data(&folder) else { return };
    let (mut disk, snapshot, copy) = Model::of_the_folder();
    let listed = server.client().call("GET disks?restype=container&comp=list&include=snapshots", &[], "").ok().xml();
    let blobs = listed.all("Blobs");
    let at = blobs.iter().find_map(|blob| blob.text_of("Snapshot")).expect("a snapshot");
    let of_snapshot = format!("disks/disk?snapshot={at}");

    for round in 0..2 {
        let client = server.client();
        assert_reads(&client, "disks/disk", &disk);
        assert_reads(&client, &of_snapshot, &snapshot);
        assert_reads(&client, "disks/copy", &copy);
        let changes = format!("GET disks/disk?comp=pagelist&prevsnapshot={at}");
        let (written, cleared) = (ranges(&client, &changes, "PageRange"), ranges(&client, &changes, "ClearRange"));
        match round {
            0 => assert_eq!((written, cleared), (vec![(1, 3), (2_000, 2_048)], vec![(0, 1), (8, 16)])),
            _ => assert_eq!((written, cleared), (vec![(1, 3), (5, 6), (2_000, 2_048)], vec![(0, 1), (8, 16)])),
        }
        // What is written now goes into the same map, also after a crash.
        let range = [("x-ms-page-write", "update"), ("x-ms-range", "bytes=2560-3071")];
        client.call("PUT disks/disk?comp=page", &range, [b'f' ^ 5; PAGE]).ok();
        disk.write(5, 1, b'f');
        assert_reads(&client, "disks/disk", &disk);
        server.kill_and_restart();
    }
    server.client().call("DELETE disks/disk", &[("x-ms-delete-snapshots", "include")], "").ok();
    assert_reads(&server.client(), "disks/copy", &copy);
}
