//! The statements on runs.

use crate::postgres::sql::statements;

/// Runs whose bytes this program reads, by the version, which comes first. Newer ones are left to nodes that can, and
/// those that were set aside to people.
const READABLE: &str = "r.body < '\\x03'::bytea AND NOT EXISTS (SELECT FROM unreadable u WHERE u.id = r.id)";

/// The programs $1 that the caller has, each with its newest version $2.
const KNOWN: &str =
    "JOIN unnest($1::text[], $2::bigint[]) AS p (program, version) ON p.program = r.program AND r.version <= p.version";

/// Runs that have messages: one look into the index for each, however many messages it has.
const TOLD: &str = "told AS (\
       (SELECT run FROM run_messages ORDER BY run LIMIT 1) UNION ALL \
       SELECT (SELECT m.run FROM run_messages m WHERE m.run > t.run ORDER BY m.run LIMIT 1) FROM told t \
       WHERE t.run IS NOT NULL)";

/// When the message of a run with the lowest number was written. One of a newer version is left to nodes that can read
/// it.
const FIRST: &str = "(SELECT CASE WHEN m.body < '\\x03'::bytea THEN m.at_us END FROM run_messages m \
     WHERE m.run = r.id ORDER BY m.number LIMIT 1)";

/// The columns of a run, as they are written.
const COLUMNS: [(&str, &str); 13] = [
    ("id", "uuid"),
    ("program", "text"),
    ("version", "bigint"),
    ("revision", "bigint"),
    ("timer_us", "bigint"),
    ("created_us", "bigint"),
    ("advanced_us", "bigint"),
    ("ended_us", "bigint"),
    ("succeeded", "boolean"),
    ("parent", "uuid"),
    ("key", "bytea"),
    ("body", "bytea"),
    ("listens", "boolean"),
];

fn unnested() -> String {
    let arrays = (1..).zip(COLUMNS).map(|(place, (_, kind))| format!("${place}::{kind}[]"));
    format!("unnest({}) AS u ({})", arrays.collect::<Vec<_>>().join(", "), names().join(", "))
}

fn names() -> [&'static str; 13] {
    COLUMNS.map(|(name, _)| name)
}

/// The runs `c` that may be pending at $3, those first that have been so longest, at most $4. Each is looked up by its
/// id: the planner knows nothing of their number, and would rather read all runs.
fn pending(with: &str, candidates: &str, or: &str) -> String {
    format!(
        "{with} SELECT r.id, r.body FROM ({candidates}) c CROSS JOIN LATERAL (\
           SELECT * FROM run_states r WHERE r.id = c.id AND {READABLE} OFFSET 0) r {KNOWN} \
         CROSS JOIN LATERAL (SELECT {FIRST} AS us) AS first \
         CROSS JOIN LATERAL (SELECT least(CASE WHEN r.revision = 0 THEN r.created_us END, r.timer_us, first.us) AS us) \
           AS since \
         WHERE (since.us <= $3{or}) ORDER BY since.us, r.id LIMIT $4"
    )
}

/// The runs of known programs to which a condition applies, the first $4 by a time.
fn first(condition: &str, time: &str) -> String {
    format!("SELECT r.id FROM run_states r {KNOWN} WHERE {condition} AND {READABLE} ORDER BY {time}, r.id LIMIT $4")
}

statements! {
    LOCK = "SELECT id, body FROM run_states WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE".to_owned();
    /// The runs that listen to events.
    LISTENING = format!("SELECT r.id, r.body FROM run_states r WHERE r.listens AND {READABLE}");
    READ = "SELECT id, body FROM run_states WHERE id = ANY ($1::uuid[])".to_owned();
    OF_KEY = "SELECT id, body FROM run_states WHERE key IS NOT NULL AND sha256(key) = sha256($1::bytea)".to_owned();
    /// Runs that have one of the ids $1, or one of the keys $2.
    LOOK_UP = "SELECT id, key FROM run_states WHERE id = ANY ($1::uuid[]) UNION \
         SELECT id, key FROM run_states WHERE key IS NOT NULL \
           AND sha256(key) = ANY (ARRAY(SELECT sha256(k) FROM unnest($2::bytea[]) AS u (k)))".to_owned();
    INSERT = format!("INSERT INTO run_states ({}) SELECT * FROM {}", names().join(", "), unnested());
    UPDATE = {
        let set: Vec<String> = names()[2..].iter().map(|name| format!("{name} = u.{name}")).collect();
        format!("UPDATE run_states r SET {} FROM {} WHERE r.id = u.id", set.join(", "), unnested())
    };
    /// What has been pending longest is among the first of the new ones, or of those with timers, or has messages.
    PENDING = pending(
        &format!("WITH RECURSIVE {TOLD}"),
        &format!(
            "SELECT run AS id FROM told WHERE run IS NOT NULL UNION ({}) UNION ({})",
            first("r.revision = 0", "r.created_us"),
            first("r.timer_us <= $3", "r.timer_us")
        ),
        "",
    );
    /// The same among the runs $5. Of these, messages count that the clock of another node has from a moment later.
    PENDING_ONLY = pending(
        "", "SELECT DISTINCT id FROM unnest($5::uuid[]) AS n (id)", " OR r.revision = 0 OR first.us IS NOT NULL"
    );
    /// When the next run is pending.
    NEXT = format!(
        "WITH RECURSIVE {TOLD} SELECT least(\
           (SELECT min(r.created_us) FROM run_states r {KNOWN} WHERE r.revision = 0 AND {READABLE}), \
           (SELECT r.timer_us FROM run_states r {KNOWN} WHERE r.timer_us IS NOT NULL AND {READABLE} \
              ORDER BY r.timer_us LIMIT 1), \
           (SELECT min({FIRST}) FROM told t JOIN run_states r ON r.id = t.run AND {READABLE} {KNOWN}))"
    );
    /// The messages of the runs $1, at most $2 of each.
    MESSAGES = "SELECT r.id, m.number, m.body FROM unnest($1::uuid[]) AS r (id) CROSS JOIN LATERAL (\
           SELECT number, body FROM run_messages m WHERE m.run = r.id ORDER BY number LIMIT $2) m \
         ORDER BY m.number".to_owned();
    /// The first messages of the runs $1, of each as many as $2 says.
    INBOXES = "SELECT r.id, m.number, m.at_us FROM unnest($1::uuid[], $2::bigint[]) AS r (id, most) \
         CROSS JOIN LATERAL (SELECT number, at_us FROM run_messages m WHERE m.run = r.id ORDER BY number LIMIT r.most) m"
        .to_owned();
    /// The messages $2 of the runs $1 were read.
    CONSUME = "DELETE FROM run_messages m USING unnest($1::uuid[], $2::bigint[]) AS u (run, number) \
         WHERE m.run = u.run AND m.number = u.number".to_owned();
    /// Messages to runs that are stored, numbered in the order in which they are given.
    INSERT_MESSAGES = "INSERT INTO run_messages (run, at_us, body) SELECT u.run, u.at_us, u.body \
         FROM unnest($1::uuid[], $2::bigint[], $3::bytea[]) WITH ORDINALITY AS u (run, at_us, body, place) \
         WHERE EXISTS (SELECT FROM run_states r WHERE r.id = u.run) ORDER BY u.place".to_owned();
    /// Messages of another store, with their numbers.
    INSERT_MESSAGES_AS_THEY_ARE = "INSERT INTO run_messages (run, number, at_us, body) \
         SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bytea[])".to_owned();
    /// Messages get numbers above those that are used.
    NUMBERS_USED = "SELECT setval(pg_get_serial_sequence('run_messages', 'number'), \
         greatest(max(number), 1)) FROM run_messages".to_owned();
    /// The run $1, and how many messages it has, counted up to $2.
    SIGNALLED = "SELECT r.id, r.body, (SELECT count(*) FROM (\
           SELECT FROM run_messages m WHERE m.run = r.id LIMIT $2) m) FROM run_states r WHERE r.id = $1".to_owned();
    /// Runs that match: of the program $1, that go on or not $2, behind $3, at most $4.
    LIST = format!(
        "SELECT r.id, r.body FROM run_states r WHERE ($1::text IS NULL OR r.program = $1) \
           AND ($2::boolean IS NULL OR (r.ended_us IS NULL) = $2) AND ($3::uuid IS NULL OR r.id < $3) AND {READABLE} \
         ORDER BY r.id DESC LIMIT $4"
    );
    /// Sets the runs $1 aside, for the reasons $2. They stay where they are, with their messages, and get more.
    SET_ASIDE = "INSERT INTO unreadable (id, queue, origin, reason, row) \
         SELECT r.id, 0, 'run_states', u.reason, to_jsonb(r) FROM unnest($1::uuid[], $2::text[]) AS u (id, reason) \
         JOIN run_states r ON r.id = u.id ON CONFLICT DO NOTHING RETURNING id".to_owned();
    /// Runs of the program $1 behind $2, at most $3, of the kinds $4: those that go on, those that have ended. Each
    /// kind is one range of the index. It is written without equations: by these the index of ids would be in order
    /// too, and the planner would take it, and look at the runs of all programs.
    LIST_OF_PROGRAM = format!(
        "SELECT l.id, l.body FROM unnest($4::boolean[]) AS k (goes_on) CROSS JOIN LATERAL (\
           SELECT r.id, r.body FROM run_states r \
           WHERE (r.program, (r.ended_us IS NULL), r.id) < ($1::text, k.goes_on, $2::uuid) \
             AND (r.program, (r.ended_us IS NULL)) >= ($1, k.goes_on) AND {READABLE} \
           ORDER BY r.program DESC, (r.ended_us IS NULL) DESC, r.id DESC LIMIT $3) l \
         ORDER BY l.id DESC LIMIT $3"
    );
    /// Runs with keys from $1 on and below $2, by key, at most $3, of the program $4, that go on or not $5, behind $6.
    /// The index has the beginnings of keys, because it cannot have whole keys of any length.
    LIST_OF_KEYS = format!(
        "SELECT r.id, r.body FROM run_states r WHERE r.key IS NOT NULL \
           AND substring(r.key FROM 1 FOR 600) >= substring($1::bytea FROM 1 FOR 600) \
           AND substring(r.key FROM 1 FOR 600) < $2::bytea AND r.key >= $1 \
           AND ($4::text IS NULL OR r.program = $4) AND ($5::boolean IS NULL OR (r.ended_us IS NULL) = $5) \
           AND ($6::uuid IS NULL OR r.id < $6) AND {READABLE} \
         ORDER BY substring(r.key FROM 1 FOR 600), r.key LIMIT $3"
    );
    /// The runs behind $1 in the order of their ids, at most $2.
    PAGE = "SELECT id, body FROM run_states WHERE id > $1 ORDER BY id LIMIT $2".to_owned();
    /// Deletes runs that ended until $1 and have no messages, at most $2; and messages whose runs were deleted while
    /// they were written.
    PRUNE = "WITH lost AS (DELETE FROM run_messages m \
             WHERE NOT EXISTS (SELECT FROM run_states r WHERE r.id = m.run)), \
         gone AS (DELETE FROM run_states WHERE id = ANY (ARRAY(SELECT id FROM run_states r WHERE ended_us <= $1 \
             AND NOT EXISTS (SELECT FROM unreadable u WHERE u.id = r.id) \
             AND NOT EXISTS (SELECT FROM run_messages m WHERE m.run = r.id) \
             ORDER BY ended_us, id LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING id) \
         SELECT count(*) FROM gone".to_owned();
}
