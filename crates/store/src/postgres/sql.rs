//! The statements that work on whole jobs.

use std::sync::LazyLock;

/// What is read of a job, in the order in which it is read: of its row, then of what was said about it.
const ROW: [&str; 7] = ["id", "revision", "expires_us", "queue", "priority", "rest", "failures"];
const SAID: [&str; 7] = ["kind", "body", "policy", "own_policy", "timeout_ms", "lease_ms", "revisions"];

/// The places of two columns that are numbers of something else.
pub(super) const QUEUE: usize = 3;
pub(super) const POLICY: usize = 9;

fn job_columns() -> String {
    let row = ROW.iter().map(|name| format!("j.{name}"));
    row.chain(SAID.iter().map(|name| format!("s.{name}"))).collect::<Vec<_>>().join(", ")
}

/// Parameters as the columns of a table `u`, one array for each.
fn unnested(columns: &[(&str, &str)]) -> String {
    let arrays: Vec<String> = (1..).zip(columns).map(|(place, (_, kind))| format!("${place}::{kind}[]")).collect();
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    format!("unnest({}) AS u ({})", arrays.join(", "), names.join(", "))
}

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $text:expr;)*) => {
        $($(#[$doc])* pub(super) static $name: LazyLock<String> = LazyLock::new(|| $text);)*
    };
}

statements! {
    /// New jobs: what is said about them and their rows, in one statement.
    ENQUEUE = {
        let columns = [
            ("id", "uuid"), ("kind", "text"), ("body", "bytea"), ("policy", "integer"), ("own_policy", "bytea"),
            ("timeout_ms", "double precision"), ("lease_ms", "double precision"), ("key", "bytea"),
            ("available_us", "bigint"), ("due_us", "bigint"), ("expires_us", "bigint"),
            ("queue", "integer"), ("priority", "integer"), ("state", "smallint"), ("rest", "bytea"),
        ];
        let names = columns.map(|(name, _)| name);
        format!(
            "WITH u AS MATERIALIZED (SELECT * FROM {}), said AS (\
               INSERT INTO specs ({said}) SELECT {said} FROM u) \
             INSERT INTO live (id, revision, {row}) SELECT id, 0, {row} FROM u",
            unnested(&columns), said = names[..8].join(", "), row = names[8..].join(", ")
        )
    };
    /// What became of jobs that can still run, each on the condition that nobody has written it meanwhile;
    /// answers which were written. Failures that have not changed are not handed over.
    CHANGE = format!(
        "UPDATE live j SET revision = j.revision + 1, available_us = u.available_us, due_us = u.due_us, \
           state = u.state, rest = u.rest, failures = coalesce(u.failures, j.failures) \
         FROM {} WHERE j.id = u.id AND j.revision = u.revision RETURNING j.id",
        unnested(&[
            ("id", "uuid"), ("revision", "bigint"), ("state", "smallint"), ("rest", "bytea"), ("failures", "bytea"),
            ("available_us", "bigint"), ("due_us", "bigint"),
        ])
    );
    /// What became of jobs that have come to their end, on the same condition.
    END = format!(
        "WITH gone AS (DELETE FROM live j USING {} WHERE j.id = u.id AND j.revision = u.revision \
           RETURNING j.id, j.revision + 1, u.finished_us, j.expires_us, j.queue, j.priority, u.state, u.dead, u.rest, \
           coalesce(u.failures, j.failures)) \
         INSERT INTO ended (id, revision, finished_us, expires_us, queue, priority, state, dead, rest, failures) \
         SELECT * FROM gone RETURNING id",
        unnested(&[
            ("id", "uuid"), ("revision", "bigint"), ("state", "smallint"), ("rest", "bytea"), ("failures", "bytea"),
            ("finished_us", "bigint"), ("dead", "boolean"),
        ])
    );
    /// Jobs that come back from their end.
    REVIVE = format!(
        "WITH back AS (DELETE FROM ended j USING {} WHERE j.id = u.id AND j.revision = u.revision \
           RETURNING j.id, j.revision + 1, u.available_us, u.due_us, u.expires_us, u.queue, u.priority, \
           u.state, u.rest, coalesce(u.failures, j.failures)) \
         INSERT INTO live (id, revision, available_us, due_us, expires_us, queue, priority, state, rest, \
           failures) \
         SELECT * FROM back RETURNING id",
        unnested(&[
            ("id", "uuid"), ("revision", "bigint"), ("state", "smallint"), ("rest", "bytea"), ("failures", "bytea"),
            ("available_us", "bigint"), ("due_us", "bigint"), ("expires_us", "bigint"),
            ("queue", "integer"), ("priority", "integer"),
        ])
    );
    /// Jobs that were elsewhere and can still run, as they are.
    ARRIVE_LIVE = format!(
        "INSERT INTO live (id, revision, state, rest, failures, available_us, due_us, expires_us, queue, priority) \
         SELECT * FROM {}",
        unnested(&[
            ("id", "uuid"), ("revision", "bigint"), ("state", "smallint"), ("rest", "bytea"), ("failures", "bytea"),
            ("available_us", "bigint"), ("due_us", "bigint"), ("expires_us", "bigint"), ("queue", "integer"),
            ("priority", "integer"),
        ])
    );
    /// Jobs that were elsewhere and have ended there.
    ARRIVE_ENDED = format!(
        "INSERT INTO ended (id, revision, state, rest, failures, finished_us, dead, expires_us, queue, priority) \
         SELECT * FROM {}",
        unnested(&[
            ("id", "uuid"), ("revision", "bigint"), ("state", "smallint"), ("rest", "bytea"), ("failures", "bytea"),
            ("finished_us", "bigint"), ("dead", "boolean"), ("expires_us", "bigint"), ("queue", "integer"),
            ("priority", "integer"),
        ])
    );
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
    OVERDUE = next("state = 3 AND due_us <= $1", "due_us");
    /// Waiting jobs that have expired at $1, at most $2.
    EXPIRED = next("state <> 3 AND expires_us <= $1", "expires_us");
    /// The next jobs that are due at $1 in each of the queues $3, at most $2 of each, after those at ($4, $5).
    DUE = format!(
        "SELECT {} FROM (\
           SELECT j.* FROM unnest($3::integer[], $4::bigint[], $5::uuid[]) AS q (queue, due_us, id) \
           CROSS JOIN LATERAL (\
             SELECT * FROM live WHERE queue = q.queue AND {DUE_NOW} AND (due_us, id) > (q.due_us, q.id) \
             ORDER BY due_us, id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED) j) j JOIN specs s ON s.id = j.id",
        job_columns()
    );
    /// The queues that have due jobs at $1, the earliest job first, at most $2, without those named in $3.
    DUE_QUEUES = format!(
        "SELECT q.id FROM queues q CROSS JOIN LATERAL (\
           SELECT due_us, id FROM live WHERE queue = q.id AND {DUE_NOW} ORDER BY due_us, id LIMIT 1) j \
         WHERE q.name <> ALL ($3::text[]) ORDER BY j.due_us, j.id LIMIT $2"
    );
    /// A page of jobs that fit a filter: $1 queue, $2 kind, $3 state, $4 dead, $5 since, $6 before,
    /// $7 offset, $8 limit.
    LIST = format!("SELECT {} FROM {} ORDER BY j.id DESC OFFSET $7 LIMIT $8", job_columns(), fitting());
    /// How many fit the same filter.
    COUNT = format!("SELECT count(*) FROM {}", fitting());
    PRUNE_FINISHED = prune("NOT dead");
    PRUNE_DEAD = prune("dead");
}

/// What is due at $1. What has expired by then is not.
const DUE_NOW: &str = "state <> 3 AND due_us <= $1 AND (expires_us IS NULL OR expires_us > $1)";

/// Jobs to which something happens by itself, by time, then by name; what others are at is left to them.
fn next(which: &str, time: &str) -> String {
    format!(
        "SELECT {} FROM (SELECT * FROM live WHERE {which} ORDER BY {time}, id LIMIT $2 \
           FOR NO KEY UPDATE SKIP LOCKED) j JOIN specs s ON s.id = j.id",
        job_columns()
    )
}

/// Forgets jobs that ended before a moment, with all that belongs to them.
fn prune(which: &str) -> String {
    format!(
        "WITH old AS (SELECT id FROM ended WHERE {which} AND finished_us <= $1 \
           ORDER BY finished_us, id LIMIT $2 FOR UPDATE SKIP LOCKED), \
         gone AS (DELETE FROM ended USING old WHERE ended.id = old.id RETURNING ended.id), \
         said AS (DELETE FROM specs USING gone WHERE specs.id = gone.id) \
         SELECT count(*) FROM gone"
    )
}

/// The jobs that fit a filter.
fn fitting() -> String {
    let columns = ROW.join(", ");
    let both = "($1::text IS NULL OR queue = (SELECT id FROM queues WHERE name = $1)) \
                AND ($3::smallint IS NULL OR state = $3)";
    let live = "$4::boolean IS NOT TRUE AND $5::bigint IS NULL AND $6::bigint IS NULL";
    let ended = "($4::boolean IS NULL OR dead = $4) \
                 AND ($5::bigint IS NULL OR finished_us >= $5) AND ($6::bigint IS NULL OR finished_us < $6)";
    format!(
        "(SELECT {columns} FROM live WHERE {both} AND {live} UNION ALL \
          SELECT {columns} FROM ended WHERE {both} AND {ended}) j \
         JOIN specs s ON s.id = j.id WHERE ($2::text IS NULL OR s.kind = $2)"
    )
}

pub(super) const UPDATE_SPEC: &str = "UPDATE specs SET kind = $2, body = $3, policy = $4, own_policy = $5, \
     timeout_ms = $6, lease_ms = $7, revisions = $8 WHERE id = $1";
pub(super) const DELETE_ENDED: &str = "DELETE FROM ended WHERE id = ANY ($1::uuid[])";
pub(super) const DELETE_SPECS: &str = "DELETE FROM specs WHERE id = ANY ($1::uuid[])";
