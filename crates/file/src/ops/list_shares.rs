//! List Shares: a page of an account's shares, by name, with their snapshots if they are asked for.

use std::sync::Arc;

use concurrency::{ETag, Timestamp};
use engine::{Key, KeyReader, Rows, Unread, Visit};
use service::{Deletion, ReadOperation, codec, listing, reply};
use wire::http::{Head, Reply, StatusCode};
use wire::xml::XmlWriter;
use wire::{base64, dates, metadata};

use super::Call;
use super::restore_share::version_text;
use crate::Failure;
use crate::error::FileError;
use crate::model::{DeletedShare, Halt, Provisioned, Share, all_deleted_shares_of, shares_of, snapshots};
use crate::reply::share::root_squash;

/// The most shares in a page, and how many it has if the request does not say.
const RESULTS_MAX: usize = 5_000;
/// How many rows a page may look at. Deleted shares whose time is over count too, though they are not shown; then the page is
/// short and has a marker. Tests would take long to make so many.
const ROWS_VISITED_MAX: usize = if cfg!(test) { 100 } else { 20_000 };

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListShares {
    /// Only shares whose names begin like this.
    pub prefix: String,
    /// The page begins after this one.
    pub after: Option<SharePlace>,
    /// At most this many shares.
    pub max: usize,
    /// Whether deleted shares that can come back are shown as well.
    pub deleted: bool,
    /// Whether snapshots of live shares are shown as well. Those of a deleted share come back with it.
    pub snapshots: bool,
}

/// Where a share stands in the list: by name; of one name the deleted ones first, oldest first, then the snapshots, oldest first, then
/// the share itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SharePlace {
    pub name: String,
    pub version: ShareVersion,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ShareVersion {
    Deleted(u64),
    Snapshot(Timestamp),
    Live,
}

/// A page of shares.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SharesPage {
    pub shares: Vec<ListedShare>,
    /// Where the next page begins, unless this is the last.
    pub next: Option<SharePlace>,
    /// When it was looked at.
    pub now: Timestamp,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedShare {
    pub place: SharePlace,
    pub share: Share,
    /// Of one that is deleted: when that was, and for how long it is kept.
    pub mark: Option<Deletion>,
}

fn parse(head: &Head, deleted: bool, snapshots: bool) -> Result<ListShares, FileError> {
    Ok(ListShares {
        prefix: head.query.get("prefix").unwrap_or_default().to_owned(),
        after: SharePlace::parse(head)?,
        max: listing::max_results(head, RESULTS_MAX)?,
        deleted,
        snapshots,
    })
}

const LIVE: u8 = 0;
const DELETED: u8 = 1;
const SNAPSHOT: u8 = 2;

impl SharePlace {
    fn parse(head: &Head) -> Result<Option<SharePlace>, FileError> {
        let Some(text) = head.query.get("marker") else { return Ok(None) };
        SharePlace::from_marker(text).map(Some).ok_or(FileError::InvalidMarker)
    }

    /// The marker that clients hand back. It holds a name, not a position, so that no share is shown twice or left out when others
    /// are created or deleted.
    fn to_marker(&self) -> String {
        let mut bytes = match self.version {
            ShareVersion::Live => vec![LIVE],
            ShareVersion::Deleted(version) => [&[DELETED][..], &version.to_be_bytes()].concat(),
            ShareVersion::Snapshot(time) => [&[SNAPSHOT][..], &time.0.to_be_bytes()].concat(),
        };
        bytes.extend_from_slice(self.name.as_bytes());
        base64::encode_url(&bytes)
    }

    fn from_marker(text: &str) -> Option<SharePlace> {
        let bytes = base64::decode_url(text)?;
        let (kind, rest) = bytes.split_first()?;
        let (version, name) = match *kind {
            LIVE => (ShareVersion::Live, rest),
            DELETED => {
                let (version, name) = rest.split_first_chunk()?;
                (ShareVersion::Deleted(u64::from_be_bytes(*version)), name)
            }
            SNAPSHOT => {
                let (time, name) = rest.split_first_chunk()?;
                (ShareVersion::Snapshot(Timestamp(u64::from_be_bytes(*time))), name)
            }
            _ => return None,
        };
        Some(SharePlace { name: String::from_utf8(name.to_vec()).ok()?, version })
    }
}

/// Some of the live or of the deleted shares, in order.
#[derive(Default)]
struct Run {
    shares: Vec<ListedShare>,
    /// The walk ended before the rows did, and this is the last place it saw.
    stopped: Option<SharePlace>,
}

impl ReadOperation for ListShares {
    type Outcome = SharesPage;
    type Refusal = FileError;

    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<SharesPage, Halt> {
        // Both are asked for before either is missed.
        let (live, deleted) = (self.live(rows, account), self.deleted.then(|| self.deleted(rows, account, now)));
        let (live, deleted) = (live?, deleted.transpose()?.unwrap_or_default());
        let live = if self.snapshots { self.with_snapshots(rows, live)? } else { live };
        // Beyond the place where one of them stopped, not everything is known.
        let horizon = [&live.stopped, &deleted.stopped].into_iter().flatten().min().cloned();
        let mut shares = live.shares;
        shares.extend(deleted.shares);
        shares.sort_by(|one, other| one.place.cmp(&other.place));
        if let Some(horizon) = &horizon {
            shares.retain(|share| share.place <= *horizon);
        }
        let mut page = SharesPage { shares, next: horizon, now };
        if page.shares.len() > self.max {
            page.shares.truncate(self.max);
            page.next = page.shares.last().map(|share| share.place.clone());
        }
        Ok(page)
    }
}

impl ListShares {
    fn live(&self, rows: &dyn Rows, account: u64) -> Result<Run, Unread> {
        let all = shares_of(account);
        let beyond = match &self.after {
            None => all.clone(),
            Some(SharePlace { name, version: ShareVersion::Live }) => all.clone().text(name).next(),
            // Of this name the live one is still to come.
            Some(SharePlace { name, version: ShareVersion::Deleted(_) | ShareVersion::Snapshot(_) }) => {
                all.clone().text(name)
            }
        };
        self.walk(rows, (all, beyond), |name, _, row| {
            let place = SharePlace { name, version: ShareVersion::Live };
            let share = ListedShare { place: place.clone(), share: codec::decode(row)?, mark: None };
            Ok((place, Some(share)))
        })
    }

    fn deleted(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<Run, Unread> {
        let all = all_deleted_shares_of(account);
        let beyond = match &self.after {
            None => all.clone(),
            Some(SharePlace { name, version: ShareVersion::Live | ShareVersion::Snapshot(_) }) => {
                all.clone().text(name).after_all()
            }
            Some(SharePlace { name, version: ShareVersion::Deleted(version) }) => {
                all.clone().text(name).number(*version).next()
            }
        };
        self.walk(rows, (all, beyond), |name, version, row| {
            let version = version.ok_or_else(|| codec::corrupt("the key of a deleted share"))?;
            let place = SharePlace { name, version: ShareVersion::Deleted(version) };
            let DeletedShare { share, mark } = codec::decode(row)?;
            let listed = ListedShare { place: place.clone(), share, mark: Some(mark) };
            Ok((place, mark.is_kept(now).then_some(listed)))
        })
    }

    /// The live shares with their snapshots, as far as a page goes.
    fn with_snapshots(&self, rows: &dyn Rows, live: Run) -> Result<Run, Unread> {
        let (mut shown, mut stopped, mut count) = (live.shares, live.stopped, 0);
        let end = shown.iter().position(|listed| {
            count += 1 + listed.share.snapshots as usize;
            count > self.max
        });
        if let Some(last) = end.filter(|last| last + 1 < shown.len()) {
            shown.truncate(last + 1);
            stopped = Some(shown[last].place.clone());
        }
        // All are asked for before any is missed.
        let of = |listed: &ListedShare| match listed.share.snapshots {
            0 => Ok(Vec::new()),
            _ => snapshots(rows, listed.share.generation),
        };
        let found: Vec<Result<_, Unread>> = shown.iter().map(of).collect();
        let mut run = Run { shares: Vec::new(), stopped };
        for (listed, found) in shown.into_iter().zip(found) {
            let name = &listed.place.name;
            let places = found?.into_iter().map(|(time, snapshot)| {
                let place = SharePlace { name: name.clone(), version: ShareVersion::Snapshot(time) };
                ListedShare { place, share: snapshot.share, mark: None }
            });
            // The last page may have ended among them.
            run.shares.extend(places.filter(|listed| self.after.as_ref().is_none_or(|after| listed.place > *after)));
            run.shares.push(listed);
        }
        Ok(run)
    }

    /// Walks the rows from `beyond` on until there is more than a page of them or too many have been seen. `read` gives the place of
    /// a row, and the share if it is shown.
    fn walk(
        &self,
        rows: &dyn Rows,
        (all, beyond): (Key, Key),
        read: impl Fn(String, Option<u64>, &[u8]) -> Result<(SharePlace, Option<ListedShare>), Unread>,
    ) -> Result<Run, Unread> {
        let within = all.text_prefix(&self.prefix);
        let (mut run, mut failed, mut last, mut visited) = (Run::default(), None, None, 0);
        rows.scan(&within.clone().max(beyond), &within.after_all(), self.max + 1, &mut |key, row| {
            // One more than fits, to know whether there is more.
            if run.shares.len() > self.max || visited == ROWS_VISITED_MAX {
                run.stopped = last.take();
                return Visit::Stop;
            }
            visited += 1;
            let mut reader = KeyReader::new(key);
            let name = reader.number().and_then(|_| reader.text()).ok_or_else(|| codec::corrupt("the key of a share"));
            match name.and_then(|name| read(name, reader.number(), row)) {
                Ok((place, share)) => {
                    last = Some(place);
                    run.shares.extend(share);
                    Visit::Next
                }
                Err(error) => {
                    failed = Some(error);
                    Visit::Stop
                }
            }
        })?;
        failed.map_or(Ok(run), Err)
    }
}

/// The page as the answer shows it.
fn document(head: &Head, page: &SharesPage, shows_metadata: bool) -> XmlWriter {
    let mut xml = XmlWriter::document();
    xml.reserve(page.shares.len() * 640);
    xml.open_with("EnumerationResults", &[("ServiceEndpoint", &format!("{}/", head.endpoint))]);
    for (element, parameter) in [("Prefix", "prefix"), ("Marker", "marker"), ("MaxResults", "maxresults")] {
        xml.leaf_if(element, head.query.get(parameter));
    }
    xml.open("Shares");
    for listed in &page.shares {
        xml.open("Share").leaf("Name", &listed.place.name);
        match listed.place.version {
            ShareVersion::Deleted(version) => _ = xml.flag("Deleted", true).leaf("Version", version_text(version)),
            ShareVersion::Snapshot(time) => _ = xml.leaf("Snapshot", dates::iso_ticks(time).as_str()),
            ShareVersion::Live => {}
        }
        properties(&mut xml, listed, page.now);
        if shows_metadata {
            metadata::element(&mut xml, &listed.share.metadata);
        }
        xml.close("Share");
    }
    xml.close("Shares");
    xml.leaf("NextMarker", page.next.as_ref().map(SharePlace::to_marker).unwrap_or_default());
    xml.close("EnumerationResults");
    xml
}

fn properties(xml: &mut XmlWriter, ListedShare { share, mark, .. }: &ListedShare, now: Timestamp) {
    xml.open("Properties");
    xml.leaf("Last-Modified", dates::http_date(share.stamp).as_str());
    xml.leaf("Etag", ETag::new(share.stamp).quoted());
    xml.number("Quota", share.quota_gib);
    let Provisioned {
        iops,
        bandwidth_mibps,
        bursting,
        bursting_max_iops,
        bursting_max_bandwidth_mibps,
        snapshot_virtual_directory_access,
        smb_directory_lease,
    } = share.provisioned;
    numbers(xml, &[("ProvisionedIops", iops), ("ProvisionedBandwidthMiBps", bandwidth_mibps)]);
    if let Some(mark) = mark {
        mark.write(xml, now);
    }
    xml.leaf("AccessTier", share.tier.name());
    if let Some(at) = share.tier_changed {
        xml.leaf("AccessTierChangeTime", dates::http_date(at).as_str());
    }
    xml.leaf("LeaseStatus", reply::lease_status(&share.lease, now));
    xml.leaf("LeaseState", reply::lease_state(&share.lease, now));
    xml.leaf_if("LeaseDuration", reply::lease_duration(&share.lease, now));
    xml.leaf("EnabledProtocols", share.protocol.name());
    xml.leaf_if("RootSquash", root_squash(share).map(|squash| squash.name()));
    flags(
        xml,
        &[
            ("EnableSnapshotVirtualDirectoryAccess", snapshot_virtual_directory_access),
            ("PaidBurstingEnabled", bursting),
        ],
    );
    numbers(
        xml,
        &[("PaidBurstingMaxIops", bursting_max_iops), ("PaidBurstingMaxBandwidthMibps", bursting_max_bandwidth_mibps)],
    );
    flags(xml, &[("EnableSmbDirectoryLease", smb_directory_lease)]);
    xml.close("Properties");
}

fn numbers(xml: &mut XmlWriter, numbers: &[(&str, Option<u64>)]) {
    for (name, number) in numbers {
        if let Some(number) = number {
            xml.number(name, *number);
        }
    }
}

fn flags(xml: &mut XmlWriter, flags: &[(&str, Option<bool>)]) {
    for (name, flag) in flags {
        if let Some(flag) = flag {
            xml.flag(name, *flag);
        }
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let include = listing::include(call.head, &["metadata", "deleted", "snapshots"]).map_err(FileError::from)?;
    let has = |word: &str| include.iter().any(|included| included == word);
    let page = call.read(&Arc::new(parse(call.head, has("deleted"), has("snapshots"))?)).await?;
    Ok(reply::xml(StatusCode::OK, document(call.head, &page, has("metadata"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, between, refusal};
    use service::RequestError;

    /// All pages of a listing, of `max` shares each.
    async fn pages(bench: &Bench, query: &str, max: usize) -> Vec<String> {
        let (mut pages, mut marker) = (Vec::new(), String::new());
        loop {
            let page = bench.text("GET", &format!("?comp=list&maxresults={max}&{query}&marker={marker}")).await;
            marker = between(&page, "<NextMarker>", "</NextMarker>").first().map_or("", |m| *m).to_owned();
            pages.push(page);
            if marker.is_empty() {
                return pages;
            }
        }
    }

    #[tokio::test]
    async fn by_name_in_pages() {
        let bench = Bench::new();
        for name in ["beta", "alpha", "gamma-1", "gamma-2"] {
            bench.call("PUT", &format!("{name}?restype=share"), &[("x-ms-meta-n", name)], b"").await.unwrap();
        }
        let all = bench.text("GET", "?comp=list").await;
        assert_eq!(between(&all, "<Name>", "</Name>"), ["alpha", "beta", "gamma-1", "gamma-2"]);
        assert!(all.contains("ServiceEndpoint=\"http://127.0.0.1:10003/acct/\"><Shares><Share>"), "{all}");
        assert!(!all.contains("<Metadata>") && all.contains("<NextMarker />"), "{all}");
        let some = bench.text("GET", "?comp=list&prefix=gamma&include=metadata,snapshots").await;
        assert_eq!(between(&some, "<n>", "</n>"), ["gamma-1", "gamma-2"]);
        assert!(some.contains("<Prefix>gamma</Prefix>"));
        for (max, count) in [(1, 4), (2, 2), (3, 2), (4, 1), (5, 1)] {
            let pages = pages(&bench, "", max).await;
            assert_eq!(pages.len(), count, "{max}");
            let names: Vec<&str> = pages.iter().flat_map(|page| between(page, "<Name>", "</Name>")).collect();
            assert_eq!(names, ["alpha", "beta", "gamma-1", "gamma-2"], "{max}");
        }
    }

    #[tokio::test]
    async fn what_is_shown_of_a_share() {
        let bench = Bench::new();
        let headers = [
            ("x-ms-share-quota", "7"),
            ("x-ms-access-tier", "Premium"),
            ("x-ms-enabled-protocols", "NFS"),
            ("x-ms-share-provisioned-iops", "3000"),
            ("x-ms-share-provisioned-bandwidth-mibps", "125"),
            ("x-ms-share-paid-bursting-enabled", "true"),
            ("x-ms-share-paid-bursting-max-iops", "5000"),
            ("x-ms-share-paid-bursting-max-bandwidth-mibps", "150"),
            ("x-ms-enable-snapshot-virtual-directory-access", "true"),
        ];
        let made = bench.call("PUT", "share?restype=share", &headers, b"").await.unwrap();
        let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
        bench.call("PUT", "share?restype=share&comp=lease", &lease, b"").await.unwrap();
        let header = |name| crate::testing::header(&made, name).unwrap();
        let expected = format!(
            "<Share><Name>share</Name><Properties><Last-Modified>{}</Last-Modified><Etag>{}</Etag><Quota>7</Quota>\
             <ProvisionedIops>3000</ProvisionedIops><ProvisionedBandwidthMiBps>125</ProvisionedBandwidthMiBps>\
             <AccessTier>Premium</AccessTier><LeaseStatus>locked</LeaseStatus><LeaseState>leased</LeaseState>\
             <LeaseDuration>infinite</LeaseDuration><EnabledProtocols>NFS</EnabledProtocols>\
             <RootSquash>NoRootSquash</RootSquash>\
             <EnableSnapshotVirtualDirectoryAccess>true</EnableSnapshotVirtualDirectoryAccess>\
             <PaidBurstingEnabled>true</PaidBurstingEnabled><PaidBurstingMaxIops>5000</PaidBurstingMaxIops>\
             <PaidBurstingMaxBandwidthMibps>150</PaidBurstingMaxBandwidthMibps></Properties></Share>",
            header("last-modified"),
            header("etag"),
        );
        let told = bench.text("GET", "?comp=list").await;
        assert!(told.contains(&expected), "{told}\n{expected}");
    }

    #[tokio::test]
    async fn deleted_ones_come_before_their_successors_in_pages_of_any_size() {
        let mut bench = Bench::new();
        bench.settings.share_soft_delete_days = Some(7);
        for name in ["aaa", "bbb", "bbb", "ccc", "ddd"] {
            bench.call("PUT", &format!("{name}?restype=share"), &[("x-ms-meta-k", "v")], b"").await.unwrap();
            if name != "aaa" && name != "ccc" {
                bench.call("DELETE", &format!("{name}?restype=share"), &[], b"").await.unwrap();
            }
        }
        bench.call("PUT", "bbb?restype=share", &[], b"").await.unwrap();
        let all = ["aaa", "bbb deleted", "bbb deleted", "bbb", "ccc", "ddd deleted"];
        for max in 1..=7 {
            let mut seen = Vec::new();
            for page in pages(&bench, "include=deleted,metadata", max).await {
                for share in between(&page, "<Share>", "</Share>") {
                    let name = between(share, "<Name>", "</Name>")[0];
                    let deleted = share.contains("<Deleted>true</Deleted><Version>");
                    let days = share.contains("</DeletedTime><RemainingRetentionDays>7</RemainingRetentionDays>");
                    assert_eq!(deleted, days, "{share}");
                    seen.push(format!("{name}{}", if deleted { " deleted" } else { "" }));
                }
            }
            assert_eq!(seen, all, "{max}");
        }
        let plain = bench.text("GET", "?comp=list").await;
        assert_eq!(between(&plain, "<Name>", "</Name>"), ["aaa", "bbb", "ccc"]);
    }

    /// What nobody sees costs a page no more than it may look at.
    #[tokio::test]
    async fn rows_that_are_not_shown_make_short_pages() {
        let mut bench = Bench::new();
        bench.settings.share_soft_delete_days = Some(1);
        let count = ROWS_VISITED_MAX + 10;
        for n in 0..count {
            bench.call("PUT", &format!("old{n:04}?restype=share"), &[], b"").await.unwrap();
            bench.call("DELETE", &format!("old{n:04}?restype=share"), &[], b"").await.unwrap();
        }
        bench.call("PUT", "zzz?restype=share", &[], b"").await.unwrap();
        bench.advance(24 * 3600).await;
        let pages = pages(&bench, "include=deleted", 5).await;
        assert_eq!(pages.len(), 2);
        assert_eq!(between(&pages[0], "<Name>", "</Name>"), [""; 0]);
        assert_eq!(between(&pages[1], "<Name>", "</Name>"), ["zzz"]);
    }

    #[test]
    fn markers_come_back_as_they_went() {
        for version in [ShareVersion::Live, ShareVersion::Deleted(77)] {
            let place = SharePlace { name: "share".into(), version };
            assert_eq!(SharePlace::from_marker(&place.to_marker()), Some(place));
        }
        for text in ["?", "", "AQ", "CQ", "AP8"] {
            assert_eq!(SharePlace::from_marker(text), None, "{text}");
        }
    }

    #[tokio::test]
    async fn bad_parameters() {
        let bench = Bench::new();
        let ask = async |query: &str| refusal(bench.call("GET", &format!("?comp=list&{query}"), &[], b"").await);
        assert_eq!(ask("marker=!!").await, FileError::InvalidMarker);
        assert_eq!(ask("include=system").await, FileError::query("include", "system"));
        let (name, value) = ("maxresults", "0".to_owned());
        let out_of_range = RequestError::OutOfRangeQueryParameterValue { name, value, least: 1, most: 5_000 };
        assert_eq!(ask("maxresults=0").await, out_of_range.into());
    }
}
