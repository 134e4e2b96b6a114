//! Schedules that are registered.

use crate::transport::{Ask, Transport};
use crate::{ClientError, Schedule};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// How many are read in one request.
const STEP: usize = 500;

/// The schedules: `client.schedules().replace(Schedule::new(…))`.
#[derive(Clone)]
pub struct Schedules {
    transport: Arc<dyn Transport>,
}

impl Schedules {
    pub(crate) fn new(transport: Arc<dyn Transport>) -> Self {
        Self { transport }
    }

    /// Registers a schedule under a name that is free. When this returns, it is durable.
    ///
    /// # Errors
    /// The name is taken, the server refuses it with every problem, or it cannot be reached.
    pub async fn register(&self, schedule: Schedule) -> Result<ScheduleInfo, ClientError> {
        self.ask(Ask::Register(schedule.document()?)).await
    }

    /// Registers a schedule, or changes the one that has the name; what was counted stays. For programs that register
    /// their schedules whenever they start.
    ///
    /// # Errors
    /// The server refuses it with every problem, or cannot be reached.
    pub async fn replace(&self, schedule: Schedule) -> Result<ScheduleInfo, ClientError> {
        self.ask(Ask::Replace(&schedule.name, schedule.document()?)).await
    }

    /// What is known of a schedule.
    ///
    /// # Errors
    /// There is no such schedule, or the server cannot be reached.
    pub async fn get(&self, name: &str) -> Result<ScheduleInfo, ClientError> {
        self.ask(Ask::Schedule(name)).await
    }

    /// Pauses a schedule: it is not due until it is resumed.
    ///
    /// # Errors
    /// As [`Schedules::get`].
    pub async fn pause(&self, name: &str) -> Result<ScheduleInfo, ClientError> {
        self.ask(Ask::Switch(name, false)).await
    }

    /// Resumes a schedule. What would have been due meanwhile is not caught up.
    ///
    /// # Errors
    /// As [`Schedules::get`].
    pub async fn resume(&self, name: &str) -> Result<ScheduleInfo, ClientError> {
        self.ask(Ask::Switch(name, true)).await
    }

    /// Deletes a schedule; the jobs that it has enqueued stay. Returns what it was.
    ///
    /// # Errors
    /// As [`Schedules::get`].
    pub async fn delete(&self, name: &str) -> Result<ScheduleInfo, ClientError> {
        self.ask(Ask::DeleteSchedule(name)).await
    }

    /// All of them, by name.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn list(&self) -> Result<Vec<ScheduleInfo>, ClientError> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let mut page = self.transport.ask(Ask::ListSchedules { after, limit: STEP }).await?;
            if let Value::Array(entries) = page["cron_jobs"].take() {
                found.extend(entries.into_iter().map(ScheduleInfo));
            }
            after = page["pagination"]["next_cursor"].as_str().map(str::to_owned);
            if after.is_none() {
                return Ok(found);
            }
        }
    }

    async fn ask(&self, ask: Ask<'_>) -> Result<ScheduleInfo, ClientError> {
        Ok(ScheduleInfo(self.transport.ask(ask).await?))
    }
}

impl fmt::Debug for Schedules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schedules")
    }
}

/// What is known of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleInfo(Value);

impl ScheduleInfo {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0["name"].as_str().unwrap_or_default()
    }

    /// When it is due, as it was written.
    #[must_use]
    pub fn expression(&self) -> &str {
        self.0["expression"].as_str().unwrap_or_default()
    }

    /// Whether it is paused.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.0["enabled"] == false
    }

    /// When it is due next, in RFC 3339; absent while it is paused.
    #[must_use]
    pub fn next_run_at(&self) -> Option<&str> {
        self.0["next_run_at"].as_str()
    }

    /// When it last enqueued a job.
    #[must_use]
    pub fn last_run_at(&self) -> Option<&str> {
        self.0["last_run_at"].as_str()
    }

    /// How many jobs it has enqueued.
    #[must_use]
    pub fn run_count(&self) -> u64 {
        self.0["run_count"].as_u64().unwrap_or(0)
    }

    /// How many slots it has skipped, because a job had not ended.
    #[must_use]
    pub fn skipped_count(&self) -> u64 {
        self.0["skipped_count"].as_u64().unwrap_or(0)
    }

    /// Everything that the server reports.
    #[must_use]
    pub const fn document(&self) -> &Value {
        &self.0
    }
}
