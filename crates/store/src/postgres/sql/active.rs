//! Statements on jobs that are active, or wait for a retry together: elements of the arrays of `claims`.

use super::{READABLE, READABLE_CLAIM, bare, job_columns, statements};

/// Of the elements `e` of a claim `c`, those that have not left it.
pub(super) const HERE: &str = "get_bit(c.gone, e.place::integer - 1) = 0";

/// The jobs of claims, as the table `j`: the columns of a row, then those of the claim.
fn elements(claims: &str, which: &str) -> String {
    format!(
        "(SELECT e.id, NULL::tid AS tid, c.expires_us, c.queue, c.priority, e.rest, e.failures, \
            c.no, c.revision, c.version, c.gone, cardinality(c.ids) AS size, e.place::integer AS place \
          FROM {claims} c CROSS JOIN LATERAL unnest(c.ids, c.rests, c.failures) \
            WITH ORDINALITY AS e (id, rest, failures, place) \
          WHERE {HERE} AND {which}) j"
    )
}

/// What is read of jobs that are active, or wait for a retry together.
pub(super) fn read(claims: &str, which: &str) -> String {
    let block = "j.no, j.revision, j.version, j.gone, j.size, j.place";
    let jobs = elements(claims, which);
    format!("SELECT {}, {block} FROM {jobs} JOIN specs s ON s.id = j.id", job_columns())
}

/// The claims of the jobs $1.
const OF_JOBS: &str = "SELECT * FROM claims WHERE ids && $1::uuid[] \
     AND source = ANY (ARRAY(SELECT DISTINCT source FROM specs WHERE id = ANY ($1::uuid[])))";
const WANTED: &str = "e.id = ANY ($1::uuid[])";

/// When a run is overdue, where the server stood still, by the parameters that say until when and for how long.
fn overdue_at(ended: &str, lengths: &str) -> String {
    format!(
        "GREATEST(due_us, (SELECT max(s.ended_us + LEAST(lease_us, s.length_us)) \
           FROM unnest({ended}::bigint[], {lengths}::bigint[]) AS s (ended_us, length_us) WHERE alive_us < s.ended_us))"
    )
}

statements! {
    /// Jobs that are active, by id, for a change: their claims are locked. The order prevents two callers from waiting
    /// for each other.
    LOCK_ACTIVE = read(&format!("({OF_JOBS} ORDER BY source, no FOR NO KEY UPDATE)"), WANTED);
    /// Jobs that are active, by id.
    READ_ACTIVE = read(&format!("({OF_JOBS})"), WANTED);
    /// The same without their bodies and revisions.
    READ_ACTIVE_BARE = bare(&READ_ACTIVE);
    /// The claims of runs that are overdue at $1, at most $2, where the server stood still until $3, each for as long
    /// as $4 says, with all their jobs. Claims that other transactions have locked are skipped.
    OVERDUE = {
        let overdue = overdue_at("$3", "$4");
        read(&format!(
            "(SELECT * FROM claims WHERE (source, no) IN (SELECT c.source, c.no FROM (\
                SELECT source, no, ids, gone, {overdue} AS since FROM claims WHERE state = 3 AND due_us <= $1 AND {READABLE_CLAIM}) c \
              CROSS JOIN LATERAL unnest(c.ids) WITH ORDINALITY AS e (id, place) \
              WHERE c.since <= $1 AND {HERE} ORDER BY c.since, e.id LIMIT $2) \
              ORDER BY source, no FOR NO KEY UPDATE SKIP LOCKED)"
        ), "true")
    };
    /// The next moment at which there is something to reclaim or to promote: the first entries of two indexes, and of
    /// each queue in a third, without the queues named in $1. Where a standstill spares the run whose lease ends first,
    /// others may be overdue before it: those whose leases end until then. The server stood still until $2, each for as
    /// long as $3 says.
    NEXT_WAKE = format!(
        "SELECT LEAST(\
           (SELECT min({overdue}) FROM claims WHERE state = 3 AND {READABLE_CLAIM} AND due_us <= \
             (SELECT {overdue} FROM claims WHERE state = 3 AND {READABLE_CLAIM} ORDER BY due_us LIMIT 1)), \
           (SELECT expires_us FROM live WHERE expires_us IS NOT NULL AND {readable} ORDER BY expires_us, id LIMIT 1), \
           (SELECT expires_us FROM claims WHERE state = 4 AND expires_us IS NOT NULL AND {READABLE_CLAIM} \
              ORDER BY expires_us LIMIT 1), \
           (SELECT min(j.due_us) FROM queue_names q CROSS JOIN LATERAL (\
              (SELECT due_us FROM live WHERE queue = q.id AND due_us IS NOT NULL AND {readable} \
               ORDER BY due_us, id LIMIT 1) UNION ALL \
              (SELECT due_us FROM claims WHERE queue = q.id AND state = 4 AND {READABLE_CLAIM} \
               ORDER BY due_us LIMIT 1)) j WHERE q.name <> ALL ($1::text[])))",
        overdue = overdue_at("$2", "$3"), readable = *READABLE
    );
    /// Jobs of locked claims that cannot be read, $1, each for the reason $2, out of the claims $3, of which $4 have
    /// left then, and in which $5 are left. Claims without jobs are removed.
    SET_ASIDE_ACTIVE = format!(
        "WITH b AS MATERIALIZED (SELECT c.source, c.no, u.gone, u.jobs \
           FROM unnest($3::bigint[], $4::bytea[], $5::smallint[]) AS u (no, gone, jobs) \
           JOIN claims c ON c.no = u.no AND c.source = ANY (ARRAY(SELECT source FROM specs WHERE id = ANY ($1)))), \
         r AS MATERIALIZED (SELECT e.id, c.queue, c.state AS was, u.reason, jsonb_build_object('id', e.id, 'source', c.source, \
             'version', c.version, 'queue', c.queue, 'priority', c.priority, 'expires_us', c.expires_us, \
             'due_us', c.due_us, 'alive_us', c.alive_us, 'lease_us', c.lease_us, 'rest', e.rest, \
             'failures', e.failures, 'lane', c.lane, 'state', c.state) AS row \
           FROM b JOIN claims c ON c.source = b.source AND c.no = b.no \
           CROSS JOIN LATERAL unnest(c.ids, c.rests, c.failures) WITH ORDINALITY AS e (id, rest, failures, place) \
           JOIN unnest($1::uuid[], $2::text[]) AS u (id, reason) ON u.id = e.id WHERE {HERE}), \
         whole AS (DELETE FROM claims c USING b WHERE c.source = b.source AND c.no = b.no AND b.gone IS NULL), \
         part AS (UPDATE claims c SET revision = c.revision + 1, gone = b.gone, jobs = b.jobs FROM b \
           WHERE c.source = b.source AND c.no = b.no AND b.gone IS NOT NULL), \
         counted AS (INSERT INTO counts (queue, was, jobs) SELECT queue, was, count(*) FROM r GROUP BY queue, was) \
         INSERT INTO unreadable (id, queue, origin, reason, row) SELECT id, queue, 'claims', reason, row FROM r \
         RETURNING id"
    );
}
