//! Reading middleware.

use super::fields::{Fields, is_bool, is_object, is_string};
use super::flows::{Level, Place, Reader};
use super::{Entry, EntryId, Envelope, Middleware, Phase};
use crate::json::{Kind, Node};

const PREFIX: &str = "mwl:provider.middleware/mwl/";
const KNOWN: [&str; 4] = ["retry/v1", "timeout/v1", "loop/v1", "finally/v1"];
pub(super) const ENVELOPE: [&str; 6] = ["type", "code", "message", "details", "retryable", "previous"];

impl Reader<'_> {
    /// Reads the middleware of a flow, a step or a cleanup.
    pub(super) fn stack(&mut self, fields: &Fields<'_>, place: Place<'_>, level: Level) -> Vec<EntryId> {
        let items = fields.items("middleware", self.findings).unwrap_or_default();
        let path = fields.path_of("middleware");
        items.iter().enumerate().map(|(at, node)| self.entry(node, format!("{path}/{at}"), place, level)).collect()
    }

    fn entry(&mut self, node: &Node, path: String, place: Place<'_>, level: Level) -> EntryId {
        let fields = Fields::of(node, path.clone(), self.findings);
        fields.only(&["provider", "onEntry", "onSuccess", "onFailure", "onAlways", "comment"], self.findings);
        fields.comment(self.findings);
        let name = self.middleware_name(&fields);
        let finally = name == Some("finally/v1");
        let kind = match name {
            Some("retry/v1") => Middleware::Retry,
            Some("loop/v1") => Middleware::Loop,
            Some("finally/v1") => self.cleanup(&fields, place, level),
            _ => Middleware::Timeout,
        };
        if kind == Middleware::Loop {
            self.terminator(&fields);
        }
        let on_entry = self.phase(&fields, "onEntry", &["output"], false);
        let on_success = self.phase(&fields, "onSuccess", &["value"], false);
        let on_failure = self.phase(&fields, "onFailure", &ENVELOPE, false);
        let on_always = self.phase(&fields, "onAlways", &[], finally);
        let envelope = match fields.get("onFailure") {
            Some(node) => {
                let phase = Fields::of(node, fields.path_of("onFailure"), self.findings);
                self.envelope(&phase)
            }
            None => Envelope::default(),
        };
        self.entries.push(Entry { path, kind, on_entry, on_success, on_failure, on_always, envelope });
        self.entries.len() - 1
    }

    fn middleware_name<'n>(&mut self, fields: &Fields<'n>) -> Option<&'n str> {
        let known = || KNOWN.map(|name| format!("{PREFIX}{name}")).join(", ");
        if fields.get("provider").is_none() {
            fields.missing("provider", &format!("one of {}", known()), self.findings);
            return None;
        }
        let uri = fields.word("provider", "the URI of a middleware", self.findings)?;
        let name = uri.strip_prefix(PREFIX).filter(|name| KNOWN.contains(name));
        if name.is_none() {
            let at = fields.get("provider").map_or(fields.at, |node| node.at);
            let message = format!("there is no middleware {uri:?}; known are {}", known());
            self.findings.add(at, fields.path_of("provider"), message);
        }
        name
    }

    /// A loop ends only by the condition of its onSuccess.
    fn terminator(&mut self, fields: &Fields<'_>) {
        let written = fields.get("onSuccess").is_some_and(
            |node| matches!(&node.kind, Kind::Object(members) if members.iter().any(|member| member.name == "when")),
        );
        if !written {
            let message = "a Loop has onSuccess.when, which says whether it goes on; without it, it would never end";
            self.findings.add(fields.at, fields.path.clone(), message);
        }
    }

    /// The call and the stack of a Finally, which are definitions and not values.
    fn cleanup(&mut self, fields: &Fields<'_>, place: Place<'_>, level: Level) -> Middleware {
        let path = fields.path_of("onAlways");
        let with = fields.get("onAlways").and_then(|node| match &node.kind {
            Kind::Object(members) => members.iter().find(|member| member.name == "with").map(|member| &member.value),
            _ => None,
        });
        let Some(with) = with else {
            fields.missing("onAlways", "a Finally has onAlways.with.call, the call of its cleanup", self.findings);
            return Middleware::Timeout;
        };
        let with = Fields::of(with, format!("{path}/with"), self.findings);
        with.only(&["call", "middleware"], self.findings);
        let stack = self.stack(&with, place, level);
        let Some(call) = with.get("call") else {
            with.missing("call", "the call of the cleanup", self.findings);
            return Middleware::Timeout;
        };
        Middleware::Finally { call: self.call(call, with.path_of("call"), place), stack }
    }

    /// Reads a phase. The `with` of a cleanup is read elsewhere.
    fn phase(&mut self, fields: &Fields<'_>, name: &str, shaping: &[&str], cleanup: bool) -> Phase {
        let Some(node) = fields.get(name) else { return Phase::default() };
        let phase = Fields::of(node, fields.path_of(name), self.findings);
        let mut allowed = vec!["when", "with", "assign"];
        allowed.extend(shaping);
        phase.only(&allowed, self.findings);
        let shape = match shaping {
            [one] => phase.template(one, self.findings),
            _ => None,
        };
        Phase {
            when: phase.typed("when", "true or false", is_bool, self.findings),
            with: if cleanup { None } else { phase.typed("with", "an object", is_object, self.findings) },
            shape,
            assign: phase.assign(self.findings),
        }
    }

    /// The members of a failure, as far as they are written.
    pub(super) fn envelope(&mut self, fields: &Fields<'_>) -> Envelope {
        let findings = &mut *self.findings;
        if let Some(Node { kind: Kind::String(kind), at }) = fields.get("type")
            && kind == "success"
        {
            findings.add(*at, fields.path_of("type"), "a failure has a type other than \"success\", such as \"error\"");
        }
        let flag = |kind: &Kind| matches!(kind, Kind::Bool(_) | Kind::Null);
        let failure = |kind: &Kind| matches!(kind, Kind::Object(_) | Kind::Null);
        Envelope {
            kind: fields.typed("type", "a string", is_string, findings),
            code: fields.typed("code", "a string", is_string, findings),
            message: fields.typed("message", "a string", is_string, findings),
            details: fields.template("details", findings),
            retryable: fields.typed("retryable", "true, false or null", flag, findings),
            previous: fields.typed("previous", "a failure or null", failure, findings),
        }
    }
}
