//! Which caller a request is from, by the keys of the settings and those of the store.
//!
//! What is known of the stored keys is at most a second old: a request that comes later has it read again, and is
//! refused where that is not possible. Requests that stay open follow the keys as well.

use super::caller::Caller;
use super::configured::{ApiKeys, Presented};
use super::program::{CHANGE, Change, KEY, KIND, Keys};
use super::rule::{Queues, Rule};
use super::scope::Scope;
use super::secret::id_of;
use super::stored::{StoredKey, StoredSecret};
use crate::api_error::{ApiError, Code};
use axum::http::HeaderMap;
use redrive_engine::{Engine, EngineError, RunRequest};
use redrive_policy::{Moment, Span};
use redrive_store::{Blob, Run, Signal};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tracing::{error, warn};

/// How old the known keys may be.
const LONGEST: Span = Span::from_secs(1);
/// How old they may be for callers that cannot wait until they are read.
const UNREAD: Span = Span::from_secs(5);
/// How often requests that stay open have them read.
const EVERY: Duration = Duration::from_secs(1);

/// Who may call a server.
pub(crate) struct Guard {
    configured: ApiKeys,
    /// Whether the operator has said that no key is wanted.
    anyone_may_call: bool,
    known: RwLock<Arc<Known>>,
    reading: Mutex<()>,
    /// Counts how often it was seen that a key is not valid any more, or another one is.
    changes: watch::Sender<u64>,
}

/// What is known of the stored keys.
#[derive(Default)]
struct Known {
    /// By the id of each of their secrets.
    secrets: HashMap<Arc<str>, (Arc<StoredKey>, StoredSecret)>,
    /// As they are stored; `None` where no key was ever stored.
    keys: Option<Arc<Keys>>,
    /// The revision of the run.
    revision: u64,
    /// When they were read.
    at: Option<Moment>,
}

impl Guard {
    pub(crate) fn new(configured: ApiKeys, anyone_may_call: bool) -> Self {
        let (changes, _) = watch::channel(0);
        Self { configured, anyone_may_call, known: RwLock::default(), reading: Mutex::default(), changes }
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether everyone may call, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        self.anyone_may_call || self.configured.is_empty() && self.known().keys.is_none()
    }

    /// Whether there are configured keys, which no caller can remove.
    pub(crate) fn has_configured(&self) -> bool {
        !self.configured.is_empty()
    }

    /// Whether the operator has said that no key is wanted.
    pub(crate) const fn anyone_may_call(&self) -> bool {
        self.anyone_may_call
    }

    /// Who has sent a request; a refusal where that is not known and has to be.
    pub(crate) async fn identify(&self, engine: &Engine, headers: &HeaderMap) -> Result<Caller, ApiError> {
        let presented = Presented::read(headers);
        if self.anyone_may_call {
            return Ok(Caller::Anyone);
        }
        if let Some(number) = self.configured.find(&presented) {
            return Ok(Caller::Configured(number));
        }
        self.read_if_old(engine).await?;
        if self.is_open() {
            return Ok(Caller::Anyone);
        }
        let now = elapsed(engine);
        let known = self.known();
        presented.values().find_map(|value| known.holder(value, now)).ok_or_else(|| {
            let why = "this server needs a key, and the request has none that it knows, or one that has expired";
            ApiError::new(Code::Unauthorized, why)
        })
    }

    /// Whether a call that is about no single queue may pass, as far as is known from the last time that the keys were
    /// read: for callers that cannot wait for that.
    pub(crate) fn admits(&self, engine: &Engine, headers: &HeaderMap, scope: Scope) -> Result<(), ApiError> {
        let presented = Presented::read(headers);
        if self.is_open() || self.configured.find(&presented).is_some() {
            return Ok(());
        }
        let (known, now) = (self.known(), elapsed(engine));
        let is_recent = known.at.is_some_and(|at| now.since(at) < UNREAD);
        let caller = presented.values().find_map(|value| known.holder(value, now)).filter(|_| is_recent);
        let unknown =
            || ApiError::new(Code::Unauthorized, "this server needs a key, and the call has none that it knows");
        caller.ok_or_else(unknown)?.check(Rule::needs(scope, Queues::All))
    }

    /// Whether a request has a valid key, or needs none, as far as is known.
    pub(crate) fn knows(&self, engine: &Engine, headers: &HeaderMap) -> bool {
        let presented = Presented::read(headers);
        let (known, now) = (self.known(), elapsed(engine));
        self.is_open()
            || self.configured.find(&presented).is_some()
            || presented.values().any(|value| known.holder(value, now).is_some())
    }

    /// Whether a caller's key is still valid, as far as is known.
    pub(crate) fn is_valid(&self, engine: &Engine, caller: &Caller) -> bool {
        let Caller::Holder(_, id) = caller else { return true };
        self.known().secrets.get(id).is_some_and(|(key, secret)| {
            let now = elapsed(engine);
            key.is_valid(now) && secret.is_valid(now)
        })
    }

    /// Completes once the key of a caller is not valid any more. For callers without a stored key it never does.
    pub(crate) async fn invalid(&self, engine: &Engine, caller: &Caller) {
        let mut changes = self.changes.subscribe();
        while self.is_valid(engine, caller) && !matches!(caller, Caller::Anyone | Caller::Configured(_)) {
            // The sender lives as long as this.
            let _ = changes.changed().await;
        }
        if matches!(caller, Caller::Anyone | Caller::Configured(_)) {
            std::future::pending::<()>().await;
        }
    }

    /// Reads the keys again and again, for the requests that stay open.
    pub(crate) async fn follow(&self, engine: &Engine) {
        let mut fails = false;
        loop {
            tokio::time::sleep(EVERY).await;
            match self.read_if_old(engine).await {
                Err(error) if !fails => warn!("cannot read the stored keys, and admits none: {}", error.message),
                _ => {}
            }
            fails = self.known().is_old(elapsed(engine));
        }
    }

    /// Reads the keys where what is known of them is too old.
    async fn read_if_old(&self, engine: &Engine) -> Result<(), ApiError> {
        if !self.known().is_old(elapsed(engine)) {
            return Ok(());
        }
        let _reading = self.reading.lock().await;
        if !self.known().is_old(elapsed(engine)) {
            return Ok(());
        }
        Ok(self.read(engine).await?)
    }

    /// Reads the keys.
    pub(crate) async fn read(&self, engine: &Engine) -> Result<(), EngineError> {
        let at = elapsed(engine);
        let run = engine.run_of_key(KEY.into()).await?;
        self.note(engine, run.as_ref(), at);
        Ok(())
    }

    /// Takes over what the store had at a time.
    fn note(&self, engine: &Engine, run: Option<&Run>, at: Moment) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let before = Arc::clone(&known);
        *known = Arc::new(match run {
            Some(run) if before.keys.is_none() || run.revision != before.revision => {
                if run.revision < before.revision {
                    // Another reader has seen more.
                    return;
                }
                Known::of(run, at)
            }
            // Keys that were there are not taken for gone: then everyone could call.
            _ => Known {
                secrets: before.secrets.clone(),
                keys: before.keys.clone(),
                revision: before.revision,
                at: Some(at),
            },
        });
        let is_news = known.revision != before.revision || before.has_ended_since(elapsed(engine));
        drop(known);
        if is_news {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// The stored keys as they are now; `None` where no key was ever stored.
    pub(crate) async fn stored(&self, engine: &Engine) -> Result<Option<Arc<Keys>>, EngineError> {
        self.read(engine).await?;
        Ok(self.known().keys.clone())
    }

    /// Carries out a change, and answers the keys after it. It holds on this server at once.
    pub(crate) async fn change(&self, engine: &Engine, change: &Change) -> Result<Arc<Keys>, EngineError> {
        let body = Blob::from(serde_json::to_vec(change).unwrap_or_default());
        let id = match engine.run_of_key(KEY.into()).await? {
            Some(run) => run.id,
            None => {
                let state = Blob::from(Keys::default().write());
                match engine.start_run(RunRequest { id: None, program: KIND, state, key: Some(KEY.into()) }).await {
                    Ok(run) => run.id,
                    Err(EngineError::RunKeyTaken(id)) => id,
                    Err(error) => return Err(error),
                }
            }
        };
        let at = elapsed(engine);
        let run = engine.signal_run(id, Signal { name: CHANGE.into(), body }).await?;
        self.note(engine, Some(&run), at);
        Ok(self.known().keys.clone().unwrap_or_default())
    }
}

impl Known {
    fn of(run: &Run, at: Moment) -> Self {
        let keys = Keys::read(&run.state).unwrap_or_else(|why| {
            error!("{why}; only configured keys are admitted");
            Keys::default()
        });
        let of_key = |key: &StoredKey| {
            let shared = Arc::new(key.clone());
            let entry = move |secret: &StoredSecret| (Arc::from(&*secret.id), (Arc::clone(&shared), secret.clone()));
            key.secrets.iter().map(entry).collect::<Vec<_>>()
        };
        let secrets = keys.keys.iter().flat_map(of_key).collect();
        Self { secrets, keys: Some(Arc::new(keys)), revision: run.revision, at: Some(at) }
    }

    fn is_old(&self, now: Moment) -> bool {
        self.at.is_none_or(|at| now < at || now.since(at) >= LONGEST)
    }

    /// Who presents this.
    fn holder(&self, presented: &[u8], now: Moment) -> Option<Caller> {
        let (id, (key, secret)) = self.secrets.get_key_value(id_of(presented)?)?;
        let is_valid = secret.hash.is_of(presented) && key.is_valid(now) && secret.is_valid(now);
        is_valid.then(|| Caller::Holder(Arc::clone(key), Arc::clone(id)))
    }

    /// Whether a key or a secret has expired since the keys were read.
    fn has_ended_since(&self, now: Moment) -> bool {
        let Some(at) = self.at else { return false };
        let ended = |end: Option<i64>| end.is_some_and(|end| (at.micros()..=now.micros()).contains(&end));
        self.secrets.values().any(|(key, secret)| ended(key.expires_us) || ended(secret.until_us))
    }
}

/// The time by which keys are measured, which no setting of the wall clock changes.
pub(crate) fn elapsed(engine: &Engine) -> Moment {
    Moment::from_micros(engine.now().micros().saturating_sub(engine.wall().ahead_us))
}
