//! Cron triggers: when a graph is triggered by itself.

use crate::fields::{Loc, Reader};
use redrive_ojs::cron::Schedule;
use redrive_policy::Moment;
use serde_json::Value;

/// How many triggers a graph may have.
const MOST_TRIGGERS: usize = 100;
/// Triggers have no time zone, and Exosphere's documents say that they are in UTC.
const ZONE: &str = "UTC";

/// Reads the triggers of a graph as it is put: their expressions.
pub(super) fn triggers(reader: &mut Reader, value: &Value, loc: &Loc) -> Vec<String> {
    let listed = reader.list(value, loc);
    if listed.len() > MOST_TRIGGERS {
        let message = format!("found {} triggers; at most {MOST_TRIGGERS} are allowed", listed.len());
        reader.wrong(loc, message, &Value::Null);
        return Vec::new();
    }
    listed.iter().enumerate().filter_map(|(index, value)| trigger(reader, value, &loc.item(index))).collect()
}

fn trigger(reader: &mut Reader, value: &Value, loc: &Loc) -> Option<String> {
    let members = reader.object(value, loc, &["type", "value"])?;
    if let Some(kind) = reader.required(members, "type", loc).filter(|kind| *kind != "CRON") {
        reader.wrong(&loc.key("type"), format!("found {kind}; allowed is \"CRON\""), kind);
    }
    let (value, loc) = (reader.required(members, "value", loc)?, loc.key("value"));
    let members = reader.object(value, &loc, &["expression"])?;
    let expression = reader.text(members, "expression", &loc)?;
    for message in schedule(&expression).err().unwrap_or_default() {
        reader.wrong(&loc.key("expression"), message, &members["expression"]);
    }
    Some(expression)
}

/// The schedule of an expression: five fields, six with the second as the last one, or a name such as `@daily`.
///
/// # Errors
/// Everything that is wrong with it.
pub(crate) fn schedule(expression: &str) -> Result<Schedule, Vec<String>> {
    let fields: Vec<&str> = expression.split_ascii_whitespace().collect();
    // Exosphere has seconds behind the other fields, and schedules of Open Job Spec before them.
    let moved = match fields[..] {
        [minute, hour, day, month, weekday, second] => [second, minute, hour, day, month, weekday].join(" "),
        ["@every", ..] => {
            return Err(vec![format!(
                "found {expression:?}; an interval is no time of the calendar: write \"*/30 * * * *\""
            )]);
        }
        _ => fields.join(" "),
    };
    let schedule = Schedule::read(&moved, ZONE).map_err(|(expression, zone)| {
        let problems = expression.into_iter().chain(zone);
        problems.map(|problem| problem.message.replace("second first", "second last")).collect::<Vec<_>>()
    })?;
    // The calendar repeats itself, so that it makes no difference from when it is asked.
    let start = Moment::from_micros(0);
    match schedule.next(start, start) {
        Some(_) => Ok(schedule),
        None => Err(vec![format!("found {expression:?}, which is never due: there is no such day")]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(expression: &str) -> i64 {
        let start = Moment::from_micros(0);
        schedule(expression).unwrap().next(start, start).unwrap().micros() / 1_000_000
    }

    #[test]
    fn exosphere_12_an_expression_has_five_fields_or_seconds_as_the_sixth() {
        assert_eq!(next("*/5 * * * *"), 300);
        assert_eq!(next("0 0 * * *"), 86_400);
        assert_eq!(next("@daily"), 86_400);
        assert_eq!(next(" 1  0 * * *\t30 "), 90);
        assert_eq!(next("* * * * * */15"), 15);
    }

    #[test]
    fn what_is_never_due_or_no_expression_is_refused_with_a_reason() {
        for (wrong, says) in [
            ("0 0 31 2 *", "never due"),
            ("@every 30m", "interval"),
            ("* * * *", "second last"),
            ("61 * * * *", "minute"),
            ("61 25 * * *", "minute"),
            ("* * * * * 60", "second"),
            ("", "fields"),
        ] {
            let problems = schedule(wrong).unwrap_err();
            assert!(problems[0].contains(says), "{wrong:?}: {problems:?}");
        }
        assert_eq!(schedule("61 25 * * *").unwrap_err().len(), 2, "every reason at once");
    }
}
