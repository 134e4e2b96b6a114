//! Cron expressions.

use super::calendar::Calendar;
use redrive_policy::Problem;

/// When a schedule is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expression {
    /// At times of the calendar.
    Calendar(Calendar),
    /// So many milliseconds after the time before.
    Every(i64),
}

/// Names of common expressions.
const ALIASES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

const SHORTEST_MS: i64 = 1_000;
/// Ten years.
const LONGEST_MS: i64 = 3_653 * 86_400_000;
/// The longest expression in bytes: a list of every minute is shorter.
const LONGEST: usize = 500;

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(super) fn read(text: &str) -> Result<Self, Vec<Problem>> {
        if text.len() > LONGEST {
            let found = format!("an expression of {} bytes", text.len());
            return Err(vec![Problem::new("", found, format!("at most {LONGEST} bytes"))]);
        }
        let text = text.trim();
        if let Some(interval) = text.strip_prefix("@every") {
            return every(text, interval).map(Self::Every).map_err(|problem| vec![problem]);
        }
        let fields = match ALIASES.iter().find(|(alias, _)| *alias == text) {
            Some((_, fields)) => fields,
            None if text.starts_with('@') => {
                let aliases = ALIASES.map(|(alias, _)| alias).join(", ");
                return Err(vec![Problem::new("", format!("\"{text}\""), format!("{aliases} or @every 30m"))]);
            }
            None => text,
        };
        let mut problems = Vec::new();
        Calendar::read(fields, &mut problems).map(Self::Calendar).ok_or(problems)
    }
}

/// The interval of an `@every`, such as `1h30m`.
fn every(text: &str, interval: &str) -> Result<i64, Problem> {
    const ALLOWED: &str = "@every and a duration from 1s to ten years, such as @every 45s or @every 1h30m";
    let wrong = || Problem::new("", format!("\"{text}\""), ALLOWED);
    let spaced = interval.starts_with(|letter: char| letter.is_ascii_whitespace());
    let ms = duration_ms(interval.trim_start()).filter(|_| spaced).ok_or_else(wrong)?;
    if (SHORTEST_MS..=LONGEST_MS).contains(&ms) { Ok(ms) } else { Err(wrong()) }
}

/// Whole numbers, each with its unit.
fn duration_ms(text: &str) -> Option<i64> {
    let (mut rest, mut sum) = (text, 0_i64);
    while !rest.is_empty() || text.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (number, unit) = rest.split_at(digits);
        let units = unit.find(|letter: char| letter.is_ascii_digit()).unwrap_or(unit.len());
        let (unit, after) = unit.split_at(units);
        let ms = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        sum = number.parse::<i64>().ok()?.checked_mul(ms)?.checked_add(sum)?;
        rest = after;
    }
    Some(sum)
}
