//! Each crate has what a registry and its users ask for.

use crate::repository::{Finding, Repository, expect_none, repository};

const LINES: [&str; 8] = [
    "description = ",
    "version.workspace = true",
    "edition.workspace = true",
    "rust-version.workspace = true",
    "license.workspace = true",
    "readme = ",
    "keywords = ",
    "categories = ",
];
const FILES: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

fn published(repository: &Repository) -> Vec<Finding> {
    let mut found = Vec::new();
    for name in repository.entries("crates") {
        let path = format!("crates/{name}/Cargo.toml");
        let Some(manifest) = repository.file(&path) else {
            found.push(Finding::of(&path, "no such manifest", "add it, or move the folder out of crates/"));
            continue;
        };
        let has = |start: &str| manifest.text.lines().any(|line| line.starts_with(start));
        if !has("workspace = true") {
            found.push(manifest.finding(1, "no lints of the workspace", "add [lints] with workspace = true"));
        }
        if has("publish = false") {
            continue;
        }
        for line in LINES.into_iter().filter(|line| !has(line)) {
            found.push(manifest.finding(1, format!("no line {line:?}"), "add it, or publish = false"));
        }
        for file in FILES.into_iter().filter(|file| !repository.has(&format!("crates/{name}/{file}"))) {
            let instead = format!("add crates/{name}/{file}; the licences are links to those at the root");
            found.push(manifest.finding(1, format!("no {file} beside it"), instead));
        }
    }
    found
}

#[test]
fn crates_have_what_a_registry_asks_for() {
    expect_none(published);
}

#[test]
fn a_crate_without_its_licence_is_found() {
    let manifest = LINES.join("\n") + "\n[lints]\nworkspace = true\n";
    let whole = |manifest: &str, licence: &str| {
        let files = [
            ("crates/a/Cargo.toml", manifest),
            ("crates/a/README.md", ""),
            ("crates/a/LICENSE-MIT", ""),
            (licence, ""),
        ];
        published(&repository(&files)).len()
    };
    assert_eq!(whole(&manifest, "crates/a/LICENSE-APACHE"), 0);
    assert_eq!(whole(&manifest, "crates/a/LICENSE"), 1);
    assert_eq!(whole(&manifest.replace("keywords", "words"), "crates/a/LICENSE-APACHE"), 1);
    assert_eq!(whole("publish = false\n[lints]\nworkspace = true\n", "crates/a/LICENSE"), 0);
    assert_eq!(whole("publish = false\n", "crates/a/LICENSE"), 1);
}
