//! `redrive key`.

use crate::harness::{Folder, Server, redrive, stderr, stdout};
use std::process::Output;

/// A command that talks to a server with a key.
fn with_key(server: &Server, key: &str, args: &[&str]) -> Output {
    redrive(args).env("REDRIVE_SERVER", &server.url).env("REDRIVE_API_KEY", key).output().expect("the command runs")
}

fn printed(server: &Server, key: &str, args: &[&str]) -> String {
    let output = with_key(server, key, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

/// The secret in what was printed about a new one.
fn secret(printed: &str) -> String {
    let line = printed.lines().find(|line| line.starts_with("rdk_"));
    line.unwrap_or_else(|| panic!("no secret in {printed}")).to_owned()
}

#[test]
fn keys_are_made_listed_rotated_and_revoked_and_survive_a_restart() {
    let folder = Folder::new("key");
    let data = folder.at("data");
    let server = Server::start(&data);
    assert!(server.printed(&["key", "list"]).starts_with("no keys in the store"));
    let first = server.command(&["key", "create", "shop", "--scope", "enqueue"]);
    assert_eq!(first.status.code(), Some(1));
    assert!(stderr(&first).contains("needs the scope admin"), "{}", stderr(&first));
    let unknown = server.command(&["key", "create", "shop", "--scope", "write"]);
    assert_eq!(unknown.status.code(), Some(2));
    let operator = secret(&server.printed(&["key", "create", "operator", "--scope", "admin"]));
    let refused = server.command(&["queues"]);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));

    let create = ["key", "create", "shop", "--scope", "enqueue,read", "--queue", "orders", "--queue", "mail.*"];
    let shop = secret(&printed(&server, &operator, &[&create[..], &["--expires-in", "90d"]].concat()));
    let listed = printed(&server, &operator, &["key", "list"]);
    assert!(
        listed.contains("orders,mail.*") && listed.contains("enqueue,read") && listed.contains("never"),
        "{listed}"
    );
    assert!(!listed.contains(&shop) && listed.contains(&shop[..20]), "{listed}");
    printed(&server, &shop, &["enqueue", "a.b", "--queue", "orders"]);
    let elsewhere = with_key(&server, &shop, &["enqueue", "a.b", "--queue", "other"]);
    assert!(stderr(&elsewhere).contains("is for the queues orders, mail.*"), "{}", stderr(&elsewhere));
    let beyond = with_key(&server, &shop, &["queues", "pause", "orders"]);
    assert!(stderr(&beyond).contains("needs the scope admin"), "{}", stderr(&beyond));
    server.stop();

    let server = Server::start(&data);
    assert!(server.log_lines().iter().any(|line| line.contains("callers need a key")), "{:?}", server.log_lines());
    let renewed = secret(&printed(&server, &operator, &["key", "rotate", "shop"]));
    assert_ne!(with_key(&server, &shop, &["queues"]).status.code(), Some(0));
    printed(&server, &renewed, &["queues"]);
    assert_eq!(printed(&server, &operator, &["key", "revoke", "shop"]), "key shop is revoked\n");
    assert_ne!(with_key(&server, &renewed, &["queues"]).status.code(), Some(0));
    let last = with_key(&server, &operator, &["key", "revoke", "operator"]);
    assert!(stderr(&last).contains("make another one first"), "{}", stderr(&last));
    let secrets = [&operator, &shop, &renewed];
    let (_, log) = server.stop();
    assert!(log.iter().all(|line| secrets.iter().all(|secret| !line.contains(&secret[21..]))), "{log:?}");
    for entry in std::fs::read_dir(&data).expect("the folder").flatten().filter(|entry| entry.path().is_file()) {
        let bytes = std::fs::read(entry.path()).expect("a file");
        let text = String::from_utf8_lossy(&bytes);
        assert!(secrets.iter().all(|secret| !text.contains(&secret[21..])), "{:?}", entry.path());
    }
}
