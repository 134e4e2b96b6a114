//! The files that git tracks or would track, and what the checks report of them.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::process::Command;

pub(crate) struct Repository {
    /// Text files; those that are no UTF-8 are only in `paths`.
    pub(crate) files: Vec<File>,
    paths: BTreeSet<String>,
}

pub(crate) struct File {
    /// From the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    found: String,
    instead: String,
}

impl Repository {
    pub(crate) fn read() -> Repository {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned();
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&root)
            .output()
            .expect("git lists the files of the repository");
        assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
        let listed = String::from_utf8(listed.stdout).unwrap();
        // A file that was deleted and not yet committed is still listed.
        let paths: BTreeSet<String> =
            listed.split_terminator('\0').filter(|path| root.join(path).exists()).map(str::to_owned).collect();
        let files = paths
            .iter()
            .filter(|path| !root.join(path).is_symlink())
            .filter_map(|path| Some(File { path: path.clone(), text: std::fs::read_to_string(root.join(path)).ok()? }))
            .collect();
        Repository { files, paths }
    }

    /// Whether a file or a folder is there, by its path from the root.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        path.is_empty() || self.paths.contains(path) || self.paths.iter().any(|file| file.starts_with(&folder))
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The names of the entries of a folder, sorted.
    pub(crate) fn entries(&self, folder: &str) -> BTreeSet<&str> {
        let inside = self.paths.iter().filter_map(|path| path.strip_prefix(folder)?.strip_prefix('/'));
        inside.filter_map(|path| path.split('/').next()).collect()
    }
}

impl File {
    /// The lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// `rs`, `md`, … or nothing for the shell scripts, which have no ending.
    pub(crate) fn kind(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap();
        name.rsplit_once('.').map_or("", |(_, kind)| kind)
    }

    /// Recorded data, which people neither write nor read line by line.
    pub(crate) fn is_data(&self) -> bool {
        matches!(self.kind(), "lock" | "json" | "svg" | "log" | "snapshot" | "dict")
            || self.path.contains("/fixtures/")
            || self.path.contains("/generated/")
            || self.path.contains("/seeds/")
            || self.path.contains("/proptest-regressions/")
            || self.path.starts_with("LICENSE-")
    }

    pub(crate) fn finding(&self, line: usize, found: impl Into<String>, instead: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, found: found.into(), instead: instead.into() }
    }
}

impl Finding {
    /// Of a file that may not be there.
    pub(crate) fn of(path: &str, found: impl Into<String>, instead: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line: 1, found: found.into(), instead: instead.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.path, self.line, self.found, self.instead)
    }
}

/// Fails with every finding of a check on all files.
#[track_caller]
pub(crate) fn expect_none(check: impl Fn(&Repository) -> Vec<Finding>) {
    let found: Vec<String> = check(&Repository::read()).iter().map(Finding::to_string).collect();
    assert!(found.is_empty(), "{} found:\n{}", found.len(), found.join("\n"));
}

/// A file for the tests of the checks.
pub(crate) fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

/// A repository of these files for the tests of the checks.
pub(crate) fn repository(files: &[(&str, &str)]) -> Repository {
    let files: Vec<File> = files.iter().map(|(path, text)| file(path, text)).collect();
    Repository { paths: files.iter().map(|file| file.path.clone()).collect(), files }
}
