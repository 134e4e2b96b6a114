//! Statements on jobs that wait for a retry together, in rows of `claims`.

use super::active::{HERE, read};
use super::{DUE_NOW, READABLE, READABLE_CLAIM, statements};

/// Locks the rows of `claims` that a statement finds. Rows that other transactions have locked are skipped.
fn locked(found: &str) -> String {
    let rows = format!(
        "(SELECT * FROM claims WHERE (source, no) IN ({found}) ORDER BY source, no \
        FOR NO KEY UPDATE SKIP LOCKED)"
    );
    read(&rows, "true")
}

/// The first rows in the order of this column, with $2 jobs and more: of rows that are equal in it, all. Jobs of rows
/// that are not `counted` do not count.
fn first(column: &str, counted: &str, which: &str) -> String {
    format!(
        "SELECT source, no FROM (\
           SELECT source, no, sum(jobs) OVER (ORDER BY {column}) - sum(jobs) OVER (PARTITION BY {column}) AS before FROM (\
             SELECT source, no, CASE WHEN {counted} THEN jobs ELSE 0 END AS jobs, {column} FROM claims \
             WHERE {which} AND {READABLE_CLAIM} ORDER BY {column} FETCH FIRST ($2::bigint) ROWS WITH TIES) n\
         ) n WHERE before < $2"
    )
}

statements! {
    /// Jobs that have expired at $1, the first $2 and more.
    EXPIRED_BLOCKS = locked(&first("expires_us", "true", "state = 4 AND expires_us <= $1"));
    /// The next jobs that are due at $1 in each of the queues $3, of each the first $2 and more of those that are not
    /// due before $4. $5 is not needed.
    DUE_BLOCKS = locked(&format!(
        "SELECT n.source, n.no FROM unnest($3::integer[], $4::bigint[], $5::uuid[]) AS q (queue, seen_us, id) \
         CROSS JOIN LATERAL ({}) n",
        first("due_us", "due_us > q.seen_us", &format!("queue = q.queue AND state = 4 AND {DUE_NOW} AND due_us >= q.seen_us"))
    ));
    /// The queues that have due jobs at $1, the earliest job first, at most $2, without those named in $3.
    DUE_QUEUES = format!(
        "SELECT q.id FROM queue_names q CROSS JOIN LATERAL (\
           (SELECT due_us, id FROM live WHERE queue = q.id AND {DUE_NOW} AND {readable} ORDER BY due_us, id LIMIT 1) \
           UNION ALL \
           (SELECT c.due_us, e.id FROM (SELECT due_us, gone, ids FROM claims \
                WHERE queue = q.id AND state = 4 AND {DUE_NOW} AND {READABLE_CLAIM} \
                ORDER BY due_us FETCH FIRST 1 ROW WITH TIES) c \
              CROSS JOIN LATERAL unnest(c.ids) WITH ORDINALITY AS e (id, place) WHERE {HERE} \
            ORDER BY c.due_us, e.id LIMIT 1) \
           ORDER BY due_us, id LIMIT 1) j \
         WHERE q.name <> ALL ($3::text[]) ORDER BY j.due_us, j.id LIMIT $2",
        readable = *READABLE
    );
}
