//! Pictures are well-formed, say what they must, and let no name break out.

use super::*;
use crate::dialect::Dialect;
use crate::lab::schedule::{Schedule, schedule};
use crate::lab::simulate::{Arrival, Scenario, simulate};
use crate::{Backoff, Cap, CapPlace, Curve, Jitter, Parts, Span};
use serde_json::{Value, json};

const HOSTILE: &str = "<script>alert(\"x\")</script> & ]]> 'y' \u{1b}[31m\0";

fn read(dialect: Dialect, policy: Value) -> Policy {
    dialect.read(&policy).expect("a valid policy").policy
}

fn of(dialect: Dialect, policy: Value, rows: usize) -> Schedule {
    schedule(&read(dialect, policy), 0, rows)
}

/// Every element is closed in its turn, every attribute is quoted, every `&` is an entity.
/// Returns the names of the elements that were met.
fn assert_well_formed(document: &str) -> Vec<String> {
    const VOID: [&str; 1] = ["meta"];
    let (mut open, mut met) = (Vec::new(), Vec::new());
    let mut rest = document;
    while let Some(start) = rest.find('<') {
        assert_text(&rest[..start]);
        let end = start + rest[start..].find('>').expect("a tag that ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if tag.starts_with("!DOCTYPE") {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "in {tag:?}");
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()), "{name:?}");
        let quotes = attributes.matches('"').count();
        assert!(quotes % 2 == 0 && quotes / 2 == attributes.matches("=\"").count(), "{attributes:?}");
        assert_text(attributes);
        met.push(name.to_owned());
        if name == "style" {
            let end = rest.find("</style>").expect("an end of the style");
            assert!(!rest[..end].contains('<'));
            rest = &rest[end..];
        }
        if !closed && !VOID.contains(&name) {
            open.push(name.to_owned());
        }
    }
    assert_eq!(open, Vec::<String>::new(), "left open");
    assert_eq!(rest.trim(), "");
    met
}

fn assert_text(text: &str) {
    assert!(!text.contains(['\0', '\u{1b}']), "{text:?}");
    for (place, _) in text.match_indices('&') {
        let entities = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
        assert!(entities.iter().any(|entity| text[place..].starts_with(entity)), "{text:?}");
    }
}

fn assert_self_contained(document: &str) {
    let without_namespace = document.replace("http://www.w3.org/2000/svg", "");
    for foreign in ["http", "<script", "src=", "href", "url(", "@import", "<link", "NaN", "inf\"", "onload"] {
        assert!(!without_namespace.contains(foreign), "{foreign} in {document}");
    }
    assert!(document.contains("prefers-color-scheme:dark"));
}

fn every_schedule() -> Vec<Schedule> {
    let strange = |backoff: Backoff| {
        let mut parts: Parts = read(Dialect::Ojs, json!({ "max_attempts": 60 })).into_parts();
        parts.rules[0].backoff = backoff;
        schedule(&Policy::new(parts).expect("valid"), 0, 60)
    };
    let huge = Backoff { curve: Curve::Exponential { rate: 1e300 }, ..Backoff::fixed(Span::MAX) };
    let cap = Some(Cap { at: Span::saturating_ms(1e-9), place: CapPlace::AfterJitter });
    vec![
        of(Dialect::Ojs, json!({ "max_attempts": 14 }), 50),
        of(Dialect::Ojs, json!({ "max_attempts": 1 }), 50),
        of(Dialect::Ojs, json!({ "max_attempts": 1_000_000_000 }), 3_000),
        of(Dialect::Ojs, json!({ "max_attempts": 14 }), 0),
        of(Dialect::Azolla, json!({ "stop": { "max_attempts": null, "max_delay": 90 } }), 50),
        of(Dialect::Exosphere, json!({ "max_retries": 80 }), 80),
        of(Dialect::TaskHarbor, json!({ "policy": null }), 10),
        of(Dialect::Mwl, json!({ "policies": [{ "match": { "codes": ["*"] }, "attempts": 5 }] }), 10),
        strange(huge),
        strange(Backoff { cap, ..huge }),
        strange(Backoff { jitter: Jitter::Scale { low: 0.0, high: 1e300 }, ..huge }),
        strange(Backoff { jitter: Jitter::Decorrelated, ..Backoff::fixed(Span::saturating_ms(1e-12)) }),
        strange(Backoff { jitter: Jitter::Added { step: Span::MAX }, ..Backoff::IMMEDIATE }),
    ]
}

#[test]
fn every_schedule_can_be_drawn() {
    for schedule in every_schedule() {
        let svg = schedule_svg(HOSTILE, &schedule);
        let elements = assert_well_formed(&svg);
        assert_eq!(elements[..3], ["svg", "title", "desc"]);
        assert_self_contained(&svg);
        for width in [0, 32, 60, 80, 133, 100_000] {
            let text = schedule_text(&schedule, width);
            assert!(!text.contains("NaN"), "{text}");
            let chart = text.lines().filter(|line| line.contains(['█', '▒', '┴']));
            let longest = chart.map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(longest <= width.clamp(32, 400), "{longest} columns of {width}:\n{text}");
        }
    }
}

#[test]
fn a_schedule_is_drawn_with_its_figures() {
    let schedule = of(Dialect::Ojs, json!({ "max_attempts": 14 }), 50);
    let svg = schedule_svg("Payments", &schedule);
    let text = schedule_text(&schedule, 100);
    for figure in
        ["4 min 23 s", "25 min 47 s", "50 %", "32.8 %", "14 min 16 s to 31 min 23 s", "1 s × 2ⁿ⁻¹, at most 5 min"]
    {
        assert!(svg.contains(figure), "{figure} in {svg}");
        assert!(text.contains(figure), "{figure} in {text}");
    }
    assert!(svg.contains("cap 5 min") && svg.contains("<title>Payments</title>"));
    let rows: Vec<&str> = text.lines().filter(|line| line.contains('█')).collect();
    assert_eq!(rows.len(), 13);
    assert!(rows[12].contains("▒▒▒▒█▒"), "{}", rows[12]);
    let limited = of(Dialect::Azolla, json!({ "stop": { "max_attempts": 9, "max_delay": 60 } }), 50);
    assert!(schedule_svg("x", &limited).contains("limit 1 min"));
    assert!(schedule_text(&limited, 80).contains("The time limit of 1 min refuses retry 7"));
}

fn scenarios() -> Vec<Scenario> {
    let base = Scenario { jobs: 3_000, outage: Span::from_secs(120), ..Scenario::default() };
    vec![
        Scenario { capacity_per_s: Some(20), failure_rate_after: 0.05, ..base.clone() },
        Scenario { arrival: Arrival::PerSecond(40.0), capacity_per_s: Some(60), ..base.clone() },
        Scenario { outage: Span::ZERO, ..base.clone() },
        Scenario { outage: Span::from_secs(80_000), horizon: Span::from_secs(60), jobs: 1, ..base.clone() },
        Scenario { failure_type: HOSTILE.to_owned(), failure_code: HOSTILE.to_owned(), ..base },
    ]
}

#[test]
fn every_simulation_can_be_drawn() {
    let policies =
        [json!({ "max_attempts": 12 }), json!({ "max_attempts": 1 }), json!({ "non_retryable_errors": ["error"] })]
            .map(|policy| read(Dialect::Ojs, policy));
    for scenario in scenarios() {
        let outcomes = policies.each_ref().map(|policy| simulate(&scenario, policy, &|_| {}).expect("valid"));
        let candidates: Vec<Candidate<'_>> = policies
            .iter()
            .zip(&outcomes)
            .map(|(policy, outcome)| Candidate { name: HOSTILE, policy, outcome })
            .collect();
        for candidates in [&candidates[..], &candidates[..1], &[]] {
            let svg = simulation_svg(&scenario, candidates);
            assert_eq!(assert_well_formed(&svg)[..3], ["svg", "title", "desc"]);
            assert_self_contained(&svg);
            let html = simulation_html(&scenario, candidates);
            let elements = assert_well_formed(&html);
            assert_self_contained(&html);
            assert_eq!(elements.iter().filter(|name| *name == "style").count(), 1);
            assert_eq!(elements.iter().filter(|name| *name == "details").count(), candidates.len());
            for width in [0, 60, 120] {
                let text = simulation_text(&scenario, candidates, width);
                assert!(!text.contains(['\0', '\u{1b}']) && !text.contains("NaN"), "{text:?}");
                let chart = text.lines().filter(|line| line.contains(['│', '└']));
                assert!(chart.map(|line| line.chars().count()).max().unwrap_or(0) <= width.max(40), "{text}");
            }
        }
    }
}

#[test]
fn a_simulation_is_drawn_with_its_figures() {
    let scenario = Scenario { capacity_per_s: Some(1_234), ..Scenario::default() };
    let policy = read(Dialect::Ojs, json!({ "max_attempts": 20, "jitter": false }));
    let outcome = simulate(&scenario, &policy, &|_| {}).expect("valid");
    let candidates = [Candidate { name: "No jitter", policy: &policy, outcome: &outcome }];
    let (svg, html) = (simulation_svg(&scenario, &candidates), simulation_html(&scenario, &candidates));
    let text = simulation_text(&scenario, &candidates, 100);
    for figure in ["10,000 jobs meet an outage of 5 min", "100 % of the cohort", "No jitter", "10,000/s"] {
        for picture in [&svg, &html, &text] {
            assert!(picture.contains(figure), "{figure} in {picture}");
        }
    }
    assert!(svg.contains("capacity 1,234") && svg.contains("outage ends at 5 min"));
    assert!(html.contains("100 % in 10 ms") && html.contains("&quot;at_most&quot;: 20"));
    assert!(html.contains("more patience would have paid"));
    assert!(text.contains("capacity │") && text.contains("outage ━ └━"), "{text}");
}
