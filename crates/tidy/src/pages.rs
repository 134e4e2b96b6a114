//! Migrations are numbered without gaps; decisions are dated and indexed; the README leads to every page.

use crate::repository::{Finding, Repository, expect_none, repository};

const MIGRATIONS: &str = "crates/store/src/postgres/migrations";
const DECISIONS: &str = "docs/decisions";

fn migrations(repository: &Repository) -> Vec<Finding> {
    let names = repository.entries(MIGRATIONS);
    let expected = (1..).map(|number| format!("{number:04}.sql"));
    let wrong = names.into_iter().zip(expected).find(|(name, expected)| name != expected);
    let wrong = wrong.map(|(name, expected)| {
        let instead = format!("call it {expected}: migrations are applied in order, without gaps");
        Finding::of(&format!("{MIGRATIONS}/{name}"), "a migration out of order", instead)
    });
    wrong.into_iter().collect()
}

fn decisions(repository: &Repository) -> Vec<Finding> {
    let index_path = format!("{DECISIONS}/README.md");
    let index = repository.file(&index_path).map_or("", |index| &index.text);
    let mut found = Vec::new();
    for name in repository.entries(DECISIONS).into_iter().filter(|name| *name != "README.md") {
        let path = format!("{DECISIONS}/{name}");
        if !is_dated(name) {
            found.push(Finding::of(&path, "a decision without its day", "call it YYYY-MM-DD-what-it-says.md"));
        }
        if !index.contains(&format!("]({name})")) {
            let instead = format!("add a line with a link to it to {index_path}");
            found.push(Finding::of(&path, "a decision that the index does not list", instead));
        }
        if repository.file(&path).is_none_or(|page| !page.text.starts_with("# ")) {
            found.push(Finding::of(&path, "a page without a title", "begin it with \"# \" and what was decided"));
        }
    }
    found
}

/// `2026-11-15-` and a name in lower case.
fn is_dated(name: &str) -> bool {
    let shape: String = name.chars().take(11).map(|sign| if sign.is_ascii_digit() { '0' } else { sign }).collect();
    let rest = name.get(11..).and_then(|rest| rest.strip_suffix(".md")).unwrap_or_default();
    let is_word = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
    shape == "0000-00-00-" && !rest.is_empty() && rest.chars().all(is_word)
}

fn unlinked_pages(repository: &Repository) -> Vec<Finding> {
    let readme = repository.file("README.md").map_or("", |readme| &readme.text);
    let pages = ["docs", "docs/guides"].into_iter().flat_map(|folder| {
        let names = repository.entries(folder).into_iter().filter(|name| name.ends_with(".md"));
        names.map(move |name| format!("{folder}/{name}"))
    });
    pages
        .filter(|path| !readme.contains(&format!("]({path})")))
        .map(|path| Finding::of(&path, "a page that README.md does not link", "add it under \"Read on\""))
        .collect()
}

#[test]
fn migrations_have_no_gaps() {
    expect_none(migrations);
}

#[test]
fn decisions_are_dated_and_indexed() {
    expect_none(decisions);
}

#[test]
fn the_readme_leads_to_every_page() {
    expect_none(unlinked_pages);
}

#[test]
fn a_gap_between_migrations_is_found() {
    let found = |names: &[&str]| {
        let paths: Vec<String> = names.iter().map(|name| format!("{MIGRATIONS}/{name}")).collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
        migrations(&repository(&files)).len()
    };
    assert_eq!(found(&["0001.sql", "0002.sql"]), 0);
    assert_eq!(found(&["0001.sql", "0003.sql"]), 1);
    assert_eq!(found(&["0002.sql"]), 1);
    assert_eq!(found(&["0001.sql", "0002-more.sql"]), 1);
}

#[test]
fn a_decision_without_day_title_or_index_is_found() {
    let good = ("docs/decisions/2026-11-15-good.md", "# Good\n");
    let index = ("docs/decisions/README.md", "[good](2026-11-15-good.md) [bad](bad.md)\n");
    assert_eq!(decisions(&repository(&[good, index])).len(), 0);
    assert_eq!(decisions(&repository(&[good])).len(), 1);
    assert_eq!(decisions(&repository(&[index, ("docs/decisions/bad.md", "# Bad\n")])).len(), 1);
    assert_eq!(decisions(&repository(&[index, ("docs/decisions/2026-11-15-good.md", "text\n")])).len(), 1);
    assert!(!is_dated("2026-11-15-.md") && !is_dated("2026-11-15-Upper.md") && !is_dated("x"));
}

#[test]
fn a_page_without_a_link_is_found() {
    let page = ("docs/guides/a.md", "");
    assert_eq!(unlinked_pages(&repository(&[page, ("README.md", "[a](docs/guides/a.md)")])).len(), 0);
    assert_eq!(unlinked_pages(&repository(&[page])).len(), 1);
}
