//! `redrive policy schedule`.

use super::source::{self, Loaded, NotationArg};
use crate::input::{Document, shown};
use crate::{exit::Failed, output};
use redrive_policy::lab::picture::{schedule_svg, schedule_text};
use redrive_policy::lab::schedule::{Schedule, Track, schedule};
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    document: Document,
    #[command(flatten)]
    dialect: NotationArg,
    /// How many retries to list at most
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rows: u32,
    /// Draw the schedule as a picture; - prints the picture and nothing else
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  redrive policy schedule retry.json
  redrive policy schedule retry.json --svg retry.svg
  redrive policy schedule retry.yaml --dialect exosphere --rows 100 --json";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let Loaded { notation, reading, .. } = source::load(&args.document, args.dialect.notation, args.json)?;
    let policy = &reading.policy;
    let schedules: Vec<Schedule> =
        (0..policy.rules.len()).map(|rule| schedule(policy, rule, args.rows as usize)).collect();
    if let Some(path) = &args.svg {
        draw(path, &shown(&args.document.path), &schedules)?;
        if output::is_stdout(path) {
            return Ok(());
        }
    }
    if args.json {
        return output::json(&json!({ "dialect": notation.name(), "schedules": schedules }));
    }
    let several = schedules.len() > 1;
    for schedule in &schedules {
        if several {
            output::text(&format!("policy {}\n", schedule.rule))?;
        }
        output::text(&text(schedule, output::terminal_width().unwrap_or(usize::MAX)))?;
    }
    Ok(())
}

/// One picture for each rule; if there are several, the names of their files have the number of the rule.
fn draw(path: &Path, title: &str, schedules: &[Schedule]) -> Result<(), Failed> {
    if output::is_stdout(path) && schedules.len() > 1 {
        let count = schedules.len();
        return Err(Failed::usage(format!(
            "--svg - prints one picture, and this policy has {count}; name a file instead"
        )));
    }
    for schedule in schedules {
        let (title, path) = match schedule.rule {
            0 if schedules.len() == 1 => (title.to_owned(), path.to_path_buf()),
            rule => (format!("{title}, policy {rule}"), numbered(path, rule)),
        };
        output::file(&path, &schedule_svg(&title, schedule))?;
    }
    Ok(())
}

fn numbered(path: &Path, rule: usize) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending = path.extension().map_or_else(String::new, |ending| format!(".{}", ending.to_string_lossy()));
    path.with_file_name(format!("{stem}-{rule}{ending}"))
}

/// The schedule for people. If the table is too wide, the extremes of the sums are left out.
fn text(schedule: &Schedule, width: usize) -> String {
    let mut rows = vec![head()];
    for row in &schedule.rows {
        let mut cells = vec![row.retry.to_string()];
        cells.extend(cells_of(&row.delay));
        cells.extend(cells_of(&row.since_start));
        cells.push(if row.capped { format!("{:.0} %", row.on_one_instant * 100.0) } else { String::new() });
        rows.push(cells);
    }
    let mut table = output::table(&rows);
    if !output::fits(&table, width) {
        let narrow = |row: &Vec<String>| [&row[..4], &row[5..6], &row[7..]].concat();
        table = output::table(&rows.iter().map(narrow).collect::<Vec<_>>());
    }
    format!("{table}\n{}", schedule_text(schedule, 80))
}

fn head() -> Vec<String> {
    ["retry", "shortest", "mean", "longest", "Σ shortest", "Σ mean", "Σ longest", "at the cap"]
        .map(str::to_owned)
        .to_vec()
}

fn cells_of(track: &Track) -> [String; 3] {
    [track.shortest, track.mean, track.longest].map(|span| span.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_policy::dialect::Dialect;

    #[test]
    fn the_table_fits_into_a_terminal_of_80_columns() {
        let reading = Dialect::Ojs.read(&json!({ "max_attempts": 12 })).unwrap();
        let schedule = schedule(&reading.policy, 0, 30);
        let wide = text(&schedule, usize::MAX);
        assert!(wide.contains("Σ shortest") && !output::fits(&wide, 80), "{wide}");
        let narrow = text(&schedule, 80);
        assert!(!narrow.contains("Σ shortest") && narrow.contains("Σ mean"), "{narrow}");
        let table = narrow.split("\n\n").next().unwrap_or_default();
        assert!(output::fits(table, 80), "{table}");
    }
}
