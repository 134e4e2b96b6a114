//! A simulation as one page that needs nothing else.

use super::Candidate;
use super::escape::escape;
use super::style::STYLE;
use super::words::{count, percent, percent_of, scenario_sentence, shares, short, tenths};
use super::{schedule_svg, simulation_svg};
use crate::lab::schedule::schedule;
use crate::lab::simulate::{Outcome, Peak, Scenario};
use std::fmt::Write;

/// How many retries the picture of each policy shows.
const SCHEDULE_ROWS: usize = 20;

const PAGE_STYLE: &str = "
:root{color-scheme:light dark}
body{margin:0;padding:2.5rem 1.25rem 4rem;background:#f3f5f8;color:#18202b;line-height:1.5;\
font-family:ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}
main{max-width:980px;margin:0 auto}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 .4rem}
h2{font-size:1.15rem;margin:2.4rem 0 .8rem}
p{margin:.4rem 0 1.2rem;max-width:46rem}
.lead,.why{color:#566173}
.scroll{overflow-x:auto;border:1px solid #e2e6ec;border-radius:10px;background:#fff}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.55rem .9rem;text-align:right;vertical-align:top;border-top:1px solid #e9edf2;white-space:nowrap}
thead th{border-top:0;background:#f6f8fa;font-size:.9rem;white-space:normal}
th:first-child{text-align:left;font-weight:600;white-space:normal;min-width:17rem}
.why{display:block;font-weight:400;font-size:.82rem}
td.alarm{color:#c2410c;font-weight:650}
td.fine{color:#15803d;font-weight:650}
figure{margin:0 0 1rem;overflow-x:auto}
svg{display:block;max-width:100%;height:auto}
details{margin:0 0 1.6rem}
summary{cursor:pointer;color:#566173;font-size:.9rem}
pre{overflow-x:auto;padding:1rem;border:1px solid #e2e6ec;border-radius:10px;background:#fff;font-size:.82rem}
@media (prefers-color-scheme:dark){
body{background:#0b0f14;color:#eef2f7}
.lead,.why,summary{color:#a6b0be}
.scroll,pre{background:#11161d;border-color:#2a323d}
th,td{border-color:#222a35}
thead th{background:#161c25}
td.alarm{color:#fb923c}
td.fine{color:#4ade80}
}
";

/// The outcomes of one scenario under several policies as a page: a table that says what each
/// figure means, the charts, and the policies. It holds its pictures and its style itself, and has
/// no script.
#[must_use]
pub fn simulation_html(scenario: &Scenario, candidates: &[Candidate<'_>]) -> String {
    let title = format!("{} jobs meet an outage of {}", count(scenario.jobs.into()), short(scenario.outage));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{PAGE_STYLE}{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n\
         <p class=\"lead\">{sentence} Attempts take no time. Every failure is of the type <code>{cause}</code>{code}. \
         Seed {seed}, looked at for {horizon}.</p>\n",
        title = escape(&title),
        sentence = escape(&scenario_sentence(scenario)),
        cause = escape(&scenario.failure_type),
        code = match scenario.failure_code.as_str() {
            "" => String::new(),
            code => format!(" with the code <code>{}</code>", escape(code)),
        },
        seed = scenario.seed,
        horizon = escape(&short(scenario.horizon)),
    );
    table(&mut page, scenario, candidates);
    let _ = write!(
        page,
        "<h2>Attempts over time</h2>\n<figure>{}</figure>\n<h2>The policies</h2>\n",
        simulation_svg::draw(scenario, candidates, true)
    );
    for candidate in candidates {
        policy(&mut page, scenario, candidate);
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// A figure of the table: its text, and whether it is as it should be, where that can be said.
type Figure = (String, Option<bool>);

/// A row of the table: the name, the explanation, and the figure of an outcome.
type Line = (&'static str, &'static str, fn(&Scenario, &Outcome) -> Figure);

const LINES: [Line; 11] = [
    ("Done", "Jobs that succeeded in the end.", |scenario, outcome| {
        let [done, ..] = shares(outcome);
        (with_share(outcome.succeeded, &done), Some(outcome.succeeded == scenario.jobs))
    }),
    ("Last one done after", "How long it took until the last of them succeeded.", |_, outcome| {
        (outcome.last_done.map_or("–".to_owned(), short), None)
    }),
    ("Gave up", "Jobs that the policy stopped: an operator has to look after them.", |_, outcome| {
        let [_, gave_up, _] = shares(outcome);
        (with_share(outcome.given_up, &gave_up), alarm_unless(outcome.given_up == 0))
    }),
    (
        "Gave up after the outage",
        "Stopped when the dependency was back already: more patience would have paid.",
        |scenario, outcome| {
            let late = outcome.given_up_after_recovery;
            (with_share(late, &percent_of(late.into(), scenario.jobs.into())), alarm_unless(late == 0))
        },
    ),
    ("Still waiting", "Neither done nor given up at the end of the time looked at.", |_, outcome| {
        let [.., waiting] = shares(outcome);
        (with_share(outcome.waiting, &waiting), alarm_unless(outcome.waiting == 0))
    }),
    ("Attempts per job", "The first run included.", |scenario, outcome| {
        (tenths(outcome.attempts as f64 / f64::from(scenario.jobs)), None)
    }),
    ("Attempts in vain", "The share of all attempts that failed: load without any gain.", |_, outcome| {
        (percent_of(outcome.wasted, outcome.attempts), None)
    }),
    ("Turned away", "Attempts after the outage that found the capacity of their second used up.", |_, outcome| {
        (count(outcome.overloaded), None)
    }),
    ("Busiest second", "The most retries in one second, and when.", |_, outcome| (peak(outcome.retry_peak), None)),
    (
        "Busiest second after the outage",
        "The most attempts that met the dependency in one second while it recovered.",
        |scenario, outcome| {
            let over =
                outcome.recovery_peak.zip(scenario.capacity_per_s).map(|(peak, capacity)| peak.per_s <= capacity);
            (peak(outcome.recovery_peak), over.filter(|fits| !fits))
        },
    ),
    (
        "At one instant",
        "The largest share of the cohort whose retries fell on one and the same instant. Jitter is there to keep it small.",
        |_, outcome| {
            let Some(busiest) = outcome.busiest_instant else { return ("–".to_owned(), None) };
            (format!("{} in {}", percent(busiest.share), short(busiest.width)), alarm_unless(busiest.share < 0.1))
        },
    ),
];

/// Good is nothing to speak of, bad is.
fn alarm_unless(good: bool) -> Option<bool> {
    if good { None } else { Some(false) }
}

fn with_share(jobs: u32, share: &str) -> String {
    match jobs {
        0 => "0".to_owned(),
        jobs => format!("{} ({share})", count(jobs.into())),
    }
}

fn peak(peak: Option<Peak>) -> String {
    peak.map_or("–".to_owned(), |peak| format!("{} at {}", count(peak.per_s.into()), short(peak.at)))
}

fn table(page: &mut String, scenario: &Scenario, candidates: &[Candidate<'_>]) {
    page.push_str("<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">What came out</th>");
    for candidate in candidates {
        let _ = write!(page, "<th scope=\"col\">{}</th>", escape(candidate.name));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for (name, why, figure) in LINES {
        let _ = write!(page, "<tr><th scope=\"row\">{}<span class=\"why\">{}</span></th>", escape(name), escape(why));
        for candidate in candidates {
            let (text, good) = figure(scenario, candidate.outcome);
            let class = match good {
                Some(true) => " class=\"fine\"",
                Some(false) => " class=\"alarm\"",
                None => "",
            };
            let _ = write!(page, "<td{class}>{}</td>", escape(&text));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n");
}

fn policy(page: &mut String, scenario: &Scenario, candidate: &Candidate<'_>) {
    match candidate.policy.rule_for(&scenario.failure()) {
        Ok((rule, _)) => {
            let schedule = schedule(candidate.policy, rule, SCHEDULE_ROWS);
            let _ = writeln!(page, "<figure>{}</figure>", schedule_svg::draw(candidate.name, &schedule, true));
        }
        Err(_) => {
            let text = "No rule of this policy handles the failure: every job stops at its first one.";
            let _ = writeln!(page, "<p><strong>{}</strong>: {text}</p>", escape(candidate.name));
        }
    }
    let json = serde_json::to_string_pretty(candidate.policy).unwrap_or_default();
    let _ = writeln!(
        page,
        "<details><summary>{} in canonical form</summary><pre>{}</pre></details>",
        escape(candidate.name),
        escape(&json)
    );
}
