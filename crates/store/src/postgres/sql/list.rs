//! The statements of lists.

use super::ended::HERE;
use super::{SAID_SIZE, SIZE, statements};

statements! {
    /// The next jobs of a list in the order of ids: of the $6 whose ids come before $5, those that match $1 kind,
    /// $2 queue, $3 state, $4 dead, $7 since, $8 before. Every job has a spec: those decide which jobs are looked at.
    /// The rows of the jobs are looked for only where the kind matches.
    LIST = {
        let fits = "($2::text IS NULL OR coalesce(queue = (SELECT id FROM queue_names WHERE name = $2), false)) \
            AND ($3::smallint IS NULL OR state = $3) AND ($4::boolean IS NULL OR dead = $4) \
            AND ($7::bigint IS NULL OR coalesce(finished_us >= $7, false)) \
            AND ($8::bigint IS NULL OR coalesce(finished_us < $8, false))";
        // Claims and ended jobs are found by the sources of the jobs that are looked at.
        let elements = |columns: &str, table: &str, row: &str, here: &str| format!(
            "SELECT w.id, w.said, w.place, {columns} FROM {table} {row} \
               CROSS JOIN LATERAL unnest({row}.ids) WITH ORDINALITY AS e (id, place) JOIN wanted w ON w.id = e.id \
             WHERE {row}.source = ANY (ARRAY(SELECT DISTINCT source FROM wanted)) AND {here}"
        );
        let active = elements(
            "queue, c.state, false, NULL::bigint, octet_length(rests[e.place::integer]) \
               + coalesce(octet_length(failures[e.place::integer]), 0)",
            "claims", "c", super::active::HERE
        );
        let over = elements("queue, state, dead, finished_us, bytes", "ended", "o", HERE);
        format!(
            "WITH seen AS MATERIALIZED (\
               SELECT s.id, s.source, s.kind, {SAID_SIZE} AS said, row_number() OVER (ORDER BY s.id DESC) AS place FROM (\
                 SELECT id, source, kind, body, revisions FROM specs WHERE id < $5 ORDER BY id DESC LIMIT $6) s), \
             wanted AS MATERIALIZED (SELECT id, source, said, place FROM seen WHERE $1::text IS NULL OR kind = $1), \
             jobs AS (\
               SELECT w.id, w.said, w.place, l.queue, l.state, false AS dead, NULL::bigint AS finished_us, l.bytes \
               FROM wanted w CROSS JOIN LATERAL (SELECT queue, state, {SIZE} AS bytes FROM live WHERE id = w.id) l \
               UNION ALL {active} UNION ALL {over}) \
             SELECT id, finished_us, fits, bytes, said, is_last FROM (\
               SELECT id, finished_us, true AS fits, bytes, said, false AS is_last, place FROM jobs j WHERE {fits} UNION ALL \
               SELECT id, NULL, false, 0, 0, true, place FROM seen WHERE place = $6) listed ORDER BY place, is_last"
        )
    };
    /// The next dead letters of a list in the order of ends: of the $6 that come before the end $2 and the id $5,
    /// not before $3 and before $4, those that match $1 kind.
    LIST_DEAD = dead("true");
    /// The same for the queue $7.
    LIST_DEAD_OF_QUEUE = dead("o.queue = (SELECT id FROM queue_names WHERE name = $7)");
}

/// Of the entries that were looked at, those that match the kind as well, in this order: id, end, whether it matches,
/// bytes of the row and of the spec. The last one is returned in any case where there may be more behind it.
fn entries(seen: &str, order: &str) -> String {
    format!(
        "SELECT j.id, j.finished_us, j.fits AND ($1::text IS NULL OR s.kind = $1), j.bytes, {SAID_SIZE}, \
           coalesce(j.is_last, false) FROM ({seen}) j JOIN specs s ON s.id = j.id \
         WHERE j.is_last OR (j.fits AND ($1::text IS NULL OR s.kind = $1)) ORDER BY {order}"
    )
}

fn dead(which: &str) -> String {
    let jobs = format!(
        "SELECT e.id, o.finished_us, o.bytes FROM ended o \
         CROSS JOIN LATERAL unnest(o.ids) WITH ORDINALITY AS e (id, place) \
         WHERE o.dead AND {which} AND o.finished_us >= $3 AND o.finished_us < $4 AND o.finished_us <= $2 \
           AND (o.finished_us, e.id) < ($2, $5) AND {HERE} \
         ORDER BY o.finished_us DESC, e.id DESC LIMIT $6"
    );
    entries(
        &format!(
            "SELECT id, finished_us, bytes, true AS fits, \
               row_number() OVER (ORDER BY finished_us DESC, id DESC) = $6 AS is_last FROM ({jobs}) seen"
        ),
        "j.finished_us DESC, j.id DESC",
    )
}
