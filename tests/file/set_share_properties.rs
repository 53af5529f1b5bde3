//! Set Share Properties. The quota itself is in `quota`.

use crate::harness::{Headers, Table};
use crate::stage::{SHARE, Stage};

const URL: &str = "PUT share?restype=share&comp=properties";

#[test]
fn what_is_left_out_stays() {
    let stage = Stage::new();
    stage.call("PUT share?restype=share&comp=metadata", &[("x-ms-meta-a", "1")], "").ok();
    let shown = || {
        let head = stage.head(SHARE).ok();
        let names = ["x-ms-share-quota", "x-ms-access-tier", "x-ms-meta-a"];
        names.map(|name| head.header(name).unwrap_or("none").to_owned()).join(" ")
    };
    let mut table = Table::new("set_share_properties");
    let steps: &[(&str, Headers<'_>, &str)] = &[
        ("a quota", &[("x-ms-share-quota", "10")], "10 TransactionOptimized 1"),
        ("a tier", &[("x-ms-access-tier", "Hot")], "10 Hot 1"),
        ("both", &[("x-ms-share-quota", "20"), ("x-ms-access-tier", "Cool")], "20 Cool 1"),
        ("neither", &[], "20 Cool 1"),
    ];
    for (row, headers, expected) in steps {
        table.row(format!("{row}: answer"), stage.call(URL, headers, "").said(), "200");
        table.row(row, shown(), expected);
    }
}

#[test]
fn bad_values_change_nothing() {
    let stage = Stage::new();
    let before = stage.everything();
    let mut table = Table::new("set_share_properties: bad values");
    for (name, value) in [
        ("x-ms-share-quota", "0"),
        ("x-ms-share-quota", "-1"),
        ("x-ms-share-quota", "102401"),
        ("x-ms-share-quota", "many"),
        ("x-ms-access-tier", "Warm"),
        ("x-ms-lease-id", "me"),
    ] {
        table.row(format!("{name}: {value}"), stage.call(URL, &[(name, value)], "").said(), "400 InvalidHeaderValue");
    }
    // One good value beside a bad one is not taken, either.
    let both = [("x-ms-share-quota", "10"), ("x-ms-access-tier", "Warm")];
    table.row("one of two", stage.call(URL, &both, "").said(), "400 InvalidHeaderValue");
    assert_eq!(stage.everything(), before);
}

#[test]
fn who_must_be_squashed_on_a_share_for_nfs() {
    let stage = Stage::new();
    stage.call("PUT nfs?restype=share", &[("x-ms-enabled-protocols", "NFS")], "").ok();
    let url = "PUT nfs?restype=share&comp=properties";
    for squash in ["RootSquash", "AllSquash", "NoRootSquash"] {
        stage.call(url, &[("x-ms-root-squash", squash)], "").ok();
        assert_eq!(stage.head("nfs?restype=share").header("x-ms-root-squash"), Some(squash));
    }
    assert_eq!(stage.call(url, &[("x-ms-root-squash", "Some")], "").said(), "400 InvalidHeaderValue");
}
