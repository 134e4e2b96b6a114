//! A strict reader of JSON objects that collects every problem instead of stopping at the first.

use super::Warning;
use super::duration::{Parsed, go_duration, iso_duration, seconds, signed_iso_duration};
use crate::problem::{member, shown};
use crate::{Pattern, Problem, Span, resembling};
use serde_json::{Map, Value};

/// What has been found while reading one document.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<Warning>,
}

/// One object, and where it stands.
pub(crate) struct Fields<'a> {
    path: String,
    object: Option<&'a Map<String, Value>>,
}

/// The largest number of attempts: what a 32-bit count can hold.
const MOST_ATTEMPTS: u64 = u32::MAX as u64;

impl<'a> Fields<'a> {
    /// The document itself, which must be an object.
    pub(crate) fn document(value: &'a Value, findings: &mut Findings) -> Self {
        Self::object(String::new(), Some(value), findings)
    }

    /// A value inside of a larger document, which must be an object.
    pub(super) fn at(path: &str, value: &'a Value, findings: &mut Findings) -> Self {
        Self::object(path.to_owned(), Some(value), findings)
    }

    /// An object that is not there.
    pub(super) fn absent() -> Self {
        Self { path: String::new(), object: None }
    }

    fn object(path: String, value: Option<&'a Value>, findings: &mut Findings) -> Self {
        let object = value.and_then(Value::as_object);
        if let (Some(value), None) = (value, object) {
            findings.problems.push(Problem::new(path.clone(), shown(value), "an object"));
        }
        Self { path, object }
    }

    /// The object under `key`; where it is absent, one without fields.
    pub(crate) fn nested(&self, key: &str, findings: &mut Findings) -> Self {
        Self::object(self.path_of(key), self.get(key), findings)
    }

    /// The items of the array under `key`, each as an object of its own.
    pub(super) fn items(&self, key: &str, findings: &mut Findings) -> Option<Vec<Fields<'a>>> {
        let items = self.array(key, findings)?;
        let path = self.path_of(key);
        let item = |(index, value)| Self::object(format!("{path}/{index}"), Some(value), findings);
        Some(items.iter().enumerate().map(item).collect())
    }

    pub(crate) fn path_of(&self, key: &str) -> String {
        member(&self.path, key)
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.object.and_then(|object| object.get(key))
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Whether the field is there and says something, for systems that take `null` for absent.
    pub(crate) fn given(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| !value.is_null())
    }

    pub(super) fn is_present_and_empty(&self) -> bool {
        self.object.is_some_and(Map::is_empty)
    }

    /// Refuses every field that is not known, with the known one that it resembles.
    pub(crate) fn only(&self, known: &[&str], findings: &mut Findings) {
        for (key, _) in self.object.into_iter().flatten() {
            if known.contains(&key.as_str()) {
                continue;
            }
            let hint = match (resembling(key, known), key.as_str()) {
                (Some(near), _) => format!("; did you mean \"{near}\"?"),
                (None, "retry_policy" | "retryPolicy" | "retry") => "; pass only what is inside of it".to_owned(),
                (None, _) => String::new(),
            };
            let message = format!("unknown field; allowed are {}{hint}", known.join(", "));
            findings.problems.push(Problem::with_message(self.path_of(key), message));
        }
    }

    /// Warns of every field that is not known and therefore ignored, with the known one that it resembles.
    pub(super) fn ignores_but(&self, known: &[&str], findings: &mut Findings) {
        for key in self.object.into_iter().flat_map(Map::keys).filter(|key| !known.contains(&key.as_str())) {
            let instead = match resembling(key, known) {
                Some(near) => format!("\"{near}\", if that is what you mean"),
                None => format!("remove {key}, or write it as one of {}", known.join(", ")),
            };
            findings.warnings.push(Warning {
                code: "ignored-key",
                path: self.path_of(key),
                message: "unknown key at the top, which this dialect ignores: it changes nothing".to_owned(),
                instead,
            });
        }
    }

    /// Notes a field that must be there.
    pub(crate) fn require(&self, key: &str, allowed: &str, findings: &mut Findings) {
        if self.object.is_some() && !self.has(key) {
            findings.problems.push(Problem::with_message(self.path_of(key), format!("missing; {allowed} is required")));
        }
    }

    /// The value under `key` as `parse` understands it; where it does not, a problem.
    pub(crate) fn read<T>(
        &self,
        key: &str,
        allowed: &str,
        findings: &mut Findings,
        parse: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(key)?;
        let parsed = parse(value);
        if parsed.is_none() {
            findings.problems.push(Problem::new(self.path_of(key), shown(value), allowed));
        }
        parsed
    }

    /// A number of attempts or retries. JSON has no integers: `3.0` is one, `2.5` is not.
    pub(crate) fn count(&self, key: &str, least: u32, findings: &mut Findings) -> Option<u32> {
        self.whole(key, u64::from(least), MOST_ATTEMPTS, findings).and_then(|n| u32::try_from(n).ok())
    }

    /// As [`Fields::count`], where `null` is allowed too and comes back as `Some(None)`.
    pub(super) fn count_or_null(&self, key: &str, least: u32, findings: &mut Findings) -> Option<Option<u32>> {
        match self.get(key) {
            Some(Value::Null) => Some(None),
            _ => self.count(key, least, findings).map(Some),
        }
    }

    /// A number of attempts that may be negative.
    pub(super) fn signed_count(&self, key: &str, findings: &mut Findings) -> Option<i64> {
        let allowed = format!("a whole number, at most {MOST_ATTEMPTS}; 0 and below set no limit");
        self.read(key, &allowed, findings, |value| {
            let number = value.as_f64().filter(|n| n.fract() == 0.0 && *n <= MOST_ATTEMPTS as f64)?;
            Some(number as i64)
        })
    }

    /// A whole number between two bounds.
    pub(crate) fn whole(&self, key: &str, least: u64, most: u64, findings: &mut Findings) -> Option<u64> {
        let allowed = format!("a whole number from {least} to {most}");
        self.read(key, &allowed, findings, |value| as_whole(value).filter(|n| (least..=most).contains(n)))
    }

    /// A whole number of milliseconds, longer than none; what is too long saturates.
    pub(super) fn whole_ms(&self, key: &str, findings: &mut Findings) -> Option<Span> {
        let parse = |value: &Value| {
            let ms = value.as_f64().filter(|ms| ms.fract() == 0.0 && *ms >= 1.0)?;
            Some(Span::saturating_ms(ms))
        };
        self.read(key, "a whole number of milliseconds, at least 1", findings, parse)
    }

    /// A number of at least `least`.
    pub(super) fn number(&self, key: &str, least: f64, findings: &mut Findings) -> Option<f64> {
        let parse = |value: &Value| value.as_f64().filter(|n| *n >= least);
        self.read(key, &format!("a number of at least {least}"), findings, parse)
    }

    /// A number from 0 to 1.
    pub(crate) fn fraction(&self, key: &str, findings: &mut Findings) -> Option<f64> {
        let parse = |value: &Value| value.as_f64().filter(|n| (0.0..=1.0).contains(n));
        self.read(key, "a number from 0 to 1", findings, parse)
    }

    /// A number of seconds, at least 0.
    pub(crate) fn seconds(&self, key: &str, findings: &mut Findings) -> Option<Span> {
        let parse = |value: &Value| value.as_f64().filter(|n| *n >= 0.0).map(seconds);
        self.read(key, "a number of seconds, at least 0", findings, parse)
    }

    /// A number of milliseconds, at least 0.
    pub(super) fn ms(&self, key: &str, findings: &mut Findings) -> Option<Span> {
        let parse = |value: &Value| value.as_f64().filter(|n| *n >= 0.0).map(Span::saturating_ms);
        self.read(key, "a number of milliseconds, at least 0", findings, parse)
    }

    pub(crate) fn text(&self, key: &str, findings: &mut Findings) -> Option<&'a str> {
        self.read(key, "a string", findings, Value::as_str)
    }

    pub(crate) fn boolean(&self, key: &str, findings: &mut Findings) -> Option<bool> {
        self.read(key, "true or false", findings, Value::as_bool)
    }

    /// One of a closed list of words.
    pub(crate) fn word<T: Copy>(&self, key: &str, words: &[(&str, T)], findings: &mut Findings) -> Option<T> {
        let names: Vec<String> = words.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        self.read(key, &format!("one of {}", names.join(", ")), findings, |value| {
            let found = value.as_str()?;
            words.iter().find(|(name, _)| *name == found).map(|(_, meaning)| *meaning)
        })
    }

    /// An ISO 8601 duration as OJS §14 has it; months and years draw a warning.
    pub(super) fn iso(&self, key: &str, findings: &mut Findings) -> Option<Span> {
        const ALLOWED: &str = "an ISO 8601 duration such as \"PT0.5S\", \"PT30S\", \"PT5M\" or \"P1DT2H\" \
             (no weeks, no sign, fractions on seconds only)";
        self.duration(key, ALLOWED, iso_duration, findings)
    }

    /// An ISO 8601 duration as MWL has it: weeks too, and a negative one counts as zero.
    pub(super) fn signed_iso(&self, key: &str, findings: &mut Findings) -> Option<Span> {
        const ALLOWED: &str = "an ISO 8601 duration such as \"PT0.5S\", \"PT30S\", \"PT5M\" or \"P1DT2H\"";
        self.duration(key, ALLOWED, signed_iso_duration, findings)
    }

    fn duration(
        &self,
        key: &str,
        allowed: &str,
        parse: impl Fn(&str) -> Option<Parsed>,
        findings: &mut Findings,
    ) -> Option<Span> {
        let Parsed { span, calendar } = self.read(key, allowed, findings, |value| value.as_str().and_then(parse))?;
        if calendar {
            findings.warnings.push(Warning {
                code: "calendar-duration",
                path: self.path_of(key),
                message: format!(
                    "months and years vary in length; this is taken as {span} (a month 30 days, a year 365)"
                ),
                instead: format!("days or hours, such as \"{}\"", super::duration::to_iso(span)),
            });
        }
        Some(span)
    }

    /// A duration in Go's notation.
    pub(super) fn go(&self, key: &str, findings: &mut Findings) -> Option<Span> {
        const ALLOWED: &str = "a duration in Go's form, not negative, such as \"200ms\", \"1.5s\" or \"1h30m\"";
        self.read(key, ALLOWED, findings, |value| value.as_str().and_then(go_duration))
    }

    fn array(&self, key: &str, findings: &mut Findings) -> Option<&'a Vec<Value>> {
        self.read(key, "an array", findings, Value::as_array)
    }

    /// An array of strings, each read by `pattern`, which answers `None` for what is not allowed.
    pub(crate) fn patterns(
        &self,
        key: &str,
        allowed: &str,
        findings: &mut Findings,
        pattern: impl Fn(&str) -> Option<Pattern>,
    ) -> Option<Vec<Pattern>> {
        let items = self.array(key, findings)?;
        let mut patterns = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match item.as_str().and_then(&pattern) {
                Some(pattern) => patterns.push(pattern),
                None => {
                    let path = format!("{}/{index}", self.path_of(key));
                    findings.problems.push(Problem::new(path, shown(item), allowed));
                }
            }
        }
        Some(patterns)
    }
}

fn as_whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        // Exact as long as a double can represent every whole number.
        let number = value.as_f64().filter(|n| n.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(n))?;
        Some(number as u64)
    })
}
