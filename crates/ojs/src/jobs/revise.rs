//! What a redrive changes about a job: another queue, other arguments, more metadata, another policy, another expiry.

use super::schedule::{self, WrittenTime};
use super::{PolicyOrigin, body, enqueue, unique};
use crate::Limits;
use crate::json::{Members, member, push_key};
use redrive_policy::{Moment, Problem};
use redrive_store::{Job, Unique};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

const EXPIRES: &str = "expires_at";
const FIELDS: [&str; 5] = ["queue", "meta", "retry", "args", EXPIRES];

/// The `override` of a redrive.
#[derive(Debug)]
pub struct Override<'a> {
    /// Another queue.
    pub queue: Option<Cow<'a, str>>,
    /// When the job expires from now on; absent, it does not.
    pub expires: Option<Moment>,
    args: Option<&'a str>,
    meta: Option<&'a str>,
    said_expires: Option<WrittenTime<'a>>,
    retry: Option<&'a RawValue>,
}

impl<'a> Override<'a> {
    /// Reads it at `now`.
    #[must_use]
    pub fn read(members: &Members<'a>, limits: &Limits, now: Moment, problems: &mut Vec<Problem>) -> Self {
        members.only(&FIELDS, problems);
        let queue = members.queue_name("queue", limits, problems);
        let args = members.has("args").then(|| enqueue::args(members, limits, problems)).flatten();
        let meta = enqueue::meta(members, limits, problems);
        let said_expires = schedule::expiry(members, now, problems);
        let expires = said_expires.as_ref().map(|said| said.at);
        Self { queue, expires, args, meta, said_expires, retry: members.get("retry") }
    }

    /// The text of the retry policy that it brings.
    #[must_use]
    pub fn retry(&self) -> Option<&'a str> {
        self.retry.map(RawValue::get)
    }

    /// What the job must be unique in from now on, by its body with the other values.
    pub fn unique(&self, job: &Job, queue: &str, body: &[u8], problems: &mut Vec<Problem>) -> Option<Unique> {
        let members = std::str::from_utf8(body).ok().and_then(|body| Members::parse(body).ok());
        let meta = members.as_ref().and_then(|members| members.get("meta")).map(RawValue::get);
        let parts = unique::Parts { kind: &job.spec.kind, queue, args: body::args(body), meta };
        unique::of_body(body, &parts, problems)
    }

    /// The body of a job with other values; what is not overridden stays as it was, byte for byte. `None` where the
    /// body cannot be read.
    #[must_use]
    pub fn body(&self, stored: &[u8], origin: &PolicyOrigin) -> Option<Vec<u8>> {
        let members = Members::parse(std::str::from_utf8(stored).ok()?).ok()?;
        let text = |key| members.get(key).map(RawValue::get);
        let args = self.args.or(text("args")).unwrap_or("[]");
        let merged = self.meta.map(|new| merged(text("meta").unwrap_or("{}"), new));
        let meta = merged.as_deref().or(text("meta"));
        let mut out = body::begin(origin, args, meta, text("tags"), stored.len());
        if let Some(expires) = &self.said_expires {
            member(&mut out, EXPIRES);
            expires.push(&mut out);
        }
        for (key, value) in members.iter() {
            let replaced = &**key == EXPIRES && self.said_expires.is_some();
            if !replaced && !matches!(&**key, "redrive" | "args" | "meta" | "tags") {
                push_key(&mut out, key);
                out.extend_from_slice(value.get().as_bytes());
            }
        }
        out.push(b'}');
        Some(out)
    }
}

/// Metadata with further members; the new ones win.
fn merged(old: &str, new: &str) -> String {
    let read = |text| serde_json::from_str::<Map<String, Value>>(text).unwrap_or_default();
    let mut meta = read(old);
    meta.extend(read(new));
    Value::Object(meta).to_string()
}
