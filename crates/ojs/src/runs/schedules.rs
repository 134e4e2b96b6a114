//! Schedules: register, list, look at, change, pause and resume, delete.

use super::RunsError;
use crate::Limits;
use crate::cron::{CronJob, Definition, KIND, cron_definition, signals};
use crate::json::Members;
use redrive_engine::{Engine, EngineError, RunRequest};
use redrive_policy::resembling;
use redrive_store::{Blob, Run, RunFilter, RunKeys, Signal};
use std::sync::Arc;

/// How many schedules are read from the store at a time.
const STEP: usize = 100;
/// How often a schedule is looked for that others delete and register at the same time.
const LOOKS: usize = 5;
/// How many names are compared with one that nothing has.
const COMPARED: usize = 200;
/// What the keys of schedules begin with.
const PREFIX: &str = "cron:";

/// Which schedules to list, by name.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScheduleList<'a> {
    /// Those that are enabled, or those that are not.
    pub enabled: Option<bool>,
    /// Those behind this name.
    pub after: Option<&'a str>,
    /// How many that fit are passed over.
    pub offset: usize,
    /// At most so many.
    pub limit: usize,
}

/// A page of schedules.
#[derive(Clone, Debug, Default)]
pub struct SchedulePage {
    /// They, by name.
    pub jobs: Vec<CronJob>,
    /// Whether there are more.
    pub goes_on: bool,
}

/// Registers a schedule under a name that is free.
///
/// # Errors
/// It is not valid, the name is taken, or the store did not answer.
pub async fn register(engine: &Engine, document: &Members<'_>, limits: &Limits) -> Result<CronJob, RunsError> {
    let definition = cron_definition(engine, document, None, limits, engine.now())?;
    let name = definition.name.clone();
    start(engine, definition).await?.ok_or(RunsError::ScheduleExists(name))
}

/// Registers a schedule, or changes the one that has the name; what it has counted stays. Answers whether it is new.
///
/// # Errors
/// It is not valid, or the store did not answer.
pub async fn replace(
    engine: &Engine,
    name: &str,
    document: &Members<'_>,
    limits: &Limits,
) -> Result<(CronJob, bool), RunsError> {
    let definition = cron_definition(engine, document, Some(name), limits, engine.now())?;
    let body = serde_json::to_vec(&definition).map_err(|error| RunsError::Unreadable(error.to_string()))?;
    // It may be deleted, or registered, between the look and the change.
    for _ in 0..LOOKS {
        let Some(run) = engine.run_of_key(key(name)).await? else {
            match start(engine, definition.clone()).await? {
                Some(created) => return Ok((created, true)),
                None => continue,
            }
        };
        let changed = signal(engine, &run, signals::REPLACE, &body).await?;
        if changed.end.is_none() {
            return Ok((read(&changed)?, false));
        }
    }
    Err(missing(engine, name).await?)
}

/// Switches a schedule on or off.
///
/// # Errors
/// There is no such schedule, or the store did not answer.
pub async fn switch(engine: &Engine, name: &str, enabled: bool) -> Result<CronJob, RunsError> {
    let word = if enabled { signals::ENABLE } else { signals::DISABLE };
    let switched = signal(engine, &find(engine, name).await?, word, &[]).await?;
    // It may have been deleted before.
    if switched.end.is_none() { read(&switched) } else { Err(missing(engine, name).await?) }
}

/// One schedule.
///
/// # Errors
/// There is no such schedule, or the store did not answer.
pub async fn show(engine: &Engine, name: &str) -> Result<CronJob, RunsError> {
    read(&find(engine, name).await?)
}

/// Deletes a schedule. Jobs that it has enqueued stay.
///
/// # Errors
/// There is no such schedule, or the store did not answer.
pub async fn delete(engine: &Engine, name: &str) -> Result<CronJob, RunsError> {
    read(&signal(engine, &find(engine, name).await?, signals::DELETE, &[]).await?)
}

/// A page of schedules. Only what is on it and what is passed over is read.
///
/// # Errors
/// The store did not answer.
pub async fn list(engine: &Engine, wanted: ScheduleList<'_>) -> Result<SchedulePage, RunsError> {
    let mut page = SchedulePage::default();
    let (mut after, mut offset) = (wanted.after.map(key), wanted.offset);
    loop {
        // One more shows whether there are more.
        let most = STEP.min(offset.saturating_add(wanted.limit - page.jobs.len()).saturating_add(1));
        let runs = named(engine, "", after, most).await?;
        for run in &runs {
            let job = read(run)?;
            if wanted.enabled.is_some_and(|enabled| enabled != job.is_enabled()) {
                continue;
            }
            if offset > 0 {
                offset -= 1;
            } else if page.jobs.len() < wanted.limit {
                page.jobs.push(job);
            } else {
                page.goes_on = true;
                return Ok(page);
            }
        }
        if runs.len() < most {
            return Ok(page);
        }
        after = runs.last().and_then(|run| run.key.clone());
    }
}

/// Starts the run of a schedule; `None` where the name is taken.
async fn start(engine: &Engine, definition: Definition) -> Result<Option<CronJob>, RunsError> {
    let key = key(&definition.name);
    let state = Blob::from(CronJob::beginning(definition).map_err(RunsError::Unreadable)?);
    match engine.start_run(RunRequest { id: None, program: KIND, state, key: Some(key) }).await {
        Err(EngineError::RunKeyTaken(_)) => Ok(None),
        answer => read(&answer?).map(Some),
    }
}

/// Sends a signal to the run of a schedule, and answers how it stands then.
async fn signal(engine: &Engine, run: &Run, word: &str, body: &[u8]) -> Result<Run, RunsError> {
    let signal = Signal { name: word.into(), body: Blob::from(body) };
    Ok(engine.signal_run(run.id, signal).await?)
}

async fn find(engine: &Engine, name: &str) -> Result<Run, RunsError> {
    match engine.run_of_key(key(name)).await? {
        Some(run) => Ok(run),
        None => Err(missing(engine, name).await?),
    }
}

/// That there is no such schedule, and which may be meant: one of the first that begin with the same letter.
async fn missing(engine: &Engine, name: &str) -> Result<RunsError, RunsError> {
    let letter: String = name.chars().take(1).collect();
    let runs = named(engine, &letter, None, COMPARED).await?;
    let names: Vec<&str> = runs.iter().filter_map(|run| run.key.as_deref()?.strip_prefix(PREFIX)).collect();
    let near = resembling(name, &names).map(str::to_owned);
    Ok(RunsError::NoSuchSchedule(name.to_owned(), near))
}

/// The runs of schedules whose names begin with a text, by name, behind a key.
async fn named(engine: &Engine, start: &str, after: Option<Arc<str>>, limit: usize) -> Result<Vec<Run>, RunsError> {
    let keys = Some(RunKeys { prefix: key(start), after });
    let filter = RunFilter { program: Some(KIND.into()), keys, ..RunFilter::default() };
    Ok(engine.list_runs(filter, limit).await?)
}

fn read(run: &Run) -> Result<CronJob, RunsError> {
    CronJob::of(run).map_err(RunsError::Unreadable)
}

/// The key of the run of a schedule.
fn key(name: &str) -> Arc<str> {
    format!("{PREFIX}{name}").into()
}
