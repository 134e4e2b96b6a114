//! Numbers and timings for people.

use crate::lab::schedule::{Schedule, Track};
use crate::lab::simulate::{Arrival, Outcome, Scenario};
use crate::{Backoff, Curve, Jitter, Span};

/// A whole number with its thousands apart: `1,250,000`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with at most two decimals.
pub(super) fn decimal(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A share in per cent: `50 %`, `0.4 %`. Never rounded to a whole that it is not: `> 99.9 %`.
pub(super) fn percent(share: f64) -> String {
    let tenths = (share * 1000.0).round();
    if tenths >= 1000.0 && share < 1.0 {
        "> 99.9 %".to_owned()
    } else if tenths <= 0.0 && share > 0.0 {
        "< 0.1 %".to_owned()
    } else {
        format!("{} %", tenths / 10.0)
    }
}

/// The share that `part` is of `whole`.
pub(super) fn percent_of(part: u64, whole: u64) -> String {
    percent(if whole == 0 { 0.0 } else { part as f64 / whole as f64 })
}

/// The shares of several parts of one whole, which add up to 100 %.
///
/// Tenths of a per cent that rounding down leaves over go to the parts that lost most by it.
pub(super) fn percents(parts: &[u64]) -> Vec<String> {
    let whole: u128 = parts.iter().map(|part| u128::from(*part)).sum();
    if whole == 0 {
        return parts.iter().map(|_| percent(0.0)).collect();
    }
    let exact = |part: u64| u128::from(part) * 1000;
    let mut tenths: Vec<u128> = parts.iter().map(|part| exact(*part) / whole).collect();
    let mut by_rest: Vec<usize> = (0..parts.len()).collect();
    by_rest.sort_by_key(|index| std::cmp::Reverse(exact(parts[*index]) % whole));
    let left_over = 1000 - tenths.iter().sum::<u128>();
    for index in by_rest.into_iter().take(usize::try_from(left_over).unwrap_or(0)) {
        tenths[index] += 1;
    }
    let told = |(part, tenths): (&u64, u128)| match tenths {
        0 if *part > 0 => "< 0.1 %".to_owned(),
        1000 if u128::from(*part) < whole => "> 99.9 %".to_owned(),
        tenths => format!("{} %", tenths as f64 / 10.0),
    };
    parts.iter().zip(tenths).map(told).collect()
}

/// A span to three digits or so, because a picture has no room for `2 min 13.482 s`.
pub(super) fn short(span: Span) -> String {
    let rounded = match span.ms() {
        0.0 => return "0 s".to_owned(),
        ms if ms < 10.0 => (ms * 100.0).round() / 100.0,
        ms if ms < 1_000.0 => ms.round(),
        ms if ms < 10_000.0 => (ms / 10.0).round() * 10.0,
        ms if ms < 60_000.0 => (ms / 100.0).round() * 100.0,
        ms => ms,
    };
    Span::saturating_ms(rounded).to_string()
}

/// `1 s to 3 s`, or the one span that it always is.
pub(super) fn range(track: Track) -> String {
    let (shortest, longest) = (short(track.shortest), short(track.longest));
    if shortest == longest { shortest } else { format!("{shortest} to {longest}") }
}

/// A timing in one line: `1 s × 2ⁿ⁻¹, at most 5 min, jitter ×0.5–1.5`.
pub(super) fn timing(backoff: &Backoff) -> String {
    let mut parts = Vec::new();
    let initial = short(backoff.initial);
    if backoff.jitter == Jitter::Decorrelated {
        parts.push(format!("{initial} to three times the delay before"));
    } else {
        let offset = if backoff.offset.is_zero() { String::new() } else { format!("{} + ", short(backoff.offset)) };
        let growth = match backoff.curve {
            Curve::Fixed => String::new(),
            Curve::Exponential { rate: 1.0 } => String::new(),
            Curve::Linear => " × n".to_owned(),
            Curve::Exponential { rate } => format!(" × {}ⁿ⁻¹", decimal(rate)),
            Curve::Polynomial { exponent, first: 1 } => format!(" × n^{}", decimal(exponent)),
            Curve::Polynomial { exponent, first: 0 } => format!(" × (n−1)^{}", decimal(exponent)),
            Curve::Polynomial { exponent, first } => format!(" × (n+{})^{}", first - 1, decimal(exponent)),
        };
        parts.push(format!("{offset}{initial}{growth}"));
    }
    parts.extend(backoff.cap.map(|cap| format!("at most {}", short(cap.at))));
    parts.push(backoff.jitter.to_string());
    parts.join(", ")
}

/// What a schedule comes to, in sentences.
pub(super) fn findings(schedule: &Schedule) -> Vec<String> {
    let mut findings = Vec::new();
    match (schedule.retries, schedule.total) {
        (Some(0), _) => findings.push("No retry: the first failure is the last.".to_owned()),
        (Some(retries), Some(total)) => {
            let retries =
                if retries == 1 { "1 retry".to_owned() } else { format!("{} retries", count(retries.into())) };
            let (mean, all) = (short(total.mean), range(total));
            let all = if all == mean { String::new() } else { format!(" ({all})") };
            let or_more = if !schedule.complete || total.mean >= Span::MAX { " or more" } else { "" };
            findings.push(format!("Gives up after {retries}, {mean}{all}{or_more} after the first failure."));
        }
        _ => findings.push("No limit on attempts.".to_owned()),
    }
    if let Some(limit) = schedule.elapsed_limit {
        let limit_at = short(limit.limit);
        findings.push(match limit.mean {
            Some(end) => format!(
                "The time limit of {limit_at} refuses retry {} where delays are the mean ones.",
                count(end.retry.into())
            ),
            None => format!("The time limit of {limit_at} is not reached where delays are the mean ones."),
        });
    }
    let crowd = schedule
        .rows
        .iter()
        .filter(|row| row.on_one_instant > 0.0)
        .max_by(|a, b| a.on_one_instant.total_cmp(&b.on_one_instant).then(b.retry.cmp(&a.retry)));
    if let Some(row) = crowd {
        let why = if row.capped && !schedule.backoff.jitter.is_none() {
            "the cap undoes the jitter"
        } else {
            "nothing spreads them"
        };
        let last = schedule.rows.last().is_none_or(|last| last.retry == row.retry);
        let when = if last { format!("At retry {}", row.retry) } else { format!("From retry {} on", row.retry) };
        let share = percent(row.on_one_instant);
        findings.push(format!(
            "{when}, {share} of the jobs that fail in one instant come back in one instant, because {why}."
        ));
    }
    findings
}

/// What happens in a scenario.
pub(super) fn scenario_sentence(scenario: &Scenario) -> String {
    let arrival = match scenario.arrival {
        Arrival::AllAtOnce => "All jobs arrive at once".to_owned(),
        Arrival::PerSecond(rate) => format!("{} jobs arrive per second", decimal(rate)),
    };
    let outage = match scenario.outage.is_zero() {
        true => "; there is no outage".to_owned(),
        false => format!("; every attempt fails for {}", short(scenario.outage)),
    };
    let capacity = match scenario.capacity_per_s {
        Some(capacity) => format!("; after that, {} attempts per second are served", count(capacity.into())),
        None => "; after that, all are served".to_owned(),
    };
    let chance = match scenario.failure_rate_after {
        rate if rate > 0.0 => format!(", and {} of those fail", percent(rate)),
        _ => String::new(),
    };
    format!("{arrival}{outage}{capacity}{chance}.")
}

/// The shares of the cohort that are done, that gave up, and that still wait.
pub(super) fn shares(outcome: &Outcome) -> [String; 3] {
    let parts = [outcome.succeeded, outcome.given_up, outcome.waiting].map(u64::from);
    let mut shares = percents(&parts).into_iter();
    parts.map(|_| shares.next().unwrap_or_default())
}

/// What became of the cohort, and whether that is as it should be.
pub(super) fn verdict(scenario: &Scenario, outcome: &Outcome) -> (String, bool) {
    let jobs = u64::from(scenario.jobs);
    let [done, gave_up, waiting] = shares(outcome);
    let mut parts = Vec::new();
    match outcome.last_done {
        Some(last) if outcome.succeeded == scenario.jobs => parts.push(format!("all done after {}", short(last))),
        _ => parts.push(format!("{done} done")),
    }
    if outcome.given_up > 0 {
        let after = match outcome.given_up_after_recovery {
            0 => String::new(),
            all if all == outcome.given_up => ", all of them after the outage".to_owned(),
            some => format!(", {} of all jobs after the outage", percent_of(some.into(), jobs)),
        };
        parts.push(format!("{gave_up} gave up{after}"));
    }
    if outcome.waiting > 0 {
        parts.push(format!("{waiting} still waiting"));
    }
    (parts.join("; "), outcome.succeeded == scenario.jobs)
}

/// The figures of an outcome in one line.
pub(super) fn summary(scenario: &Scenario, outcome: &Outcome) -> String {
    let per_job = outcome.attempts as f64 / f64::from(scenario.jobs);
    let mut parts =
        vec![format!("{} attempts per job, {} in vain", tenths(per_job), percent_of(outcome.wasted, outcome.attempts))];
    if let Some(peak) = outcome.retry_peak {
        parts.push(format!("busiest second {} retries", count(peak.per_s.into())));
    }
    if let Some(busiest) = outcome.busiest_instant {
        parts.push(format!("busiest {} {} of the cohort", short(busiest.width), percent(busiest.share)));
    }
    if outcome.cut_short > 0 {
        parts.push(format!("{} jobs cut short in an endless loop", count(outcome.cut_short.into())));
    }
    parts.join(" · ")
}

/// A number with one decimal where it is small enough for that to matter.
pub(super) fn tenths(number: f64) -> String {
    if number < 100.0 { format!("{number:.1}") } else { count(number.round() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable_and_never_claim_too_much() {
        assert_eq!([count(0), count(999), count(1_000), count(12_345_678)], ["0", "999", "1,000", "12,345,678"]);
        assert_eq!([percent(0.0), percent(1.0), percent(0.5), percent(0.1234)], ["0 %", "100 %", "50 %", "12.3 %"]);
        assert_eq!([percent(0.999_99), percent(0.000_01)], ["> 99.9 %", "< 0.1 %"]);
        assert_eq!(short(Span::saturating_ms(1234.567)), "1.23 s");
    }

    #[test]
    fn shares_of_one_whole_add_up() {
        assert_eq!(percents(&[1, 1, 1]), ["33.4 %", "33.3 %", "33.3 %"]);
        assert_eq!(percents(&[2, 1, 0]), ["66.7 %", "33.3 %", "0 %"]);
        assert_eq!(percents(&[9_999, 1]), ["> 99.9 %", "< 0.1 %"]);
        assert_eq!(percents(&[10_000, 0]), ["100 %", "0 %"]);
        assert_eq!(percents(&[0, 0]), ["0 %", "0 %"]);
    }

    #[test]
    fn a_timing_reads_like_its_formula() {
        let backoff = Backoff { curve: Curve::Exponential { rate: 2.0 }, ..Backoff::fixed(Span::from_secs(1)) };
        assert_eq!(timing(&backoff), "1 s × 2ⁿ⁻¹, no jitter");
        let faktory = Backoff {
            offset: Span::from_secs(15),
            curve: Curve::Polynomial { exponent: 4.0, first: 0 },
            jitter: Jitter::Added { step: Span::from_secs(30) },
            ..backoff
        };
        assert_eq!(timing(&faktory), "15 s + 1 s × (n−1)^4, added jitter up to 30 s × n");
    }
}
