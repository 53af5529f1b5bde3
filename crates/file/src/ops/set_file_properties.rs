//! Set File Properties: HTTP headers, length, attributes, times and permission.
//!
//! If any of the six HTTP headers is given, all six are set; otherwise they stay, as everything does that the request does not
//! name.

use concurrency::LeaseId;
use concurrency::share_mode::RestAccess;
use content::map::FileView;
use engine::{Changes, Rows, Tick};
use service::HttpHeaders;
use wire::http::{Head, Reply, StatusCode};

use super::Call;
use crate::announcement::Effect;
use crate::change::set::{self, FileSettings};
use crate::entering::{self, Admission, NodeChange};
use crate::error::FileError;
use crate::model::Halt;
use crate::opens::events::Aspects;
use crate::reply::node::ShownNode;
use crate::request::HTTP_HEADERS;
use crate::tree::{Spot, Target};
use crate::{Failure, request, smb_headers};

#[derive(Clone, PartialEq, Eq, Debug)]
struct SetFileProperties {
    settings: FileSettings,
    lease: Option<LeaseId>,
}

fn parse(head: &Head) -> Result<(Target, SetFileProperties), FileError> {
    let target = request::file(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    let headers = match HTTP_HEADERS.are_in(head) {
        true => Some(HttpHeaders::parse(head, &HTTP_HEADERS)?),
        false => None,
    };
    let settings = FileSettings { headers, length: request::file_length(head)?, smb: smb_headers::parse(head)? };
    Ok((target, SetFileProperties { settings, lease: request::lease_id(head)? }))
}

impl NodeChange for SetFileProperties {
    type Outcome = ShownNode;

    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Write).in_turn()
    }

    fn effect(&self) -> Effect {
        Effect::changed(Aspects::PROPERTIES.and(Aspects::SIZE))
    }

    fn announce(&self, spot: &Spot, rows: &dyn Rows) {
        if self.settings.length.is_some() {
            spot.share.announce_count(rows);
        }
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<ShownNode, Halt> {
        let node = set::file_properties(spot, &self.settings, self.lease, rows, tick, changes)?;
        Ok(ShownNode::new(spot, node, tick.now))
    }
}

/// How often the map of a file is made to stand by itself before the operation gives up.
pub const SETTLINGS_MAX: usize = 4;

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, set) = parse(call.head)?;
    for _ in 0..SETTLINGS_MAX {
        match entering::commit(call, &target, set.clone()).await {
            Err(Failure::Refused(FileError::Unsettled { map })) => FileView::settle(call.engine, map).await?,
            Ok(shown) => return Ok(shown.changed(call.head, StatusCode::OK)),
            Err(failure) => return Err(failure),
        }
    }
    Err(FileError::Moved.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, header};
    use service::RequestError;

    const URL: &str = "share/file?comp=properties";

    async fn bench() -> Bench {
        let bench = Bench::with_share().await;
        let headers = [
            ("x-ms-type", "file"),
            ("x-ms-content-length", "2000"),
            ("x-ms-content-type", "text/plain"),
            ("x-ms-content-language", "de"),
            ("x-ms-content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
            ("x-ms-meta-a", "b"),
        ];
        bench.call("PUT", "share/file", &headers, b"").await.unwrap();
        bench
    }

    #[tokio::test]
    async fn all_http_headers_are_set_or_none() {
        let bench = bench().await;
        bench.call("PUT", URL, &[("x-ms-content-language", "en")], b"").await.unwrap();
        let told = bench.file("file").await;
        assert_eq!(header(&told, "content-language"), Some("en"));
        assert_eq!((header(&told, "content-type"), header(&told, "content-md5")), (None, None));
        assert_eq!((header(&told, "content-length"), header(&told, "x-ms-meta-a")), (Some("2000"), Some("b")));
        for headers in [&[("x-ms-content-length", "2001")][..], &[("x-ms-file-attributes", "Hidden")], &[]] {
            bench.call("PUT", URL, headers, b"").await.unwrap();
            assert_eq!(header(&bench.file("file").await, "content-language"), Some("en"), "{headers:?}");
        }
        let bad = bench.refused("PUT", URL, &[("x-ms-content-md5", "x")]).await;
        assert_eq!(bad, RequestError::InvalidMd5.into());
    }

    #[tokio::test]
    async fn times_and_attributes() {
        let bench = bench().await;
        let before = bench.file("file").await;
        bench.advance(1).await;
        let headers = [("x-ms-file-attributes", "None"), ("x-ms-file-creation-time", "2019-01-02T03:04:05.0000006Z")];
        let set = bench.call("PUT", URL, &headers, b"").await.unwrap();
        assert_eq!(header(&set, "x-ms-file-attributes"), Some("None"));
        assert_eq!(header(&set, "x-ms-file-creation-time"), Some("2019-01-02T03:04:05.0000006Z"));
        for name in ["x-ms-file-last-write-time", "x-ms-file-permission-key", "x-ms-file-id"] {
            assert_eq!(header(&set, name), header(&before, name), "{name}");
        }
        for name in ["etag", "x-ms-file-change-time"] {
            assert_ne!(header(&set, name), header(&before, name), "{name}");
        }
    }

    #[tokio::test]
    async fn a_new_length_cuts_or_adds_zeros_and_counts_as_a_write() {
        let bench = bench().await;
        bench.write("file", 0, &[7; 2_000]).await;
        let usage = async || {
            let stats = bench.text("GET", "share?restype=share&comp=stats").await;
            crate::testing::between(&stats, "<ShareUsageBytes>", "<")[0].to_owned()
        };
        let mut written = header(&bench.file("file").await, "x-ms-file-last-write-time").unwrap().to_owned();
        for (length, content) in
            [("700", vec![7; 700]), ("1200", [vec![7; 700], vec![0; 500]].concat()), ("0", vec![]), ("3", vec![0; 3])]
        {
            bench.advance(1).await;
            let headers = [("x-ms-content-length", length), ("x-ms-file-last-write-time", "preserve")];
            let set = bench.call("PUT", URL, &headers, b"").await.unwrap();
            assert!(bench.read("file").await == content, "{length}");
            assert_eq!(usage().await, length);
            let now = header(&set, "x-ms-file-last-write-time").unwrap();
            assert_ne!(now, written, "{length}");
            written = now.to_owned();
        }
        let same = [("x-ms-content-length", "3")];
        let set = bench.call("PUT", URL, &same, b"").await.unwrap();
        assert_eq!(header(&set, "x-ms-file-last-write-time"), Some(&*written), "the length stays");
        let given = [("x-ms-content-length", "4"), ("x-ms-file-last-write-time", "2019-01-02T03:04:05.0000006Z")];
        let set = bench.call("PUT", URL, &given, b"").await.unwrap();
        assert_eq!(header(&set, "x-ms-file-last-write-time"), Some(given[1].1));
    }

    /// A cut of more than can be removed at once puts a new map in front of the old one, and only so many of them stand behind
    /// each other.
    #[tokio::test]
    async fn a_large_file_can_be_cut_again_and_again() {
        const GROUP: u64 = content::map::GROUP_BYTES;
        let bench = Bench::with_share().await;
        bench.create("file", 0).await;
        let resize = async |length: u64| {
            let length = length.to_string();
            bench.call("PUT", URL, &[("x-ms-content-length", &*length)], b"").await.unwrap();
        };
        for round in 0..=content::map::ORIGINS_MAX as u64 + 1 {
            resize(1_100 * GROUP).await;
            bench.write("file", round, &[round as u8 + 1]).await;
            // Each write touches two groups.
            for group in (1..content::map::CUT_ROWS_MAX as u64 + 4).step_by(2) {
                bench.write("file", group * GROUP - 1, b"xy").await;
            }
            resize(100).await;
        }
        let mut content = vec![0; 100];
        (0..=content::map::ORIGINS_MAX + 1).for_each(|round| content[round] = round as u8 + 1);
        assert!(bench.read("file").await == content);
        resize(1_100 * GROUP).await;
        let ranges = bench.text("GET", "share/file?comp=rangelist").await;
        assert_eq!(crate::testing::between(&ranges, "<Start>", "<"), ["0"], "{ranges}");
        bench.call("DELETE", "share/file", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(service::testing::figure(&*bench.engine, "contents"), 0);
    }

    #[tokio::test]
    async fn a_read_only_file_keeps_its_length_until_it_is_writable_again() {
        let bench = bench().await;
        bench.call("PUT", URL, &[("x-ms-file-attributes", "ReadOnly")], b"").await.unwrap();
        let length = ("x-ms-content-length", "1");
        assert_eq!(bench.refused("PUT", URL, &[length]).await, FileError::ReadOnlyAttribute);
        bench.call("PUT", URL, &[("x-ms-content-type", "text/plain")], b"").await.unwrap();
        bench.call("PUT", URL, &[("x-ms-file-attributes", "Archive")], b"").await.unwrap();
        bench.call("PUT", URL, &[length], b"").await.unwrap();
    }

    #[tokio::test]
    async fn refusals_and_two_at_once() {
        let bench = Bench::new();
        bench.call("PUT", "share?restype=share", &[("x-ms-share-quota", "1")], b"").await.unwrap();
        bench.create("file", 0).await;
        let huge = ("x-ms-content-length", "1073741825");
        assert_eq!(bench.refused("PUT", URL, &[huge]).await, FileError::ShareSizeLimitReached);
        let key = ("x-ms-file-permission-key", "1*2");
        assert_eq!(bench.refused("PUT", URL, &[key]).await, FileError::FileInvalidPermissionKey);
        assert_eq!(bench.refused("PUT", URL, &[key, huge]).await, FileError::ShareSizeLimitReached);
        let range = FileError::from(RequestError::OutOfRangeInput);
        for length in ["-1", "4398046511105"] {
            assert_eq!(bench.refused("PUT", URL, &[("x-ms-content-length", length)]).await, range, "{length}");
        }
        assert_eq!(header(&bench.file("file").await, "content-length"), Some("0"));
    }
}
