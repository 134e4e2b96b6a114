//! Reading steps.

use super::fields::{Fields, is_string};
use super::flows::{Level, Place, Reader};
use super::middleware::ENVELOPE;
use super::{Action, Clause, Gather, GatherForm, Step, Tail};
use crate::json::{Kind, Node};
use redrive_policy::{Matcher, Pattern};

const ACTIONS: [&str; 7] = ["Call", "Gather", "Match", "Pass", "Sleep", "Return", "Raise"];

impl Reader<'_> {
    pub(super) fn steps(&mut self, fields: &Fields<'_>, place: Place<'_>) -> Vec<Step> {
        let Some(node) = fields.get("steps") else { return Vec::new() };
        let Kind::Object(members) = &node.kind else { return Vec::new() };
        let steps = Fields { path: fields.path_of("steps"), at: node.at, members };
        let read = members.iter().map(|member| {
            let step = Fields::of(&member.value, steps.path_of(&member.name), self.findings);
            Step { name: member.name.clone(), action: self.action(&step, place) }
        });
        read.collect()
    }

    fn action(&mut self, fields: &Fields<'_>, place: Place<'_>) -> Action {
        let allowed = format!("one of {}", ACTIONS.join(", "));
        if fields.get("action").is_none() {
            fields.missing("action", &allowed, self.findings);
        }
        fields.comment(self.findings);
        let name = fields.word("action", &allowed, self.findings);
        match name {
            Some("Call") => self.call_step(fields, place),
            Some("Gather") => Action::Gather(self.gather(fields, place)),
            Some("Match") => self.match_step(fields, place),
            Some("Pass") => {
                self.only(fields, &["output", "assign", "next"]);
                Action::Pass(self.clause(fields, place))
            }
            Some("Sleep") => self.sleep(fields, place),
            Some("Raise") => self.raise(fields),
            Some("Return") | None => {
                if name.is_some() {
                    self.only(fields, &["value"]);
                }
                Action::Return { value: fields.template("value", self.findings) }
            }
            Some(other) => {
                if let Some(node) = fields.get("action") {
                    let meant = redrive_policy::resembling(other, &ACTIONS);
                    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant:?}?"));
                    fields.wrong("action", node, &format!("{allowed}{meant}"), self.findings);
                }
                Action::Return { value: None }
            }
        }
    }

    fn only(&mut self, fields: &Fields<'_>, allowed: &[&str]) {
        let mut all = vec!["action", "comment"];
        all.extend(allowed);
        fields.only(&all, self.findings);
    }

    /// What is emitted, assigned, and where it goes on.
    fn clause(&mut self, fields: &Fields<'_>, place: Place<'_>) -> Clause {
        if fields.get("next").is_none() {
            fields.missing("next", "the name of the step that follows", self.findings);
        }
        Clause {
            output: fields.template("output", self.findings),
            assign: fields.assign(self.findings),
            next: self.step_named(fields, "next", place),
        }
    }

    fn call_step(&mut self, fields: &Fields<'_>, place: Place<'_>) -> Action {
        self.only(fields, &["call", "next", "input", "output", "assign", "middleware", "catch"]);
        let input = fields.template("input", self.findings);
        let stack = self.stack(fields, place, Level::Step);
        let tail = self.tail(fields, place);
        match fields.get("call") {
            Some(node) => {
                let call = self.call(node, fields.path_of("call"), place);
                Action::Call { input, stack, call, tail }
            }
            None => {
                fields.missing("call", "the call that the step makes", self.findings);
                Action::Return { value: None }
            }
        }
    }

    fn tail(&mut self, fields: &Fields<'_>, place: Place<'_>) -> Tail {
        let success = self.clause(fields, place);
        let items = fields.items("catch", self.findings).unwrap_or_default();
        let path = fields.path_of("catch");
        let mut catch = Vec::new();
        for (at, node) in items.iter().enumerate() {
            let clause = Fields::of(node, format!("{path}/{at}"), self.findings);
            clause.only(&["match", "next", "output", "assign", "comment"], self.findings);
            clause.comment(self.findings);
            catch.push((self.matcher(&clause), self.clause(&clause, place)));
        }
        Tail { success, catch }
    }

    fn matcher(&mut self, clause: &Fields<'_>) -> Matcher {
        let Some(node) = clause.get("match") else {
            clause.missing("match", "an object with codes, types or retryable", self.findings);
            return Matcher::default();
        };
        let fields = Fields::of(node, clause.path_of("match"), self.findings);
        fields.only(&["codes", "types", "retryable"], self.findings);
        if matches!(node.kind, Kind::Object(_)) && fields.members.is_empty() {
            clause.wrong("match", node, "at least one of codes, types, retryable", self.findings);
        }
        let codes = self.words(&fields, "codes");
        let types = self.words(&fields, "types");
        if types.as_ref().is_some_and(|types| types.iter().any(|kind| kind == "success")) {
            self.findings.add(fields.at, fields.path_of("types"), "\"success\" is no type of a failure");
        }
        let retryable = match fields.get("retryable") {
            None => None,
            Some(Node { kind: Kind::Bool(flag), .. }) => Some(*flag),
            Some(node) => {
                fields.wrong("retryable", node, "true or false", self.findings);
                None
            }
        };
        Matcher {
            include_types: types.map(|types| types.iter().map(|kind| Pattern::exact(kind)).collect()),
            exclude_types: Vec::new(),
            codes: codes.map(|codes| codes.iter().map(|code| Pattern::dotted_or_any(code)).collect()),
            retryable,
        }
    }

    fn words(&mut self, fields: &Fields<'_>, name: &str) -> Option<Vec<String>> {
        let items = fields.items(name, self.findings)?;
        if items.is_empty() {
            self.findings.add(fields.at, fields.path_of(name), "found an empty array, allowed is at least one entry");
        }
        let mut words = Vec::new();
        for item in items {
            match &item.kind {
                Kind::String(text) if crate::cel::embedded(text).is_none() => words.push(text.clone()),
                _ => fields.wrong(name, item, "a string that is no expression", self.findings),
            }
        }
        Some(words)
    }

    fn gather(&mut self, fields: &Fields<'_>, place: Place<'_>) -> Gather {
        let own = ["over", "call", "calls", "completion", "concurrency", "next", "output", "assign", "catch"];
        self.only(fields, &own);
        let form = self.gather_form(fields, place);
        let (successes, wait) = self.completion(fields);
        let concurrency = match fields.get("concurrency") {
            None | Some(Node { kind: Kind::Null, .. }) => None,
            Some(node) => {
                let number = match &node.kind {
                    Kind::Number(number) => number.as_u64().filter(|number| *number > 0),
                    _ => None,
                };
                if number.is_none() {
                    fields.wrong("concurrency", node, "a whole number of at least 1, or null", self.findings);
                }
                number.and_then(|number| usize::try_from(number).ok())
            }
        };
        Gather { form, successes, wait, concurrency, tail: self.tail(fields, place) }
    }

    fn gather_form(&mut self, fields: &Fields<'_>, place: Place<'_>) -> GatherForm {
        let fits = |kind: &Kind| matches!(kind, Kind::Array(_));
        let over = fields.typed("over", "an array", fits, self.findings);
        match (over, fields.get("call"), fields.items("calls", self.findings)) {
            (Some(over), Some(call), None) => {
                GatherForm::Iterate { over, call: self.call(call, fields.path_of("call"), place) }
            }
            (None, None, Some(calls)) => {
                if calls.is_empty() {
                    let message = "found an empty array, allowed is at least one call";
                    self.findings.add(fields.at, fields.path_of("calls"), message);
                }
                let path = fields.path_of("calls");
                let calls = calls.iter().enumerate();
                GatherForm::Scatter(calls.map(|(at, call)| self.call(call, format!("{path}/{at}"), place)).collect())
            }
            _ => {
                let message = "a Gather has either over and call, or calls";
                self.findings.add(fields.at, fields.path.clone(), message);
                GatherForm::Scatter(Vec::new())
            }
        }
    }

    fn completion(&mut self, fields: &Fields<'_>) -> (Option<crate::template::Template>, bool) {
        let Some(node) = fields.get("completion") else { return (None, true) };
        let completion = Fields::of(node, fields.path_of("completion"), self.findings);
        completion.only(&["successes", "wait"], self.findings);
        if completion.get("successes").is_none() {
            completion.missing("successes", "how many dispatches must succeed", self.findings);
        }
        let fits = |kind: &Kind| matches!(kind, Kind::Number(number) if number.as_i64().is_some());
        let successes = completion.typed("successes", "a whole number", fits, self.findings);
        let wait = match completion.get("wait") {
            None => true,
            Some(Node { kind: Kind::Bool(flag), .. }) => *flag,
            Some(node) => {
                completion.wrong("wait", node, "true or false", self.findings);
                true
            }
        };
        (successes, wait)
    }

    fn match_step(&mut self, fields: &Fields<'_>, place: Place<'_>) -> Action {
        self.only(fields, &["input", "cases", "default"]);
        let input = fields.template("input", self.findings);
        if fields.get("cases").is_none() {
            fields.missing("cases", "an array of clauses", self.findings);
        }
        let mut cases = Vec::new();
        for (at, node) in fields.items("cases", self.findings).unwrap_or_default().iter().enumerate() {
            let clause = Fields::of(node, format!("{}/{at}", fields.path_of("cases")), self.findings);
            clause.only(&["when", "output", "assign", "next", "comment"], self.findings);
            clause.comment(self.findings);
            let when = clause.typed("when", "an expression", |_| false, self.findings);
            if when.is_none() {
                clause.missing("when", "an expression that is true or false", self.findings);
            }
            cases.extend(when.map(|when| (when, self.clause(&clause, place))));
        }
        let default = match fields.get("default") {
            Some(node) => {
                let clause = Fields::of(node, fields.path_of("default"), self.findings);
                clause.only(&["output", "assign", "next", "comment"], self.findings);
                clause.comment(self.findings);
                self.clause(&clause, place)
            }
            None => {
                fields.missing("default", "the clause for what no case matches", self.findings);
                Clause::default()
            }
        };
        Action::Match { input, cases, default }
    }

    fn sleep(&mut self, fields: &Fields<'_>, place: Place<'_>) -> Action {
        self.only(fields, &["for", "until", "next"]);
        let duration = fields.typed("for", "an ISO 8601 duration", is_string, self.findings);
        let instant = fields.typed("until", "an RFC 3339 timestamp", is_string, self.findings);
        let next = self.clause(fields, place).next;
        match (duration, instant) {
            (Some(value), None) => Action::Sleep { until: false, value, next },
            (None, Some(value)) => Action::Sleep { until: true, value, next },
            _ => {
                self.findings.add(fields.at, fields.path.clone(), "a Sleep has either for or until");
                Action::Return { value: None }
            }
        }
    }

    fn raise(&mut self, fields: &Fields<'_>) -> Action {
        self.only(fields, &["result"]);
        let Some(node) = fields.get("result") else { return Action::Raise(None) };
        let result = Fields::of(node, fields.path_of("result"), self.findings);
        result.only(&ENVELOPE, self.findings);
        if result.get("code").is_none() {
            result.missing("code", "the code of the failure", self.findings);
        }
        Action::Raise(Some(self.envelope(&result)))
    }
}
