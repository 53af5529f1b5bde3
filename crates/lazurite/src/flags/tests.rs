use super::*;

fn parsed(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Command, Wrong> {
    let environment: HashMap<&str, &str> = environment.iter().copied().collect();
    parse(arguments.iter().map(OsString::from), |name| environment.get(name).map(OsString::from))
}

fn options(arguments: &[&str], environment: &[(&str, &str)]) -> Options {
    match parsed(arguments, environment) {
        Ok(Command::Serve(options)) => *options,
        other => panic!("{arguments:?} gave {other:?}"),
    }
}

fn port(options: &Options, service: Service) -> Option<Port> {
    options.services.iter().find(|door| door.service == service).unwrap().port
}

#[test]
fn no_flags_at_all() {
    let options = options(&[], &[]);
    assert_eq!(options.host, DEFAULT_HOST);
    assert_eq!(options.durability, Durability::Full);
    assert_eq!(port(&options, Service::Blob), None);
    assert!(!options.silent && !options.in_memory && !options.test_clock && !options.azurite_compat);
}

#[test]
fn three_spellings_and_the_command_line_wins() {
    for (arguments, environment) in [
        (&["--blob-port", "7"][..], &[][..]),
        (&["--blobPort", "7"], &[]),
        (&["--blob-port=7"], &[]),
        (&[], &[("LAZURITE_BLOB_PORT", "7")]),
        (&["--blobPort", "7"], &[("LAZURITE_BLOB_PORT", "8")]),
    ] {
        assert_eq!(port(&options(arguments, environment), Service::Blob), Some(Port::At(7)), "{arguments:?}");
    }
    assert_eq!(port(&options(&["--filePort", "off"], &[]), Service::File), Some(Port::Off));
}

#[test]
fn a_node_of_many_needs_a_database_and_a_store() {
    let both = ["--metadata", "postgres://me@db/x", "--bytes", "s3://bytes?endpoint=http://127.0.0.1:8333"];
    let cluster = options(&both, &[]).cluster.unwrap();
    assert_eq!(cluster.metadata.expose(), "postgres://me@db/x");
    assert_eq!(cluster.bytes.unwrap().bucket, "bytes");
    for arguments in [&both[..2], &both[2..], &[&both[..], &["--in-memory"]].concat(), &["migrate"]] {
        let Wrong(sentence) = parsed(arguments, &[]).unwrap_err();
        assert!(sentence.ends_with('.'), "{sentence}");
    }
    let migrate = parsed(&["migrate"], &[("LAZURITE_METADATA", "postgres://me:secret@db/x")]);
    assert!(matches!(migrate, Ok(Command::Migrate(_))), "{migrate:?}");
}

#[test]
fn a_password_is_not_taken_from_the_command_line() {
    for url in ["postgres://me:secret@db/x", "postgres://db/x?password=secret", "host=db password=secret"] {
        let Wrong(sentence) = parsed(&["--metadata", url, "--bytes", "s3://x"], &[]).unwrap_err();
        assert!(sentence.contains("PGPASSWORD") && !sentence.contains("secret"), "{sentence}");
        let whole = [("LAZURITE_METADATA", url), ("LAZURITE_BYTES", "s3://x")];
        assert!(options(&[], &whole).cluster.is_some());
    }
    assert!(options(&["--metadata", "postgres://me@db:5432/x", "--bytes", "s3://x"], &[]).cluster.is_some());
}

#[test]
fn everything_azurite_takes_is_taken() {
    let line = "-s -l data -d debug.log -L --skipApiVersionCheck --inMemoryPersistence --disableProductStyleUrl \
                --extentMemoryLimit 100 --disableTelemetry --blobHost 0.0.0.0 --queueHost 127.0.0.1 --tableHost ::1 \
                --blobPort 1 --queuePort 2 --tablePort 3 --blobKeepAliveTimeout 5 --queueKeepAliveTimeout 6 \
                --tableKeepAliveTimeout 7";
    let options = options(&line.split_whitespace().collect::<Vec<_>>(), &[]);
    assert!(options.silent && options.in_memory && options.disable_product_style_url);
    assert_eq!(options.location, Some("data".into()));
    assert_eq!(options.debug, Some("debug.log".into()));
    let blob = options.services[0];
    assert_eq!((blob.host, blob.keep_alive), (IpAddr::from([0, 0, 0, 0]), Some(Duration::from_secs(5))));
}

#[test]
fn smb_is_off_and_encrypted_unless_told_otherwise() {
    let smb = |arguments: &[&str]| {
        let options = options(arguments, &[]);
        (options.smb_port, options.smb_encryption)
    };
    assert_eq!(smb(&[]), (None, SmbEncryption::Required));
    assert_eq!(smb(&["--smb-port", "10445"]), (Some(Port::At(10_445)), SmbEncryption::Required));
    assert_eq!(smb(&["--smb-port", "off", "--smb-encryption", "desired"]), (Some(Port::Off), SmbEncryption::Desired));
    let from_environment = options(&[], &[("LAZURITE_SMB_PORT", "0"), ("LAZURITE_SMB_ENCRYPTION", "desired")]);
    assert_eq!(from_environment.smb_port, Some(Port::At(0)));
    assert_eq!(from_environment.smb_encryption, SmbEncryption::Desired);
    let Wrong(sentence) = parsed(&["--smb-encryption", "off"], &[]).unwrap_err();
    assert!(sentence.contains("required or desired") && sentence.ends_with('.'), "{sentence}");
}

#[test]
fn a_node_that_may_serve_smb_is_reached_somewhere() {
    let cluster = ["--metadata", "postgres://u@h/d", "--bytes", "s3://b", "--smb-port", "1"];
    let node = |more: &[&str]| parsed(&[&cluster[..], more].concat(), &[]);
    let advertised = |more: &[&str]| match node(more) {
        Ok(Command::Serve(options)) => options.advertise,
        other => panic!("{other:?}"),
    };
    assert_eq!(advertised(&[]), None, "the address of --host is one");
    assert_eq!(advertised(&["--host", "10.0.0.7"]), None);
    for host in ["node-1.example.org", "10.0.0.7", "2001:db8::7"] {
        assert_eq!(advertised(&["--host", "0.0.0.0", "--advertise", host]).as_deref(), Some(host));
    }
    for more in [&["--host", "0.0.0.0"][..], &["--host", "::"]] {
        let Wrong(sentence) = node(more).unwrap_err();
        assert!(sentence.contains("--advertise") && sentence.ends_with('.'), "{sentence}");
    }
    for (more, named) in [(["--file-port", "off"], "--file-port"), (["--tls", "auto"], "--cert")] {
        let Wrong(sentence) = node(&more).unwrap_err();
        assert!(sentence.contains(named) && sentence.ends_with('.'), "{sentence}");
        assert!(node(&[&more[..], &["--smb-port", "off"]].concat()).is_ok(), "{more:?}");
    }
    for host in ["0.0.0.0", "::", "host:445", "a b"] {
        let Wrong(sentence) = node(&["--advertise", host]).unwrap_err();
        assert!(sentence.contains("--advertise") && sentence.ends_with('.'), "{host}: {sentence}");
    }
}

#[test]
fn certificates() {
    let tls = |arguments: &[&str]| options(arguments, &[]).tls;
    let pfx = |password: Option<&str>| Tls::Pfx { cert: "a.pfx".into(), password: password.map(Secret::new) };
    assert_eq!(tls(&[]), Tls::Off);
    assert_eq!(tls(&["--tls", "auto"]), Tls::Auto);
    assert_eq!(tls(&["--cert", "a", "--key", "b"]), Tls::Pem { cert: "a".into(), key: "b".into() });
    assert_eq!(tls(&["--cert", "a.pfx", "--pwd", "p"]), pfx(Some("p")));
    assert_eq!(tls(&["--cert", "a.pfx"]), pfx(None));
    assert_eq!(options(&["--cert", "a.pfx"], &[("LAZURITE_PWD", "p")]).tls, pfx(Some("p")));
    for arguments in [
        &["--cert", "a.pem"][..],
        &["--key", "b"],
        &["--pwd", "p"],
        &["--cert", "a", "--key", "b", "--pwd", "p"],
        &["--tls", "auto", "--cert", "a", "--key", "b"],
        &["--tls", "on"],
    ] {
        let Wrong(sentence) = parsed(arguments, &[]).unwrap_err();
        assert!(sentence.starts_with("--") && sentence.ends_with('.'), "{sentence}");
    }
    assert!(parsed(&[], &[("LAZURITE_CERT", "a.pem")]).is_err());
}

#[test]
fn tokens() {
    let oauth = |arguments: &[&str]| options(arguments, &[]).oauth;
    let verified = |issuer: Option<&str>| OAuth::Verified { keys: "k".into(), issuer: issuer.map(str::to_owned) };
    assert_eq!(oauth(&[]), OAuth::Off);
    assert_eq!(oauth(&["--oauth", "basic"]), OAuth::Basic);
    assert_eq!(oauth(&["--oauth-jwks", "k"]), verified(None));
    assert_eq!(oauth(&["--oauth-jwks", "k", "--oauth", "issuer=https://x"]), verified(Some("https://x")));
    assert_eq!(oauth(&["--oauth", "issuer=https://x"]), OAuth::Issuer("https://x".into()));
    for arguments in [
        &["--oauth", "all"][..],
        &["--oauth", "issuer=", "--oauth-jwks", "k"],
        &["--oauth", "basic", "--oauth-jwks", "k"],
    ] {
        assert!(parsed(arguments, &[]).is_err(), "{arguments:?}");
    }
}

#[test]
fn what_to_make() {
    let names = |text| -> Vec<String> {
        options(&["--create", text], &[]).create.iter().map(InitialResource::to_string).collect()
    };
    assert_eq!(names("blob:one"), ["Container one"]);
    assert_eq!(names("blob:one, queue:two,"), ["Container one", "Queue two"]);
    assert_eq!(names("table:Three"), ["Table Three"]);
    assert_eq!(names("share:four"), ["Share four"]);
    for wrong in ["one", "blob:", "blob:A", "queue:A", "queue:$root", "table:a-b", "table:x", "share:x", "file:four"] {
        assert!(parsed(&["--create", wrong], &[]).is_err(), "{wrong}");
    }
}

#[test]
fn the_account_command() {
    let action = |line: &str| match parsed(&line.split(' ').collect::<Vec<_>>(), &[]) {
        Ok(Command::Account(action, options)) => (action, *options),
        other => panic!("{line} gave {other:?}"),
    };
    let name = || "abc".to_owned();
    assert_eq!(action("account add abc").0, Action::Add { name: name(), key: None });
    assert_eq!(action("account add abc --key AAAA").0, Action::Add { name: name(), key: Some(Secret::new("AAAA")) });
    assert_eq!(action("account list").0, Action::List);
    assert_eq!(action("account show abc").0, Action::Show { name: name() });
    assert_eq!(action("account rotate abc").0, Action::Rotate { name: name(), which: Which::Primary });
    let (rotate, options) = action("account rotate --secondary abc --location x --blobPort 7");
    assert_eq!(rotate, Action::Rotate { name: name(), which: Which::Secondary });
    assert_eq!(options.location, Some("x".into()));
    for wrong in [
        "account",
        "account add",
        "account list abc",
        "account drop abc",
        "account add a b",
        "account list --secondary",
    ] {
        assert!(parsed(&wrong.split(' ').collect::<Vec<_>>(), &[]).is_err(), "{wrong}");
    }
}

#[test]
fn no_secret_is_printed() {
    let line = ["--accounts", "abc:c2VjcmV0", "--cert", "a.pfx", "--pwd", "c2VjcmV0"];
    assert!(!format!("{:?}", parsed(&line, &[])).contains("c2V"));
    assert!(!format!("{:?}", parsed(&["account", "add", "abc", "--key", "c2VjcmV0"], &[])).contains("c2V"));
}

#[test]
fn copies_come_from_this_server_alone_unless_others_are_named() {
    assert_eq!(options(&[], &[]).copy_sources, fetch::Hosts::default());
    let named = options(&["--copy-sources", "loopback,*.example.org"], &[]);
    assert_eq!(named.copy_sources, "loopback,*.example.org".parse().unwrap());
}

#[test]
fn limits_of_connections() {
    let limits = |line: &[&str]| {
        let limits = options(line, &[]).limits;
        (limits.connections, limits.connections_per_address, limits.first_request.as_secs())
    };
    assert_eq!(limits(&[]), (8_192, 4_096, 10));
    assert_eq!(limits(&["--connections", "101"]), (101, 51, 10));
    assert_eq!(limits(&["--connections-per-address", "7", "--first-request-timeout", "3"]), (8_192, 7, 3));
    for wrong in ["0", "-1", "many", "99999999999"] {
        assert!(parsed(&["--connections", wrong], &[]).is_err(), "{wrong}");
    }
}

#[test]
fn names_of_the_admin_port() {
    assert_eq!(options(&["--admin-names", "a.example.org., lazurite"], &[]).admin_names, ["a.example.org", "lazurite"]);
    assert!(parsed(&["--admin-names", "http://a"], &[]).is_err());
}

#[test]
fn mistakes_are_named() {
    for (arguments, word) in [
        (&["--blob-prt", "1"][..], "--blob-prt"),
        (&["--blob-port", "70000"], "70000"),
        (&["--blob-port"], "--blob-port PORT"),
        (&["--durability", "maybe"], "maybe"),
        (&["start"], "start"),
        (&["-x"], "-x"),
        (&["check"], "folder"),
        (&["check", "a", "b"], "one data folder"),
    ] {
        let Wrong(sentence) = parsed(arguments, &[]).unwrap_err();
        assert!(sentence.contains(word), "{sentence}");
    }
    assert!(parsed(&[], &[("LAZURITE_SILENT", "perhaps")]).is_err());
}

#[test]
fn switches_from_the_environment() {
    assert!(options(&[], &[("LAZURITE_SILENT", "true")]).silent);
    assert!(!options(&[], &[("LAZURITE_SILENT", "0")]).silent);
    assert!(!options(&[], &[("LAZURITE_SILENT", "")]).silent);
    assert_eq!(options(&[], &[("LAZURITE_LOCATION", "")]).location, None);
}

#[test]
fn other_commands() {
    assert_eq!(parsed(&["check", "data"], &[]), Ok(Command::Check("data".into())));
    assert_eq!(parsed(&["--version"], &[]), Ok(Command::Version));
    assert_eq!(parsed(&["--silent", "-h"], &[]), Ok(Command::Help));
}

#[test]
fn the_help_names_every_flag_and_fits_a_terminal() {
    let page = help();
    for flag in FLAGS {
        assert!(page.contains(&format!("--{}", flag.name)), "{}", flag.name);
    }
    for line in page.lines() {
        assert!(line.len() <= 107, "{line}");
    }
}
