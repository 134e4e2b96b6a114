//! The commands against a server behind TLS, through the real binary.

#![allow(clippy::expect_used, clippy::panic)]

#[path = "../../worker/tests/common/tls.rs"]
mod authority;
mod harness;

use authority::Authority;
use harness::{Folder, Server, redrive, stderr, stdout};
use serde_json::json;
use std::process::Output;
use tokio::runtime::Runtime;

/// A server, and its address behind TLS with a certificate for a name.
struct Encrypted {
    server: Server,
    folder: Folder,
    url: String,
    /// The file of the authority.
    ca: String,
    /// The listener ends with it.
    _runtime: Runtime,
}

impl Encrypted {
    fn start(test: &str, name: &str) -> Self {
        let folder = Folder::new(test);
        let server = Server::start(&folder.at("data"));
        let authority = Authority::new("the authority of this test");
        let ca = folder.file("ca.pem", &authority.pem);
        let runtime = Runtime::new().expect("a runtime");
        let inside = server.url.trim_start_matches("http://").parse().expect("an address");
        let port = runtime.block_on(authority.listen(name, inside));
        Self { server, folder, url: format!("https://localhost:{port}"), ca, _runtime: runtime }
    }

    fn run(&self, args: &[&str]) -> Output {
        redrive(args).args(["--server", &self.url]).output().expect("it runs")
    }
}

#[test]
fn a_server_whose_authority_is_named_is_reached_by_every_command() {
    let encrypted = Encrypted::start("tls-right", "localhost");
    let id = encrypted.server.enqueue(json!({ "type": "a.b", "args": [] }));
    let listed = encrypted.run(&["jobs", "--json", "--ca", &encrypted.ca]);
    assert_eq!(listed.status.code(), Some(0), "{}", stderr(&listed));
    assert!(stdout(&listed).contains(&id), "{}", stdout(&listed));
    let mut work = redrive(&["work", "--once", "--exec", "echo 7", "--server", &encrypted.url]);
    let worked = work.env("REDRIVE_CA", &encrypted.ca).env("REDRIVE_API_KEY", "any").output().expect("it runs");
    assert_eq!(worked.status.code(), Some(0), "{}", stderr(&worked));
    assert!(!stderr(&worked).contains("unencrypted"), "{}", stderr(&worked));
    assert_eq!(encrypted.server.job(&id)["result"], 7);
}

#[test]
fn a_server_whose_authority_is_unknown_is_refused_with_the_way_out() {
    let encrypted = Encrypted::start("tls-unknown", "localhost");
    let other = encrypted.folder.file("other.pem", &Authority::new("another").pem);
    for args in [&["jobs"][..], &["work", "--once", "--exec", "true"], &["work", "--exec", "true"]] {
        for ca in [&[][..], &["--ca", &other]] {
            let output = encrypted.run(&[args, ca].concat());
            assert_eq!(output.status.code(), Some(3), "{args:?}: {}", stderr(&output));
            let message = stderr(&output);
            assert!(message.contains("no trusted authority has signed it"), "{args:?}: {message}");
            assert!(message.contains("--ca FILE or REDRIVE_CA"), "{args:?}: {message}");
        }
    }
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let encrypted = Encrypted::start("tls-name", "jobs.example.org");
    for args in [&["jobs"][..], &["work", "--exec", "true"]] {
        let output = encrypted.run(&[args, &["--ca", &encrypted.ca]].concat());
        assert_eq!(output.status.code(), Some(3), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("it is not for localhost, but for"), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn an_invalid_address_or_certificate_file_is_wrong_usage() {
    for (args, message) in [
        (&["--server", "ftp://localhost"][..], "allowed is http://HOST:PORT or https://HOST:PORT"),
        (&["--server", "https://localhost", "--ca", "/no/such.pem"], "/no/such.pem"),
    ] {
        for command in [&["jobs"][..], &["work", "--exec", "true"]] {
            let output = redrive(&[command, args].concat()).output().expect("it runs");
            assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
            assert!(stderr(&output).contains(message), "{args:?}: {}", stderr(&output));
        }
    }
}
