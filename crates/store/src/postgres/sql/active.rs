//! Statements on jobs that are active: elements of the arrays of their claims.

use super::{READABLE, READABLE_CLAIM, bare, job_columns, statements};

/// Of the elements `e` of a claim `c`, those that have not left it.
pub(super) const HERE: &str = "get_bit(c.gone, e.place::integer - 1) = 0";
/// Elements with their ids and times.
const TIMES: &str = "CROSS JOIN LATERAL unnest(c.ids, c.dues_us, c.alive_us, c.lease_us) WITH ORDINALITY \
     AS e (id, due_us, alive_us, lease_us, place)";

/// The jobs of claims, as the table `j`: the columns of a row, then those of the claim.
fn elements(claims: &str, which: &str) -> String {
    format!(
        "(SELECT e.id, e.expires_us, coalesce(e.queue, c.queues[1]) AS queue, \
            coalesce(e.priority, c.priorities[1]) AS priority, e.rest, e.failures, \
            c.no, c.revision, c.version, c.gone, cardinality(c.ids) AS size, e.place::integer AS place \
          FROM {claims} c CROSS JOIN LATERAL unnest(c.ids, c.queues, c.priorities, c.expires_us, c.rests, c.failures) \
            WITH ORDINALITY AS e (id, queue, priority, expires_us, rest, failures, place) \
          WHERE {HERE} AND {which}) j"
    )
}

/// What is read of a job that is active.
fn columns() -> String {
    format!("{}, j.no, j.revision, j.version, j.gone, j.size, j.place", job_columns())
}

/// When a run is overdue, where the server stood still, by the parameters that say until when and for how long.
fn overdue_at(ended: &str, lengths: &str) -> String {
    format!(
        "GREATEST(coalesce(e.due_us, c.dues_us[1]), \
           (SELECT max(s.ended_us + LEAST(coalesce(e.lease_us, c.lease_us[1]), s.length_us)) \
            FROM unnest({ended}::bigint[], {lengths}::bigint[]) AS s (ended_us, length_us) \
            WHERE coalesce(e.alive_us, c.alive_us[1]) < s.ended_us))"
    )
}

statements! {
    /// Jobs that are active, by id, for a change: their claims are locked.
    LOCK_ACTIVE = {
        let locked = "(SELECT * FROM claims WHERE no = ANY (claims_of($1::uuid[])) ORDER BY no FOR NO KEY UPDATE)";
        format!("SELECT {} FROM {} JOIN specs s ON s.id = j.id", columns(), elements(locked, "e.id = ANY ($1::uuid[])"))
    };
    /// Jobs that are active, by id.
    READ_ACTIVE = {
        let read = "(SELECT * FROM claims WHERE no = ANY (claims_of($1::uuid[])))";
        format!("SELECT {} FROM {} JOIN specs s ON s.id = j.id", columns(), elements(read, "e.id = ANY ($1::uuid[])"))
    };
    /// The same without their bodies and revisions.
    READ_ACTIVE_BARE = bare(&READ_ACTIVE);
    /// The claims of runs that are overdue at $1, at most $2, where the server stood still until $3, each for as long
    /// as $4 says, with all their jobs. Claims that other transactions have locked are skipped.
    OVERDUE = {
        let overdue = overdue_at("$3", "$4");
        let first = format!(
            "(SELECT * FROM claims WHERE no = ANY (ARRAY(SELECT c.no FROM claims c {TIMES} \
               WHERE c.due_us <= $1 AND c.{READABLE_CLAIM} AND {HERE} AND {overdue} <= $1 \
               ORDER BY {overdue}, e.id LIMIT $2)) ORDER BY no FOR NO KEY UPDATE SKIP LOCKED)"
        );
        format!("SELECT {} FROM {} JOIN specs s ON s.id = j.id", columns(), elements(&first, "true"))
    };
    /// The next moment at which there is something to reclaim or to promote: the first entries of two indexes, and of
    /// each queue in a third, without the queues named in $1. The first claim may have lost the run that is overdue
    /// first, or a standstill may spare it: then others may be overdue before it, of those that end until then. The
    /// server stood still until $2, each for as long as $3 says.
    NEXT_WAKE = format!(
        "SELECT LEAST(\
           (SELECT min({overdue}) FROM claims c {TIMES} WHERE c.{READABLE_CLAIM} AND {HERE} AND c.due_us <= \
             (SELECT min({overdue}) FROM (SELECT * FROM claims WHERE {READABLE_CLAIM} ORDER BY due_us LIMIT 1) c {TIMES} \
              WHERE {HERE})), \
           (SELECT expires_us FROM live WHERE expires_us IS NOT NULL AND {readable} ORDER BY expires_us, id LIMIT 1), \
           (SELECT min(j.due_us) FROM queue_names q CROSS JOIN LATERAL (\
              SELECT due_us FROM live WHERE queue = q.id AND due_us IS NOT NULL AND {readable} \
              ORDER BY due_us, id LIMIT 1) j WHERE q.name <> ALL ($1::text[])))",
        overdue = overdue_at("$2", "$3"), readable = *READABLE
    );
    /// Jobs of locked claims that cannot be read, $1, each for the reason $2, out of the claims $3, of which $4 have
    /// left then. Claims without jobs are removed.
    SET_ASIDE_ACTIVE = format!(
        "WITH e AS MATERIALIZED (SELECT c.no, e.*, s.source, u.reason FROM claims c CROSS JOIN LATERAL \
             unnest(c.ids, c.queues, c.priorities, c.expires_us, c.dues_us, c.alive_us, c.lease_us, c.rests, c.failures) \
             WITH ORDINALITY AS e (id, queue, priority, expires_us, due_us, alive_us, lease_us, rest, failures, place) \
           JOIN unnest($1::uuid[], $2::text[]) AS u (id, reason) ON u.id = e.id JOIN specs s ON s.id = e.id \
           WHERE c.no = ANY ($3::bigint[]) AND {HERE}), \
         r AS MATERIALIZED (SELECT e.id, coalesce(e.queue, c.queues[1]) AS queue, e.reason, jsonb_build_object(\
             'id', e.id, 'source', e.source, 'version', c.version, 'queue', coalesce(e.queue, c.queues[1]), \
             'priority', coalesce(e.priority, c.priorities[1]), 'expires_us', e.expires_us, \
             'due_us', coalesce(e.due_us, c.dues_us[1]), 'alive_us', coalesce(e.alive_us, c.alive_us[1]), \
             'lease_us', coalesce(e.lease_us, c.lease_us[1]), 'rest', e.rest, 'failures', e.failures, 'state', 3) AS row \
           FROM e JOIN claims c ON c.no = e.no), \
         whole AS (DELETE FROM claims c USING unnest($3::bigint[], $4::bytea[]) AS b (no, gone) \
           WHERE c.no = b.no AND b.gone IS NULL), \
         part AS (UPDATE claims c SET revision = c.revision + 1, gone = b.gone \
           FROM unnest($3::bigint[], $4::bytea[]) AS b (no, gone) WHERE c.no = b.no AND b.gone IS NOT NULL), \
         counted AS (INSERT INTO counts (queue, was, jobs) SELECT queue, 3, count(*) FROM r GROUP BY queue) \
         INSERT INTO unreadable (id, queue, origin, reason, row) SELECT id, queue, 'claims', reason, row FROM r \
         RETURNING id"
    );
}
