//! The statements that work on whole jobs.

mod active;
mod blocks;
mod ended;
mod limited;
mod list;
mod retry;
mod settle;
mod unique;

pub(super) use active::{LOCK_ACTIVE, NEXT_WAKE, OVERDUE, READ_ACTIVE, READ_ACTIVE_BARE, SET_ASIDE_ACTIVE};
pub(super) use blocks::{ARRIVE_ACTIVE, CLAIM_BLOCKS};
pub(super) use ended::{
    ARRIVE_ENDED, END, LOCK_ENDED, PRUNE_DEAD, PRUNE_FINISHED, READ_ENDED, REDRIVE, REMOVE, SET_ASIDE_ENDED,
};
pub(super) use limited::{CLAIM_LIMITED, LANES};
pub(super) use list::{LIST, LIST_DEAD, LIST_DEAD_OF_QUEUE};
pub(super) use retry::{DUE_BLOCKS, DUE_QUEUES, EXPIRED_BLOCKS};
pub(super) use settle::{Shape, settle};
pub(super) use unique::UNIQUE_HOLDERS;

use crate::codec::row;
use std::sync::LazyLock;

/// What is read of a job, in the order in which it is read: of its row, then of its spec. Of a job that is active,
/// its claim and its place there follow.
const ROW: [&str; 7] = ["id", "tid", "expires_us", "queue", "priority", "rest", "failures"];
const SAID: [&str; 9] =
    ["kind", "body", "policy", "own_policy", "timeout_ms", "lease_ms", "limits", "revisions", "source"];

/// Jobs above this size are read when it is known that they are claimed.
pub(super) const LARGE: i32 = 16 << 10;

/// The columns of a job, without those that can be large where they are.
fn unless_large() -> String {
    let may_be_large = |column: &str| ["s.body", "j.failures", "s.revisions"].contains(&column);
    let shown = |column: &str| match may_be_large(column) {
        true => format!("CASE WHEN j.bytes + {SAID_SIZE} <= {LARGE} THEN {column} END"),
        false => column.to_owned(),
    };
    job_columns().split(", ").map(shown).collect::<Vec<_>>().join(", ")
}

/// The positions of two columns that refer to other tables by number, and of the first of a claim.
pub(super) const QUEUE: usize = 3;
pub(super) const POLICY: usize = 9;
pub(super) const BLOCK: usize = ROW.len() + SAID.len();
/// How many columns are read of a job that is active.
pub(super) const ACTIVE: usize = BLOCK + 6;

fn job_columns() -> String {
    let row = ROW.iter().map(|name| format!("j.{name}"));
    row.chain(SAID.iter().map(|name| format!("s.{name}"))).collect::<Vec<_>>().join(", ")
}

/// Rows of versions that this program reads, by the first byte. Newer ones are left to nodes that can read them.
/// An empty value is no row, and is to be found, so that it is set aside.
pub(super) static READABLE: LazyLock<String> = LazyLock::new(|| format!("rest < '\\x{:02x}'::bytea", row::VERSION + 1));
/// The same of claims.
const READABLE_CLAIM: &str = "version <= 1";
const _: () = assert!(row::VERSION == 1, "the condition on claims says so too");

/// Parameters as the columns of a table `u`, one array for each, the first of them with the number `from`. As a list of
/// columns, the arrays are read element by element; as a function, each would be copied into a table of its own first.
fn unnested_from(from: usize, columns: &[(&str, &str)]) -> String {
    let columns = (from..).zip(columns).map(|(place, (name, kind))| format!("unnest(${place}::{kind}[]) AS {name}"));
    format!("(SELECT {}) u", columns.collect::<Vec<_>>().join(", "))
}

fn unnested(columns: &[(&str, &str)]) -> String {
    unnested_from(1, columns)
}

fn names(columns: &[(&str, &str)]) -> String {
    columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Counts how many jobs went from which state to which, by four parameters.
fn counted_from(from: usize) -> String {
    let columns = [("queue", "integer"), ("was", "smallint"), ("state", "smallint"), ("jobs", "bigint")];
    format!("INSERT INTO counts (queue, was, state, jobs) SELECT * FROM {}", unnested_from(from, &columns))
}

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $text:expr;)*) => {
        $($(#[$doc])* pub(in crate::postgres) static $name: std::sync::LazyLock<String> =
            std::sync::LazyLock::new(|| $text);)*
    };
}
pub(super) use statements;

/// The columns of a waiting job, as they are written.
const WAITING: [(&str, &str); 10] = [
    ("id", "uuid"),
    ("state", "smallint"),
    ("rest", "bytea"),
    ("failures", "bytea"),
    ("available_us", "bigint"),
    ("due_us", "bigint"),
    ("expires_us", "bigint"),
    ("queue", "integer"),
    ("priority", "integer"),
    ("lane", "bytea"),
];
/// Their names.
fn waiting_columns() -> String {
    names(&WAITING)
}

statements! {
    /// New jobs: their specs and their rows, in one statement. Their queues are protected from being removed
    /// meanwhile; where one is gone already, the row has no queue, which the table does not take.
    ENQUEUE = enqueue("");
    /// The same where jobs have limits of their own: claims of their queues have to look at them from now on.
    ENQUEUE_LIMITED = enqueue(
        "flagged AS (UPDATE queue_names SET limited = true WHERE NOT limited \
           AND id = ANY (ARRAY(SELECT DISTINCT queue FROM u WHERE lane IS NOT NULL))), "
    );
    /// What became of jobs that wait and go on waiting. They are locked.
    CHANGE = format!(
        "WITH counted AS ({counted}) \
         UPDATE live j SET available_us = u.available_us, due_us = u.due_us, state = u.state, rest = u.rest, \
           failures = u.failures FROM {} WHERE j.ctid = u.tid",
        unnested(&[&WAITING[..6], &[("tid", "tid")]].concat()), counted = counted_from(8)
    );
    /// Jobs of another store that wait, unchanged.
    ARRIVE_LIVE = format!(
        "WITH counted AS ({counted}) INSERT INTO live ({columns}) SELECT * FROM {}",
        unnested(&WAITING), columns = waiting_columns(), counted = counted_from(11)
    );
    /// Jobs that wait, by id, for a change. The order prevents two callers from waiting for each other.
    LOCK_LIVE = format!("{} ORDER BY j.id FOR NO KEY UPDATE OF j", waiting_by_id());
    /// Jobs that wait or have ended, by id.
    READ = format!("{} UNION ALL {}", waiting_by_id(), *READ_ENDED);
    /// The same without their bodies and revisions.
    READ_BARE = bare(&READ);
    /// The next jobs of the queues $1, in the order of the queues, at most $2, as of $3. The rows come in
    /// the order of the loops, so that no more are locked than are asked for. Behind the columns of a job are the time
    /// since when it is available, and its size; large ones come without their bodies, failures and revisions. Queues
    /// with limits are left out: for each of them there is a row with its number and nothing else.
    CLAIM = format!(
        "SELECT {columns}, j.available_us, j.bytes + {SAID_SIZE} FROM (\
           SELECT j.* FROM unnest($1::text[]) AS q (name) CROSS JOIN LATERAL (\
             SELECT ctid AS tid, *, {SIZE} AS bytes FROM live \
             WHERE queue = (SELECT n.id FROM queue_names n WHERE n.name = q.name AND NOT n.paused AND NOT n.limited) AND state = 2 \
               AND lane IS NULL AND (expires_us IS NULL OR expires_us > $3) AND {readable} \
             ORDER BY priority DESC, available_us, id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED) j \
           LIMIT $2) j JOIN specs s ON s.id = j.id \
         UNION ALL SELECT {limited} FROM queue_names n WHERE n.name = ANY ($1) AND n.limited AND NOT n.paused",
        columns = unless_large(), limited = limited_queue(), readable = *READABLE
    );
    /// Jobs that wait, by id, which are locked.
    READ_LIVE = waiting_by_id();
    /// Waiting jobs that have expired at $1, at most $2; rows that other transactions have locked are skipped.
    EXPIRED = format!(
        "SELECT {} FROM (SELECT ctid AS tid, * FROM live WHERE expires_us <= $1 AND {} ORDER BY expires_us, id LIMIT $2 \
           FOR NO KEY UPDATE SKIP LOCKED) j JOIN specs s ON s.id = j.id",
        job_columns(), *READABLE
    );
    /// The next jobs that are due at $1 in each of the queues $3, at most $2 of each, after those at ($4, $5).
    DUE = format!(
        "SELECT {columns} FROM (\
           SELECT j.* FROM unnest($3::integer[], $4::bigint[], $5::uuid[]) AS q (queue, due_us, id) \
           CROSS JOIN LATERAL (\
             SELECT ctid AS tid, * FROM live WHERE queue = q.queue AND {DUE_NOW} AND {readable} AND (due_us, id) > (q.due_us, q.id) \
             ORDER BY due_us, id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED) j) j JOIN specs s ON s.id = j.id",
        columns = job_columns(), readable = *READABLE
    );
    /// How many jobs and runs have rows of a newer version.
    COUNT_NEWER = format!(
        "SELECT (SELECT count(*) FROM live WHERE NOT {readable}) \
           + (SELECT count(*) FROM ended o CROSS JOIN LATERAL unnest(o.rests) WITH ORDINALITY AS e (rest, place) \
              WHERE NOT {readable} AND {OVER}) \
           + (SELECT count(*) FROM claims c CROSS JOIN LATERAL unnest(c.ids) WITH ORDINALITY AS e (id, place) \
              WHERE NOT {READABLE_CLAIM} AND {HERE}) \
           + (SELECT count(*) FROM run_states WHERE body >= '\\x03'::bytea)",
        readable = *READABLE, HERE = active::HERE, OVER = ended::HERE
    );
}

fn enqueue(further: &str) -> String {
    let columns = [
        ("id", "uuid"),
        ("kind", "text"),
        ("body", "bytea"),
        ("policy", "integer"),
        ("own_policy", "bytea"),
        ("timeout_ms", "double precision"),
        ("lease_ms", "double precision"),
        ("limits", "bytea"),
        ("key", "bytea"),
        ("source", "bigint"),
        ("available_us", "bigint"),
        ("due_us", "bigint"),
        ("expires_us", "bigint"),
        ("queue", "integer"),
        ("priority", "integer"),
        ("state", "smallint"),
        ("rest", "bytea"),
        ("lane", "bytea"),
    ];
    let names = columns.map(|(name, _)| name);
    let row: Vec<&str> = names[10..].iter().copied().filter(|name| *name != "queue").collect();
    format!(
        "WITH u AS MATERIALIZED (SELECT * FROM {}), said AS (\
           INSERT INTO specs ({said}) SELECT {said} FROM u), \
         q AS MATERIALIZED (SELECT id AS queue FROM queue_names \
           WHERE id = ANY (ARRAY(SELECT DISTINCT queue FROM u)) FOR KEY SHARE), \
         {further}counted AS ({counted}) \
         INSERT INTO live (id, queue, {row}) \
         SELECT u.id, q.queue, {row} FROM u LEFT JOIN q ON q.queue = u.queue",
        unnested(&columns),
        said = names[..10].join(", "),
        row = row.join(", "),
        counted = counted_from(19)
    )
}

/// Jobs that wait, by id.
fn waiting_by_id() -> String {
    let columns = job_columns().replace("j.tid", "j.ctid");
    format!("SELECT {columns} FROM live j JOIN specs s ON s.id = j.id WHERE j.id = ANY ($1::uuid[])")
}

/// A row of a claim that has no job, but the number of a queue `n`.
fn limited_queue() -> String {
    let kinds = [
        "uuid",
        "tid",
        "bigint",
        "",
        "integer",
        "bytea",
        "bytea",
        "text",
        "bytea",
        "integer",
        "bytea",
        "double precision",
        "double precision",
        "bytea",
        "bytea",
        "bigint",
        "bigint",
        "integer",
    ];
    let column = |kind: &str| if kind.is_empty() { "n.id".to_owned() } else { format!("NULL::{kind}") };
    kinds.map(column).join(", ")
}

/// What is due at $1. What has expired by then is not.
const DUE_NOW: &str = "due_us <= $1 AND (expires_us IS NULL OR expires_us > $1)";

fn bare(read: &str) -> String {
    read.replace("s.body", "''::bytea").replace("s.revisions", "NULL::bytea")
}

/// The approximate size of a row besides its fixed columns, in bytes. The values themselves are not read.
const SIZE: &str = "octet_length(rest) + coalesce(octet_length(failures), 0)";
/// The same of a spec.
const SAID_SIZE: &str = "octet_length(s.body) + coalesce(octet_length(s.revisions), 0)";

pub(super) const UPDATE_SPEC: &str = "UPDATE specs SET kind = $2, body = $3, policy = $4, own_policy = $5, \
     timeout_ms = $6, lease_ms = $7, revisions = $8, limits = $9 WHERE id = $1";
