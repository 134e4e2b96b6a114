//! The statements of lists.

use super::active::HERE;
use super::{SAID_SIZE, SIZE, statements};

statements! {
    /// The next jobs of a list in the order of ids: of the $6 that come before the id $5, those that match $1 kind,
    /// $2 queue, $3 state, $4 dead, $7 since, $8 before.
    LIST = {
        let window = |table: &str, dead: &str, finished: &str| format!(
            "(SELECT id, queue, state, {dead} AS dead, {finished} AS finished_us, {SIZE} AS bytes FROM {table} \
              WHERE id < $5 ORDER BY id DESC LIMIT $6)"
        );
        // Sizes are asked for behind the limit only: the arrays of rows may have to be fetched for them.
        let active = format!(
            "(SELECT id, queue, 3::smallint AS state, false AS dead, NULL::bigint AS finished_us, \
                octet_length(rests[place]) + coalesce(octet_length(failures[place]), 0) AS bytes FROM (\
              SELECT e.id, c.queue, c.rests, c.failures, e.place::integer AS place \
              FROM claims c CROSS JOIN LATERAL unnest(c.ids) WITH ORDINALITY AS e (id, place) \
              WHERE {HERE} AND e.id < $5 ORDER BY e.id DESC LIMIT $6) active)"
        );
        let fits = "($2::text IS NULL OR coalesce(queue = (SELECT id FROM queue_names WHERE name = $2), false)) \
            AND ($3::smallint IS NULL OR state = $3) AND ($4::boolean IS NULL OR dead = $4) \
            AND ($7::bigint IS NULL OR coalesce(finished_us >= $7, false)) \
            AND ($8::bigint IS NULL OR coalesce(finished_us < $8, false))";
        entries(&format!(
            "SELECT id, finished_us, bytes, {fits} AS fits, row_number() OVER (ORDER BY id DESC) AS place FROM (\
               SELECT * FROM ({} UNION ALL {active} UNION ALL {}) tables ORDER BY id DESC LIMIT $6) seen",
            window("live", "false", "NULL::bigint"), window("ended", "dead", "finished_us")
        ))
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
