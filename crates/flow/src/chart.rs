//! A definition as a flow chart.

use crate::model::{Action, Call, Clause, Definition, Entry, Flow, Gather, GatherForm, Middleware, Step, Tail, Target};
use crate::providers::Provider;
use crate::template::Template;
use redrive_policy::dialect::Dialect;
use redrive_policy::lab::picture::flow::{Card, Chart, Line, Look, Mark, Panel};
use redrive_policy::{Backoff, Curve, Jitter, Matcher, Rule};
use serde_json::{Value, json};

impl Definition {
    /// The flows of the definition with their steps, and what leads from each step to the next.
    #[must_use]
    pub fn chart(&self, title: &str) -> Chart {
        let counts = self.counts();
        let part = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        let subtitle = [
            part(counts.flows, "flow", "flows"),
            part(counts.steps, "step", "steps"),
            part(counts.middleware, "middleware entry", "middleware entries"),
        ];
        let panels = self.flows.iter().map(|flow| self.panel(flow)).collect();
        Chart { title: title.to_owned(), subtitle: subtitle.join(", "), panels }
    }

    fn panel(&self, flow: &Flow) -> Panel {
        let around = flow.stack.iter().filter_map(|entry| self.entries.get(*entry));
        Panel {
            name: flow_name(&flow.path),
            around: around.flat_map(|entry| self.around(entry)).collect(),
            entry: flow.entrypoint,
            cards: flow.steps.iter().map(|step| self.card(step)).collect(),
        }
    }

    fn card(&self, step: &Step) -> Card {
        let mut lines = Vec::new();
        let mut say = |text: String| lines.push(Line::new(Mark::Plain, text));
        let (look, next) = match &step.action {
            Action::Call { stack, call, tail, .. } => {
                say(format!("calls {}", self.target(*call)));
                let entries = stack.iter().filter_map(|entry| self.entries.get(*entry));
                lines.extend(entries.flat_map(|entry| self.around(entry)).map(|said| Line::new(Mark::Around, said)));
                lines.extend(catches(tail));
                (Look::Call, Some(tail.success.next))
            }
            Action::Gather(gather) => {
                self.gather(gather).into_iter().for_each(say);
                lines.extend(catches(&gather.tail));
                (Look::Call, Some(gather.tail.success.next))
            }
            Action::Match { cases, default, .. } => {
                let case = |(when, clause): &(Template, Clause)| branch(shown(when), clause);
                lines.extend(cases.iter().map(case));
                lines.push(branch("otherwise".to_owned(), default));
                (Look::Inner, None)
            }
            Action::Pass(clause) => {
                if !clause.assign.is_empty() {
                    say(format!("sets {}", names(&clause.assign)));
                }
                (Look::Inner, Some(clause.next))
            }
            Action::Sleep { until, value, next } => {
                say(format!("{} {}", if *until { "until" } else { "for" }, shown(value)));
                (Look::Wait, Some(*next))
            }
            Action::Return { value } => {
                if let Some(value) = value {
                    say(shown(value));
                }
                (Look::Success, None)
            }
            Action::Raise(envelope) => {
                let code = envelope.as_ref().and_then(|envelope| envelope.code.as_ref());
                say(code.map_or_else(|| "the failure that is handled".to_owned(), shown));
                (Look::Failure, None)
            }
        };
        Card { name: step.name.clone(), action: step.action.name(), look, lines, next }
    }

    fn target(&self, call: usize) -> String {
        let Some(Call { target, with, .. }) = self.calls.get(call) else { return String::new() };
        match target {
            Target::Mock => "mock".to_owned(),
            Target::Outside(Provider::Job) => format!("job {}", member(with.as_ref(), "type")),
            Target::Outside(Provider::Http) => format!("http {}", member(with.as_ref(), "url")),
            Target::Flow(flow) => self.flows.get(*flow).map_or_else(String::new, |flow| flow_name(&flow.path)),
        }
    }

    fn gather(&self, gather: &Gather) -> Vec<String> {
        let mut said = match &gather.form {
            GatherForm::Iterate { over: Template::Literal(Value::Array(items)), call } => {
                vec![format!("calls {} for each of {}", self.target(*call), items.len())]
            }
            GatherForm::Iterate { over, call } => {
                vec![format!("calls {} for each of", self.target(*call)), shown(over)]
            }
            GatherForm::Scatter(calls) => calls.iter().map(|call| format!("calls {}", self.target(*call))).collect(),
        };
        if let Some(successes) = &gather.successes {
            let rest = if gather.wait { "" } else { ", without the others" };
            said.push(format!("enough successes: {}{rest}", shown(successes)));
        }
        said.extend(gather.concurrency.map(|most| format!("at most {most} at once")));
        said
    }

    fn around(&self, entry: &Entry) -> Vec<String> {
        match &entry.kind {
            Middleware::Retry => retry(entry),
            Middleware::Timeout => vec![format!("Timeout {}", member(entry.on_entry.with.as_ref(), "duration"))],
            Middleware::Loop => {
                let when = entry.on_success.when.as_ref().map_or_else(String::new, shown);
                vec![format!("Loop while {when}")]
            }
            Middleware::Finally { call, .. } => vec![format!("Finally calls {}", self.target(*call))],
        }
    }
}

/// The policies of a Retry, as far as they are written and not computed, and what it carries.
fn retry(entry: &Entry) -> Vec<String> {
    let policies = match entry.on_entry.with.as_ref() {
        Some(Template::Literal(with)) => with.get("policies").cloned(),
        Some(Template::Object(members)) => members.iter().find_map(|(name, member)| match member {
            Template::Literal(value) if name == "policies" => Some(value.clone()),
            _ => None,
        }),
        _ => None,
    };
    let read = policies.and_then(|policies| Dialect::Mwl.read(&json!({ "policies": policies })).ok());
    let mut said: Vec<String> = match read {
        Some(read) => read.policy.rules.iter().flat_map(rule).collect(),
        None => vec!["Retry by policies that are computed".to_owned()],
    };
    if !entry.on_failure.assign.is_empty() {
        said.push(format!("    carries {}", names(&entry.on_failure.assign)));
    }
    said
}

fn rule(rule: &Rule) -> [String; 2] {
    let runs = rule.budget.map_or_else(String::new, |budget| format!("{budget} runs, "));
    [format!("Retry {}", matched(&rule.matcher)), format!("    {runs}{}", timing(&rule.backoff))]
}

/// The timing of a policy, as far as MWL has it, in a few words.
fn timing(backoff: &Backoff) -> String {
    if *backoff == Backoff::IMMEDIATE {
        return "at once".to_owned();
    }
    let mut said = backoff.initial.to_string();
    match backoff.curve {
        Curve::Exponential { rate } if rate > 1.0 => said.push_str(&format!(" ×{rate}")),
        _ => {}
    }
    if let Some(cap) = backoff.cap {
        said.push_str(&format!(" ≤ {}", cap.at));
    }
    if backoff.jitter != Jitter::None {
        said.push_str(&format!(", {}", backoff.jitter));
    }
    said
}

fn matched(matcher: &Matcher) -> String {
    let list =
        |patterns: &[redrive_policy::Pattern]| patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut said = Vec::new();
    said.extend(matcher.codes.as_deref().map(list));
    said.extend(matcher.include_types.as_deref().map(|types| format!("type {}", list(types))));
    said.extend(matcher.retryable.map(|flag| if flag { "retryable" } else { "not retryable" }.to_owned()));
    said.join(" and ")
}

fn catches(tail: &Tail) -> impl Iterator<Item = Line> {
    tail.catch.iter().map(|(matcher, clause)| Line {
        text: format!("catch {}", matched(matcher)),
        mark: Mark::Failure,
        to: Some(clause.next),
    })
}

fn branch(text: String, clause: &Clause) -> Line {
    Line { text, mark: Mark::Branch, to: Some(clause.next) }
}

fn names(assign: &[(String, Template)]) -> String {
    assign.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

/// One argument of a `with`.
fn member(with: Option<&Template>, name: &str) -> String {
    let found = match with {
        Some(Template::Literal(value)) => value.get(name).map(literal),
        Some(Template::Object(members)) => {
            members.iter().find(|(member, _)| member == name).map(|(_, value)| shown(value))
        }
        _ => None,
    };
    found.unwrap_or_default()
}

fn shown(template: &Template) -> String {
    match template {
        Template::Literal(value) => literal(value),
        Template::Expression(expression) => expression.text().to_owned(),
        Template::Array(items) => format!("{} values", items.len()),
        Template::Object(members) => names(members),
    }
}

fn literal(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What a flow is called, from its place in the definition.
fn flow_name(path: &str) -> String {
    let parts: Vec<String> = path.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    match parts.as_slice() {
        [.., flows, name] if flows == "flows" => format!("flow {name}"),
        [.., last] if last == "flow" => {
            let step = parts.iter().rposition(|part| part == "steps").and_then(|at| parts.get(at + 1));
            step.map_or_else(|| "an inline flow".to_owned(), |step| format!("the flow within {step}"))
        }
        _ => "the flow".to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use redrive_policy::lab::picture::flow::{flow_svg, flow_text};

    fn definition(value: &Value) -> Definition {
        Definition::read(&value.to_string()).unwrap_or_else(|problems| panic!("{problems:#?}"))
    }

    #[test]
    fn a_flow_is_drawn_with_all_that_leads_from_a_step() {
        let inline = json!({ "entrypoint": "in", "steps": { "in": { "action": "Return" } } });
        let retry = json!({
            "provider": "mwl:provider.middleware/mwl/retry/v1",
            "onEntry": { "with": { "policies": [{
                "match": { "codes": ["Net.*", "A.B"], "types": ["timeout"], "retryable": false }, "attempts": 4,
                "backoff": { "initial": "PT2S", "rate": 2, "max": "PT30S", "jitter": "full" },
            }] } },
            "onFailure": { "assign": { "tries": 1 } },
        });
        let bound = json!({
            "provider": "mwl:provider.middleware/mwl/timeout/v1", "onEntry": { "with": { "duration": "{{ vars.x }}" } },
        });
        let chart = definition(&json!({
            "$schema": "https://mwl.dev/v0.1/flow/schema.json", "entrypoint": "a/b", "middleware": [bound],
            "flows": { "Ask": inline },
            "steps": {
                "a/b": {
                    "action": "Call", "call": { "flow": inline }, "next": "route", "middleware": [retry],
                    "catch": [{ "match": { "codes": ["*"] }, "next": "lost" }],
                },
                "route": {
                    "action": "Match", "default": { "next": "all" },
                    "cases": [{ "when": "{{ step.input > 3 }}", "next": "a/b" }],
                },
                "all": { "action": "Gather", "over": [1, 2], "call": { "flow": "Ask" }, "next": "end", "concurrency": 2,
                    "completion": { "successes": 1, "wait": false } },
                "end": { "action": "Return", "value": "{{ step.input }}" },
                "lost": { "action": "Raise", "result": { "code": "A.B" } },
            },
        }))
        .chart("order.json");
        assert_eq!(chart.subtitle, "3 flows, 7 steps, 2 middleware entries");
        let names: Vec<&str> = chart.panels.iter().map(|panel| panel.name.as_str()).collect();
        assert_eq!(names, ["the flow", "flow Ask", "the flow within a/b"]);
        assert_eq!(chart.panels[0].around, ["Timeout vars.x"]);
        let cards = &chart.panels[0].cards;
        let name = |card: usize| cards[card].name.clone();
        let card = |name: &str| cards.iter().find(|card| card.name == name).expect("a step");
        let lines = |step: &str| -> Vec<String> {
            let to = |line: &Line| line.to.map_or_else(String::new, |to| format!(" > {}", name(to)));
            card(step).lines.iter().map(|line| line.text.clone() + &to(line)).collect()
        };
        let (retry, timing) =
            ("Retry Net.*, A.B and type timeout and not retryable", "4 runs, 2 s ×2 ≤ 30 s, full jitter");
        let around =
            ["calls the flow within a/b", retry, &format!("    {timing}"), "    carries tries", "catch * > lost"];
        assert_eq!(lines("a/b"), around);
        assert_eq!(lines("route"), ["step.input > 3 > a/b", "otherwise > all"]);
        let gather = ["calls flow Ask for each of 2", "enough successes: 1, without the others", "at most 2 at once"];
        assert_eq!(lines("all"), gather);
        assert_eq!((lines("end"), lines("lost")), (vec!["step.input".to_owned()], vec!["A.B".to_owned()]));
        assert_eq!(card("a/b").next.map(name), Some("route".to_owned()));
        for text in [flow_svg(&chart), flow_text(&chart, 80)] {
            assert!(text.contains("catch *") && text.contains("a/b"), "{text}");
        }
    }

    #[test]
    fn flows_that_are_deep_or_long_are_drawn_within_bounds() {
        let mut steps = serde_json::Map::new();
        for at in 0..20_000 {
            steps.insert(format!("s{at}"), json!({ "action": "Pass", "next": format!("s{}", (at + 1) % 20_000) }));
        }
        steps.insert("end".to_owned(), json!({ "action": "Return" }));
        let flow = json!({ "$schema": "https://mwl.dev/v0.1/flow/schema.json", "entrypoint": "s0", "steps": steps });
        let picture = flow_svg(&definition(&flow).chart("long"));
        assert!(picture.len() < 300_000 && picture.contains("19801 more steps are not drawn"), "{}", picture.len());
    }
}
