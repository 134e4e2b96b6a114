//! The guide for people who migrate, whose examples and tables are held to what the code does.

use crate::{bounds_s, read};
use redrive_policy::Policy;
use redrive_policy::dialect::Dialect;
use redrive_policy::import::{Import, Source};
use serde_json::{Value, json};

const TEXT: &str = include_str!("../../../../docs/guides/migrating.md");

/// The example of one system, as the guide shows it.
struct Example {
    source: Source,
    section: &'static str,
    import: Import,
    canonical: Value,
    ojs: Policy,
}

/// The part of the guide that is about one system.
fn section(source: Source) -> &'static str {
    let opening = format!("```json {source}\n");
    TEXT.split("\n## ").find(|section| section.contains(&opening)).unwrap_or_else(|| panic!("no example for {source}"))
}

/// The content of the one block of a section that opens with "```json {tag}".
fn block(section: &str, tag: &str) -> Value {
    let opening = format!("```json {tag}\n");
    let (_, rest) = section.split_once(&opening).unwrap_or_else(|| panic!("no block {tag}"));
    let (content, rest) = rest.split_once("```").expect("the block ends");
    assert!(!rest.contains(&opening), "two blocks {tag} in one section");
    serde_json::from_str(content).unwrap_or_else(|error| panic!("block {tag}: {error}"))
}

fn examples() -> impl Iterator<Item = Example> {
    Source::ALL.into_iter().map(|source| {
        let section = section(source);
        let import = read(source, &block(section, source.name()));
        let ojs = Dialect::Ojs.read(&block(section, "ojs")).expect("a policy").policy;
        Example { source, section, import, canonical: block(section, "policy"), ojs }
    })
}

/// The shortest and the longest delay of the system itself, in seconds, for the example's settings.
fn own_bounds_s(source: Source, n: u32) -> (f64, f64) {
    let fourth_power = (n - 1).pow(4) + 15;
    let (low, high) = match source {
        Source::Temporal => {
            let delay = (2.0 * 1.5_f64.powi(n as i32 - 1)).min(60.0);
            return (delay, delay);
        }
        Source::BullMq => {
            let longest_ms = 1000 << (n - 1);
            return (f64::from(longest_ms / 2) / 1000.0, f64::from(longest_ms - 1) / 1000.0);
        }
        Source::Sidekiq => (fourth_power, fourth_power + 10 * n - 1),
        Source::Faktory => (fourth_power, fourth_power + 29 * n),
        Source::Celery => (0, (1 << (n - 1)).min(600)),
        Source::Oban => {
            let base = 15 + (1 << n);
            (base, base + base / 10)
        }
    };
    (f64::from(low), f64::from(high))
}

fn cell((low, high): (f64, f64)) -> String {
    let short = |value: f64| format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_owned();
    if low == high { format!("{} s", short(low)) } else { format!("{}–{} s", short(low), short(high)) }
}

#[test]
fn every_example_gives_the_policy_that_is_shown() {
    for Example { source, import, canonical, ojs, .. } in examples() {
        let found = serde_json::to_value(&import.policy).expect("a policy is JSON");
        assert_eq!(found, canonical, "{source}: {found:#}");
        assert_eq!(ojs.attempts.max_runs(), import.policy.attempts.max_runs(), "{source}");
    }
}

#[test]
fn every_table_shows_the_delays_that_are_computed() {
    for Example { source, section, import, ojs, .. } in examples() {
        let last = import.policy.max_retries(&import.policy.rules[0]).expect("a limit");
        for n in [1, 2, 3, 5, 10, 25].into_iter().filter(|n| *n < last).chain([last]) {
            let own = cell(own_bounds_s(source, n));
            let (imported, in_ojs) = (cell(bounds_s(&import.policy, n)), cell(bounds_s(&ojs, n)));
            let row = format!("| {n} | {own} | {imported} | {in_ojs} |\n");
            assert!(section.contains(&row), "{source} has no row {row}");
        }
    }
}

#[test]
fn every_field_that_an_importer_knows_is_explained() {
    for source in Source::ALL {
        let problems = source.read(&json!({"no such field": 1})).expect_err("refused").0;
        let known = problems[0].message.strip_prefix("unknown field; allowed are ").expect("the known fields");
        for field in known.split(", ").filter(|field| !field.contains('_') || source != Source::Temporal) {
            assert!(section(source).contains(&format!("`{field}`")), "{source}: {field} is not explained");
        }
    }
}
