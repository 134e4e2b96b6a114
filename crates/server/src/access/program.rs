//! The keys of a store, as a run with a key of its own: they survive a restart, hold on every node, and changes that
//! happen at the same time follow each other.

use super::stored::{StoredKey, StoredSecret};
use redrive_engine::{Context, Engine, Input, Program, ProgramStep, Submission};
use redrive_policy::Moment;
use redrive_store::{MessageBody, Signal};
use serde::{Deserialize, Serialize};

/// The kind of the run.
pub(super) const KIND: &str = "redrive.keys";
/// Its key. Schedules have keys that begin otherwise.
pub(super) const KEY: &str = "redrive:keys";
/// The signal of a change.
pub(super) const CHANGE: &str = "change";
/// How many keys there may be.
pub(crate) const MOST_KEYS: usize = 1_000;

/// All keys.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Keys {
    pub(crate) keys: Vec<StoredKey>,
}

/// What is to happen to one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "change")]
pub(crate) enum Change {
    /// It is added, if there is none of its name.
    Create { key: StoredKey },
    /// It gets a new secret; the old one is valid until some time, or not any more.
    Rotate { name: String, secret: StoredSecret, old_until_us: Option<i64> },
    /// It is removed; the last one that may do everything is not, where one has to stay.
    Revoke { name: String, one_must_stay: bool },
}

impl Keys {
    pub(super) fn read(state: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(state).map_err(|error| format!("the stored keys cannot be read: {error}"))
    }

    pub(super) fn write(&self) -> Vec<u8> {
        // Texts and numbers can always be written.
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&StoredKey> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Carries out a change. One that is not possible, because of another that came first, changes nothing.
    fn change(&mut self, change: Change) {
        match change {
            Change::Create { key } => {
                if self.find(&key.name).is_none() && self.keys.len() < MOST_KEYS {
                    self.keys.push(key);
                }
            }
            Change::Rotate { name, secret, old_until_us } => {
                if let Some(key) = self.keys.iter_mut().find(|key| key.name == name) {
                    key.secrets.truncate(1);
                    match old_until_us {
                        Some(until) => key.secrets.iter_mut().for_each(|old| old.until_us = Some(until)),
                        None => key.secrets.clear(),
                    }
                    key.secrets.insert(0, secret);
                }
            }
            Change::Revoke { name, one_must_stay } => {
                if !one_must_stay || !self.is_last(&name) {
                    self.keys.retain(|key| key.name != name);
                }
            }
        }
    }

    /// Whether no other key may do everything.
    pub(super) fn is_last(&self, name: &str) -> bool {
        let mut others = self.keys.iter().filter(|key| key.name != name);
        self.find(name).is_some_and(StoredKey::is_for_everything)
            && !others.any(|key| key.is_for_everything() && key.expires_us.is_none())
    }
}

/// The program of the run. It never fails: a run that fails loses its key, and a server without keys admits everyone.
pub(crate) struct KeysProgram;

impl Program for KeysProgram {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn version(&self) -> u32 {
        1
    }

    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String> {
        let same = || ProgramStep { state: context.state.to_vec(), effects: Vec::new() };
        let Input::Message(MessageBody::Signal(Signal { name, body })) = input else { return Ok(same()) };
        let change = serde_json::from_slice(body).ok().filter(|_| &**name == CHANGE);
        Ok(match (Keys::read(context.state), change) {
            (Ok(mut keys), Some(change)) => {
                keys.change(change);
                ProgramStep { state: keys.write(), effects: Vec::new() }
            }
            _ => same(),
        })
    }

    fn submission(&self, _: &Engine, _: &[u8], _: Moment) -> Result<Submission, String> {
        Err("keys enqueue no jobs".to_owned())
    }
}
