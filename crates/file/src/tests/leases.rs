//! The lease tables, cell by cell, through the operations.

use concurrency::LeaseRefusal;

use super::*;
use crate::FileError;
use crate::testing::{Bench, MY_LEASE, YOUR_LEASE, header, refusal};

const THIRD: &str = "03030303-0303-0303-0303-030303030303";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Available,
    Leased,
    Broken,
}

const STATES: [State; 3] = [State::Available, State::Leased, State::Broken];

/// A share with a file in a state. The lease, where there is one, is `MY_LEASE`.
async fn file_in(state: State) -> Bench {
    let bench = Bench::with_share().await;
    bench.create("file", 1_024).await;
    if state != State::Available {
        bench.lease("file", MY_LEASE).await;
    }
    if state == State::Broken {
        let broken = bench.call("PUT", "share/file?comp=lease", BREAK, b"").await.unwrap();
        assert_eq!((broken.status.as_u16(), header(&broken, "x-ms-lease-time")), (202, Some("0")));
    }
    bench
}

/// The lease as the file's properties show it: its state and whether `MY_LEASE` or `YOUR_LEASE` or another holds it.
async fn shown(bench: &Bench) -> String {
    let file = bench.file("file").await;
    header(&file, "x-ms-lease-state").unwrap().to_owned()
}

async fn holds(bench: &Bench, id: &str) -> bool {
    bench.call("HEAD", "share/file", &[("x-ms-lease-id", id)], b"").await.is_ok()
}

fn lease_error(refusal: LeaseRefusal) -> FileError {
    FileError::file_lease(refusal)
}

fn is_412(error: &FileError) -> bool {
    wire::http::ErrorReply::from(error.clone()).status == 412
}

#[tokio::test]
async fn use_by_state() {
    for state in STATES {
        for ask in FILE_READS.iter().chain(FILE_WRITES).chain([&CREATE_FILE]) {
            let is_read = FILE_READS.iter().any(|read| read.name == ask.name);
            for id in [Some(MY_LEASE), Some(YOUR_LEASE), None] {
                let bench = file_in(state).await;
                let lease: Vec<(&str, &str)> = id.map(|id| ("x-ms-lease-id", id)).into_iter().collect();
                let headers = [ask.headers, &lease].concat();
                let result = bench.call(ask.method, &ask.url("share/file"), &headers, ask.body).await;
                let what = format!("{} with {id:?} on {state:?}", ask.name);
                let expected = match (state, id) {
                    (State::Leased, Some(MY_LEASE)) => None,
                    (State::Leased, None) if !is_read => Some(LeaseRefusal::IdMissing),
                    (State::Leased, Some(_)) => Some(LeaseRefusal::IdMismatch),
                    (State::Available, Some(_)) => Some(LeaseRefusal::NotPresent),
                    (State::Broken, Some(_)) => Some(LeaseRefusal::Lost),
                    (State::Available | State::Leased | State::Broken, None) => None,
                };
                match expected {
                    Some(expected) => {
                        let error = refusal(result);
                        assert_eq!(error, lease_error(expected), "{what}");
                        assert!(is_412(&error), "{what}");
                    }
                    None => {
                        assert!(result.is_ok(), "{what}: {result:?}");
                        if ask.name == "DeleteFile" {
                            continue;
                        }
                        // A write without an id ends a broken lease; everything else leaves the state as it was.
                        let after = match state {
                            State::Broken if !is_read => "available",
                            State::Broken => "broken",
                            State::Available => "available",
                            State::Leased => "leased",
                        };
                        assert_eq!(shown(&bench).await, after, "{what}");
                    }
                }
            }
        }
    }
}

/// What becomes of the lease: the id that holds it, `None` for none, or the refusal.
type After = Result<Option<&'static str>, LeaseRefusal>;

/// An action with its headers and its status, and what becomes of a lease that is available, held or broken.
type Row = (&'static str, Vec<(&'static str, &'static str)>, u16, [After; 3]);

#[tokio::test]
async fn actions_by_state() {
    use LeaseRefusal::{AlreadyPresent, IdMismatchWithLeaseOperation, NotPresentWithLeaseOperation};
    let acquire = |id: Option<&'static str>| {
        let mut headers = ACQUIRE.to_vec();
        headers.extend(id.map(|id| ("x-ms-proposed-lease-id", id)));
        headers
    };
    let change =
        |from, to| vec![("x-ms-lease-action", "change"), ("x-ms-lease-id", from), ("x-ms-proposed-lease-id", to)];
    let release = |id| vec![("x-ms-lease-action", "release"), ("x-ms-lease-id", id)];
    const FRESH: &str = "fresh";
    // Available, Leased(A), Broken(A).
    let table: Vec<Row> = vec![
        ("acquire", acquire(None), 201, [Ok(Some(FRESH)), Err(AlreadyPresent), Ok(Some(FRESH))]),
        ("acquire A", acquire(Some(MY_LEASE)), 201, [Ok(Some(MY_LEASE)), Ok(Some(MY_LEASE)), Ok(Some(MY_LEASE))]),
        (
            "acquire B",
            acquire(Some(YOUR_LEASE)),
            201,
            [Ok(Some(YOUR_LEASE)), Err(AlreadyPresent), Ok(Some(YOUR_LEASE))],
        ),
        ("break", BREAK.to_vec(), 202, [Err(NotPresentWithLeaseOperation), Ok(None), Ok(None)]),
        (
            "change A to B",
            change(MY_LEASE, YOUR_LEASE),
            200,
            [Err(NotPresentWithLeaseOperation), Ok(Some(YOUR_LEASE)), Err(NotPresentWithLeaseOperation)],
        ),
        (
            "change B to A",
            change(YOUR_LEASE, MY_LEASE),
            200,
            [Err(NotPresentWithLeaseOperation), Ok(Some(MY_LEASE)), Err(NotPresentWithLeaseOperation)],
        ),
        (
            "change B to C",
            change(YOUR_LEASE, THIRD),
            200,
            [Err(NotPresentWithLeaseOperation), Err(IdMismatchWithLeaseOperation), Err(NotPresentWithLeaseOperation)],
        ),
        ("release A", release(MY_LEASE), 200, [Err(IdMismatchWithLeaseOperation), Ok(None), Ok(None)]),
        (
            "release B",
            release(YOUR_LEASE),
            200,
            [Err(IdMismatchWithLeaseOperation), Err(IdMismatchWithLeaseOperation), Err(IdMismatchWithLeaseOperation)],
        ),
    ];
    for (name, headers, status, cells) in table {
        for (state, expected) in STATES.into_iter().zip(cells) {
            let bench = file_in(state).await;
            let etag = header(&bench.file("file").await, "etag").unwrap().to_owned();
            let result = bench.call("PUT", "share/file?comp=lease", &headers, b"").await;
            let what = format!("{name} on {state:?}");
            match expected {
                Err(expected) => {
                    let error = refusal(result);
                    assert_eq!(error, lease_error(expected), "{what}");
                    assert_eq!(wire::http::ErrorReply::from(error).status, 409, "{what}");
                }
                Ok(holder) => {
                    let answer = result.unwrap_or_else(|failure| panic!("{what}: {failure:?}"));
                    assert_eq!(answer.status.as_u16(), status, "{what}");
                    assert_eq!(header(&answer, "etag"), Some(&*etag), "{what}");
                    let after = match (name, holder) {
                        (_, Some(_)) => "leased",
                        ("break", None) => "broken",
                        (_, None) => "available",
                    };
                    assert_eq!(shown(&bench).await, after, "{what}");
                    match holder {
                        Some(FRESH) => {
                            let id = header(&answer, "x-ms-lease-id").unwrap();
                            assert!(id != MY_LEASE && holds(&bench, id).await, "{what}");
                        }
                        Some(id) => assert!(holds(&bench, id).await, "{what}"),
                        None => assert!(!holds(&bench, MY_LEASE).await, "{what}"),
                    }
                }
            }
            assert_eq!(header(&bench.file("file").await, "etag"), Some(&*etag), "{what}: a lease changes no ETag");
        }
    }
}

#[tokio::test]
async fn a_lease_is_infinite_or_none() {
    let bench = file_in(State::Leased).await;
    let file = bench.file("file").await;
    assert_eq!(header(&file, "x-ms-lease-duration"), Some("infinite"));
    assert_eq!(header(&file, "x-ms-lease-status"), Some("locked"));
    bench.advance(1_000_000).await;
    assert_eq!(shown(&bench).await, "leased");
    for (name, value) in
        [("x-ms-lease-duration", "60"), ("x-ms-proposed-lease-id", "me"), ("x-ms-lease-action", "renew")]
    {
        let mut headers: Vec<(&str, &str)> = ACQUIRE.iter().copied().filter(|(known, _)| *known != name).collect();
        headers.push((name, value));
        headers.push(("x-ms-lease-id", MY_LEASE));
        let error = bench.refused("PUT", "share/file?comp=lease", &headers).await;
        assert_eq!(error, FileError::header(name, value));
    }
}

#[tokio::test]
async fn a_rename_names_the_leases_of_both_ends() {
    let rename = async |headers: &[(&str, &str)]| {
        let bench = Bench::with_share().await;
        bench.create("from", 0).await;
        bench.create("to", 0).await;
        bench.lease("from", MY_LEASE).await;
        bench.lease("to", YOUR_LEASE).await;
        let result =
            bench.rename("from", "to", &[&[("x-ms-file-rename-replace-if-exists", "true")], headers].concat()).await;
        (result, bench)
    };
    let (source, target) = (("x-ms-source-lease-id", MY_LEASE), ("x-ms-destination-lease-id", YOUR_LEASE));
    for headers in [&[][..], &[source], &[target]] {
        assert_eq!(refusal(rename(headers).await.0), lease_error(LeaseRefusal::IdMissing), "{headers:?}");
    }
    let swapped = [("x-ms-source-lease-id", YOUR_LEASE), ("x-ms-destination-lease-id", MY_LEASE)];
    assert_eq!(refusal(rename(&swapped).await.0), lease_error(LeaseRefusal::IdMismatch));
    let (renamed, bench) = rename(&[source, target]).await;
    assert_eq!(renamed.unwrap().status, 200);
    // The lease goes with the file.
    let mine = bench.call("HEAD", "share/to", &[("x-ms-lease-id", MY_LEASE)], b"").await.unwrap();
    assert_eq!(header(&mine, "x-ms-lease-state"), Some("leased"));
    assert_eq!(bench.names("").await, ["to"]);
}
