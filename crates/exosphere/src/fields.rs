//! Reading what callers send, with everything that is wrong at once.

use serde_json::{Map, Value, json};

/// Where a field is: `body` or `path`, then names and positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loc(Vec<Value>);

impl Loc {
    /// The body itself.
    #[must_use]
    pub fn body() -> Self {
        Self(vec!["body".into()])
    }

    /// A part of the path.
    #[must_use]
    pub fn path(name: &str) -> Self {
        Self(vec!["path".into(), name.into()])
    }

    /// A member of this object.
    #[must_use]
    pub fn key(&self, name: &str) -> Self {
        self.with(name.into())
    }

    /// An item of this list.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        self.with(index.into())
    }

    fn with(&self, part: Value) -> Self {
        Self(self.0.iter().cloned().chain([part]).collect())
    }
}

/// A field that is not as it has to be.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    kind: &'static str,
    loc: Loc,
    message: String,
    input: Value,
}

impl FieldError {
    /// The entry of `detail` for it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "type": self.kind, "loc": self.loc.0, "msg": self.message, "input": self.input })
    }

    /// Where it is, as a JSON Pointer into the body.
    #[must_use]
    pub fn pointer(&self) -> String {
        let part = |part: &Value| match part.as_str() {
            Some(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
            None => format!("/{part}"),
        };
        self.loc.0.iter().skip(1).map(part).collect()
    }

    /// What is wrong, and what is allowed.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// A body that is no JSON.
    #[must_use]
    pub fn not_json(why: &str) -> Self {
        let message = format!("the body is not JSON: {why}");
        Self { kind: "json_invalid", loc: Loc::body(), message, input: Value::Null }
    }
}

/// What is wrong so far.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    problems: Vec<FieldError>,
}

impl Reader {
    /// What was read, unless something is wrong.
    pub(crate) fn finish<T>(self, read: T) -> Result<T, Vec<FieldError>> {
        if self.problems.is_empty() { Ok(read) } else { Err(self.problems) }
    }

    pub(crate) fn wrong(&mut self, loc: &Loc, message: impl Into<String>, input: &Value) {
        self.problem("value_error", loc, message.into(), input);
    }

    fn problem(&mut self, kind: &'static str, loc: &Loc, message: String, input: &Value) {
        // Secrets are not repeated, not even to those who have sent them.
        let secret = loc.0.get(1).is_some_and(|first| first == "secrets");
        let input = if secret { Value::Null } else { input.clone() };
        self.problems.push(FieldError { kind, loc: loc.clone(), message, input });
    }

    /// An object with members of these names only.
    pub(crate) fn object<'v>(&mut self, value: &'v Value, loc: &Loc, known: &[&str]) -> Option<&'v Map<String, Value>> {
        let members = self.map(value, loc)?;
        for (name, input) in members.iter().filter(|(name, _)| !known.contains(&name.as_str())) {
            let message = format!("there is no field {name:?} here; allowed are {}", known.join(", "));
            self.problem("extra_forbidden", &loc.key(name), message, input);
        }
        Some(members)
    }

    /// An object with any members.
    pub(crate) fn map<'v>(&mut self, value: &'v Value, loc: &Loc) -> Option<&'v Map<String, Value>> {
        let members = value.as_object();
        if members.is_none() {
            self.problem("dict_type", loc, format!("found {}; an object is required", named(value)), value);
        }
        members
    }

    /// A member that has to be there.
    pub(crate) fn required<'v>(&mut self, members: &'v Map<String, Value>, name: &str, loc: &Loc) -> Option<&'v Value> {
        let found = members.get(name);
        if found.is_none() {
            let message = "the field is required".to_owned();
            self.problem("missing", &loc.key(name), message, &Value::Null);
        }
        found
    }

    pub(crate) fn text(&mut self, members: &Map<String, Value>, name: &str, loc: &Loc) -> Option<String> {
        let value = self.required(members, name, loc)?;
        self.string(value, &loc.key(name))
    }

    pub(crate) fn string(&mut self, value: &Value, loc: &Loc) -> Option<String> {
        let text = value.as_str().map(str::to_owned);
        if text.is_none() {
            self.problem("string_type", loc, format!("found {}; a string is required", named(value)), value);
        }
        text
    }

    /// A string that is not empty once blanks around it are removed.
    pub(crate) fn trimmed(&mut self, members: &Map<String, Value>, name: &str, loc: &Loc) -> Option<String> {
        let text = self.text(members, name, loc)?.trim().to_owned();
        if text.is_empty() {
            self.wrong(&loc.key(name), "found an empty string; a name is required", &members[name]);
            return None;
        }
        Some(text)
    }

    pub(crate) fn list<'v>(&mut self, value: &'v Value, loc: &Loc) -> &'v [Value] {
        let Some(items) = value.as_array() else {
            self.problem("list_type", loc, format!("found {}; a list is required", named(value)), value);
            return &[];
        };
        items
    }

    /// A whole number within bounds.
    pub(crate) fn whole(&mut self, value: &Value, loc: &Loc, least: i64, most: i64) -> Option<i64> {
        let number = value.as_i64().filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let message = format!("found {value}; a whole number from {least} to {most} is required");
            self.problem("int_type", loc, message, value);
        }
        number
    }

    /// An object whose values are strings.
    pub(crate) fn texts(&mut self, value: &Value, loc: &Loc) -> Vec<(String, String)> {
        let Some(members) = self.map(value, loc) else { return Vec::new() };
        let read = |(name, value): (&String, &Value)| Some((name.clone(), self.string(value, &loc.key(name))?));
        members.iter().filter_map(read).collect()
    }
}

/// What a value is, without its contents.
const fn named(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
