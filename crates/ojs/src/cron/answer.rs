//! A schedule as it is answered.

use super::Definition;
use super::state::State;
use crate::json::{Members, member, push_key, push_str, push_time, push_u64};
use redrive_policy::Moment;
use redrive_store::Run;

/// A schedule as it stands.
#[derive(Clone, Debug)]
pub struct CronJob {
    state: State,
    created: Moment,
}

impl CronJob {
    /// The state in which the run of a schedule begins.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn beginning(definition: Definition) -> Result<Vec<u8>, String> {
        State::new(definition).written()
    }

    /// Reads the run of a schedule.
    ///
    /// # Errors
    /// Its state cannot be read.
    pub fn of(run: &Run) -> Result<Self, String> {
        Ok(Self { state: State::read(&run.state)?, created: run.created })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.state.definition.name
    }

    /// Whether it is due at all.
    #[must_use]
    pub const fn is_enabled(&self) -> bool {
        self.state.definition.enabled
    }

    /// The cron expression, as it was written.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.state.definition.expression
    }

    /// Writes it as an object.
    pub fn push(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        self.push_members(out);
        member(out, "cron");
        push_str(out, self.expression());
        out.push(b'}');
    }

    /// Writes its members, without braces, and without `cron`, which callers expect to be different things.
    pub fn push_members(&self, out: &mut Vec<u8>) {
        let (state, definition) = (&self.state, &self.state.definition);
        let status = if definition.enabled { "active" } else { "paused" };
        for (key, text) in [
            ("name", definition.name.as_str()),
            ("expression", &definition.expression),
            ("timezone", &definition.timezone),
            ("overlap_policy", definition.overlap.name()),
            ("status", status),
        ] {
            member(out, key);
            push_str(out, text);
        }
        // What cannot be read was never written.
        for (key, value) in Members::parse(definition.template.get()).unwrap_or_default().iter() {
            push_key(out, key);
            out.extend_from_slice(value.get().as_bytes());
        }
        member(out, "enabled");
        out.extend_from_slice(if definition.enabled { b"true" } else { b"false" });
        if let Some(description) = &definition.description {
            member(out, "description");
            push_str(out, description);
        }
        let moment = |at: Option<i64>| at.map(Moment::from_micros);
        for (key, at) in [("last_run_at", moment(state.last_run)), ("next_run_at", state.slots.next())] {
            member(out, key);
            push_optional(out, at);
        }
        for (key, count) in
            [("run_count", state.runs), ("skipped_count", state.skipped), ("waiting_count", state.waiting.len() as u64)]
        {
            member(out, key);
            push_u64(out, count);
        }
        if let Some(at) = moment(state.last_skipped) {
            member(out, "last_skipped_at");
            push_time(out, at);
        }
        if let Some(refused) = &state.last_error {
            member(out, "last_error");
            out.push(b'{');
            member(out, "scheduled_at");
            push_time(out, Moment::from_micros(refused.slot));
            member(out, "message");
            push_str(out, &refused.why);
            out.push(b'}');
        }
        member(out, "created_at");
        push_time(out, self.created);
    }
}

/// A time, or `null`: these two members are always there, as the specification has them.
fn push_optional(out: &mut Vec<u8>, at: Option<Moment>) {
    match at {
        Some(at) => push_time(out, at),
        None => out.extend_from_slice(b"null"),
    }
}
