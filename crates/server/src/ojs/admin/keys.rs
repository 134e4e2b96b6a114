//! Keys that operators make: with scopes, for queues, until some time.

use crate::access::{
    Change, Guard, Keys, LONGEST_NAME, MOST_KEYS, NewSecret, QueuePattern, Scope, Scopes, StoredKey, StoredSecret,
    elapsed, is_key_name,
};
use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::request::Payload;
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use redrive_engine::Engine;
use redrive_ojs::json::{Members, text};
use redrive_ojs::time::{parse_rfc3339, rfc3339};
use redrive_ojs::{QUEUE_ALLOWED, is_queue};
use redrive_policy::dialect::iso_duration;
use redrive_policy::{Moment, Problem, Span};
use serde_json::{Value, json};
use std::sync::Arc;
use tracing::warn;

/// How many patterns a key may have, and how many bytes they may have together.
const MOST_PATTERNS: usize = 20;
const PATTERN_BYTES: usize = 2_000;
/// How long a secret may be valid beside the one that replaces it.
const LONGEST_GRACE: Span = Span::from_secs(30 * 86_400);

/// `GET /admin/keys`.
pub(crate) async fn keys(State(app): State<Arc<App>>) -> Result<JsonResponse, ApiError> {
    let keys = app.guard.stored(&app.engine).await?.unwrap_or_default();
    let shown: Vec<Value> = keys.keys.iter().map(|key| shown(&app.engine, key)).collect();
    Ok(JsonResponse::json(&json!({ "keys": shown, "total": shown.len() })))
}

/// `POST /admin/keys`. This answer and that of a rotation are the only ones with the secret.
pub(crate) async fn create_key(State(app): State<Arc<App>>, payload: Payload) -> Result<JsonResponse, ApiError> {
    let (mut key, secret) = (read(&app.engine, &payload.members()?)?, new_secret()?);
    let before = app.guard.stored(&app.engine).await?;
    check_first(&app.guard, before.is_none(), &key)?;
    check_new(&before.unwrap_or_default(), &key.name)?;
    key.secrets.push(stored(&app.engine, &secret));
    let name = key.name.clone();
    let after = app.guard.change(&app.engine, &Change::Create { key }).await?;
    let Some(key) = having(&after, &name, &secret) else {
        // Another one came first.
        check_new(&after, &name)?;
        return Err(ApiError::new(Code::InternalError, format!("the key \"{name}\" was not stored")));
    };
    warn!(key = name, "the key \"{name}\" was made, with the scopes {}", key.scopes.names().join(", "));
    Ok(with_secret(&app.engine, key, &secret).status(StatusCode::CREATED))
}

/// `POST /admin/keys/{name}/rotate`.
pub(crate) async fn rotate_key(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let members = payload.members_or_none()?;
    let mut problems = Vec::new();
    members.only(&["grace"], &mut problems);
    let grace = duration(&members, "grace", &mut problems);
    if let Some(grace) = grace.filter(|grace| *grace > LONGEST_GRACE) {
        problems.push(Problem::new("/grace", format!("{} s", grace.secs()), "at most 30 days, \"P30D\""));
    }
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    find(&app, &name).await?;
    let secret = new_secret()?;
    let old_until_us = grace.map(|grace| elapsed(&app.engine).after(grace).micros());
    let change = Change::Rotate { name: name.clone(), secret: stored(&app.engine, &secret), old_until_us };
    let after = app.guard.change(&app.engine, &change).await?;
    // Where it has no such secret, it was revoked meanwhile, or rotated again.
    let key = having(&after, &name, &secret).ok_or_else(|| {
        ApiError::new(Code::Conflict, format!("the key \"{name}\" was changed at the same time; look at it again"))
    })?;
    warn!(key = name, "the key \"{name}\" has a new secret");
    Ok(with_secret(&app.engine, key, &secret))
}

/// `DELETE /admin/keys/{name}`.
pub(crate) async fn revoke_key(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<JsonResponse, ApiError> {
    find(&app, &name).await?;
    let one_must_stay = !app.guard.has_configured();
    let change = Change::Revoke { name: name.clone(), one_must_stay };
    if app.guard.change(&app.engine, &change).await?.find(&name).is_some() {
        let message = format!(
            "\"{name}\" is the last key with the scope admin that is for all queues and does not expire, and this \
             server has no configured key: without it nobody could manage keys; make another one first, or set \
             api_key_file"
        );
        return Err(ApiError::new(Code::Conflict, message).with_details(json!({ "reason": "last_admin_key" })));
    }
    warn!(key = name, "the key \"{name}\" was revoked");
    Ok(JsonResponse::json(&json!({ "revoked": true, "name": name })))
}

/// A new key as a request describes it, without a secret.
fn read(engine: &Engine, members: &Members<'_>) -> Result<StoredKey, ApiError> {
    let mut problems = Vec::new();
    let p = &mut problems;
    members.only(&["name", "scopes", "queues", "expires_in", "expires_at"], p);
    let name = members.text("name", p).unwrap_or_default().into_owned();
    if !is_key_name(&name) {
        let allowed = format!("letters, digits, \".\", \"-\" and \"_\", from 1 to {LONGEST_NAME} of them");
        members.wrong("name", &allowed, p);
    }
    let scopes = scopes(members, p);
    let queues = queues(members, p);
    let now = elapsed(engine);
    let expires = match (duration(members, "expires_in", p), moment(engine, members, p)) {
        (Some(_), Some(_)) => {
            p.push(Problem::with_message("/expires_at", "found together with expires_in; keep one of them"));
            None
        }
        (Some(span), None) => Some(now.after(span)),
        (None, at) => at,
    };
    if expires.is_some_and(|at| at <= now) {
        p.push(Problem::with_message("/expires_at", "is over already; name a time to come"));
    }
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let (created_us, expires_us) = (now.micros(), expires.map(Moment::micros));
    Ok(StoredKey { name, scopes: Scopes::of(scopes), queues, created_us, expires_us, secrets: Vec::new() })
}

fn scopes(members: &Members<'_>, problems: &mut Vec<Problem>) -> Vec<Scope> {
    let allowed = format!("an array with at least one of {}", Scope::ALL.map(Scope::name).join(", "));
    let said = members.texts("scopes", problems).unwrap_or_default();
    let known: Vec<Scope> = said.iter().filter_map(|name| Scope::of_name(name)).collect();
    if known.is_empty() || known.len() < said.len() {
        members.wrong("scopes", &allowed, problems);
    }
    known
}

fn queues(members: &Members<'_>, problems: &mut Vec<Problem>) -> Vec<QueuePattern> {
    let said = members.texts("queues", problems).unwrap_or_default();
    if members.has("queues") && said.is_empty() {
        members.wrong("queues", "at least one name; leave it out for all queues", problems);
    }
    let bytes: usize = said.iter().map(|pattern| pattern.len()).sum();
    if said.len() > MOST_PATTERNS || bytes > PATTERN_BYTES {
        let found = format!("{} names with {bytes} bytes", said.len());
        let allowed = format!("at most {MOST_PATTERNS} names with {PATTERN_BYTES} bytes together");
        problems.push(Problem::new("/queues", found, allowed));
    }
    for (index, pattern) in said.iter().enumerate() {
        let beginning = pattern.strip_suffix('*').unwrap_or(pattern);
        if pattern != "*" && !is_queue(beginning) {
            let allowed = format!("a name ({QUEUE_ALLOWED}), or what names begin with, followed by *");
            problems.push(Problem::new(format!("/queues/{index}"), format!("{pattern:?}"), allowed));
        }
    }
    // One that fits all queues is no limit.
    if said.iter().any(|pattern| pattern == "*") {
        return Vec::new();
    }
    said.into_iter().map(|pattern| QueuePattern(pattern.into_owned())).collect()
}

fn duration(members: &Members<'_>, key: &str, problems: &mut Vec<Problem>) -> Option<Span> {
    members.read(key, "a duration such as \"P90D\" or \"PT1H\"", problems, |value| {
        iso_duration(&text(value)?).map(|parsed| parsed.span)
    })
}

/// When it expires, in elapsed time.
fn moment(engine: &Engine, members: &Members<'_>, problems: &mut Vec<Problem>) -> Option<Moment> {
    const ALLOWED: &str = "a timestamp such as \"2026-02-13T10:00:00Z\"";
    let at = members.read("expires_at", ALLOWED, problems, |value| parse_rfc3339(&text(value)?))?;
    Some(Moment::from_micros(at.micros().saturating_sub(engine.wall().ahead_us)))
}

/// The first key of a server without configured ones closes it for everyone else.
fn check_first(guard: &Guard, is_first: bool, key: &StoredKey) -> Result<(), ApiError> {
    if guard.anyone_may_call() {
        let message = "this server is set to anyone_may_call, so that keys would change nothing; remove the setting, \
                       and restart the server";
        return Err(ApiError::new(Code::NotConfigured, message));
    }
    if !is_first || guard.has_configured() || key.is_for_everything() && key.expires_us.is_none() {
        return Ok(());
    }
    let message = "the first key closes the server for everyone without one: it needs the scope admin, for all queues, \
                   and must not expire, else nobody could manage keys";
    Err(ApiError::new(Code::Conflict, message).with_details(json!({ "reason": "first_key" })))
}

fn check_new(keys: &Keys, name: &str) -> Result<(), ApiError> {
    if keys.find(name).is_some() {
        let message = format!("there is a key \"{name}\" already; rotate it for a new secret, or revoke it first");
        return Err(ApiError::new(Code::Duplicate, message));
    }
    if keys.keys.len() >= MOST_KEYS {
        let message = format!("there are {MOST_KEYS} keys already, the most that are allowed; revoke one first");
        return Err(ApiError::new(Code::Conflict, message).with_details(json!({ "reason": "too_many_keys" })));
    }
    Ok(())
}

async fn find(app: &App, name: &str) -> Result<(), ApiError> {
    let keys = app.guard.stored(&app.engine).await?.unwrap_or_default();
    let missing =
        || ApiError::new(Code::NotFound, format!("there is no key {name:?}; GET /ojs/v1/admin/keys lists them"));
    keys.find(name).map(drop).ok_or_else(missing)
}

fn new_secret() -> Result<NewSecret, ApiError> {
    NewSecret::make().ok_or_else(|| ApiError::new(Code::InternalError, "the system has no randomness for a key"))
}

fn stored(engine: &Engine, secret: &NewSecret) -> StoredSecret {
    let (id, hash) = (secret.id.clone(), secret.hash.clone());
    StoredSecret { id, hash, made_us: elapsed(engine).micros(), until_us: None }
}

/// The key of this name, if its secret is this one.
fn having<'k>(keys: &'k Keys, name: &str, secret: &NewSecret) -> Option<&'k StoredKey> {
    keys.find(name).filter(|key| key.secrets.first().is_some_and(|newest| newest.id == secret.id))
}

fn with_secret(engine: &Engine, key: &StoredKey, secret: &NewSecret) -> JsonResponse {
    JsonResponse::json(&json!({ "key": shown(engine, key), "secret": secret.text }))
}

/// A key as it is returned, without anything that admits its holder.
fn shown(engine: &Engine, key: &StoredKey) -> Value {
    let ahead_us = engine.wall().ahead_us;
    let time = |us: i64| rfc3339(Moment::from_micros(us.saturating_add(ahead_us)));
    let queues: Vec<&str> = key.queues.iter().map(|pattern| &*pattern.0).collect();
    let is_valid = key.is_valid(elapsed(engine));
    let mut shown = json!({
        "name": key.name,
        "scopes": key.scopes.names(),
        "queues": if queues.is_empty() { vec!["*"] } else { queues },
        "status": if is_valid { "active" } else { "expired" },
        "created_at": time(key.created_us),
    });
    if let Some(expires) = key.expires_us {
        shown["expires_at"] = time(expires).into();
    }
    let secrets = key.secrets.iter().map(|secret| {
        let mut shown = json!({ "begins_with": secret.beginning(), "made_at": time(secret.made_us) });
        if let Some(until) = secret.until_us {
            shown["valid_until"] = time(until).into();
        }
        shown
    });
    shown["secrets"] = secrets.collect();
    shown
}
