//! Limits that operators set: for queues, for types, and for the keys of jobs.

use crate::decide::KeyHold;
use crate::wall::moved;
use crate::{Engine, EngineError, other_events};
use redrive_policy::Moment;
use redrive_store::{Group, Job, Limits, OwnLimit, RESERVED_QUEUES, Setting, Standing};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

/// What new jobs have to be held to, as this node last read it.
#[derive(Debug, Default)]
pub(crate) struct KnownLimits(RwLock<Arc<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// The types that are limited: new jobs of these types are in the group of their type.
    kinds: BTreeSet<Arc<str>>,
    /// How many jobs may wait in queues for which that is set; zero is any number.
    depths: HashMap<Arc<str>, u64>,
}

impl KnownLimits {
    fn get(&self) -> Arc<Known> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, settings: &[(Group, Setting)]) {
        let mut known = Known::default();
        for (group, setting) in settings {
            match group {
                Group::Kind(kind) => drop(known.kinds.insert(Arc::clone(kind))),
                Group::Queue(queue) => known.depths.extend(setting.depth.map(|depth| (Arc::clone(queue), depth))),
                Group::Key(_) => {}
            }
        }
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(known);
    }
}

impl Engine {
    /// Sets the limits of a group; absent, what was set is removed. They apply from the next claim on, on all nodes.
    /// The limits of a type, and the depth of a queue, apply to jobs that are enqueued from then on; on other nodes
    /// from when they have read it.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn set_limit(&self, group: Group, setting: Option<Setting>) -> Result<(), EngineError> {
        let setting = setting.map(|setting| self.moved_setting(setting, -self.wall().ahead_us));
        self.store.set_limit(group, setting, self.clock.now()).await?;
        self.recall_limits().await?;
        self.admission.anything_elsewhere();
        Ok(())
    }

    /// No run of a group starts before this time, by the wall clock; the last call applies.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn hold_group(&self, group: Group, until: Moment) -> Result<(), EngineError> {
        let until = moved(until, -self.wall().ahead_us);
        self.store.hold_group(group, until, self.clock.now()).await?;
        self.admission.anything_elsewhere();
        Ok(())
    }

    /// No job with the limit key of this one starts before a time: a worker asks for that.
    pub(crate) async fn hold_key_of(&self, job: &Job, hold: KeyHold, reason: &str) {
        let own = job.spec.limits.as_ref().and_then(|limits| limits.own.as_ref());
        let Some(own) = own.filter(|_| hold.until > self.now()) else { return };
        // The run has ended, and that is what the worker has to learn. Where the store does not answer, the next job of
        // the key fails, and asks again.
        if self.hold_group(Group::Key(Arc::clone(&own.key)), hold.until).await.is_ok() {
            self.tell([other_events::key_held(&own.key, &hold.text, reason)]);
        }
    }

    /// What is set for which groups.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn limit_settings(&self) -> Result<Vec<(Group, Setting)>, EngineError> {
        let ahead_us = self.wall().ahead_us;
        let settings = self.store.settings().await?.into_iter();
        Ok(settings.map(|(group, setting)| (group, self.moved_setting(setting, ahead_us))).collect())
    }

    /// How one group stands, or all that have limits.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn standings(&self, group: Option<Group>) -> Result<Vec<Standing>, EngineError> {
        let ahead_us = self.wall().ahead_us;
        let standings = self.store.standings(group, self.clock.now()).await?;
        let shown = |standing: Standing| Standing {
            opens: standing.opens.map(|opens| moved(opens, ahead_us)),
            held: standing.held.map(|held| moved(held, ahead_us)),
            setting: standing.setting.map(|setting| self.moved_setting(setting, ahead_us)),
            ..standing
        };
        Ok(standings.into_iter().map(shown).collect())
    }

    /// Reads which types are limited, and how deep queues may be: at the start, and when another node may have changed
    /// it.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn recall_limits(&self) -> Result<(), EngineError> {
        self.known_limits.note(&self.store.settings().await?);
        Ok(())
    }

    /// The limits of a new job besides that of its queue.
    pub(crate) fn limits_of(&self, kind: &Arc<str>, own: Option<OwnLimit>) -> Option<Arc<Limits>> {
        let by_kind = self.known_limits.get().kinds.contains(kind);
        (own.is_some() || by_kind).then(|| Arc::new(Limits { own, by_kind }))
    }

    /// How many jobs may wait in a queue: what is set for it, or else for all. Queues that only the server itself uses
    /// are as deep as they have to be.
    #[must_use]
    pub fn depth_of(&self, queue: &str) -> Option<u64> {
        let set = self.known_limits.get().depths.get(queue).copied();
        set.or(self.settings.max_depth).filter(|depth| *depth > 0 && !queue.starts_with(RESERVED_QUEUES))
    }

    fn moved_setting(&self, setting: Setting, by_us: i64) -> Setting {
        Setting { until: setting.until.map(|until| moved(until, by_us)), ..setting }
    }
}
