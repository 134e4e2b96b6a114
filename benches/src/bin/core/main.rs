//! The policy core beside its peers: `core [--json]`.
//!
//! Figures are medians over many short slices, taken in turns. Ratios within one run mean
//! something; nanoseconds are those of the machine.

mod calls;
mod delays;

use redrive_benches::{Against, Comparison, measure};
use serde_json::json;
use std::process::ExitCode;

const SLICES: usize = 4_000;

/// What a comparison has to show, as a limit on a ratio.
struct Goal {
    says: &'static str,
    found: f64,
    at_most: f64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let as_json = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--json"] => true,
        _ => {
            eprintln!("usage: core [--json]");
            return ExitCode::from(2);
        }
    };
    let comparisons = compare();
    let goals = goals(&comparisons);
    if as_json {
        print_json(&comparisons, &goals)
    } else {
        print_table(&comparisons, &goals)
    }
    ExitCode::SUCCESS
}

fn compare() -> [Comparison; 4] {
    let policy = delays::own_policy();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let measured = |name, title, against, contenders| {
        let figures = measure(SLICES, contenders);
        Comparison { name, title, figures, against }
    };
    [
        measured(
            "delay",
            "computing a delay: 100 ms × 2, at most 30 s, jittered; ratio to the fastest peer",
            Against::FastestPeer,
            delays::against_peers(&policy),
        ),
        measured(
            "async",
            "async call that succeeds at once; ratio of what is added, to the fastest peer",
            Against::FastestPeerAddedToFirst,
            calls::asynchronous(&policy, &runtime),
        ),
        measured(
            "blocking",
            "blocking call that succeeds at once; ratio of what is added, to the fastest peer",
            Against::FastestPeerAddedToFirst,
            calls::blocking(&policy),
        ),
        measured(
            "decide",
            "deciding after a failure, one rule and jitter; ratio to the bare delay",
            Against::First,
            delays::decision_against_delay(&policy),
        ),
    ]
}

fn goals([delay, asynchronous, blocking, decision]: &[Comparison; 4]) -> [Goal; 4] {
    [
        Goal { says: "a delay takes no longer than the fastest peer's", found: delay.worst("redrive"), at_most: 1.0 },
        Goal {
            says: "an async success adds no more than the fastest peer",
            found: asynchronous.worst("redrive"),
            at_most: 1.0,
        },
        Goal {
            says: "a blocking success adds no more than the fastest peer",
            found: blocking.worst("redrive"),
            at_most: 1.0,
        },
        Goal { says: "a decision takes at most three bare delays", found: decision.worst("decide"), at_most: 3.0 },
    ]
}

fn print_table(comparisons: &[Comparison], goals: &[Goal]) {
    for comparison in comparisons {
        println!("{}", comparison.title);
        println!("  {:<42} {:>9} {:>9} {:>7}", "", "median ns", "least ns", "ratio");
        for figure in &comparison.figures {
            let ratio = comparison.ratio(figure);
            println!("  {:<42} {:>9.2} {:>9.2} {ratio:>7.2}", figure.name, figure.median_ns, figure.least_ns);
        }
        println!();
    }
    for goal in goals {
        let met = if goal.found <= goal.at_most { "met" } else { "NOT MET" };
        println!("{met}: {} ({:.2}, at most {:.2})", goal.says, goal.found, goal.at_most);
    }
}

fn print_json(comparisons: &[Comparison], goals: &[Goal]) {
    let comparisons: Vec<_> = comparisons
        .iter()
        .map(|comparison| {
            let figures: Vec<_> = comparison
                .figures
                .iter()
                .map(|figure| {
                    json!({
                        "name": figure.name,
                        "ours": figure.ours,
                        "median_ns": figure.median_ns,
                        "least_ns": figure.least_ns,
                        "ratio": comparison.ratio(figure),
                    })
                })
                .collect();
            json!({ "name": comparison.name, "title": comparison.title, "figures": figures })
        })
        .collect();
    let goals: Vec<_> = goals
        .iter()
        .map(|goal| {
            let met = goal.found <= goal.at_most;
            json!({ "goal": goal.says, "found": goal.found, "at_most": goal.at_most, "met": met })
        })
        .collect();
    println!("{}", json!({ "comparisons": comparisons, "goals": goals }));
}
