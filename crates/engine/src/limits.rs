//! Limits that operators set: for queues, for types, and for the keys of jobs.

use crate::wall::moved;
use crate::{Engine, EngineError};
use redrive_policy::Moment;
use redrive_store::{Group, Limits, OwnLimit, Setting, Standing};
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// The types that are limited, as this node last read it: new jobs of these types are in the group of their type.
#[derive(Debug, Default)]
pub(crate) struct LimitedKinds(RwLock<Arc<BTreeSet<Arc<str>>>>);

impl LimitedKinds {
    fn get(&self) -> Arc<BTreeSet<Arc<str>>> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, settings: &[(Group, Setting)]) {
        let kinds = settings.iter().filter_map(|(group, _)| match group {
            Group::Kind(kind) => Some(Arc::clone(kind)),
            Group::Key(_) | Group::Queue(_) => None,
        });
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(kinds.collect());
    }
}

impl Engine {
    /// Sets the limits of a group; absent, what was set is removed. They apply from the next claim on, on all nodes.
    /// The limits of a type apply to jobs that are enqueued from then on.
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

    /// No run of a group starts before this time, by the wall clock.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn hold_group(&self, group: Group, until: Moment) -> Result<(), EngineError> {
        let until = moved(until, -self.wall().ahead_us);
        Ok(self.store.hold_group(group, until, self.clock.now()).await?)
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

    /// Reads which types are limited: at the start, and when another node may have changed it.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn recall_limits(&self) -> Result<(), EngineError> {
        self.limited_kinds.note(&self.store.settings().await?);
        Ok(())
    }

    /// The limits of a new job besides that of its queue.
    pub(crate) fn limits_of(&self, kind: &Arc<str>, own: Option<OwnLimit>) -> Option<Arc<Limits>> {
        let by_kind = self.limited_kinds.get().contains(kind);
        (own.is_some() || by_kind).then(|| Arc::new(Limits { own, by_kind }))
    }

    fn moved_setting(&self, setting: Setting, by_us: i64) -> Setting {
        Setting { until: setting.until.map(|until| moved(until, by_us)), ..setting }
    }
}
