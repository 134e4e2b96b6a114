//! The statements of lists.

use super::active::HERE;
use super::{SAID_SIZE, SIZE, statements};

statements! {
    /// The next jobs of a list in the order of ids: of the $6 whose ids come before $5, those that match $1 kind,
    /// $2 queue, $3 state, $4 dead, $7 since, $8 before. Every job has a spec: those decide which jobs are looked at.
    /// The rows of the jobs are looked for only where the kind matches, and the claims, which have no index by job, only
    /// where a job is in no other table.
    LIST = {
        let fits = "($2::text IS NULL OR coalesce(queue = (SELECT id FROM queue_names WHERE name = $2), false)) \
            AND ($3::smallint IS NULL OR state = $3) AND ($4::boolean IS NULL OR dead = $4) \
            AND ($7::bigint IS NULL OR coalesce(finished_us >= $7, false)) \
            AND ($8::bigint IS NULL OR coalesce(finished_us < $8, false))";
        format!(
            "WITH seen AS MATERIALIZED (\
               SELECT s.id, s.kind, {SAID_SIZE} AS said, row_number() OVER (ORDER BY s.id DESC) AS place FROM (\
                 SELECT id, kind, body, revisions FROM specs WHERE id < $5 ORDER BY id DESC LIMIT $6) s), \
             wanted AS MATERIALIZED (SELECT id, said, place FROM seen WHERE $1::text IS NULL OR kind = $1), \
             resting AS MATERIALIZED (\
               SELECT w.id, w.said, w.place, j.queue, j.state, j.dead, j.finished_us, j.bytes \
               FROM wanted w CROSS JOIN LATERAL (\
                 SELECT queue, state, false AS dead, NULL::bigint AS finished_us, {SIZE} AS bytes \
                   FROM live WHERE id = w.id UNION ALL \
                 SELECT queue, state, dead, finished_us, {SIZE} FROM ended WHERE id = w.id) j), \
             others AS MATERIALIZED (SELECT array_agg(id) AS ids FROM wanted WHERE id NOT IN (SELECT id FROM resting)), \
             active AS (\
               SELECT w.id, w.said, w.place, c.queue, 3::smallint AS state, false AS dead, NULL::bigint AS finished_us, \
                 octet_length(c.rests[e.place]) + coalesce(octet_length(c.failures[e.place]), 0) AS bytes \
               FROM claims c CROSS JOIN LATERAL unnest(c.ids) WITH ORDINALITY AS e (id, place) \
                 JOIN wanted w ON w.id = e.id \
               WHERE (SELECT ids FROM others) IS NOT NULL AND c.ids && (SELECT ids FROM others) AND {HERE}) \
             SELECT id, finished_us, fits, bytes, said, is_last FROM (\
               SELECT id, finished_us, true AS fits, bytes, said, false AS is_last, place \
                 FROM (SELECT * FROM resting UNION ALL SELECT * FROM active) j WHERE {fits} UNION ALL \
               SELECT id, NULL, false, 0, 0, true, place FROM seen WHERE place = $6) listed ORDER BY place, is_last"
        )
    };
    /// The next dead letters of a list in the order of ends: of the $6 that come before the end $2 and the id $5,
    /// not before $3 and before $4, those that match $1 kind.
    LIST_DEAD = dead("true");
    /// The same for the queue $7.
    LIST_DEAD_OF_QUEUE = dead("queue = (SELECT id FROM queue_names WHERE name = $7)");
}

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
