//! Limits on the command line: how many at once, and how many in a time.

use crate::when;
use redrive_policy::Span;
use serde_json::{Value, json};

/// So many runs in a time, written `100/1m`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    limit: u32,
    period: Span,
}

impl Rate {
    /// As the server takes it.
    pub(crate) fn to_json(self) -> Value {
        json!({ "limit": self.limit, "period": format!("PT{}S", self.period.secs()) })
    }
}

/// Reads a rate.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    const ALLOWED: &str = "write a number, a slash and a time, such as 100/1m, 5/s or 1000/1h";
    let (limit, period) = text.split_once('/').ok_or_else(|| ALLOWED.to_owned())?;
    let limit = limit.parse().ok().filter(|limit| *limit > 0).ok_or_else(|| ALLOWED.to_owned())?;
    // A unit alone stands for one of it.
    let period =
        if period.starts_with(|c: char| c.is_ascii_alphabetic()) { format!("1{period}") } else { period.to_owned() };
    let period = when::above_zero(&period).map_err(|why| format!("{why}; {ALLOWED}"))?;
    Ok(Rate { limit, period })
}

/// The limits of a group, as options of a command.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct BoundsArgs {
    /// How many may be active at once; 0 holds all
    #[arg(long, value_name = "N")]
    pub(crate) concurrency: Option<u32>,
    /// How many may start within any span of this length: 100/1m
    #[arg(long, value_name = "N/TIME", value_parser = rate)]
    pub(crate) rate: Option<Rate>,
    /// How many may start in a time, spaced evenly: 10/1s
    #[arg(long, value_name = "N/TIME", value_parser = rate)]
    pub(crate) throttle: Option<Rate>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        let of = |limit, secs| Ok(Rate { limit, period: Span::from_secs(secs) });
        assert_eq!((rate("100/1m"), rate("5/s"), rate("1/90s")), (of(100, 60), of(5, 1), of(1, 90)));
        for wrong in ["", "5", "5/", "/s", "0/s", "-1/s", "5/0s", "5/x"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
