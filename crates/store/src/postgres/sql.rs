//! The statements that work on whole jobs.

use crate::codec::row;
use std::sync::LazyLock;

/// What is read of a job, in the order in which it is read: of its row, then of its spec.
const ROW: [&str; 7] = ["id", "revision", "expires_us", "queue", "priority", "rest", "failures"];
const SAID: [&str; 7] = ["kind", "body", "policy", "own_policy", "timeout_ms", "lease_ms", "revisions"];

/// The positions of two columns that refer to other tables by number.
pub(super) const QUEUE: usize = 3;
pub(super) const POLICY: usize = 9;

fn job_columns() -> String {
    let row = ROW.iter().map(|name| format!("j.{name}"));
    row.chain(SAID.iter().map(|name| format!("s.{name}"))).collect::<Vec<_>>().join(", ")
}

/// When a run is overdue, where the server stood still, by the parameters that say until when and for how long.
fn overdue_at(ended: &str, lengths: &str) -> String {
    format!(
        "GREATEST(due_us, (SELECT max(s.ended_us + LEAST(lease_us, s.length_us)) \
           FROM unnest({ended}::bigint[], {lengths}::bigint[]) AS s (ended_us, length_us) WHERE alive_us < s.ended_us))"
    )
}

/// Rows of versions that this program reads, by the first byte. Newer ones are left to nodes that can read them.
/// An empty value is no row, and is to be found, so that it is set aside.
pub(super) static READABLE: LazyLock<String> = LazyLock::new(|| format!("rest < '\\x{:02x}'::bytea", row::VERSION + 1));

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
    /// New jobs: their specs and their rows, in one statement. Their queues are protected from being removed
    /// meanwhile; where one is gone already, the row has no queue, which the table does not take.
    ENQUEUE = {
        let columns = [
            ("id", "uuid"), ("kind", "text"), ("body", "bytea"), ("policy", "integer"), ("own_policy", "bytea"),
            ("timeout_ms", "double precision"), ("lease_ms", "double precision"), ("key", "bytea"),
            ("available_us", "bigint"), ("due_us", "bigint"), ("expires_us", "bigint"),
            ("queue", "integer"), ("priority", "integer"), ("state", "smallint"), ("rest", "bytea"),
        ];
        let names = columns.map(|(name, _)| name);
        let row: Vec<&str> = names[8..].iter().copied().filter(|name| *name != "queue").collect();
        format!(
            "WITH u AS MATERIALIZED (SELECT * FROM {}), said AS (\
               INSERT INTO specs ({said}) SELECT {said} FROM u), \
             q AS MATERIALIZED (SELECT id AS queue FROM queues \
               WHERE id = ANY (ARRAY(SELECT DISTINCT queue FROM u)) FOR KEY SHARE) \
             INSERT INTO live (id, revision, queue, {row}) \
             SELECT u.id, 0, q.queue, {row} FROM u LEFT JOIN q ON q.queue = u.queue",
            unnested(&columns), said = names[..8].join(", "), row = row.join(", ")
        )
    };
    /// What became of jobs that can still run, each on the condition that no other transaction has written it
    /// meanwhile; returns which were written. Failures that have not changed are not sent.
    CHANGE = format!(
        "UPDATE live j SET revision = j.revision + 1, available_us = u.available_us, due_us = u.due_us, \
           alive_us = u.alive_us, lease_us = u.lease_us, state = u.state, rest = u.rest, \
           failures = coalesce(u.failures, j.failures) \
         FROM {} WHERE j.id = u.id AND j.revision = u.revision RETURNING j.id",
        unnested(&[
            ("id", "uuid"), ("revision", "bigint"), ("state", "smallint"), ("rest", "bytea"), ("failures", "bytea"),
            ("available_us", "bigint"), ("due_us", "bigint"), ("alive_us", "bigint"), ("lease_us", "bigint"),
        ])
    );
    /// Jobs that have ended, on the same condition.
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
    /// Jobs that are redriven.
    REDRIVE = format!(
        "WITH back AS (DELETE FROM ended j USING {} WHERE j.id = u.id AND j.revision = u.revision \
           RETURNING j.id, j.revision + 1, u.available_us, u.due_us, u.alive_us, u.lease_us, u.expires_us, u.queue, \
           u.priority, u.state, u.rest, coalesce(u.failures, j.failures)) \
         INSERT INTO live (id, revision, available_us, due_us, alive_us, lease_us, expires_us, queue, priority, \
           state, rest, failures) \
         SELECT * FROM back RETURNING id",
        unnested(&[
            ("id", "uuid"), ("revision", "bigint"), ("state", "smallint"), ("rest", "bytea"), ("failures", "bytea"),
            ("available_us", "bigint"), ("due_us", "bigint"), ("alive_us", "bigint"), ("lease_us", "bigint"),
            ("expires_us", "bigint"), ("queue", "integer"), ("priority", "integer"),
        ])
    );
    /// Jobs of another store that can still run, unchanged.
    ARRIVE_LIVE = format!(
        "INSERT INTO live (id, revision, state, rest, failures, available_us, due_us, alive_us, lease_us, expires_us, \
           queue, priority) \
         SELECT * FROM {}",
        unnested(&[
            ("id", "uuid"), ("revision", "bigint"), ("state", "smallint"), ("rest", "bytea"), ("failures", "bytea"),
            ("available_us", "bigint"), ("due_us", "bigint"), ("alive_us", "bigint"), ("lease_us", "bigint"),
            ("expires_us", "bigint"), ("queue", "integer"), ("priority", "integer"),
        ])
    );
    /// Jobs of another store that have ended.
    ARRIVE_ENDED = format!(
        "INSERT INTO ended (id, revision, state, rest, failures, finished_us, dead, expires_us, queue, priority) \
         SELECT * FROM {}",
        unnested(&[
            ("id", "uuid"), ("revision", "bigint"), ("state", "smallint"), ("rest", "bytea"), ("failures", "bytea"),
            ("finished_us", "bigint"), ("dead", "boolean"), ("expires_us", "bigint"), ("queue", "integer"),
            ("priority", "integer"),
        ])
    );
    /// Jobs that can still run, by id, for a change. The order prevents two callers from waiting for each
    /// other.
    LOCK_LIVE = format!(
        "SELECT {} FROM live j JOIN specs s ON s.id = j.id WHERE j.id = ANY ($1::uuid[]) ORDER BY j.id \
         FOR NO KEY UPDATE OF j",
        job_columns()
    );
    /// Jobs that have ended, by id, for a change.
    LOCK_ENDED = format!(
        "SELECT {} FROM ended j JOIN specs s ON s.id = j.id WHERE j.id = ANY ($1::uuid[]) ORDER BY j.id \
         FOR NO KEY UPDATE OF j",
        job_columns()
    );
    /// Jobs that have ended, by id.
    READ_ENDED = format!(
        "SELECT {} FROM ended j JOIN specs s ON s.id = j.id WHERE j.id = ANY ($1::uuid[])",
        job_columns()
    );
    /// Jobs by id, in either table.
    READ = format!(
        "SELECT {columns} FROM live j JOIN specs s ON s.id = j.id WHERE j.id = ANY ($1::uuid[]) UNION ALL \
         SELECT {columns} FROM ended j JOIN specs s ON s.id = j.id WHERE j.id = ANY ($1::uuid[])",
        columns = job_columns()
    );
    /// The next jobs of the queues $1, in the order of the queues, at most $2, as of $3. The rows come in
    /// the order of the loops, so that no more are locked than are asked for. Of those, only the ones are read that
    /// begin within the first $4 bytes, and in any case the first $5.
    CLAIM = format!(
        "SELECT {read} FROM (SELECT {columns}, {SIZE} + {SAID_SIZE} AS bytes, \
           sum({SIZE} + {SAID_SIZE}) OVER line AS through, row_number() OVER line AS turn FROM (\
           SELECT j.*, q.place FROM unnest($1::text[]) WITH ORDINALITY AS q (name, place) CROSS JOIN LATERAL (\
             SELECT * FROM live \
             WHERE queue = (SELECT id FROM queues WHERE queues.name = q.name AND NOT paused) AND state = 2 \
               AND (expires_us IS NULL OR expires_us > $3) AND {readable} \
             ORDER BY priority DESC, available_us, id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED) j \
           LIMIT $2) j JOIN specs s ON s.id = j.id \
           WINDOW line AS (ORDER BY j.place, j.priority DESC, j.available_us, j.id)) c \
         WHERE through - bytes < $4 OR turn <= $5",
        read = [&ROW[..], &SAID[..]].concat().join(", "), columns = job_columns(), readable = *READABLE
    );
    /// Runs that are overdue at $1, at most $2, where the server stood still until $3, each for as long as $4 says.
    OVERDUE = {
        let overdue = overdue_at("$3", "$4");
        next(&format!("state = 3 AND due_us <= $1 AND {overdue} <= $1"), &overdue)
    };
    /// The next moment at which there is something to reclaim or to promote: the first entries of two indexes, and of
    /// each queue in a third, without the queues named in $1. Where a standstill spares the run whose lease ends first,
    /// others may be overdue before it: those whose leases end until then. The server stood still until $2, each for as
    /// long as $3 says.
    NEXT_WAKE = format!(
        "SELECT LEAST(\
           (SELECT min({overdue}) FROM live WHERE state = 3 AND {readable} AND due_us <= \
             (SELECT {overdue} FROM live WHERE state = 3 AND {readable} ORDER BY due_us, id LIMIT 1)), \
           (SELECT expires_us FROM live WHERE expires_us IS NOT NULL AND state <> 3 AND {readable} \
              ORDER BY expires_us, id LIMIT 1), \
           (SELECT min(j.due_us) FROM queues q CROSS JOIN LATERAL (\
              SELECT due_us FROM live WHERE queue = q.id AND state <> 3 AND due_us IS NOT NULL AND {readable} \
              ORDER BY due_us, id LIMIT 1) j WHERE q.name <> ALL ($1::text[])))",
        overdue = overdue_at("$2", "$3"), readable = *READABLE
    );
    /// Waiting jobs that have expired at $1, at most $2.
    EXPIRED = next("state <> 3 AND expires_us <= $1", "expires_us");
    /// The next jobs that are due at $1 in each of the queues $3, at most $2 of each, after those at ($4, $5).
    DUE = format!(
        "SELECT {columns} FROM (\
           SELECT j.* FROM unnest($3::integer[], $4::bigint[], $5::uuid[]) AS q (queue, due_us, id) \
           CROSS JOIN LATERAL (\
             SELECT * FROM live WHERE queue = q.queue AND {DUE_NOW} AND {readable} AND (due_us, id) > (q.due_us, q.id) \
             ORDER BY due_us, id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED) j) j JOIN specs s ON s.id = j.id",
        columns = job_columns(), readable = *READABLE
    );
    /// The queues that have due jobs at $1, the earliest job first, at most $2, without those named in $3.
    DUE_QUEUES = format!(
        "SELECT q.id FROM queues q CROSS JOIN LATERAL (\
           SELECT due_us, id FROM live WHERE queue = q.id AND {DUE_NOW} AND {readable} ORDER BY due_us, id LIMIT 1) j \
         WHERE q.name <> ALL ($3::text[]) ORDER BY j.due_us, j.id LIMIT $2",
        readable = *READABLE
    );
    /// How many jobs have rows of a newer version.
    COUNT_NEWER = format!(
        "SELECT (SELECT count(*) FROM live WHERE NOT {readable}) + (SELECT count(*) FROM ended WHERE NOT {readable})",
        readable = *READABLE
    );
    /// Jobs by id, in either table, without their bodies and revisions.
    READ_BARE = READ.replace("s.body", "''::bytea").replace("s.revisions", "NULL::bytea");
    /// The next jobs of a list in the order of ids: of the $6 that come before the id $5, those that match $1 kind,
    /// $2 queue, $3 state, $4 dead, $7 since, $8 before.
    LIST = {
        let window = |table: &str, dead: &str, finished: &str| format!(
            "(SELECT id, queue, state, {dead} AS dead, {finished} AS finished_us, {SIZE} AS bytes FROM {table} \
              WHERE id < $5 ORDER BY id DESC LIMIT $6)"
        );
        let fits = "($2::text IS NULL OR coalesce(queue = (SELECT id FROM queues WHERE name = $2), false)) \
            AND ($3::smallint IS NULL OR state = $3) AND ($4::boolean IS NULL OR dead = $4) \
            AND ($7::bigint IS NULL OR coalesce(finished_us >= $7, false)) \
            AND ($8::bigint IS NULL OR coalesce(finished_us < $8, false))";
        entries(&format!(
            "SELECT id, finished_us, bytes, {fits} AS fits, row_number() OVER (ORDER BY id DESC) AS place FROM (\
               SELECT * FROM ({} UNION ALL {}) both_tables ORDER BY id DESC LIMIT $6) seen",
            window("live", "false", "NULL::bigint"), window("ended", "dead", "finished_us")
        ))
    };
    /// The next dead letters of a list in the order of ends: of the $6 that come before the end $2 and the id $5,
    /// not before $3 and before $4, those that match $1 kind.
    LIST_DEAD = dead("true");
    /// The same for the queue $7.
    LIST_DEAD_OF_QUEUE = dead("queue = (SELECT id FROM queues WHERE name = $7)");
    PRUNE_FINISHED = prune("NOT dead");
    PRUNE_DEAD = prune("dead");
}

/// What is due at $1. What has expired by then is not.
const DUE_NOW: &str = "state <> 3 AND due_us <= $1 AND (expires_us IS NULL OR expires_us > $1)";

/// Jobs that are due, overdue or expired, by time, then by id; rows that other transactions have locked are skipped.
fn next(which: &str, time: &str) -> String {
    format!(
        "SELECT {} FROM (SELECT * FROM live WHERE {which} AND {} ORDER BY {time}, id LIMIT $2 \
           FOR NO KEY UPDATE SKIP LOCKED) j JOIN specs s ON s.id = j.id",
        job_columns(),
        *READABLE
    )
}

/// Deletes jobs that ended before a moment, with all that belongs to them.
fn prune(which: &str) -> String {
    format!(
        "WITH old AS (SELECT id FROM ended WHERE {which} AND finished_us <= $1 \
           ORDER BY finished_us, id LIMIT $2 FOR UPDATE SKIP LOCKED), \
         gone AS (DELETE FROM ended USING old WHERE ended.id = old.id RETURNING ended.id), \
         said AS (DELETE FROM specs USING gone WHERE specs.id = gone.id) \
         SELECT count(*) FROM gone"
    )
}

/// The approximate size of a row besides its fixed columns, in bytes. The values themselves are not read.
const SIZE: &str = "octet_length(rest) + coalesce(octet_length(failures), 0)";
/// The same of a spec.
const SAID_SIZE: &str = "octet_length(s.body) + coalesce(octet_length(s.revisions), 0)";

/// Of the entries that were looked at, those that match the kind as well, in their order: id, end, whether it matches,
/// bytes of the row and of the spec. The last one is returned in any case where there may be more behind it.
fn entries(seen: &str) -> String {
    format!(
        "SELECT j.id, j.finished_us, j.fits AND ($1::text IS NULL OR s.kind = $1), j.bytes, {SAID_SIZE}, \
           j.place = $6 FROM ({seen}) j JOIN specs s ON s.id = j.id \
         WHERE j.place = $6 OR (j.fits AND ($1::text IS NULL OR s.kind = $1)) ORDER BY j.place"
    )
}

fn dead(which: &str) -> String {
    entries(&format!(
        "SELECT id, finished_us, bytes, true AS fits, row_number() OVER (ORDER BY finished_us DESC, id DESC) AS place \
         FROM (SELECT id, finished_us, {SIZE} AS bytes FROM ended WHERE dead AND {which} \
           AND finished_us >= $3 AND finished_us < $4 AND (finished_us, id) < ($2, $5) \
           ORDER BY finished_us DESC, id DESC LIMIT $6) seen"
    ))
}

pub(super) const UPDATE_SPEC: &str = "UPDATE specs SET kind = $2, body = $3, policy = $4, own_policy = $5, \
     timeout_ms = $6, lease_ms = $7, revisions = $8 WHERE id = $1";
pub(super) const DELETE_ENDED: &str = "DELETE FROM ended WHERE id = ANY ($1::uuid[])";
pub(super) const DELETE_SPECS: &str = "DELETE FROM specs WHERE id = ANY ($1::uuid[])";
