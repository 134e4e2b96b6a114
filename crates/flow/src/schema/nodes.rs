//! Parts of a schema by their kind, with a problem for what is of another.

use super::Reader;
use crate::json::{Kind, Member, Node};
use regex::Regex;

impl Reader<'_> {
    pub(super) fn array<'n>(&mut self, node: &'n Node, path: &str) -> Option<&'n [Node]> {
        match &node.kind {
            Kind::Array(items) => Some(items),
            _ => {
                self.problem(node, path, "an array");
                None
            }
        }
    }

    pub(super) fn object<'n>(&mut self, node: &'n Node, path: &str) -> &'n [Member] {
        match &node.kind {
            Kind::Object(members) => members,
            _ => {
                self.problem(node, path, "an object");
                &[]
            }
        }
    }

    pub(super) fn strings(&mut self, node: &Node, path: &str) -> Vec<String> {
        let items = self.array(node, path).unwrap_or_default();
        items.iter().filter_map(|item| self.text(item, path)).collect()
    }

    pub(super) fn text(&mut self, node: &Node, path: &str) -> Option<String> {
        match &node.kind {
            Kind::String(text) => Some(text.clone()),
            _ => {
                self.problem(node, path, "a string");
                None
            }
        }
    }

    pub(super) fn regex(&mut self, node: &Node, path: &str, text: &str) -> Option<Regex> {
        let regex = regex::RegexBuilder::new(text).size_limit(1 << 20).build();
        if regex.is_err() {
            self.findings.add(node.at, format!("{}{path}", self.base), format!("{text:?} is no regular expression"));
        }
        regex.ok()
    }
}
