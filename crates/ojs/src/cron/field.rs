//! One field of a cron expression: which numbers it has.

use redrive_policy::Problem;

/// What a field may have.
pub(super) struct Allowed {
    pub(super) name: &'static str,
    pub(super) least: u8,
    pub(super) most: u8,
    /// Names for numbers, from the least on.
    pub(super) names: &'static [&'static str],
}

pub(super) const SECOND: Allowed = Allowed { name: "second", least: 0, most: 59, names: &[] };
pub(super) const MINUTE: Allowed = Allowed { name: "minute", least: 0, most: 59, names: &[] };
pub(super) const HOUR: Allowed = Allowed { name: "hour", least: 0, most: 23, names: &[] };
pub(super) const DAY: Allowed = Allowed { name: "day of the month", least: 1, most: 31, names: &[] };
pub(super) const MONTH: Allowed = Allowed {
    name: "month",
    least: 1,
    most: 12,
    names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
};
pub(super) const WEEKDAY: Allowed =
    Allowed { name: "day of the week", least: 0, most: 7, names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"] };

impl Allowed {
    /// The numbers of a list of `*`, numbers, ranges and steps. Items that `special` takes are not among them.
    pub(super) fn numbers(
        &self,
        text: &str,
        problems: &mut Vec<Problem>,
        mut special: impl FnMut(&str) -> Result<bool, Problem>,
    ) -> u64 {
        let mut numbers = 0;
        for item in text.split(',') {
            match special(item) {
                Ok(true) => {}
                Ok(false) => match self.item(item) {
                    Ok(found) => numbers |= found,
                    Err(problem) => problems.push(problem),
                },
                Err(problem) => problems.push(problem),
            }
        }
        numbers
    }

    fn item(&self, item: &str) -> Result<u64, Problem> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(self.step(item, step)?)),
            None => (item, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.least, self.most),
            Some((first, last)) => self.range(item, first, last)?,
            None => {
                let first = self.number(item, range)?;
                // With a step, a single number is where the steps begin.
                (first, if step.is_some() { self.most } else { first })
            }
        };
        Ok((first..=last).step_by(usize::from(step.unwrap_or(1))).fold(0, |all, number| all | 1 << number))
    }

    fn range(&self, item: &str, first: &str, last: &str) -> Result<(u8, u8), Problem> {
        let (first, named) = (self.number(item, first)?, last);
        let last = match self.number(item, last)? {
            // Sunday ends a week as well as it begins one.
            0 if self.most == 7 && first > 0 && named.eq_ignore_ascii_case("SUN") => 7,
            last => last,
        };
        if first <= last {
            return Ok((first, last));
        }
        let (least, most) = (self.least, self.most);
        let allowed = format!("a range that ascends; write \"{first}-{most},{least}-{last}\"");
        Err(self.problem(item, &allowed))
    }

    fn step(&self, item: &str, step: &str) -> Result<u8, Problem> {
        let most = self.most;
        let number = plain_number(step).filter(|step| (1..=most).contains(step));
        number.ok_or_else(|| self.problem(item, &format!("a step from 1 to {most}")))
    }

    /// A number or a name in `item`.
    pub(super) fn number(&self, item: &str, text: &str) -> Result<u8, Problem> {
        let named = self.names.iter().zip(self.least..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        let number = plain_number(text).filter(|number| (self.least..=self.most).contains(number));
        number.or(named.map(|(_, number)| number)).ok_or_else(|| {
            let Self { least, most, .. } = self;
            let names = match self.names {
                [first, .., last] => format!(", {first} to {last}"),
                _ => String::new(),
            };
            self.problem(item, &format!("{least} to {most}{names}, and lists, ranges and steps of these"))
        })
    }

    /// That an item is not allowed.
    pub(super) fn problem(&self, item: &str, allowed: &str) -> Problem {
        Problem::with_message("", format!("the {}: found \"{item}\"; allowed is {allowed}", self.name))
    }
}

/// A number of digits alone: no sign, and at most three of them.
pub(super) fn plain_number(text: &str) -> Option<u8> {
    let digits = !text.is_empty() && text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}
