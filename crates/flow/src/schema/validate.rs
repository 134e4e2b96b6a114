//! Whether a value is valid, and every reason why it is not.

use super::formats::fits;
use super::{Bound, Id, Rule, Schema, Size};
use crate::problem::join;
use serde_json::{Value, json};
use std::cell::Cell;

/// How many schemas are applied inside of each other. References in a circle end here.
const MAX_DEPTH: usize = 256;
/// How many schemas are applied to one value. Alternatives that refer to each other could be very many.
const MAX_APPLIED: u32 = 100_000;
/// How many problems are reported.
const MAX_PROBLEMS: usize = 20;

/// One reason why a value is not valid.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Invalid {
    /// The JSON Pointer in the value.
    pub(crate) path: String,
    /// The JSON Pointer in the schema.
    pub(crate) schema: String,
    pub(crate) message: String,
    /// What was found there.
    pub(crate) found: Value,
}

impl Invalid {
    /// As details of a failure have it.
    pub(crate) fn to_value(&self) -> Value {
        json!({ "path": self.path, "schema": self.schema, "message": self.message, "value": self.found })
    }
}

impl Schema {
    /// Every problem of the value; none where it is valid.
    pub(crate) fn problems(&self, value: &Value) -> Vec<Invalid> {
        let mut found = Vec::new();
        self.apply(0, value, "", At { depth: 0, left: &Cell::new(MAX_APPLIED) }, &mut found);
        found.truncate(MAX_PROBLEMS);
        found
    }

    fn valid(&self, id: Id, value: &Value, at: At<'_>) -> bool {
        let mut found = Vec::new();
        self.apply(id, value, "", at.deeper(), &mut found);
        found.is_empty()
    }

    fn apply(&self, id: Id, value: &Value, path: &str, at: At<'_>, found: &mut Vec<Invalid>) {
        let rules = &self.nodes[id];
        let mut add = |keyword: &str, message: String| {
            if found.len() < MAX_PROBLEMS {
                let schema = format!("{}{keyword}", rules.path);
                found.push(Invalid { path: path.to_owned(), schema, message, found: value.clone() });
            }
        };
        at.left.set(at.left.get().saturating_sub(1));
        if at.depth > MAX_DEPTH || at.left.get() == 0 {
            return add("", "the schema refers to itself too often to be applied".to_owned());
        }
        if rules.never {
            return add("", "nothing is allowed here".to_owned());
        }
        for rule in &rules.rules {
            match self.check(rule, value, at) {
                Checked::Fine => {}
                Checked::Wrong(keyword, message) => {
                    if found.len() < MAX_PROBLEMS {
                        let schema = format!("{}/{keyword}", rules.path);
                        found.push(Invalid { path: path.to_owned(), schema, message, found: value.clone() });
                    }
                }
                Checked::Inside(parts) => {
                    for (schema, part, name) in parts {
                        let path = name.map_or_else(|| path.to_owned(), |name| join(path, &name));
                        self.apply(schema, part, &path, at.deeper(), found);
                    }
                }
            }
        }
    }

    fn check<'v>(&self, rule: &Rule, value: &'v Value, at: At<'_>) -> Checked<'v> {
        let wrong = |keyword: &'static str, message: String| Checked::Wrong(keyword, message);
        let holds = |holds: bool, keyword: &'static str, message: &dyn Fn() -> String| {
            if holds { Checked::Fine } else { Checked::Wrong(keyword, message()) }
        };
        match rule {
            Rule::Types(types) => holds(types.iter().any(|kind| is(kind, value)), "type", &|| {
                format!("the type is not {}", types.join(" or "))
            }),
            Rule::Enum(allowed) => holds(allowed.iter().any(|other| same(other, value)), "enum", &|| {
                format!("allowed is one of {}", Value::Array(allowed.clone()))
            }),
            Rule::Const(only) => holds(same(only, value), "const", &|| format!("only {only} is allowed")),
            Rule::Required(names) => missing(value, names)
                .map_or(Checked::Fine, |name| wrong("required", format!("the member {name:?} is missing"))),
            Rule::DependentRequired(pairs) => {
                let broken = pairs.iter().filter(|(name, _)| value.get(name).is_some());
                let missing = broken.filter_map(|(_, names)| missing(value, names)).next();
                missing
                    .map_or(Checked::Fine, |name| wrong("dependentRequired", format!("the member {name:?} is missing")))
            }
            Rule::Members { properties, patterns, others } => {
                let mut parts = Vec::new();
                for (name, member) in value.as_object().into_iter().flatten() {
                    let before = parts.len();
                    parts.extend(properties.get(name).map(|id| (*id, member, Some(name.clone()))));
                    let fitting = patterns.iter().filter(|(pattern, _)| pattern.is_match(name));
                    parts.extend(fitting.map(|(_, id)| (*id, member, Some(name.clone()))));
                    if parts.len() == before {
                        parts.extend(others.map(|id| (id, member, Some(name.clone()))));
                    }
                }
                Checked::Inside(parts)
            }
            Rule::Names(id) => {
                let mut names = value.as_object().into_iter().flatten().map(|(name, _)| name);
                let bad = names.find(|name| !self.valid(*id, &Value::String((*name).clone()), at));
                bad.map_or(Checked::Fine, |name| wrong("propertyNames", format!("the name {name:?} is not allowed")))
            }
            Rule::Items { first, rest } => {
                let items = value.as_array().into_iter().flatten().enumerate();
                let schema = |place: usize| first.get(place).copied().or(*rest);
                let part = |(place, item)| Some((schema(place)?, item, Some(place.to_string())));
                Checked::Inside(items.filter_map(part).collect())
            }
            Rule::Unique => {
                let items = value.as_array().map_or(&[][..], Vec::as_slice);
                let twice =
                    items.iter().enumerate().any(|(at, item)| items[..at].iter().any(|other| same(other, item)));
                holds(!twice, "uniqueItems", &|| "an element occurs twice".to_owned())
            }
            Rule::Bound(bound, limit) => value.as_f64().map_or(Checked::Fine, |number| {
                let (fits, keyword, words) = within(*bound, number, *limit);
                holds(fits, keyword, &|| format!("{words} {limit} is allowed"))
            }),
            Rule::Size(size, limit) => {
                let Some((found, fits, keyword)) = measured(*size, value, *limit) else { return Checked::Fine };
                holds(fits, keyword, &|| format!("the size is {found}, and the limit {limit}"))
            }
            Rule::Pattern(pattern) => value.as_str().map_or(Checked::Fine, |text| {
                holds(pattern.is_match(text), "pattern", &|| format!("it does not match {:?}", pattern.as_str()))
            }),
            Rule::Format(format) => value
                .as_str()
                .map_or(Checked::Fine, |text| holds(fits(format, text), "format", &|| format!("it is no {format}"))),
            Rule::AllOf(all) => Checked::Inside(all.iter().map(|id| (*id, value, None)).collect()),
            Rule::AnyOf(any) => holds(any.iter().any(|id| self.valid(*id, value, at)), "anyOf", &|| {
                "none of the alternatives fits".to_owned()
            }),
            Rule::OneOf(one) => {
                let fitting = one.iter().filter(|id| self.valid(**id, value, at)).count();
                holds(fitting == 1, "oneOf", &|| format!("{fitting} of the alternatives fit, and one must"))
            }
            Rule::Not(id) => holds(!self.valid(*id, value, at), "not", &|| "it fits what is excluded".to_owned()),
            Rule::If { condition, then, otherwise } => {
                let branch = if self.valid(*condition, value, at) { then } else { otherwise };
                Checked::Inside(branch.iter().map(|id| (*id, value, None)).collect())
            }
            Rule::Ref(id) => Checked::Inside(vec![(*id, value, None)]),
        }
    }
}

/// How far a validation is.
#[derive(Clone, Copy)]
struct At<'c> {
    depth: usize,
    left: &'c Cell<u32>,
}

impl At<'_> {
    const fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

enum Checked<'v> {
    Fine,
    /// The keyword that does not hold, and why.
    Wrong(&'static str, String),
    /// Schemas to apply to parts of the value.
    Inside(Vec<(Id, &'v Value, Option<String>)>),
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        _ => value.as_f64().is_some_and(|number| number.fract() == 0.0),
    }
}

/// Equal as JSON Schema has it: 1 and 1.0 are the same number.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

fn missing<'n>(value: &Value, names: &'n [String]) -> Option<&'n String> {
    let members = value.as_object()?;
    names.iter().find(|name| !members.contains_key(*name))
}

fn within(bound: Bound, number: f64, limit: f64) -> (bool, &'static str, &'static str) {
    match bound {
        Bound::Minimum => (number >= limit, "minimum", "at least"),
        Bound::Maximum => (number <= limit, "maximum", "at most"),
        Bound::ExclusiveMinimum => (number > limit, "exclusiveMinimum", "more than"),
        Bound::ExclusiveMaximum => (number < limit, "exclusiveMaximum", "less than"),
        Bound::MultipleOf => ((number / limit).fract() == 0.0, "multipleOf", "a multiple of"),
    }
}

fn measured(size: Size, value: &Value, limit: usize) -> Option<(usize, bool, &'static str)> {
    let found = match size {
        Size::MinItems | Size::MaxItems => value.as_array()?.len(),
        Size::MinLength | Size::MaxLength => value.as_str()?.chars().count(),
        Size::MinProperties | Size::MaxProperties => value.as_object()?.len(),
    };
    Some(match size {
        Size::MinItems => (found, found >= limit, "minItems"),
        Size::MaxItems => (found, found <= limit, "maxItems"),
        Size::MinLength => (found, found >= limit, "minLength"),
        Size::MaxLength => (found, found <= limit, "maxLength"),
        Size::MinProperties => (found, found >= limit, "minProperties"),
        Size::MaxProperties => (found, found <= limit, "maxProperties"),
    })
}
