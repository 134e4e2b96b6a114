//! Statements on queues with limits.

use super::{READABLE, SAID_SIZE, SIZE, statements, unless_large};

statements! {
    /// The lanes of the queue $1 that have available jobs, which the index finds one after the other; nothing where the
    /// queue is paused.
    LANES = {
        let next = |after: &str| format!(
            "SELECT l.lane FROM live l WHERE l.queue = q.id AND l.state = 2 AND l.lane IS NOT NULL {after} \
             ORDER BY l.lane LIMIT 1"
        );
        format!(
            "WITH RECURSIVE q AS MATERIALIZED (SELECT id FROM queue_names WHERE name = $1 AND NOT paused), \
             lanes AS (SELECT ({first}) AS lane FROM q UNION ALL \
               SELECT ({after}) FROM lanes, q WHERE lanes.lane IS NOT NULL) \
             SELECT lane FROM lanes WHERE lane IS NOT NULL",
            first = next(""), after = next("AND l.lane > lanes.lane")
        )
    };
    /// The next jobs of the queue $1 without limits of their own, at most $2, as of $3; then of each of the lanes $4,
    /// at most as many as $5 says. The columns are those of other claims.
    CLAIM_LIMITED = {
        let jobs = |lane: &str, most: &str| format!(
            "SELECT ctid AS tid, *, {SIZE} AS bytes FROM live \
             WHERE queue = (SELECT n.id FROM queue_names n WHERE n.name = $1 AND NOT n.paused) AND state = 2 AND {lane} \
               AND (expires_us IS NULL OR expires_us > $3) AND {readable} \
             ORDER BY priority DESC, available_us, id LIMIT {most} FOR NO KEY UPDATE SKIP LOCKED",
            readable = *READABLE
        );
        format!(
            "SELECT {columns}, j.available_us, j.bytes + {SAID_SIZE} FROM (\
               SELECT * FROM ({unlimited}) j UNION ALL \
               SELECT j.* FROM unnest($4::bytea[], $5::bigint[]) AS u (lane, most) CROSS JOIN LATERAL ({lanes}) j) j \
             JOIN specs s ON s.id = j.id",
            columns = unless_large(), unlimited = jobs("lane IS NULL", "$2"),
            lanes = jobs("lane = u.lane AND lane IS NOT NULL", "u.most")
        )
    };
}
