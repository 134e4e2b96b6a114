//! The page that describes every setting, `docs/configuration.md`. It is generated from the list of settings, so
//! that it cannot contradict the server.

use super::Flags;
use super::setting::{SETTINGS, Setting};
use super::source::flag_of;

/// The prose of the page, with a marker for each part that is generated.
const PROSE: &str = include_str!("page.md");
/// A configuration file that a test reads.
const EXAMPLE: &str = include_str!("example.toml");

/// The whole page.
pub(super) fn page() -> String {
    PROSE.replace("{example}", EXAMPLE.trim_end()).replace("{settings}", table().trim_end())
}

fn table() -> String {
    let head = "| Setting | Default | Meaning | Allowed | Environment | Flag |\n|---|---|---|---|---|---|\n";
    SETTINGS.iter().map(row).fold(head.to_owned(), |table, row| table + &row)
}

fn row(setting: &Setting) -> String {
    let default = (setting.default)();
    let default = if default.is_empty() { "none".to_owned() } else { format!("`{default}`") };
    let own = Flags::default().own().iter().any(|(key, _)| *key == setting.key);
    let flag = match setting.key {
        // Other users could read it in the list of processes.
        "api_key" => "none".to_owned(),
        key if own => format!("`{}`", flag_of(key)),
        _ => "`--set`".to_owned(),
    };
    let Setting { key, what, .. } = setting;
    format!("| `{key}` | {default} | {what} | {} | `{}` | {flag} |\n", setting.kind.allowed(), setting.env())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_settings_is_up_to_date() {
        let written = include_str!("../../../../docs/configuration.md");
        assert_eq!(
            written,
            page(),
            "docs/configuration.md is out of date; generate it again: cargo run --bin redrive -- config --markdown > docs/configuration.md"
        );
    }

    #[test]
    fn every_setting_has_a_row_that_no_cell_breaks() {
        for setting in SETTINGS {
            let row = row(setting);
            assert_eq!(row.matches('|').count(), 7, "{row}");
            assert!(page().contains(&row), "{row}");
        }
    }
}
