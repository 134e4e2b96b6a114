//! Statements on jobs that have ended: elements of the arrays of their rows.

use super::blocks::{self, Blocks};
use super::{counted_from, job_columns, statements, unnested, waiting_columns};

/// Of the elements `e` of a row `o`, those that have not left it.
pub(super) const HERE: &str = "(o.gone IS NULL OR e.place <> ALL (o.gone))";

/// How the jobs of a row `o` are counted.
const COUNTED: &str = "o.queue, CASE WHEN o.dead THEN 8::smallint ELSE o.state END AS was";

/// The rows and their columns, as they are written.
const ROWS: Blocks = Blocks {
    table: "ended",
    columns: &[
        ("source", "bigint"),
        ("finished_us", "bigint"),
        ("expires_us", "bigint"),
        ("queue", "integer"),
        ("priority", "integer"),
        ("bytes", "integer"),
        ("state", "smallint"),
        ("dead", "boolean"),
        ("jobs", "smallint"),
    ],
};
/// How many parameters they take.
pub(super) const PARAMETERS: usize = ROWS.parameters();

/// Inserts jobs by the parameters from the number `from` on.
pub(super) fn insert(from: usize, which: Option<&str>) -> String {
    blocks::insert(&ROWS, from, which)
}

/// The jobs $1 of rows, which `lock` may lock.
fn by_id(lock: &str) -> String {
    format!(
        "SELECT {} FROM (SELECT e.id, o.tid, o.expires_us, o.queue, o.priority, e.rest, e.failures FROM (\
             SELECT ctid AS tid, * FROM ended WHERE ids && $1::uuid[] \
               AND source = ANY (ARRAY(SELECT DISTINCT source FROM specs WHERE id = ANY ($1::uuid[]))) {lock}) o \
           CROSS JOIN LATERAL unnest(o.ids, o.rests, o.failures) WITH ORDINALITY AS e (id, rest, failures, place) \
           WHERE {HERE} AND e.id = ANY ($1::uuid[])) j JOIN specs s ON s.id = j.id",
        job_columns()
    )
}

/// Two parts of a statement by which one job leaves the row that is locked at this place. The last job takes the row
/// along.
fn leave(id: &str, tid: &str) -> String {
    format!(
        "part AS (UPDATE ended o SET gone = array_append(o.gone, array_position(o.ids, {id})::smallint), \
           jobs = o.jobs - 1 WHERE o.ctid = {tid} AND o.jobs > 1), \
         last AS (DELETE FROM ended o WHERE o.ctid = {tid} AND o.jobs = 1)"
    )
}

statements! {
    /// Jobs that have ended while they waited. They are locked.
    END = format!(
        "WITH counted AS ({}), gone AS (DELETE FROM live WHERE ctid = ANY (${tids}::tid[])) {}",
        counted_from(PARAMETERS + 2), insert(1, None), tids = PARAMETERS + 1
    );
    /// Jobs of another store that have ended.
    ARRIVE_ENDED = format!("WITH counted AS ({}) {}", counted_from(PARAMETERS + 1), insert(1, None));
    /// Jobs that have ended, by id, for a change.
    LOCK_ENDED = by_id("ORDER BY source, finished_us, ctid FOR NO KEY UPDATE");
    /// Jobs that have ended, by id.
    READ_ENDED = by_id("");
    /// A job that is redriven. The row at the place $15, which has it, is locked.
    REDRIVE = {
        let (columns, jobs) = (waiting_columns(), unnested(&super::WAITING));
        format!(
            "WITH counted AS ({}), {} INSERT INTO live ({columns}) SELECT * FROM {jobs}",
            counted_from(11), leave("($1::uuid[])[1]", "$15::tid")
        )
    };
    /// Deletes the jobs $1. The rows at the places $6, which have them, are locked.
    REMOVE = format!(
        "WITH counted AS ({}), \
         leaving AS MATERIALIZED (SELECT tid, array_agg(id) AS ids, count(*)::smallint AS jobs \
           FROM unnest($1::uuid[], $6::tid[]) AS u (id, tid) GROUP BY tid), \
         part AS (UPDATE ended o SET jobs = o.jobs - l.jobs, \
             gone = o.gone || ARRAY(SELECT array_position(o.ids, e.id)::smallint FROM unnest(l.ids) AS e (id)) \
           FROM leaving l WHERE o.ctid = l.tid AND o.jobs > l.jobs), \
         last AS (DELETE FROM ended o USING leaving l WHERE o.ctid = l.tid AND o.jobs = l.jobs), \
         unique_key AS (DELETE FROM unique_jobs WHERE id = ANY ($1::uuid[])) \
         DELETE FROM specs WHERE id = ANY ($1::uuid[])",
        counted_from(2)
    );
    /// Sets aside the job $1 for the reason $2. The row at the place $3, which has it, is locked.
    SET_ASIDE_ENDED = format!(
        "WITH r AS MATERIALIZED (SELECT e.id, {COUNTED}, jsonb_build_object('id', e.id, 'source', o.source, \
             'finished_us', o.finished_us, 'expires_us', o.expires_us, 'queue', o.queue, 'priority', o.priority, \
             'state', o.state, 'dead', o.dead, 'rest', e.rest, 'failures', e.failures) AS row \
           FROM ended o CROSS JOIN LATERAL unnest(o.ids, o.rests, o.failures) AS e (id, rest, failures) \
           WHERE o.ctid = $3::tid AND e.id = $1::uuid), {}, \
         counted AS (INSERT INTO counts (queue, was, jobs) SELECT queue, was, 1 FROM r) \
         INSERT INTO unreadable (id, queue, origin, reason, row) SELECT id, queue, 'ended', $2::text, row FROM r \
         RETURNING id",
        leave("$1::uuid", "$3::tid")
    );
    PRUNE_FINISHED = prune("NOT dead");
    PRUNE_DEAD = prune("dead");
}

/// Deletes jobs that ended until $1, at most $2, with all that belongs to them: of those that ended at the same moment,
/// all while they fit, then the first by id. Rows that other transactions have locked are passed over, and rows that
/// others have changed meanwhile are left as they are: the place where they are now is not one that the statement sees.
fn prune(which: &str) -> String {
    format!(
        "WITH near AS MATERIALIZED (SELECT ctid AS tid, finished_us, jobs FROM ended WHERE {which} AND finished_us <= $1 \
           ORDER BY finished_us FETCH FIRST ($2::bigint) ROWS WITH TIES), \
         old AS MATERIALIZED (SELECT tid, through, through - same AS before FROM (\
             SELECT tid, sum(jobs) OVER (ORDER BY finished_us) AS through, \
               sum(jobs) OVER (PARTITION BY finished_us) AS same FROM near) n WHERE through - same < $2), \
         locked AS MATERIALIZED (SELECT ctid AS tid FROM ended WHERE ctid = ANY (ARRAY(SELECT tid FROM old)) \
           FOR UPDATE SKIP LOCKED), \
         first AS MATERIALIZED (SELECT tid, array_agg(place::smallint) AS places FROM (\
             SELECT n.tid, e.place, n.before, row_number() OVER (ORDER BY e.id) AS turn FROM old n \
             JOIN ended o ON o.ctid = n.tid CROSS JOIN LATERAL unnest(o.ids) WITH ORDINALITY AS e (id, place) \
             WHERE n.through > $2 AND {HERE}) e WHERE before + turn <= $2 GROUP BY tid), \
         whole AS (DELETE FROM ended o WHERE o.ctid = ANY (ARRAY(SELECT tid FROM locked INTERSECT (\
             SELECT tid FROM old WHERE through <= $2 UNION ALL \
             SELECT f.tid FROM first f JOIN ended o ON o.ctid = f.tid WHERE o.jobs = cardinality(f.places)))) \
           RETURNING {COUNTED}, o.jobs, o.ids, o.gone), \
         part AS (UPDATE ended o SET gone = o.gone || f.places, jobs = o.jobs - cardinality(f.places) FROM first f \
           WHERE o.ctid = f.tid AND o.ctid = ANY (ARRAY(SELECT tid FROM locked)) AND o.jobs > cardinality(f.places) \
           RETURNING {COUNTED}, cardinality(f.places) AS jobs, o.ids, f.places), \
         said AS (DELETE FROM specs s USING (\
             SELECT e.id FROM whole o CROSS JOIN LATERAL unnest(o.ids) WITH ORDINALITY AS e (id, place) WHERE {HERE} \
             UNION ALL SELECT o.ids[place] FROM part o CROSS JOIN LATERAL unnest(o.places) AS e (place)) e \
           WHERE s.id = e.id RETURNING s.id), \
         unique_key AS (DELETE FROM unique_jobs u USING said WHERE u.id = said.id), \
         gone AS MATERIALIZED (SELECT queue, was, jobs FROM whole UNION ALL SELECT queue, was, jobs FROM part), \
         counted AS (INSERT INTO counts (queue, was, jobs) SELECT queue, was, sum(jobs) FROM gone GROUP BY queue, was) \
         SELECT coalesce(sum(jobs), 0)::bigint FROM gone"
    )
}
