//! The statements that work on whole rows, put together from the list of columns.

use super::columns::{COLUMNS, FIXED};
use std::sync::LazyLock;

/// What is read of a job besides its row.
const SPEC: &str = "s.kind, s.body, s.policy, s.own_policy, s.timeout_ms, s.lease_ms";

/// Where a due job is found: the columns of a row, then those of its spec.
fn job_columns() -> String {
    let columns: Vec<String> = COLUMNS.iter().map(|(name, _)| format!("j.{name}")).collect();
    format!("{}, {SPEC}", columns.join(", "))
}

fn names(keep: impl Fn(&str) -> bool) -> Vec<&'static str> {
    COLUMNS.iter().map(|(name, _)| *name).filter(|name| keep(name)).collect()
}

/// All parameters of a statement as the columns of a table.
fn unnested() -> String {
    let arrays: Vec<String> = (1..).zip(COLUMNS).map(|(place, (_, kind))| format!("${place}::{kind}[]")).collect();
    format!("unnest({}) AS u ({})", arrays.join(", "), names(|_| true).join(", "))
}

fn insert(table: &str) -> String {
    let names = names(|_| true).join(", ");
    format!("INSERT INTO {table} ({names}) SELECT {names} FROM {}", unnested())
}

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $text:expr;)*) => {
        $($(#[$doc])* pub(super) static $name: LazyLock<String> = LazyLock::new(|| $text);)*
    };
}

statements! {
    INSERT_LIVE = insert("live");
    INSERT_ENDED = insert("ended");
    /// New jobs: what is said about them and their rows, in one statement.
    ENQUEUE = {
        let columns = [
            ("id", "uuid"), ("kind", "text"), ("body", "bytea"), ("policy", "integer"), ("own_policy", "bytea"),
            ("timeout_ms", "double precision"), ("lease_ms", "double precision"), ("key", "bytea"),
            ("created_us", "bigint"), ("available_us", "bigint"), ("due_us", "bigint"), ("expires_us", "bigint"),
            ("queue", "integer"), ("priority", "integer"), ("state", "smallint"),
        ];
        let arrays: Vec<String> = (1..).zip(columns).map(|(place, (_, kind))| format!("${place}::{kind}[]")).collect();
        let names = columns.map(|(name, _)| name);
        format!(
            "WITH new AS MATERIALIZED (SELECT * FROM unnest({}) AS u ({})), said AS (\
               INSERT INTO specs ({said}) SELECT {said} FROM new) \
             INSERT INTO live (id, {row}, attempt, leases, revivals, releases, failed, dead) \
             SELECT id, {row}, 0, 0, 0, 0, 0, false FROM new",
            arrays.join(", "), names.join(", "), said = names[..8].join(", "), row = names[8..].join(", ")
        )
    };
    UPDATE_LIVE = {
        let changing = names(|name| !FIXED.contains(&name));
        let values: Vec<String> = changing.iter().map(|name| format!("u.{name}")).collect();
        format!(
            "UPDATE live j SET ({}) = ROW ({}) FROM {} WHERE j.id = u.id",
            changing.join(", "), values.join(", "), unnested()
        )
    };
    /// The outcomes of runs, each on the condition that its lease is as it was; answers which were written.
    GUARDED = {
        let own = [
            ("old_nonce", "bigint"), ("old_until_us", "bigint"), ("old_alive_us", "bigint"),
            ("fail_life", "integer"), ("fail_attempt", "integer"), ("fail_at_us", "bigint"),
            ("fail_error", "bytea"), ("fail_verdict", "text"),
        ];
        let columns = || COLUMNS.iter().chain(&own);
        let arrays: Vec<String> = (1..).zip(columns()).map(|(place, (_, kind))| format!("${place}::{kind}[]")).collect();
        let named: Vec<&str> = columns().map(|(name, _)| *name).collect();
        let changing = names(|name| !FIXED.contains(&name));
        let values: Vec<String> = changing.iter().map(|name| format!("u.{name}")).collect();
        let unchanged = "j.id = u.id AND j.state = 3 AND j.leases = u.leases AND j.nonce = u.old_nonce \
                         AND j.until_us = u.old_until_us AND j.alive_us = u.old_alive_us";
        let failure = "id, failed, fail_life, fail_attempt, fail_at_us, fail_error, fail_verdict";
        format!(
            "WITH u AS MATERIALIZED (SELECT * FROM unnest({arrays}) AS u ({named})), \
             gone AS (DELETE FROM live j USING u WHERE u.state >= 5 AND {unchanged} RETURNING u.*), \
             stay AS (UPDATE live j SET ({changing}) = ROW ({values}) FROM u WHERE u.state < 5 AND {unchanged} \
               RETURNING u.*), \
             kept AS (INSERT INTO ended ({row}) SELECT {row} FROM gone), \
             failed AS (INSERT INTO failures (job, number, life, attempt, at_us, error, verdict) \
               SELECT {failure} FROM gone WHERE fail_verdict IS NOT NULL UNION ALL \
               SELECT {failure} FROM stay WHERE fail_verdict IS NOT NULL) \
             SELECT id FROM gone UNION ALL SELECT id FROM stay",
            arrays = arrays.join(", "), named = named.join(", "), changing = changing.join(", "),
            values = values.join(", "), row = names(|_| true).join(", ")
        )
    };
    /// Jobs that can still run, by name, for a change. The order keeps two callers from waiting for each
    /// other.
    LOCK_LIVE = format!(
        "SELECT {} FROM live j JOIN specs s ON s.id = j.id WHERE j.id = ANY ($1::uuid[]) ORDER BY j.id \
         FOR NO KEY UPDATE OF j",
        job_columns()
    );
    /// Jobs that have ended, by name, for a change.
    LOCK_ENDED = format!(
        "SELECT {} FROM ended j JOIN specs s ON s.id = j.id WHERE j.id = ANY ($1::uuid[]) ORDER BY j.id \
         FOR NO KEY UPDATE OF j",
        job_columns()
    );
    /// Jobs that have ended, by name.
    READ_ENDED = format!(
        "SELECT {} FROM ended j JOIN specs s ON s.id = j.id WHERE j.id = ANY ($1::uuid[])",
        job_columns()
    );
    /// Jobs by name, wherever they are.
    READ = format!(
        "SELECT {columns} FROM live j JOIN specs s ON s.id = j.id WHERE j.id = ANY ($1::uuid[]) UNION ALL \
         SELECT {columns} FROM ended j JOIN specs s ON s.id = j.id WHERE j.id = ANY ($1::uuid[])",
        columns = job_columns()
    );
    /// The next jobs of the queues $1, in the order of the queues, at most $2, as of $3. The rows come in
    /// the order of the loops, so that no more are locked than are handed out.
    CLAIM = format!(
        "SELECT {} FROM (\
           SELECT j.* FROM unnest($1::text[]) WITH ORDINALITY AS q (name, place) CROSS JOIN LATERAL (\
             SELECT * FROM live \
             WHERE queue = (SELECT id FROM queues WHERE queues.name = q.name AND NOT paused) AND state = 2 \
               AND (expires_us IS NULL OR expires_us > $3) \
             ORDER BY priority DESC, available_us, id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED) j \
           LIMIT $2) j JOIN specs s ON s.id = j.id",
        job_columns()
    );
    /// Runs that are overdue at $1, at most $2.
    OVERDUE = format!(
        "SELECT {} FROM (SELECT * FROM live \
           WHERE state = 3 AND LEAST(until_us, deadline_us) <= $1 \
           ORDER BY LEAST(until_us, deadline_us), id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED) j \
         JOIN specs s ON s.id = j.id",
        job_columns()
    );
    /// Waiting jobs that have expired at $1, at most $2.
    EXPIRED = format!(
        "SELECT {} FROM (SELECT * FROM live \
           WHERE expires_us <= $1 AND state <> 3 \
           ORDER BY expires_us, id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED) j \
         JOIN specs s ON s.id = j.id",
        job_columns()
    );
    /// Jobs that are due at $1 and come after ($3, $4), at most $2.
    DUE = format!(
        "SELECT {} FROM (SELECT * FROM live \
           WHERE due_us <= $1 AND (due_us, id) > ($3, $4) \
           ORDER BY due_us, id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED) j \
         JOIN specs s ON s.id = j.id",
        job_columns()
    );
    /// A page of jobs that fit a filter: $1 queue, $2 kind, $3 state, $4 dead, $5 since, $6 before,
    /// $7 offset, $8 limit.
    LIST = format!("SELECT {} FROM {} ORDER BY j.id DESC OFFSET $7 LIMIT $8", job_columns(), fitting());
    /// How many fit the same filter.
    COUNT = format!("SELECT count(*) FROM {}", fitting());
    PRUNE_FINISHED = prune("NOT dead");
    PRUNE_DEAD = prune("dead");
}

/// Forgets jobs that ended before a moment, with all that belongs to them.
fn prune(which: &str) -> String {
    format!(
        "WITH old AS (SELECT id FROM ended WHERE {which} AND finished_us <= $1 \
           ORDER BY finished_us, id LIMIT $2 FOR UPDATE SKIP LOCKED), \
         gone AS (DELETE FROM ended USING old WHERE ended.id = old.id RETURNING ended.id), \
         said AS (DELETE FROM specs USING gone WHERE specs.id = gone.id), \
         failed AS (DELETE FROM failures USING gone WHERE failures.job = gone.id) \
         SELECT count(*) FROM gone"
    )
}

/// The jobs that fit a filter.
fn fitting() -> String {
    let columns = names(|_| true).join(", ");
    let rule = "($1::text IS NULL OR queue = (SELECT id FROM queues WHERE name = $1)) AND ($3::smallint IS NULL OR state = $3) \
                AND ($4::boolean IS NULL OR dead = $4) \
                AND ($5::bigint IS NULL OR finished_us >= $5) AND ($6::bigint IS NULL OR finished_us < $6)";
    format!(
        "(SELECT {columns} FROM live WHERE {rule} UNION ALL SELECT {columns} FROM ended WHERE {rule}) j \
         JOIN specs s ON s.id = j.id WHERE ($2::text IS NULL OR s.kind = $2)"
    )
}

/// The last failures of jobs.
pub(super) const FAILURES: &str = "SELECT job, life, attempt, at_us, error, verdict FROM failures \
     WHERE job = ANY ($1::uuid[]) ORDER BY job, number";
pub(super) const INSERT_FAILURES: &str = "INSERT INTO failures (job, number, life, attempt, at_us, error, verdict) \
     SELECT * FROM unnest($1::uuid[], $2::integer[], $3::integer[], $4::integer[], $5::bigint[], $6::bytea[], \
     $7::text[])";
/// Failures with a number up to the one given for their job.
pub(super) const FORGET_FAILURES: &str = "DELETE FROM failures f USING unnest($1::uuid[], $2::integer[]) AS u (job, number) \
     WHERE f.job = u.job AND f.number <= u.number";
pub(super) const UPDATE_SPEC: &str = "UPDATE specs SET kind = $2, body = $3, policy = $4, own_policy = $5, \
     timeout_ms = $6, lease_ms = $7 WHERE id = $1";
pub(super) const DELETE_LIVE: &str = "DELETE FROM live WHERE id = ANY ($1::uuid[])";
pub(super) const DELETE_ENDED: &str = "DELETE FROM ended WHERE id = ANY ($1::uuid[])";
pub(super) const DELETE_SPECS: &str = "DELETE FROM specs WHERE id = ANY ($1::uuid[])";
pub(super) const DELETE_FAILURES: &str = "DELETE FROM failures WHERE job = ANY ($1::uuid[])";
