-- Two things for people: jobs that cannot be read, and views of those that can.

-- Jobs that a node could not read. They are out of the tables that claims and sweeps look at; `specs` still has their
-- specs. `redrive store unreadable` lists them, puts them back or deletes them.
CREATE TABLE unreadable (
    id     uuid PRIMARY KEY,
    queue  integer NOT NULL,
    -- The table in which it was: `live`, `claims` or `ended`.
    origin text NOT NULL,
    since  timestamptz NOT NULL DEFAULT now(),
    reason text NOT NULL,
    -- The row as it was, each column by its name; of a job in a row with others, what was stored of this job.
    row    jsonb NOT NULL
);
CREATE INDEX unreadable_queue ON unreadable (queue);

-- What people read in psql. Rows are stored as bytes, which docs/formats.md describes; these functions read the
-- versions that they know, and answer NULL for others. Nodes do not call them.

-- A count: seven bits to a byte, the lowest first, the high bit where there is more. `at` is the place of the first
-- byte, and then of the byte behind it.
CREATE FUNCTION read_count(bytes bytea, INOUT at integer, OUT number bigint) LANGUAGE plpgsql IMMUTABLE AS $body$
DECLARE
    byte integer;
    shift integer := 0;
BEGIN
    number := 0;
    LOOP
        byte := get_byte(bytes, at);
        number := number | ((byte & 127)::bigint << shift);
        at := at + 1;
        shift := shift + 7;
        EXIT WHEN byte < 128;
    END LOOP;
END $body$;

-- Eight bytes, the lowest first.
CREATE FUNCTION read_word(bytes bytea, at integer) RETURNS bigint LANGUAGE sql IMMUTABLE AS $body$
    SELECT get_byte(bytes, at)::bigint | (get_byte(bytes, at + 1)::bigint << 8)
        | (get_byte(bytes, at + 2)::bigint << 16) | (get_byte(bytes, at + 3)::bigint << 24)
        | (get_byte(bytes, at + 4)::bigint << 32)
        | (get_byte(bytes, at + 5)::bigint << 40) | (get_byte(bytes, at + 6)::bigint << 48)
        | (get_byte(bytes, at + 7)::bigint << 56)
$body$;

-- A span in milliseconds, which is never negative, from the eight bytes of an IEEE 754 number.
CREATE FUNCTION read_span(bytes bytea, at integer) RETURNS double precision LANGUAGE plpgsql IMMUTABLE AS $body$
DECLARE
    bits constant bigint := read_word(bytes, at);
    exponent constant integer := (bits >> 52) & 2047;
    fraction constant double precision := (bits & 4503599627370495) / 4503599627370496::double precision;
BEGIN
    IF exponent = 0 THEN RETURN 0; END IF;
    RETURN (1 + fraction) * power(2::double precision, exponent - 1023);
END $body$;

-- A text; where PostgreSQL cannot hold it, with what it cannot hold escaped.
CREATE FUNCTION read_text(bytes bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $body$
BEGIN
    RETURN convert_from(bytes, 'UTF8');
EXCEPTION WHEN OTHERS THEN
    RETURN encode(bytes, 'escape');
END $body$;

-- JSON text; NULL where it is none, or holds the character 0, which PostgreSQL cannot.
CREATE FUNCTION read_json(bytes bytea) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $body$
BEGIN
    RETURN convert_from(bytes, 'UTF8')::jsonb;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $body$;

-- A time of the store as the wall clock of the database shows it. What lies beyond the year 9999 never comes.
CREATE FUNCTION read_time(us bigint, offset_us bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $body$
    SELECT CASE
        WHEN us > 253370764800000000 THEN 'infinity'::timestamptz
        WHEN us < -62135596800000000 THEN '-infinity'::timestamptz
        ELSE '1970-01-01 00:00:00+00'::timestamptz + (us - offset_us) * '1 microsecond'::interval
    END
$body$;

-- The column `rest` of `live`, and each element of `rests` of `claims` and `ended`.
CREATE FUNCTION read_row(
    rest bytea, OUT created_us bigint, OUT attempt bigint, OUT redrives bigint, OUT available_us bigint,
    OUT started_us bigint, OUT worker text, OUT result bytea
) LANGUAGE plpgsql IMMUTABLE AS $body$
DECLARE
    flags integer;
    at integer := 12;
    number bigint;
    count bigint;
BEGIN
    IF get_byte(rest, 0) <> 1 THEN RETURN; END IF;
    created_us := read_word(rest, 1);
    flags := get_byte(rest, 10) | (get_byte(rest, 11) << 8);
    attempt := 0;
    redrives := 0;
    IF flags & 2048 <> 0 THEN
        SELECT c.at, c.number INTO at, attempt FROM read_count(rest, at) c;
        SELECT c.at INTO at FROM read_count(rest, at) c;
        SELECT c.at, c.number INTO at, redrives FROM read_count(rest, at) c;
        SELECT c.at INTO at FROM read_count(rest, at) c;
    END IF;
    IF flags & 1 <> 0 THEN at := at + 8; END IF;
    IF flags & 8 <> 0 THEN
        available_us := read_word(rest, at);
        at := at + 8;
    END IF;
    IF flags & 16 <> 0 THEN
        started_us := read_word(rest, at);
        at := at + 8;
    END IF;
    IF flags & 32 <> 0 THEN at := at + 8; END IF;
    IF flags & 2 <> 0 THEN
        -- The lease: its token, the worker, the last heartbeat, the end, the span, and where there is one the deadline.
        SELECT c.at + 8 INTO at FROM read_count(rest, at) c;
        SELECT c.at, c.number INTO at, number FROM read_count(rest, at) c;
        worker := read_text(substring(rest FROM at + 1 FOR number::integer));
        at := at + number + 24 + CASE WHEN flags & 4 <> 0 THEN 8 ELSE 0 END;
    END IF;
    IF flags & 64 <> 0 THEN at := at + 8; END IF;
    IF flags & 512 <> 0 THEN
        -- What the policy remembers: a time, the failures, and for each rule a count and perhaps a delay.
        SELECT c.at INTO at FROM read_count(rest, at + 8) c;
        SELECT c.at, c.number INTO at, count FROM read_count(rest, at) c;
        FOR rule IN 1 .. count LOOP
            SELECT c.at, c.number INTO at, number FROM read_count(rest, at) c;
            at := at + CASE WHEN number & 1 = 1 THEN 8 ELSE 0 END;
        END LOOP;
    END IF;
    IF flags & 128 <> 0 THEN
        SELECT c.at, c.number INTO at, number FROM read_count(rest, at) c;
        result := substring(rest FROM at + 1 FOR number::integer);
        at := at + number;
    END IF;
    IF flags & 256 <> 0 THEN
        SELECT c.at + 8 INTO at FROM read_count(rest, at) c;
    END IF;
    IF flags & 4096 <> 0 THEN
        SELECT c.at, c.number INTO at, number FROM read_count(rest, at) c;
        worker := read_text(substring(rest FROM at + 1 FOR number::integer));
    END IF;
EXCEPTION WHEN OTHERS THEN
    -- The row is damaged: what was read so far is all there is.
    RETURN;
END $body$;

-- The column `failures` of `live`, and each element of it in `claims` and `ended`: failed attempts, oldest first.
CREATE FUNCTION read_failures(failures bytea) RETURNS TABLE (
    generation bigint, attempt bigint, available_us bigint, started_us bigint, failed_us bigint, worker text,
    error bytea, verdict text, delay_ms double precision, reason text, disposition text
) LANGUAGE plpgsql IMMUTABLE ROWS 3 AS $body$
DECLARE
    reasons constant text[] := ARRAY['max_attempts', 'max_elapsed', 'non_retryable', 'unmatched', 'handler',
        'unrecoverable', 'retries_disabled', 'pruned'];
    at integer := 0;
    number bigint;
    byte integer;
BEGIN
    WHILE at < octet_length(failures) LOOP
        IF get_byte(failures, at) <> 1 THEN RETURN; END IF;
        delay_ms := NULL;
        reason := NULL;
        disposition := NULL;
        SELECT c.at, c.number INTO at, generation FROM read_count(failures, at + 1) c;
        SELECT c.at, c.number INTO at, attempt FROM read_count(failures, at) c;
        available_us := read_word(failures, at);
        started_us := read_word(failures, at + 8);
        failed_us := read_word(failures, at + 16);
        SELECT c.at, c.number INTO at, number FROM read_count(failures, at + 24) c;
        worker := read_text(substring(failures FROM at + 1 FOR number::integer));
        SELECT c.at, c.number INTO at, number FROM read_count(failures, at + number::integer) c;
        error := substring(failures FROM at + 1 FOR number::integer);
        -- The number of the failure and the rule.
        SELECT c.at INTO at FROM read_count(failures, at + number::integer) c;
        SELECT c.at INTO at FROM read_count(failures, at) c;
        byte := get_byte(failures, at);
        at := at + 1;
        IF byte = 0 THEN
            verdict := 'retry';
            delay_ms := read_span(failures, at);
            byte := get_byte(failures, at + 8);
            at := at + 9;
            IF byte = 0 THEN
                -- How the delay was computed: the number of the retry, the raw delay, the cap, the draw, the result.
                SELECT c.at + 8 INTO at FROM read_count(failures, at) c;
                at := at + 1 + 8 * get_byte(failures, at);
                at := at + 1 + 8 * get_byte(failures, at);
                at := at + 8;
            END IF;
        ELSE
            verdict := 'stop';
            byte := get_byte(failures, at);
            at := at + 1;
            reason := reasons[byte + 1];
            IF byte = 0 THEN
                SELECT c.at INTO at FROM read_count(failures, at) c;
            ELSIF byte = 1 THEN
                at := at + 16;
                at := at + 1 + 8 * get_byte(failures, at);
            ELSIF byte = 2 THEN
                at := at + 1;
                IF get_byte(failures, at - 1) = 0 THEN
                    SELECT c.at INTO at FROM read_count(failures, at) c;
                END IF;
            END IF;
            disposition := (ARRAY['discard', 'dead_letter', 'fail'])[get_byte(failures, at) + 1];
            at := at + 1;
        END IF;
        RETURN NEXT;
    END LOOP;
EXCEPTION WHEN OTHERS THEN
    RETURN;
END $body$;

-- The limit of a policy on attempts; NULL where there is none.
CREATE FUNCTION read_max_attempts(policy jsonb) RETURNS bigint LANGUAGE sql IMMUTABLE AS $body$
    SELECT CASE policy ->> 'attempts'
        WHEN 'disabled' THEN 1
        WHEN 'unset' THEN 1
        ELSE greatest((policy #>> '{attempts,at_most}')::bigint, 1)
    END
$body$;

-- The bodies of these call each other, whatever the search path of the reader.
DO $body$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['read_span(bytea, integer)', 'read_row(bytea)', 'read_failures(bytea)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', name, current_schema());
    END LOOP;
END $body$;

-- Every job in words. A column that has to be read from bytes costs some 20 microseconds for each row; columns that
-- are not asked for cost nothing. Conditions on the id go by index; that the row of several jobs has the id is said
-- twice, and that the clock is one row, so that the planner expects few rows and compiles nothing.
CREATE VIEW jobs AS
SELECT
    j.id,
    q.name AS queue,
    j.kind AS type,
    (ARRAY['scheduled', 'pending', 'available', 'active', 'retryable', 'completed', 'cancelled', 'discarded'])
        [j.state + 1] AS state,
    j.dead AS dead_letter,
    j.priority,
    (read_row(j.rest)).attempt,
    read_max_attempts(read_json(coalesce(j.own_policy, p.json))) AS max_attempts,
    (read_row(j.rest)).redrives AS generation,
    read_time((read_row(j.rest)).created_us, c.offset_us) AS created_at,
    read_time(coalesce(j.available_us, (read_row(j.rest)).available_us), c.offset_us) AS available_at,
    CASE WHEN j.state <> 3 THEN read_time(j.due_us, c.offset_us) END AS due_at,
    read_time((read_row(j.rest)).started_us, c.offset_us) AS started_at,
    CASE WHEN j.state = 3 THEN read_time(j.due_us, c.offset_us) END AS lease_until,
    read_time(j.finished_us, c.offset_us) AS finished_at,
    read_time(j.expires_us, c.offset_us) AS expires_at,
    (read_row(j.rest)).worker,
    read_json(j.body) -> 'args' AS args,
    read_json(j.body) -> 'meta' AS meta,
    read_json((read_row(j.rest)).result) AS result,
    (SELECT coalesce(read_json(f.error) ->> 'message', read_text(f.error)) FROM read_failures(j.failures) f
        ORDER BY f.failed_us DESC, f.generation DESC, f.attempt DESC LIMIT 1) AS last_error
FROM (
    SELECT s.id, s.kind, s.body, s.policy, s.own_policy, l.queue, l.priority, l.state, l.available_us, l.due_us,
        l.expires_us, NULL::bigint AS finished_us, false AS dead, l.rest, l.failures
    FROM live l JOIN specs s ON s.id = l.id
    UNION ALL
    SELECT s.id, s.kind, s.body, s.policy, s.own_policy, c.queue, c.priority, 3, NULL, c.due_us, c.expires_us, NULL,
        false, e.rest, e.failures
    FROM claims c CROSS JOIN LATERAL unnest(c.ids, c.rests, c.failures)
        WITH ORDINALITY AS e (id, rest, failures, place)
    JOIN specs s ON s.id = e.id AND s.source = c.source AND c.ids @> ARRAY[s.id]
    WHERE get_bit(c.gone, e.place::integer - 1) = 0
    UNION ALL
    SELECT s.id, s.kind, s.body, s.policy, s.own_policy, o.queue, o.priority, o.state, NULL, NULL, o.expires_us,
        o.finished_us, o.dead, e.rest, e.failures
    FROM ended o CROSS JOIN LATERAL unnest(o.ids, o.rests, o.failures)
        WITH ORDINALITY AS e (id, rest, failures, place)
    JOIN specs s ON s.id = e.id AND s.source = o.source AND o.ids @> ARRAY[s.id]
    WHERE o.gone IS NULL OR e.place <> ALL (o.gone)
) j
LEFT JOIN queue_names q ON q.id = j.queue
LEFT JOIN policies p ON p.id = j.policy
CROSS JOIN (SELECT offset_us FROM clock LIMIT 1) c;

-- Every failed attempt that is stored, and what was decided.
CREATE VIEW attempts AS
SELECT
    j.id AS job,
    f.generation,
    f.attempt,
    read_time(f.available_us, c.offset_us) AS available_at,
    read_time(f.started_us, c.offset_us) AS started_at,
    read_time(f.failed_us, c.offset_us) AS failed_at,
    f.worker,
    coalesce(read_json(f.error) ->> 'type', read_json(f.error) ->> 'code') AS error_type,
    coalesce(read_json(f.error) ->> 'message', read_text(f.error)) AS error_message,
    read_json(f.error) AS error,
    f.verdict,
    f.delay_ms,
    f.reason,
    f.disposition
FROM (
    SELECT id, failures FROM live
    UNION ALL
    SELECT s.id, e.failures
    FROM claims c CROSS JOIN LATERAL unnest(c.ids, c.failures) WITH ORDINALITY AS e (id, failures, place)
    JOIN specs s ON s.id = e.id AND s.source = c.source AND c.ids @> ARRAY[s.id]
    WHERE get_bit(c.gone, e.place::integer - 1) = 0 AND e.failures IS NOT NULL
    UNION ALL
    SELECT s.id, e.failures
    FROM ended o CROSS JOIN LATERAL unnest(o.ids, o.failures) WITH ORDINALITY AS e (id, failures, place)
    JOIN specs s ON s.id = e.id AND s.source = o.source AND o.ids @> ARRAY[s.id]
    WHERE (o.gone IS NULL OR e.place <> ALL (o.gone)) AND e.failures IS NOT NULL
) j
CROSS JOIN LATERAL read_failures(j.failures) f
CROSS JOIN (SELECT offset_us FROM clock LIMIT 1) c;

-- Every queue, and how many jobs it has in each state. Dead letters are among those that are discarded.
CREATE VIEW queues AS
SELECT
    q.name,
    q.paused,
    read_time(q.created_us, c.offset_us) AS created_at,
    coalesce(sum(n.jobs) FILTER (WHERE n.state = 0), 0)::bigint AS scheduled,
    coalesce(sum(n.jobs) FILTER (WHERE n.state = 1), 0)::bigint AS pending,
    coalesce(sum(n.jobs) FILTER (WHERE n.state = 2), 0)::bigint AS available,
    coalesce(sum(n.jobs) FILTER (WHERE n.state = 3), 0)::bigint AS active,
    coalesce(sum(n.jobs) FILTER (WHERE n.state = 4), 0)::bigint AS retryable,
    coalesce(sum(n.jobs) FILTER (WHERE n.state = 5), 0)::bigint AS completed,
    coalesce(sum(n.jobs) FILTER (WHERE n.state = 6), 0)::bigint AS cancelled,
    coalesce(sum(n.jobs) FILTER (WHERE n.state >= 7), 0)::bigint AS discarded,
    coalesce(sum(n.jobs) FILTER (WHERE n.state = 8), 0)::bigint AS dead_letters
FROM queue_names q
CROSS JOIN (SELECT offset_us FROM clock LIMIT 1) c
LEFT JOIN (
    SELECT queue, state, jobs FROM counts WHERE state IS NOT NULL
    UNION ALL
    SELECT queue, was, - jobs FROM counts WHERE was IS NOT NULL
) n ON n.queue = q.id
GROUP BY q.id, q.name, q.paused, q.created_us, c.offset_us;
