//! Links in pages and doc comments, and the paths that pages name.

use crate::repository::{File, Finding, Repository, expect_none, repository};

/// The page that names source files; its paths must be there.
const MAP: &str = "ARCHITECTURE.md";
/// What docs/configuration.md is made from; its links start there.
const TEMPLATE: &str = "crates/cli/src/config/page.md";

struct Link {
    line: usize,
    target: String,
}

fn links(repository: &Repository) -> Vec<Finding> {
    let mut found = Vec::new();
    let is_checked = |file: &&File| matches!(file.kind(), "md" | "rs") && file.path != TEMPLATE;
    for file in repository.files.iter().filter(is_checked) {
        for link in links_of(file) {
            if let Some(missing) = missing(repository, file, &link.target) {
                let said = format!("a link to {}, but {missing}", link.target);
                found.push(file.finding(link.line, said, "link what is there, or make it"));
            }
        }
    }
    found
}

/// The targets of `[…](target)` outside of code: all of a page, and the doc comments of a source file.
fn links_of(file: &File) -> Vec<Link> {
    let mut links = Vec::new();
    for (line, text) in prose(file) {
        let mut rest = without_code(text);
        while let Some((_, after)) = rest.split_once("](") {
            let target = after.split([')', ' ']).next().unwrap();
            let is_path = target.contains(['/', '.', '#']) && !target.contains("::") && !target.contains('\\');
            if !target.contains("://") && !target.starts_with("mailto:") && (file.kind() == "md" || is_path) {
                links.push(Link { line, target: target.to_owned() });
            }
            rest = after.to_owned();
        }
    }
    links
}

/// The lines that are prose, without the signs of a doc comment; fenced code is left out.
fn prose(file: &File) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (number, line) in file.lines() {
        let text = match file.kind() {
            "md" => Some(line),
            _ => line.trim_start().strip_prefix("///").or_else(|| line.trim_start().strip_prefix("//!")),
        };
        let Some(text) = text else {
            fenced = false;
            continue;
        };
        if text.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            lines.push((number, text));
        }
    }
    lines
}

/// A line without what stands between single backticks; a link whose text is code stays a link.
fn without_code(line: &str) -> String {
    line.split('`').enumerate().filter(|(index, _)| index % 2 == 0).map(|(_, part)| part).collect()
}

/// What a target lacks, if anything.
fn missing(repository: &Repository, from: &File, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let path = if path.is_empty() { from.path.clone() } else { resolved(&from.path, path) };
    if !repository.has(path.trim_end_matches('/')) {
        return Some(format!("there is no {path}"));
    }
    let anchor = anchor?;
    let page = repository.file(&path).filter(|page| page.kind() == "md")?;
    (!anchors(page).iter().any(|known| known == anchor)).then(|| format!("{path} has no heading for #{anchor}"))
}

/// A path from the root, given one that starts in the folder of a file.
fn resolved(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors of a page's headings, as Git hosts make them.
fn anchors(page: &File) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(page) {
        let Some(heading) = line.strip_prefix('#').map(|line| line.trim_start_matches('#').trim()) else { continue };
        let kept = heading.to_lowercase().replace(' ', "-");
        let anchor: String = kept.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect();
        let again = anchors.iter().filter(|known| **known == anchor).count();
        anchors.push(if again == 0 { anchor } else { format!("{anchor}-{again}") });
    }
    anchors
}

/// Pages that texts name outside of links, such as `docs/durability.md` in a comment or a message.
fn named_pages(repository: &Repository) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in repository.files.iter().filter(|file| !file.is_data() && !file.path.starts_with("crates/tidy/")) {
        for (number, line) in file.lines() {
            for (at, _) in line.match_indices("docs/") {
                let path: String = line[at..].chars().take_while(|sign| is_of_path(*sign)).collect();
                let path = path.trim_end_matches(['.', '/']);
                let is_whole = !line[..at].ends_with(is_of_path);
                if is_whole && !path.contains('*') && !repository.has(path) {
                    found.push(file.finding(number, format!("{path}, which is not there"), "name a page that is"));
                }
            }
        }
    }
    found
}

fn is_of_path(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || "-_./*".contains(sign)
}

/// Source files and folders in backticks on the map: from the root, or from the sources of the crate named last.
fn mapped_paths(repository: &Repository) -> Vec<Finding> {
    let Some(map) = repository.file(MAP) else { return vec![Finding::of(MAP, "no such page", "write it")] };
    let mut found = Vec::new();
    let mut sources = String::new();
    for (number, line) in prose(map) {
        for token in line.split('`').skip(1).step_by(2) {
            let is_path = token.chars().all(is_of_path) && (token.ends_with(".rs") || token.ends_with('/'));
            let token = token.trim_end_matches('/');
            if !is_path {
                continue;
            }
            if repository.has(&format!("{token}/src")) {
                sources = format!("{token}/src");
            } else if !repository.has(token) && !repository.has(&format!("{sources}/{token}")) {
                let said = format!("{token}, which is neither at the root nor in {sources}");
                found.push(map.finding(number, said, "name the file as it is called now"));
            }
        }
    }
    found
}

#[test]
fn links_lead_somewhere() {
    expect_none(links);
}

#[test]
fn pages_that_are_named_exist() {
    expect_none(named_pages);
}

#[test]
fn the_map_names_files_that_exist() {
    expect_none(mapped_paths);
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let text = "# A page\n## Its `code` & more\n[a](b.md) [b](../a.md#its-code--more) [c](#a-page)\n\
                [d](none.md) [e](#none) `[f](none.md)` [g](https://example.org/none) [h](.)\n```\n[i](none.md)\n```\n";
    let found = |page: &str| {
        let all = repository(&[("docs/a.md", "x"), ("docs/b.md", "x"), ("a.md", text), ("docs/c.md", page)]);
        links(&all).iter().filter(|found| found.to_string().starts_with("docs/c.md")).count()
    };
    assert_eq!(found(text), 2);
    assert_eq!(found("[a](b.md)\n"), 0);

    let source = "/// See [the page](../../docs/none.md) and [`that`](Self::that).\nlet x = \"[x](none.md)\";\n";
    let all = repository(&[("crates/a.rs", source)]);
    let said: Vec<String> = links(&all).iter().map(Finding::to_string).collect();
    let expected = "crates/a.rs:1: a link to ../../docs/none.md, but there is no docs/none.md; \
                    link what is there, or make it";
    assert_eq!(said, [expected]);
}

#[test]
fn a_heading_that_comes_again_has_a_number() {
    let all = repository(&[("a.md", "# Same\n# Same\n[a](#same) [b](#same-1) [c](#same-2)\n")]);
    assert_eq!(links(&all).len(), 1);
}

#[test]
fn a_page_that_is_named_and_missing_is_found() {
    let all = repository(&[("docs/a.md", ""), ("a.rs", "// as docs/a.md says, in docs/ and docs/b.md.\n")]);
    let said: Vec<String> = named_pages(&all).iter().map(Finding::to_string).collect();
    assert_eq!(said, ["a.rs:1: docs/b.md, which is not there; name a page that is"]);
}

#[test]
fn a_file_that_the_map_names_and_that_is_gone_is_found() {
    let map =
        "`crates/one/` has `lib.rs`, `part/` and `gone.rs`; `crates/two/src/lib.rs` and `crates/three/` are more\n";
    let files = [("crates/one/src/lib.rs", ""), ("crates/one/src/part/a.rs", ""), ("crates/two/src/lib.rs", "")];
    let all = repository(&[&files[..], &[(MAP, map)]].concat());
    let said: Vec<String> = mapped_paths(&all).iter().map(Finding::to_string).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("gone.rs") && said[1].contains("crates/three"), "{said:?}");
}
