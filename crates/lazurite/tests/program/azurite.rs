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
