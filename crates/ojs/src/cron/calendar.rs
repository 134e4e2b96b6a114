//! The fields of a cron expression, and the next time on a calendar that fits them.

use super::field::{self, plain_number};
use jiff::civil::{Date, DateTime, Time};
use redrive_policy::Problem;

/// The five or six fields. Each is a set of numbers, as bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Calendar {
    seconds: u64,
    minutes: u64,
    hours: u64,
    months: u64,
    days: Days,
}

/// The two fields that choose days.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Days {
    of_month: u64,
    /// `L`: the last day of the month.
    last: bool,
    /// `15W`: the weekday nearest to a day of the month.
    nearest_weekday: u64,
    of_week: u64,
    /// `5L`: the last such day of the month.
    last_of_week: u64,
    /// `5#3`: the third such day of the month.
    nth_of_week: [u64; 5],
    /// Whether a day has to fit both fields, because one of them has a `*`; otherwise one is enough.
    both: bool,
}

const ALL_HOURS: u64 = (1 << 24) - 1;

impl Calendar {
    /// Reads five fields, or six with seconds first.
    pub(super) fn read(text: &str, problems: &mut Vec<Problem>) -> Option<Self> {
        let before = problems.len();
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let (seconds, [minute, hour, day, month, weekday]) = match *fields.as_slice() {
            [minute, hour, day, month, weekday] => ("0", [minute, hour, day, month, weekday]),
            [second, minute, hour, day, month, weekday] => (second, [minute, hour, day, month, weekday]),
            _ => {
                let allowed = "five fields (minute, hour, day of the month, month, day of the week), six with the \
                               second first, or one of @yearly, @monthly, @weekly, @daily, @hourly and @every 30m";
                let found = format!("\"{text}\", which has {} fields", fields.len());
                problems.push(Problem::new("", found, allowed));
                return None;
            }
        };
        let nothing_special = |_: &str| Ok(false);
        let calendar = Self {
            seconds: field::SECOND.numbers(seconds, problems, nothing_special),
            minutes: field::MINUTE.numbers(minute, problems, nothing_special),
            hours: field::HOUR.numbers(hour, problems, nothing_special),
            days: Days::read(day, weekday, problems),
            months: field::MONTH.numbers(month, problems, nothing_special),
        };
        (problems.len() == before).then_some(calendar)
    }

    /// Whether it fits times in every hour.
    pub(super) const fn has_every_hour(&self) -> bool {
        self.hours == ALL_HOURS
    }

    /// The first time that fits, from `from` to `until`.
    pub(super) fn first(&self, from: DateTime, until: DateTime) -> Option<DateTime> {
        let (mut date, mut time) = (from.date(), from.time());
        while date <= until.date() {
            let next = if has(self.months, date.month()) {
                if self.days.fit(date)
                    && let Some(found) = self.first_time(time)
                {
                    return Some(date.to_datetime(found)).filter(|found| *found <= until);
                }
                date.tomorrow()
            } else {
                date.last_of_month().tomorrow()
            };
            // The calendar ends with the year 9999.
            (date, time) = (next.ok()?, Time::midnight());
        }
        None
    }

    /// The first time of a day that fits, from `from` on.
    fn first_time(&self, from: Time) -> Option<Time> {
        let (hour, minute, second) = (from.hour(), from.minute(), from.second());
        let found = if has(self.hours, hour) {
            let later = || Some((hour, self.from(self.minutes, minute + 1)?, self.from(self.seconds, 0)?));
            let now = self.from(self.seconds, second).filter(|_| has(self.minutes, minute));
            now.map(|second| (hour, minute, second)).or_else(later)
        } else {
            None
        };
        let later =
            || Some((self.from(self.hours, hour + 1)?, self.from(self.minutes, 0)?, self.from(self.seconds, 0)?));
        let (hour, minute, second) = found.or_else(later)?;
        Time::new(hour, minute, second, 0).ok()
    }

    /// The first number of a set, from `from` on.
    const fn from(&self, set: u64, from: i8) -> Option<i8> {
        match set >> from {
            0 => None,
            rest => Some(from + rest.trailing_zeros() as i8),
        }
    }
}

impl Days {
    fn read(day: &str, weekday: &str, problems: &mut Vec<Problem>) -> Self {
        let (mut last, mut nearest_weekday) = (false, 0);
        let of_month = field::DAY.numbers(day, problems, |item| {
            if item.eq_ignore_ascii_case("L") {
                last = true;
                return Ok(true);
            }
            let Some(number) = item.strip_suffix(['W', 'w']) else { return Ok(false) };
            nearest_weekday |= 1 << field::DAY.number(item, number)?;
            Ok(true)
        });
        let (mut last_of_week, mut nth_of_week) = (0, [0; 5]);
        let of_week = field::WEEKDAY.numbers(weekday, problems, |item| {
            let of_week = |text: &str| Ok(field::WEEKDAY.number(item, text)? % 7);
            if let Some((day, nth)) = item.split_once('#') {
                let place = plain_number(nth).and_then(|nth| nth_of_week.get_mut(usize::from(nth).checked_sub(1)?));
                let Some(place) = place else {
                    return Err(field::WEEKDAY.problem(item, "# with a number from 1 to 5 behind it, such as 5#3"));
                };
                *place |= 1 << of_week(day)?;
                return Ok(true);
            }
            let Some(day) = item.strip_suffix(['L', 'l']) else { return Ok(false) };
            if day.is_empty() {
                return Err(field::WEEKDAY.problem(item, "L behind a day, such as 5L for the last Friday"));
            }
            last_of_week |= 1 << of_week(day)?;
            Ok(true)
        });
        // 7 is Sunday as well.
        let of_week = (of_week | of_week >> 7) & 0x7f;
        let both = day.contains('*') || weekday.contains('*');
        Self { of_month, last, nearest_weekday, of_week, last_of_week, nth_of_week, both }
    }

    fn fit(&self, date: Date) -> bool {
        let (month, week) = (self.fit_month(date), self.fit_week(date));
        if self.both { month && week } else { month || week }
    }

    fn fit_month(&self, date: Date) -> bool {
        has(self.of_month, date.day())
            || self.last && date.day() == date.days_in_month()
            || self.nearest_weekday != 0 && (1..=31).any(|day| has(self.nearest_weekday, day) && is_nearest(date, day))
    }

    fn fit_week(&self, date: Date) -> bool {
        let weekday = date.weekday().to_sunday_zero_offset();
        let nth = usize::try_from((date.day() - 1) / 7).unwrap_or(0);
        has(self.of_week, weekday)
            || has(self.nth_of_week[nth], weekday)
            || has(self.last_of_week, weekday) && date.day() + 7 > date.days_in_month()
    }
}

/// Whether a date is the weekday nearest to a day of its month, without leaving the month.
fn is_nearest(date: Date, day: i8) -> bool {
    let last = date.days_in_month();
    let Ok(wanted) = Date::new(date.year(), date.month(), day) else { return false };
    let nearest = match wanted.weekday().to_sunday_zero_offset() {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == last => day - 2,
        0 => day + 1,
        _ => day,
    };
    date.day() == nearest
}

const fn has(set: u64, number: i8) -> bool {
    set >> number & 1 == 1
}
