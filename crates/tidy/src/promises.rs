//! Every promise of docs/promises.md names tests, and these exist.

use crate::repository::{File, Finding, Repository, expect_none, repository};

const PAGE: &str = "docs/promises.md";
/// Where the functions are cases of a suite, which the list of cases names.
const SUITE: &str = "crates/store/src/conformance";

fn promises(repository: &Repository) -> Vec<Finding> {
    let Some(page) = repository.file(PAGE) else {
        return vec![Finding::of(PAGE, "no page of promises", "say what is promised, and which tests prove it")];
    };
    let mut found = Vec::new();
    // The line of a promise for which no test was named so far.
    let mut unproved: Option<usize> = None;
    let mut promised = true;
    let mut path: Option<&str> = None;
    let missing = |line: usize| page.finding(line, "a promise without a test", "name the tests that prove it");
    for (line, text) in page.lines() {
        if text.starts_with('#') {
            promised = text != "### Not promised";
        }
        if !promised {
            continue;
        }
        if text.starts_with("**") {
            found.extend(unproved.replace(line).map(missing));
            path = None;
        }
        let mut names = text;
        if let Some((named, rest)) = text.strip_prefix("- `").and_then(|item| item.split_once("`:")) {
            (path, names) = (Some(named), rest);
        } else if text.is_empty() {
            path = None;
        }
        let Some(path) = path else { continue };
        for name in names.split('`').skip(1).step_by(2) {
            unproved = None;
            found.extend(lacks(repository, path, name).map(|what| {
                page.finding(line, what, "name a test that is there, or write the test that the promise needs")
            }));
        }
    }
    found.extend(unproved.map(missing));
    found
}

/// Why this is not a test; nothing if it is one.
fn lacks(repository: &Repository, path: &str, name: &str) -> Option<String> {
    let Some(file) = repository.file(path) else { return Some(format!("{path}, which is not there")) };
    let is_test = match path.starts_with(SUITE) {
        true => {
            let cases = repository.file(&format!("{SUITE}/cases.rs"));
            defines(file, name).is_some() && cases.is_some_and(|cases| cases.text.contains(&format!(" {name},\n")))
        }
        false => defines(file, name).is_some_and(|line| is_marked(file, line)),
    };
    (!is_test).then(|| format!("{name}, which is no test of {path}"))
}

/// The line that defines a function.
fn defines(file: &File, name: &str) -> Option<usize> {
    let is_it = |text: &str| {
        text.trim_start()
            .trim_start_matches("pub(super) ")
            .trim_start_matches("async ")
            .strip_prefix("fn ")?
            .strip_prefix(name)?
            .starts_with(['(', '<'])
            .then_some(())
    };
    file.lines().find(|(_, text)| is_it(text).is_some()).map(|(line, _)| line)
}

/// Whether the function of this line has the attribute of a test, and none that leaves it out.
fn is_marked(file: &File, line: usize) -> bool {
    let lines: Vec<&str> = file.text.lines().take(line - 1).collect();
    let attributes: Vec<&str> =
        lines.into_iter().rev().map(str::trim).take_while(|text| text.starts_with('#')).collect();
    let is_test = |text: &&str| text.starts_with("#[test") || text.starts_with("#[tokio::test");
    attributes.iter().any(is_test) && !attributes.iter().any(|text| text.starts_with("#[ignore"))
}

#[test]
fn every_promise_names_tests_that_exist() {
    expect_none(promises);
}

#[test]
fn a_promise_without_a_test_is_found() {
    let tests = "#[test]\nfn holds() {}\nfn helps() {}\n#[test]\n#[ignore]\nfn sleeps() {}\n";
    let suite =
        ("crates/store/src/conformance/race.rs", "pub(super) async fn race(subject: &S) {}\nasync fn helper() {}\n");
    let cases = ("crates/store/src/conformance/cases.rs", "    race {\n        race,\n    }\n");
    let found = |page: &str| promises(&repository(&[(PAGE, page), ("a.rs", tests), suite, cases])).len();
    assert_eq!(found("**It holds.**\n\n- `a.rs`: `holds`\n"), 0);
    assert_eq!(
        found("**It holds.**\n\n- `a.rs`:\n  `holds`\n\n**Also.**\n- `crates/store/src/conformance/race.rs`: `race`\n"),
        0
    );
    assert_eq!(found("**It holds.**\n\n**Also.**\n\n- `a.rs`: `holds`\n"), 1);
    assert_eq!(found("### Not promised\n\n**Anything.**\n"), 0);
    assert_eq!(found("**It holds.**\n"), 1);
    for test in ["`a.rs`: `gone`", "`a.rs`: `helps`", "`a.rs`: `sleeps`", "`a.rs`: `hold`", "`b.rs`: `holds`"] {
        assert_eq!(found(&format!("**It holds.**\n\n- {test}\n")), 1, "{test}");
    }
    assert_eq!(found("**It holds.**\n\n- `crates/store/src/conformance/race.rs`: `helper`\n"), 1);
    assert_eq!(promises(&repository(&[])).len(), 1);
}
