//! In Azurite's place: its names, its lines, and the way others start it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use crate::support::*;

/// The program under another name, in a folder, on free ports. Ports come by variables, so that the arguments can be
/// exactly those that others use.
fn called(name: &str, folder: &Folder, arguments: &[&str]) -> Command {
    let link: PathBuf = folder.0.join(name);
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_lazurite"), &link).unwrap();
    }
    let mut command = bare(&link);
    for service in ["BLOB", "QUEUE", "TABLE"] {
        command.env(format!("LAZURITE_{service}_PORT"), "0");
    }
    // Files of somebody's project: Azurite lives beside them.
    std::fs::write(folder.0.join("package.json"), "{}").unwrap();
    command.current_dir(&folder.0).args(arguments);
    command
}

/// Waits for the line as the tools do, and makes the address one to connect to.
fn listening(program: &mut Program, service: &str) -> SocketAddr {
    let line = program.wait_for(&format!("Azurite {service} service is successfully listening at http://"));
    let address: SocketAddr = line.rsplit('/').next().unwrap().parse().unwrap();
    SocketAddr::from(([127, 0, 0, 1], address.port()))
}

fn works(address: SocketAddr) {
    for account in ["devstoreaccount1", "devstoreaccount1-secondary"] {
        let request =
            signed("devstoreaccount1", WELL_KNOWN_KEY).replace("GET /devstoreaccount1?", &format!("GET /{account}?"));
        let answer = ask(address, &request);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{account}: {answer}");
    }
}

#[test]
fn one_service_alone() {
    for (name, service) in [("azurite-blob", "Blob"), ("azurite-queue", "Queue"), ("azurite-table", "Table")] {
        let folder = Folder::new(name);
        let mut program = Program::spawn(&mut called(name, &folder, &["-s"]));
        program.wait_for("Ready.");
        let said = program.stop();
        let at = said[0].rsplit(' ').next().unwrap();
        let expected = [
            format!("Azurite {service} service is starting at {at}"),
            format!("Azurite {service} service is successfully listening at {at}"),
            "Ready.".to_owned(),
            format!("Azurite {service} service is closing..."),
            format!("Azurite {service} service successfully closed"),
        ];
        assert_eq!(said, expected);
        assert!(at.starts_with("http://127.0.0.1:"), "{at}");
    }
}

#[test]
fn as_testcontainers_starts_it() {
    let folder = Folder::new("testcontainers-blob");
    let mut program = Program::spawn(&mut called("azurite-blob", &folder, &["--blobHost", "0.0.0.0"]));
    works(listening(&mut program, "Blob"));
    program.stop();

    let folder = Folder::new("testcontainers");
    let arguments = ["--blobHost", "0.0.0.0", "--queueHost", "0.0.0.0", "--tableHost", "0.0.0.0"];
    let mut program = Program::spawn(&mut called("azurite", &folder, &arguments));
    let blob = listening(&mut program, "Blob");
    let others = [listening(&mut program, "Queue"), listening(&mut program, "Table")];
    works(blob);
    for address in others {
        assert!(ask(address, "GET /devstoreaccount1 HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 "));
    }
    let said = program.stop();
    let last: Vec<&str> = said.iter().map(String::as_str).filter(|line| line.contains("clos")).collect();
    let expected = [
        "Azurite Blob service is closing...",
        "Azurite Queue service is closing...",
        "Azurite Table service is closing...",
        "Azurite Blob service successfully closed",
        "Azurite Queue service successfully closed",
        "Azurite Table service successfully closed",
    ];
    assert_eq!(last, expected);
}

#[test]
fn as_aspire_starts_it() {
    let folder = Folder::new("aspire");
    let data = folder.data();
    std::fs::create_dir(&data).unwrap();
    let arguments = [
        "-l",
        data.to_str().unwrap(),
        "--blobHost",
        "0.0.0.0",
        "--queueHost",
        "0.0.0.0",
        "--tableHost",
        "0.0.0.0",
        "--skipApiVersionCheck",
    ];
    for _ in 0..2 {
        let mut program = Program::spawn(&mut called("azurite", &folder, &arguments));
        let blob = listening(&mut program, "Blob");
        works(blob);
        let from_the_future = "GET /devstoreaccount1/c/b HTTP/1.1\r\nHost: x\r\nx-ms-version: 2077-01-01\r\n\r\n";
        assert!(!ask(blob, from_the_future).starts_with("HTTP/1.1 400 "));
        program.stop();
    }
}

#[test]
fn as_vs_code_starts_it() {
    let folder = Folder::new("vs-code");
    let (data, log) = (folder.data(), folder.0.join("debug.log"));
    let arguments = ["--silent", "--location", data.to_str().unwrap(), "--debug", log.to_str().unwrap()];
    let mut program = Program::spawn(&mut called("azurite", &folder, &arguments));
    works(listening(&mut program, "Blob"));
    let said = program.stop();
    assert!(said.iter().all(|line| line.starts_with("Azurite ") || line == "Ready."), "{said:?}");
    assert!(log.exists());
}

#[test]
fn containers_are_there_from_the_start() {
    let folder = Folder::new("create");
    for _ in 0..2 {
        let program = Program::start(&folder, &["--create", "blob:one,blob:two,share:three"]);
        let answer = ask(program.address("Blob"), &signed("devstoreaccount1", WELL_KNOWN_KEY));
        assert!(answer.contains("<Name>one</Name>") && answer.contains("<Name>two</Name>"), "{answer}");
        let answer = ask(program.address("File"), &signed("devstoreaccount1", WELL_KNOWN_KEY));
        assert!(answer.contains("<Name>three</Name>"), "{answer}");
        program.stop();
    }
    let mut by_variable = command(&folder, &["--in-memory"]);
    let mut program = Program::spawn(by_variable.env("LAZURITE_CREATE", "blob:three"));
    program.wait_for("Ready.");
    let answer = ask(program.address("Blob"), &signed("devstoreaccount1", WELL_KNOWN_KEY));
    assert!(answer.contains("<Name>three</Name>") && !answer.contains("<Name>one</Name>"), "{answer}");
    program.stop();
    let said = refusal(&mut command(&folder, &["--create", "blob:one,file:s1"]));
    assert!(said.contains("file:s1") && said.contains("share:NAME") && said.lines().count() == 1, "{said}");
}

#[test]
fn a_folder_of_azurite_is_refused() {
    let folder = Folder::new("azurites-folder");
    std::fs::create_dir(folder.data()).unwrap();
    std::fs::write(folder.data().join("__azurite_db_blob__.json"), "{}").unwrap();
    let said = refusal(&mut command(&folder, &[]));
    assert!(said.contains("data of Azurite") && said.contains("--location") && said.lines().count() == 1, "{said}");
    assert_eq!(std::fs::read_dir(folder.data()).unwrap().count(), 1);

    // Under its name our data has a folder of its own beside Azurite's.
    let data = folder.data();
    let arguments = ["--location", data.to_str().unwrap(), "--silent"];
    let mut program = Program::spawn(&mut called("azurite", &folder, &arguments));
    works(listening(&mut program, "Blob"));
    program.stop();
    assert!(folder.data().join("__lazurite__/FORMAT").exists());
}

/// How the program is told that it stands in Azurite's place, or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    ByName,
    ByFlag,
    NotAtAll,
}

impl Way {
    const ALL: [Way; 3] = [Way::ByName, Way::ByFlag, Way::NotAtAll];

    fn is_azurites(self) -> bool {
        self != Way::NotAtAll
    }

    fn command(self, folder: &Folder, options: &[&str]) -> Command {
        match self {
            Way::ByName => called("azurite", folder, options),
            Way::ByFlag => command(folder, &[&["--azurite-compat"], options].concat()),
            Way::NotAtAll => command(folder, options),
        }
    }

    /// Where blobs are served.
    fn start(self, command: &mut Command) -> (Program, SocketAddr) {
        let mut program = Program::spawn(command);
        program.wait_for("Ready.");
        let line = program.said.iter().find(|line| line.contains("Blob service") && line.contains("listening at http"));
        let address: SocketAddr = line.unwrap().rsplit('/').next().unwrap().parse().unwrap();
        (program, SocketAddr::from(([127, 0, 0, 1], address.port())))
    }
}

const OWNER: (&str, &str) = ("devstoreaccount1", WELL_KNOWN_KEY);

/// The status of an answer.
fn status(address: SocketAddr, line: &str, headers: &[(&str, &str)], body: &[u8]) -> u16 {
    let request = String::from_utf8(signed_call(OWNER, line, headers, body)).unwrap();
    ask(address, &request).split(' ').nth(1).unwrap().parse().unwrap()
}

/// What scripts rely on that were written for Azurite, and what the service does: `docs/azurite.md` has the table.
#[test]
fn answers_are_azurites_under_its_name_and_with_the_flag_alone() {
    for way in Way::ALL {
        let folder = Folder::new(&format!("manners-{way:?}"));
        let (program, blob) = way.start(&mut way.command(&folder, &["--silent"]));
        let azurite = way.is_azurites();
        let either = |azurites: u16, ours: u16| if azurite { azurites } else { ours };
        let put = |line: &str, headers: &[(&str, &str)], body: &[u8]| status(blob, line, headers, body);
        let name = "devstoreaccount1/cont/blob";
        assert_eq!(put("PUT devstoreaccount1/cont?restype=container", &[], b""), 201);
        assert_eq!(put(&format!("PUT {name}"), &[("x-ms-blob-type", "BlockBlob")], b"hello"), 201);

        let source = format!("http://{blob}/{name}");
        let copy = [("x-ms-copy-source", source.as_str()), ("x-ms-requires-sync", "true")];
        assert_eq!(put("PUT devstoreaccount1/cont/copy", &copy, b""), either(202, 401), "{way:?}: a private source");

        let tier = |tier| put(&format!("PUT {name}?comp=tier"), &[("x-ms-access-tier", tier)], b"");
        assert_eq!((tier("Archive"), tier("Hot")), (200, 202));
        assert_eq!(put(&format!("GET {name}"), &[], b""), either(200, 409), "{way:?}: out of the archive");

        let secondary = "PUT devstoreaccount1-secondary/cont/new";
        let written = put(secondary, &[("x-ms-blob-type", "BlockBlob")], b"x");
        assert_eq!(written, either(201, 403), "{way:?}: the secondary");
        program.stop();
    }
}

#[test]
fn what_is_taken_at_the_start_is_azurites_under_its_name_and_with_the_flag_alone() {
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/first-version");
    let (certificate, key) = (format!("{files}.crt"), format!("{files}.key"));
    for way in Way::ALL {
        let folder = Folder::new(&format!("start-{way:?}"));
        let refused_or_not = |mut command: Command, word: &str| {
            if way.is_azurites() {
                let (program, _) = way.start(&mut command);
                program.stop();
            } else {
                let said = refusal(&mut command);
                assert!(said.contains(word) && said.lines().count() == 1, "{said}");
            }
        };
        // Keys that are not strict base64.
        for text in ["mine:c2VjcmV0IQ", "mine:c2Vjc-V0", "mine:c2Vj cmV0"] {
            let mut command = way.command(&folder, &["--silent"]);
            command.env("AZURITE_ACCOUNTS", text);
            refused_or_not(command, "base64");
        }
        // A certificate of the first version of X.509.
        let options = ["--silent", "--cert", certificate.as_str(), "--key", key.as_str()];
        refused_or_not(way.command(&folder, &options), "first-version.crt");
    }
}

#[test]
fn tokens_of_the_test_issuer_are_azurites_under_its_name_and_with_the_flag_alone() {
    for way in Way::ALL {
        let folder = Folder::new(&format!("issuer-{way:?}"));
        let data = folder.data();
        let options = ["--silent", "--tls", "auto", "--oauth", "basic", "--location", data.to_str().unwrap()];
        let options = if way == Way::ByName { &options[..] } else { &options[..5] };
        let (program, blob) = way.start(&mut way.command(&folder, options));
        let token =
            crate::tokens::unsigned_token("{\"alg\":\"none\"}", "https://sts.windows-ppe.net/tenant/") + ".AAAA";
        let request = crate::tokens::request(&token);
        let found = ["data/tls/cert.pem", "data/__lazurite__/tls/cert.pem"].map(|file| folder.0.join(file));
        let certificate = found.iter().find(|file| file.exists()).unwrap();
        let answer = crate::tls::ask_https(blob, "localhost", certificate, &request).unwrap();
        let taken = answer.starts_with("HTTP/1.1 200 ");
        assert_eq!(taken, way.is_azurites(), "{way:?}: {answer}");
        assert!(taken || answer.starts_with("HTTP/1.1 40"), "{answer}");
        program.stop();
    }
}
