//! The statement that looks for the jobs of a key.

use super::{active, ended, statements};

statements! {
    /// For each of the keys $1, its jobs that were created after $2, or at $2 with a higher id than $3, in the order of
    /// their creation, then by id: those that are not marked as ended, at most $4, and of those that are, the first of
    /// each state. Each with the place of the key, whether it is stored, its state, and when it is due. A job in none
    /// of the tables was set aside.
    UNIQUE_HOLDERS = {
        let claimed = format!(
            "SELECT c.state FROM claims c CROSS JOIN LATERAL unnest(c.ids) WITH ORDINALITY AS e (id, place) \
             WHERE c.source = s.source AND c.ids @> ARRAY[u.id] AND e.id = u.id AND {}", active::HERE
        );
        let over = format!(
            "SELECT o.state FROM ended o CROSS JOIN LATERAL unnest(o.ids) WITH ORDINALITY AS e (id, place) \
             WHERE o.source = s.source AND o.ids @> ARRAY[u.id] AND e.id = u.id AND {}", ended::HERE
        );
        format!(
            "SELECT k.place, u.id, u.created_us, u.over, s.id IS NOT NULL, \
               coalesce(l.state, ({claimed} LIMIT 1), ({over} LIMIT 1)), l.due_us \
             FROM unnest($1::bytea[], $2::bigint[], $3::uuid[]) WITH ORDINALITY AS k (key, since, last, place) \
             CROSS JOIN LATERAL ((SELECT * FROM unique_jobs WHERE key = k.key AND over IS NULL \
                 AND (created_us, id) > (k.since, k.last) ORDER BY created_us, id LIMIT $4) \
               UNION ALL SELECT first.* FROM unnest(ARRAY[5, 6, 7]::smallint[]) AS t (state) CROSS JOIN LATERAL (\
                 SELECT * FROM unique_jobs WHERE key = k.key AND over = t.state AND created_us > k.since \
                 ORDER BY created_us, id LIMIT 1) first) u \
             LEFT JOIN specs s ON s.id = u.id LEFT JOIN live l ON l.id = u.id ORDER BY k.place, u.created_us, u.id"
        )
    };
}
