//! Random policies of every dialect, each as it is written and as the law that it says.

use super::common::Seeded;
use super::expectation::{Clause, Expectation, Fits, Growth, Noise, Waits};
use redrive_engine::PolicyDocument;
use redrive_policy::dialect::Dialect;
use serde_json::{Map, Value, json};

/// The names that errors go by in a simulation.
pub(crate) const NAMES: [&str; 5] = ["io", "fatal", "auth.token", "auth.user", "late"];
/// The codes that failures have.
pub(crate) const CODES: [&str; 4] = ["", "Net.Down", "Net.Slow", "Disk"];

/// A policy as it is written, and the law that it says.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) written: PolicyDocument,
    pub(crate) expectation: Expectation,
}

impl Plan {
    pub(crate) fn random(rng: &Seeded) -> Self {
        match rng.below(5) {
            0 => ojs(rng),
            1 => azolla(rng),
            2 => taskharbor(rng),
            3 => exosphere(rng),
            _ => mwl(rng),
        }
    }
}

fn plan(dialect: Dialect, value: Value, expectation: Expectation) -> Plan {
    Plan { written: PolicyDocument { dialect, value }, expectation }
}

/// Some of the words, in their order.
fn some(rng: &Seeded, words: &[&'static str]) -> Vec<&'static str> {
    words.iter().copied().filter(|_| rng.permille(400)).collect()
}

fn ojs(rng: &Seeded) -> Plan {
    let attempts = rng.below(7) as u32;
    let initial = rng.between(1, 20);
    let longest = initial + rng.below(60);
    let (strategy, growth) = *rng.pick(&[
        (None, Growth::Exponential(2.0)),
        (Some("none"), Growth::Fixed),
        (Some("linear"), Growth::Linear),
        (Some("exponential"), Growth::Exponential(3.0)),
    ]);
    let jitter = rng.permille(500);
    let exclude = some(rng, &["fatal", "auth.*"]);
    let dead_letter = rng.permille(500);
    let mut value = json!({
        "max_attempts": attempts,
        "initial_interval": format!("PT{initial}S"),
        "max_interval": format!("PT{longest}S"),
        "jitter": jitter,
        "non_retryable_errors": exclude,
        "on_exhaustion": if dead_letter { "dead_letter" } else { "discard" },
    });
    if let Some(strategy) = strategy {
        value["backoff_strategy"] = json!(strategy);
        value["backoff_coefficient"] = json!(3.0);
    }
    let waits = Waits {
        initial_ms: initial as f64 * 1e3,
        growth,
        cap_ms: Some(longest as f64 * 1e3),
        cap_first: true,
        noise: if jitter { Noise::Times(0.5, 1.5) } else { Noise::None },
        whole_ms: false,
    };
    let fits = Fits { exclude, ..Fits::default() };
    plan(
        Dialect::Ojs,
        value,
        Expectation {
            limit: Some(attempts.max(1)),
            limit_reason: "max_attempts",
            max_elapsed_ms: None,
            dead_letter,
            heeds_flag: true,
            unmatched: "non_retryable",
            clauses: vec![Clause { fits, budget: None, waits }],
        },
    )
}

fn azolla(rng: &Seeded) -> Plan {
    let attempts = rng.permille(700).then(|| rng.between(1, 6) as u32);
    let elapsed = rng.permille(400).then(|| rng.between(5, 300));
    let (strategy, growth, noise) = *rng.pick(&[
        ("fixed", Growth::Fixed, Noise::None),
        ("exponential", Growth::Exponential(2.0), Noise::None),
        ("exponential_jitter", Growth::Exponential(2.0), Noise::Times(0.0, 1.0)),
    ]);
    let initial = rng.between(1, 40) as f64 / 4.0;
    let longest = rng.between(1, 60) as f64;
    let include = some(rng, &NAMES);
    let exclude = some(rng, &["late", "fatal"]);
    let wait = if growth == Growth::Fixed {
        json!({"strategy": strategy, "delay": initial})
    } else {
        json!({"strategy": strategy, "initial_delay": initial, "max_delay": longest})
    };
    let mut stop = Map::new();
    stop.insert("max_attempts".to_owned(), json!(attempts));
    stop.extend(elapsed.map(|secs| ("max_delay".to_owned(), json!(secs))));
    let waits = Waits {
        initial_ms: initial * 1e3,
        growth,
        cap_ms: (growth != Growth::Fixed).then_some(longest * 1e3),
        cap_first: true,
        noise,
        whole_ms: false,
    };
    let value = json!({"stop": stop, "wait": wait, "retry": {"include_errors": include, "exclude_errors": exclude}});
    let fits = Fits { include: Some(include), exclude, ..Fits::default() };
    plan(
        Dialect::Azolla,
        value,
        Expectation {
            limit: attempts,
            limit_reason: "max_attempts",
            max_elapsed_ms: elapsed.map(|secs| secs as f64 * 1e3),
            dead_letter: false,
            heeds_flag: false,
            unmatched: "non_retryable",
            clauses: vec![Clause { fits, budget: None, waits }],
        },
    )
}

fn taskharbor(rng: &Seeded) -> Plan {
    let off = rng.permille(50);
    let base = rng.between(100, 5_000);
    let longest = rng.between(1, 20);
    let jitter = rng.below(5) as f64 / 4.0;
    // Zero and below mean that there is no limit of this kind.
    let (by_policy, by_job) = (rng.below(7) as u32, rng.below(7) as u32);
    let policy = json!({"base_delay": format!("{base}ms"), "max_delay": format!("{longest}s"), "multiplier": 2.0,
        "jitter": jitter, "max_attempts": by_policy});
    let limits: Vec<u32> = [by_policy, by_job].into_iter().filter(|limit| *limit > 0 && !off).collect();
    let limit = limits.iter().min().copied();
    let waits = Waits {
        initial_ms: base as f64,
        growth: Growth::Exponential(2.0),
        cap_ms: Some(longest as f64 * 1e3),
        cap_first: true,
        noise: if jitter == 0.0 { Noise::None } else { Noise::Times(1.0 - jitter, 1.0 + jitter) },
        whole_ms: false,
    };
    plan(
        Dialect::TaskHarbor,
        json!({"policy": if off { Value::Null } else { policy }, "job": {"max_attempts": by_job}}),
        Expectation {
            limit: Some(limit.unwrap_or(1)),
            limit_reason: if limit.is_some() { "max_attempts" } else { "retries_disabled" },
            max_elapsed_ms: None,
            dead_letter: true,
            heeds_flag: true,
            unmatched: "non_retryable",
            clauses: vec![Clause { fits: Fits::default(), budget: None, waits }],
        },
    )
}

fn exosphere(rng: &Seeded) -> Plan {
    let retries = rng.below(6) as u32;
    let (growth_name, growth) =
        *rng.pick(&[("EXPONENTIAL", Growth::Exponential(2.0)), ("LINEAR", Growth::Linear), ("FIXED", Growth::Fixed)]);
    let (noise_name, noise) = *rng.pick(&[
        ("", Noise::None),
        ("_FULL_JITTER", Noise::Times(0.0, 1.0)),
        ("_EQUAL_JITTER", Noise::Times(0.5, 1.0)),
    ]);
    let initial = rng.between(1, 9_999);
    let longest = rng.permille(500).then(|| rng.between(1, 20_000));
    let value = json!({"max_retries": retries, "strategy": format!("{growth_name}{noise_name}"),
        "backoff_factor": initial, "max_delay": longest});
    let waits = Waits {
        initial_ms: initial as f64,
        growth,
        cap_ms: longest.map(|ms| ms as f64),
        cap_first: false,
        noise,
        whole_ms: true,
    };
    plan(
        Dialect::Exosphere,
        value,
        Expectation {
            limit: Some(retries + 1),
            limit_reason: "max_attempts",
            max_elapsed_ms: None,
            dead_letter: false,
            heeds_flag: true,
            unmatched: "non_retryable",
            clauses: vec![Clause { fits: Fits::default(), budget: None, waits }],
        },
    )
}

fn mwl(rng: &Seeded) -> Plan {
    let (values, clauses): (Vec<Value>, Vec<Clause>) = (0..rng.between(1, 3)).map(|_| mwl_clause(rng)).unzip();
    plan(
        Dialect::Mwl,
        json!({"policies": values}),
        Expectation {
            limit: None,
            limit_reason: "max_attempts",
            max_elapsed_ms: None,
            dead_letter: false,
            heeds_flag: false,
            unmatched: "unmatched",
            clauses,
        },
    )
}

fn mwl_clause(rng: &Seeded) -> (Value, Clause) {
    let mut fits = Fits::default();
    let mut matching = Map::new();
    if rng.permille(300) {
        fits.flag = Some(rng.permille(500));
        matching.insert("retryable".to_owned(), json!(fits.flag));
    }
    if rng.permille(400) {
        let types = [*rng.pick(&NAMES), *rng.pick(&NAMES)].to_vec();
        matching.insert("types".to_owned(), json!(types));
        fits.include = Some(types);
    }
    if rng.permille(500) || matching.is_empty() {
        let codes = vec![*rng.pick(&["*", "Net.*", "Disk"])];
        matching.insert("codes".to_owned(), json!(codes));
        fits.codes = Some(codes);
    }
    let budget = rng.between(1, 5) as u32;
    let mut value = json!({"match": matching, "attempts": budget});
    let waits = if rng.permille(800) { mwl_waits(rng, &mut value["backoff"]) } else { Waits::NONE };
    (value, Clause { fits, budget: Some(budget), waits })
}

fn mwl_waits(rng: &Seeded, backoff: &mut Value) -> Waits {
    let (initial, longest) = (rng.between(1, 10), rng.between(10, 60));
    let (name, noise) = *rng.pick(&[
        ("none", Noise::None),
        ("full", Noise::Times(0.0, 1.0)),
        ("equal", Noise::Times(0.5, 1.0)),
        ("decorrelated", Noise::Decorrelated),
    ]);
    let rate = rng.between(1, 3) as f64;
    *backoff =
        json!({"initial": format!("PT{initial}S"), "rate": rate, "max": format!("PT{longest}S"), "jitter": name});
    Waits {
        initial_ms: initial as f64 * 1e3,
        growth: Growth::Exponential(rate),
        cap_ms: Some(longest as f64 * 1e3),
        cap_first: true,
        noise,
        whole_ms: false,
    }
}
