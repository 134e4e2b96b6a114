-- Jobs that applications enqueue in their own transactions. Nodes make jobs of them, or set them aside.
CREATE TABLE inbox (
    id         uuid PRIMARY KEY,
    -- When it was enqueued, in microseconds; a time from now in the document counts from here.
    at_us      bigint NOT NULL,
    -- The job as the HTTP API takes it.
    document   jsonb NOT NULL,
    -- Where no job can be made of it: since when that is known, and why.
    refused_us bigint,
    reason     text
) WITH (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX inbox_waiting ON inbox (id) WHERE refused_us IS NULL;

-- Whether a value has a form. NULL where the form is not known.
CREATE FUNCTION inbox_fits(value jsonb, form text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $body$
DECLARE
    kind constant text := jsonb_typeof(value);
    word constant text := value #>> '{}';
    span constant text := 'P(?=[0-9T])([0-9]+Y)?([0-9]+M)?([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+([.][0-9]+)?S)?)?';
    stamp constant text := '[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})';
BEGIN
    IF form = 'object' THEN RETURN kind = 'object';
    ELSIF form = 'flag' THEN RETURN kind = 'boolean';
    ELSIF form IN ('priority', 'count', 'milliseconds', 'lease_ms', 'seconds', 'coefficient') THEN
        IF kind <> 'number' THEN RETURN false; END IF;
        IF form = 'seconds' THEN RETURN word::numeric > 0 AND word::numeric <= 31536000000; END IF;
        IF form = 'coefficient' THEN RETURN word::numeric >= 1; END IF;
        RETURN word::numeric = trunc(word::numeric) AND word::numeric BETWEEN
            CASE form WHEN 'priority' THEN -100 WHEN 'count' THEN 0 WHEN 'lease_ms' THEN 100 ELSE 1 END AND
            CASE form WHEN 'priority' THEN 100 WHEN 'count' THEN 4294967295 ELSE 31536000000000 END;
    ELSIF form = 'texts' THEN
        IF kind <> 'array' THEN RETURN false; END IF;
        RETURN NOT EXISTS (SELECT FROM jsonb_array_elements(value) AS e (item) WHERE jsonb_typeof(e.item) <> 'string');
    ELSIF form = 'lease' AND kind = 'number' THEN RETURN word::numeric BETWEEN 0.1 AND 31536000000;
    ELSIF kind <> 'string' THEN RETURN false;
    ELSIF form IN ('span', 'lease') THEN RETURN word ~ ('^' || span || '$');
    ELSIF form = 'moment' THEN RETURN word ~ ('^(' || stamp || '|[+]' || span || ')$');
    ELSIF form = 'key' THEN RETURN octet_length(word) BETWEEN 1 AND 255;
    ELSIF form = 'type' THEN
        RETURN word COLLATE "C" ~ '^[a-z][a-z0-9_-]*([.][a-z][a-z0-9_-]*)*$' AND octet_length(word) <= 255;
    ELSIF form = 'queue' THEN RETURN word COLLATE "C" ~ '^[a-z0-9][a-z0-9.-]*$' AND octet_length(word) <= 255;
    ELSIF form = 'exhaustion' THEN RETURN word IN ('discard', 'dead_letter');
    ELSIF form = 'strategy' THEN RETURN word IN ('none', 'constant', 'linear', 'exponential', 'polynomial');
    END IF;
    RETURN NULL;
END $body$;

-- Every problem of a job that can be seen here, in a line; NULL where there is none. Nodes look closer.
CREATE FUNCTION inbox_problems(document jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $body$
    WITH options AS (
        SELECT CASE WHEN jsonb_typeof(document -> 'options') = 'object' THEN document -> 'options' ELSE '{}' END AS o
    ), policy AS (
        SELECT coalesce(o -> 'retry', o -> 'retry_policy') AS p, CASE WHEN o ? 'retry' THEN 'retry' ELSE 'retry_policy' END AS name
        FROM options
    ), own AS (
        -- A policy in another dialect than OJS is left to the nodes.
        SELECT p, name FROM policy WHERE jsonb_typeof(p) = 'object' AND NOT p ? 'dialect'
    ), found (path, value, allowed, fits) AS (
        SELECT path, value, allowed, inbox_fits(value, form) FROM (VALUES
            ('type', document -> 'type', 'type',
             'words of lower-case letters, digits, _ and -, with a letter first, joined by dots, such as "email.send"; at most 255 bytes'),
            ('options', document -> 'options', 'object', 'an object'),
            ('meta', document -> 'meta', 'object', 'an object')
        ) AS t (path, value, form, allowed)
        UNION ALL
        SELECT 'args', document -> 'args', 'an array of arguments, which may be empty',
            coalesce(jsonb_typeof(document -> 'args') = 'array', false)
        UNION ALL
        SELECT 'args', to_jsonb(octet_length((document -> 'args')::text) || ' bytes'),
            '524288 bytes; keep large data elsewhere and hand over its name', octet_length((document -> 'args')::text) <= 524288
        UNION ALL
        SELECT 'the job', to_jsonb(octet_length(document::text) || ' bytes'),
            '1048576 bytes; keep large data elsewhere and hand over its name', octet_length(document::text) <= 1048576
        UNION ALL
        SELECT 'options.' || name, o -> name, allowed, inbox_fits(o -> name, form) FROM options, (VALUES
            ('queue', 'queue', 'lower-case letters, digits, dots and hyphens, with a letter or digit first; at most 255 bytes'),
            ('priority', 'priority', 'a whole number from -100 to 100'),
            ('timeout_ms', 'milliseconds', 'a whole number of milliseconds above zero'),
            ('timeout', 'seconds', 'a number of seconds above zero'),
            ('visibility_timeout_ms', 'lease_ms', 'a whole number of milliseconds, at least 100'),
            ('visibility_timeout', 'lease', 'a duration such as "PT30S", or a number of seconds, at least 0.1 s'),
            ('scheduled_at', 'moment', 'a timestamp such as "2026-02-13T10:00:00Z", or a time from now such as "+PT2S"'),
            ('delay_until', 'moment', 'a timestamp such as "2026-02-13T10:00:00Z", or a time from now such as "+PT2S"'),
            ('expires_at', 'moment', 'a timestamp such as "2026-02-13T10:00:00Z", or a time from now such as "+PT2S"'),
            ('retry', 'object', 'a retry policy, an object'),
            ('retry_policy', 'object', 'a retry policy, an object'),
            ('tags', 'texts', 'an array of strings'),
            ('pending', 'flag', 'true or false'),
            ('idempotency_key', 'key', 'a string of 1 to 255 bytes')
        ) AS r (name, form, allowed) WHERE o ? r.name
        UNION ALL
        SELECT 'options.max_attempts', o -> 'max_attempts', '"retry": {"max_attempts": …}', false
        FROM options WHERE o ? 'max_attempts'
        UNION ALL
        SELECT 'options.' || own.name || '.' || r.name, p -> r.name, r.allowed, inbox_fits(p -> r.name, r.form) FROM own, (VALUES
            ('max_attempts', 'count', 'a whole number of at least 0'),
            ('initial_interval', 'span', 'a duration such as "PT1S"'),
            ('max_interval', 'span', 'a duration such as "PT5M"'),
            ('backoff_coefficient', 'coefficient', 'a number of at least 1'),
            ('jitter', 'flag', 'true or false'),
            ('non_retryable_errors', 'texts', 'an array of strings'),
            ('on_exhaustion', 'exhaustion', '"discard" or "dead_letter"'),
            ('backoff_strategy', 'strategy', '"none", "constant", "linear", "exponential" or "polynomial"'),
            ('backoff_type', 'strategy', '"none", "constant", "linear", "exponential" or "polynomial"')
        ) AS r (name, form, allowed) WHERE p ? r.name
        UNION ALL
        SELECT 'options.' || own.name, to_jsonb('the field ' || key), 'the fields of a retry policy of OJS', false
        FROM own, jsonb_object_keys(p) AS k (key) WHERE key NOT IN ('max_attempts', 'initial_interval', 'max_interval',
            'backoff_coefficient', 'jitter', 'non_retryable_errors', 'on_exhaustion', 'backoff_strategy', 'backoff_type')
    )
    SELECT string_agg(format('%s: found %s; allowed is %s', path, coalesce(left(value::text, 60), 'nothing'), allowed), E'\n')
    FROM found WHERE NOT coalesce(fits, false)
$body$;

-- Enqueues a job in the transaction of the caller: it exists if and only if that transaction is committed.
-- Returns the job's id; with an idempotency key that a job has already, that job's.
CREATE FUNCTION enqueue(
    kind text, args jsonb DEFAULT '[]', queue text DEFAULT NULL, options jsonb DEFAULT '{}', meta jsonb DEFAULT '{}'
) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER AS $body$
DECLARE
    now_us constant bigint := floor(extract(epoch FROM clock_timestamp()) * 1000000);
    -- A UUID of version 7, with the microseconds in the twelve bits after the version, so that ids sort as calls do.
    fraction constant integer := (now_us % 1000) * 4096 / 1000;
    bytes bytea := overlay(uuid_send(gen_random_uuid()) PLACING substring(int8send(now_us / 1000) FROM 3) FROM 1 FOR 6);
    job_id uuid;
    known uuid;
    document jsonb;
    problems text;
BEGIN
    IF queue IS NOT NULL AND options ->> 'queue' <> queue THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('the job is not valid: queue: found "%s", and "%s" in options; allowed is one of the two',
                queue, options ->> 'queue'),
            HINT = 'Nothing was enqueued. Leave one of them out, and call the function again.';
    END IF;
    IF queue IS NOT NULL AND coalesce(jsonb_typeof(options), 'object') = 'object' THEN
        options := coalesce(options, '{}') || jsonb_build_object('queue', queue);
    END IF;
    bytes := set_byte(set_byte(bytes, 6, 112 | (fraction >> 8)), 7, fraction & 255);
    job_id := encode(bytes, 'hex')::uuid;
    document := jsonb_strip_nulls(jsonb_build_object('id', job_id, 'type', kind))
        || jsonb_build_object('args', args, 'options', coalesce(options, '{}'), 'meta', coalesce(meta, '{}'));
    problems := inbox_problems(document);
    IF problems IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'the job is not valid: ' || replace(problems, E'\n', '; '),
            HINT = 'Nothing was enqueued. Correct what is listed, and call the function again.';
    END IF;
    IF options ->> 'expires_at' NOT LIKE '+%' AND (options ->> 'expires_at')::timestamptz <= clock_timestamp() THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('the job is not valid: options.expires_at: found "%s", and it is %s now; allowed is a time to come',
                options ->> 'expires_at', clock_timestamp()),
            HINT = 'Nothing was enqueued. Correct what is listed, and call the function again.';
    END IF;
    IF options ? 'idempotency_key' THEN
        SELECT s.id INTO known FROM specs s
            WHERE s.key IS NOT NULL AND sha256(s.key) = sha256(convert_to(options ->> 'idempotency_key', 'UTF8'));
        IF known IS NOT NULL THEN
            RETURN known;
        END IF;
    END IF;
    INSERT INTO inbox (id, at_us, document) VALUES (job_id, now_us, document);
    PERFORM pg_notify('redrive_' || current_schema(), '@');
    RETURN job_id;
END $body$;

-- A role that may call it needs no other privilege. It looks for tables in this schema only, never among the
-- temporary ones of its caller.
DO $body$
BEGIN
    EXECUTE format('ALTER FUNCTION enqueue(text, jsonb, text, jsonb, jsonb) SET search_path = %I, pg_temp', current_schema());
END $body$;
REVOKE ALL ON FUNCTION enqueue(text, jsonb, text, jsonb, jsonb), inbox_problems(jsonb), inbox_fits(jsonb, text)
    FROM PUBLIC;
