//! JSON Schema 2020-12, as far as parameters of flows need it. Keywords that are not known are refused when a
//! definition is read: none is silently ignored.

mod formats;
mod nodes;
#[cfg(test)]
mod tests;
mod validate;

use crate::json::{Kind, Member, Node};
use crate::problem::{Findings, join};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;
pub(crate) use validate::Invalid;

/// Keywords that say nothing about validity.
const ANNOTATIONS: [&str; 10] =
    ["$comment", "$defs", "$id", "$schema", "default", "deprecated", "description", "examples", "title", "readOnly"];
const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "integer", "string"];

/// The place of a schema among all that were read.
type Id = usize;

/// A schema with everything inside of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    nodes: Vec<Rules>,
    /// The defaults of the properties at the top.
    pub(crate) defaults: Vec<(String, Value)>,
}

/// One schema: `true`, `false`, or keywords.
#[derive(Clone, Debug, Default)]
struct Rules {
    /// Its JSON Pointer within the schema.
    path: String,
    never: bool,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
enum Rule {
    Types(Vec<String>),
    Enum(Vec<Value>),
    Const(Value),
    Required(Vec<String>),
    DependentRequired(Vec<(String, Vec<String>)>),
    Members { properties: BTreeMap<String, Id>, patterns: Vec<(Regex, Id)>, others: Option<Id> },
    Names(Id),
    Items { first: Vec<Id>, rest: Option<Id> },
    Unique,
    Bound(Bound, f64),
    Size(Size, usize),
    Pattern(Regex),
    Format(String),
    AllOf(Vec<Id>),
    AnyOf(Vec<Id>),
    OneOf(Vec<Id>),
    Not(Id),
    If { condition: Id, then: Option<Id>, otherwise: Option<Id> },
    Ref(Id),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Minimum,
    Maximum,
    ExclusiveMinimum,
    ExclusiveMaximum,
    MultipleOf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    MinItems,
    MaxItems,
    MinLength,
    MaxLength,
    MinProperties,
    MaxProperties,
}

impl Schema {
    /// The schema of the arguments of a flow that declares none.
    pub(crate) fn no_parameters() -> Self {
        let others = Rules { path: "/additionalProperties".to_owned(), never: true, rules: Vec::new() };
        let members = Rule::Members { properties: BTreeMap::new(), patterns: Vec::new(), others: Some(1) };
        let rules = vec![Rule::Types(vec!["object".to_owned()]), members];
        Self { nodes: vec![Rules { rules, ..Rules::default() }, others], defaults: Vec::new() }
    }

    /// Reads the parameters of a flow, which are closed: arguments that are not declared are refused unless the schema
    /// speaks of them.
    pub(crate) fn parameters(node: &Node, path: &str, findings: &mut Findings) -> Self {
        let Kind::Object(members) = &node.kind else {
            findings.add(node.at, path, format!("a schema is an object, not {}", node.shown()));
            return Self::no_parameters();
        };
        match members.iter().find(|member| member.name == "type").map(|member| &member.value.kind) {
            Some(Kind::String(kind)) if kind == "object" => {}
            _ => findings.add(node.at, path, "parameters have \"type\": \"object\" at the top"),
        }
        let mut reader =
            Reader { nodes: Vec::new(), places: BTreeMap::new(), references: Vec::new(), base: path, findings };
        reader.schema(node, "");
        reader.resolve();
        let mut schema = Self { nodes: reader.nodes, defaults: defaults(members) };
        schema.close();
        schema
    }

    fn close(&mut self) {
        let never = self.nodes.len();
        let Some(top) = self.nodes.first_mut() else { return };
        let others = top.rules.iter_mut().find_map(|rule| match rule {
            Rule::Members { others, .. } => Some(others),
            _ => None,
        });
        match others {
            Some(Some(_)) => return,
            Some(others) => *others = Some(never),
            None => {
                let (properties, patterns) = (BTreeMap::new(), Vec::new());
                top.rules.push(Rule::Members { properties, patterns, others: Some(never) });
            }
        }
        self.nodes.push(Rules { path: "/additionalProperties".to_owned(), never: true, rules: Vec::new() });
    }
}

fn defaults(members: &[Member]) -> Vec<(String, Value)> {
    let properties = members.iter().find(|member| member.name == "properties");
    let Some(Kind::Object(properties)) = properties.map(|member| &member.value.kind) else { return Vec::new() };
    let default = |property: &Member| match &property.value.kind {
        Kind::Object(keywords) => {
            let default = keywords.iter().find(|keyword| keyword.name == "default")?;
            Some((property.name.clone(), default.value.to_value()))
        }
        _ => None,
    };
    properties.iter().filter_map(default).collect()
}

struct Reader<'f> {
    nodes: Vec<Rules>,
    /// Where each schema stands, for references.
    places: BTreeMap<String, Id>,
    /// References: the schema that has one, its place, and where it points.
    references: Vec<(Id, usize, String)>,
    base: &'f str,
    findings: &'f mut Findings,
}

impl Reader<'_> {
    fn problem(&mut self, node: &Node, path: &str, allowed: &str) {
        let message = format!("found {}, allowed is {allowed}", node.shown());
        self.findings.add(node.at, format!("{}{path}", self.base), message);
    }

    fn schema(&mut self, node: &Node, path: &str) -> Id {
        let id = self.nodes.len();
        self.nodes.push(Rules { path: path.to_owned(), ..Rules::default() });
        self.places.insert(path.to_owned(), id);
        match &node.kind {
            Kind::Bool(flag) => self.nodes[id].never = !flag,
            Kind::Object(members) => {
                for member in members {
                    self.keyword(id, member, members, path);
                }
            }
            _ => self.problem(node, path, "a schema: an object, true or false"),
        }
        id
    }

    fn keyword(&mut self, id: Id, member: &Member, all: &[Member], path: &str) {
        let (name, node, here) = (member.name.as_str(), &member.value, join(path, &member.name));
        let rule = match name {
            "type" => self.types(node, &here),
            "enum" => self.array(node, &here).map(|items| Rule::Enum(items.iter().map(Node::to_value).collect())),
            "const" => Some(Rule::Const(node.to_value())),
            "required" => Some(Rule::Required(self.strings(node, &here))),
            "dependentRequired" => Some(Rule::DependentRequired(
                self.object(node, &here)
                    .iter()
                    .map(|member| (member.name.clone(), self.strings(&member.value, &join(&here, &member.name))))
                    .collect(),
            )),
            "properties" => Some(self.members(all, path)),
            "additionalProperties" | "patternProperties" if !has(all, "properties") => {
                // One rule for the three of them, made by the first.
                let first = all.iter().find(|other| is_members(&other.name)).map(|other| other.name.as_str());
                if first == Some(name) { Some(self.members(all, path)) } else { None }
            }
            "additionalProperties" | "patternProperties" | "then" | "else" => None,
            "propertyNames" => Some(Rule::Names(self.schema(node, &here))),
            "items" | "prefixItems" => {
                if name == "prefixItems" || !has(all, "prefixItems") {
                    Some(self.items(all, path))
                } else {
                    None
                }
            }
            "uniqueItems" => match node.kind {
                Kind::Bool(flag) => flag.then_some(Rule::Unique),
                _ => self.refuse(node, &here, "true or false"),
            },
            "pattern" => self.text(node, &here).and_then(|text| self.regex(node, &here, &text)).map(Rule::Pattern),
            "format" => self.text(node, &here).map(Rule::Format),
            "allOf" => Some(Rule::AllOf(self.schemas(node, &here))),
            "anyOf" => Some(Rule::AnyOf(self.schemas(node, &here))),
            "oneOf" => Some(Rule::OneOf(self.schemas(node, &here))),
            "not" => Some(Rule::Not(self.schema(node, &here))),
            "if" => Some(self.condition(node, all, path)),
            "$ref" => {
                self.reference(id, node, &here);
                None
            }
            "$defs" => {
                for definition in self.object(node, &here) {
                    self.schema(&definition.value, &join(&here, &definition.name));
                }
                None
            }
            _ => self.simple(name, node, &here),
        };
        self.nodes[id].rules.extend(rule);
    }

    fn refuse(&mut self, node: &Node, path: &str, allowed: &str) -> Option<Rule> {
        self.problem(node, path, allowed);
        None
    }

    fn simple(&mut self, name: &str, node: &Node, path: &str) -> Option<Rule> {
        let bound = match name {
            "minimum" => Some(Bound::Minimum),
            "maximum" => Some(Bound::Maximum),
            "exclusiveMinimum" => Some(Bound::ExclusiveMinimum),
            "exclusiveMaximum" => Some(Bound::ExclusiveMaximum),
            "multipleOf" => Some(Bound::MultipleOf),
            _ => None,
        };
        let size = match name {
            "minItems" => Some(Size::MinItems),
            "maxItems" => Some(Size::MaxItems),
            "minLength" => Some(Size::MinLength),
            "maxLength" => Some(Size::MaxLength),
            "minProperties" => Some(Size::MinProperties),
            "maxProperties" => Some(Size::MaxProperties),
            _ => None,
        };
        let number = match &node.kind {
            Kind::Number(number) => number.as_f64(),
            _ => None,
        };
        match (bound, size, number) {
            (Some(Bound::MultipleOf), _, Some(number)) if number <= 0.0 => self.refuse(node, path, "a number above 0"),
            (Some(bound), _, Some(number)) => Some(Rule::Bound(bound, number)),
            (Some(_), _, None) => self.refuse(node, path, "a number"),
            (_, Some(size), Some(number)) if number >= 0.0 && number.fract() == 0.0 => {
                Some(Rule::Size(size, number as usize))
            }
            (_, Some(_), _) => self.refuse(node, path, "a whole number of at least 0"),
            (None, None, _) if ANNOTATIONS.contains(&name) => None,
            (None, None, _) => {
                let message = format!(
                    "the keyword {name:?} of JSON Schema is not supported; docs/guides/flows.md lists those that are"
                );
                self.findings.add(node.at, format!("{}{path}", self.base), message);
                None
            }
        }
    }

    fn types(&mut self, node: &Node, path: &str) -> Option<Rule> {
        let types = match &node.kind {
            Kind::String(kind) => vec![kind.clone()],
            _ => self.strings(node, path),
        };
        if let Some(other) = types.iter().find(|kind| !TYPES.contains(&kind.as_str())) {
            let message = format!("{other:?} is no type; allowed are {}", TYPES.join(", "));
            self.findings.add(node.at, format!("{}{path}", self.base), message);
        }
        Some(Rule::Types(types))
    }

    fn members(&mut self, all: &[Member], path: &str) -> Rule {
        let mut properties = BTreeMap::new();
        let (mut patterns, mut others) = (Vec::new(), None);
        for member in all {
            let here = join(path, &member.name);
            match member.name.as_str() {
                "properties" => {
                    for property in self.object(&member.value, &here) {
                        let id = self.schema(&property.value, &join(&here, &property.name));
                        properties.insert(property.name.clone(), id);
                    }
                }
                "patternProperties" => {
                    for property in self.object(&member.value, &here) {
                        let place = join(&here, &property.name);
                        let pattern = self.regex(&property.value, &place, &property.name);
                        let id = self.schema(&property.value, &place);
                        patterns.extend(pattern.map(|pattern| (pattern, id)));
                    }
                }
                "additionalProperties" => others = Some(self.schema(&member.value, &here)),
                _ => {}
            }
        }
        Rule::Members { properties, patterns, others }
    }

    fn items(&mut self, all: &[Member], path: &str) -> Rule {
        let (mut first, mut rest) = (Vec::new(), None);
        for member in all {
            let here = join(path, &member.name);
            match member.name.as_str() {
                "prefixItems" => first = self.schemas(&member.value, &here),
                "items" => rest = Some(self.schema(&member.value, &here)),
                _ => {}
            }
        }
        Rule::Items { first, rest }
    }

    fn condition(&mut self, node: &Node, all: &[Member], path: &str) -> Rule {
        let condition = self.schema(node, &join(path, "if"));
        let mut branch = |name: &str| {
            let member = all.iter().find(|member| member.name == name)?;
            Some(self.schema(&member.value, &join(path, name)))
        };
        let (then, otherwise) = (branch("then"), branch("else"));
        Rule::If { condition, then, otherwise }
    }

    fn schemas(&mut self, node: &Node, path: &str) -> Vec<Id> {
        match self.array(node, path) {
            Some([]) => self.problem(node, path, "at least one schema"),
            Some(items) => {
                return items.iter().enumerate().map(|(at, item)| self.schema(item, &format!("{path}/{at}"))).collect();
            }
            None => {}
        }
        Vec::new()
    }

    fn reference(&mut self, id: Id, node: &Node, path: &str) {
        let target = self.text(node, path).and_then(|text| text.strip_prefix('#').map(str::to_owned));
        match target {
            Some(target) => self.references.push((id, node.at, target)),
            None => self.problem(node, path, "a reference within the schema, such as \"#/$defs/name\""),
        }
    }

    fn resolve(&mut self) {
        for (id, at, target) in std::mem::take(&mut self.references) {
            match self.places.get(&target) {
                Some(found) => self.nodes[id].rules.push(Rule::Ref(*found)),
                None => {
                    let path = format!("{}{}/$ref", self.base, self.nodes[id].path);
                    self.findings.add(at, path, format!("there is no schema at #{target}"));
                }
            }
        }
    }
}

fn has(all: &[Member], name: &str) -> bool {
    all.iter().any(|member| member.name == name)
}

fn is_members(name: &str) -> bool {
    matches!(name, "additionalProperties" | "patternProperties")
}
