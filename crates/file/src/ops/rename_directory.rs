//! Rename Directory: moves a directory with everything below it, in one step. Nothing below is touched.

use wire::http::Reply;

use super::{Call, rename_file};
use crate::Failure;
use crate::change::rename::RenamedKind;

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    rename_file::run_as(call, RenamedKind::Directory).await
}

#[cfg(test)]
mod tests {
    use crate::FileError;
    use crate::testing::{Bench, header, refusal};

    const REPLACE: (&str, &str) = ("x-ms-file-rename-replace-if-exists", "true");

    #[tokio::test]
    async fn everything_below_goes_along() {
        let bench = Bench::with_share().await;
        for path in ["a", "a/b", "a/b/c", "other"] {
            bench.mkdir(path).await;
        }
        bench.create("a/b/c/file", 3).await;
        bench.write("a/b/c/file", 0, b"abc").await;
        let (directory, file) = (bench.directory("a/b").await, bench.file("a/b/c/file").await);
        let rows = service::testing::figure(&*bench.engine, "rows");
        bench.advance(1).await;
        let renamed = bench.rename("a/b", "other/New?restype=directory", &[]).await.unwrap();
        assert_eq!(renamed.status, 200);
        assert_eq!(service::testing::figure(&*bench.engine, "rows"), rows);
        let after = bench.directory("other/new").await;
        for name in ["x-ms-file-id", "x-ms-file-creation-time", "x-ms-file-last-write-time"] {
            assert_eq!(header(&after, name), header(&directory, name), "{name}");
        }
        for name in ["etag", "x-ms-file-change-time", "x-ms-file-parent-id"] {
            assert_ne!(header(&after, name), header(&directory, name), "{name}");
        }
        let moved = bench.file("other/new/c/FILE").await;
        for name in ["etag", "x-ms-file-id", "x-ms-file-parent-id", "x-ms-file-change-time"] {
            assert_eq!(header(&moved, name), header(&file, name), "{name}");
        }
        assert_eq!(bench.read("other/new/c/file").await, b"abc");
        assert_eq!(bench.refused("GET", "share/a/b/c/file", &[]).await, FileError::ParentNotFound);
        assert!(bench.names("a").await.is_empty());
    }

    #[tokio::test]
    async fn the_place_of_a_file_is_taken_but_never_that_of_a_directory() {
        let bench = Bench::with_share().await;
        bench.mkdir("dir").await;
        bench.mkdir("empty").await;
        bench.create("file", 10).await;
        let exists = FileError::ResourceAlreadyExists;
        for (to, headers) in [("empty", &[][..]), ("empty", &[REPLACE]), ("file", &[])] {
            let url = format!("{to}?restype=directory");
            assert_eq!(refusal(bench.rename("dir", &url, headers).await), exists, "{to} {headers:?}");
        }
        bench.rename("dir", "file?restype=directory", &[REPLACE]).await.unwrap();
        assert_eq!(bench.names("").await, ["empty", "file"]);
        assert_eq!(header(&bench.directory("file").await, "x-ms-file-attributes"), Some("Directory"));
        let stats = bench.text("GET", "share?restype=share&comp=stats").await;
        assert!(stats.contains("<ShareUsageBytes>0<"), "{stats}");
    }

    #[tokio::test]
    async fn not_into_itself_and_not_the_root() {
        let bench = Bench::with_share().await;
        bench.mkdir("a").await;
        bench.mkdir("a/b").await;
        for (from, to) in [("a", "a/b/c"), ("a", "A/c"), ("", "b"), ("a", "")] {
            let url = format!("{to}?restype=directory");
            let error = refusal(bench.rename(from, &url, &[]).await);
            assert!(matches!(error, FileError::InvalidInput { .. }), "{from} to {to}: {error:?}");
        }
        bench.rename("a", "A?restype=directory", &[]).await.unwrap();
        assert_eq!((bench.names("").await, bench.names("a").await), (vec!["A".to_owned()], vec!["b".to_owned()]));
    }
}
