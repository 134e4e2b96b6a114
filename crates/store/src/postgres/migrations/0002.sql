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

-- Enqueues a job in the transaction of the caller: it exists if and only if that transaction is committed.
-- Returns the job's id; with an idempotency key that a job has already, that job's.
-- Checks shape and size. Everything else is up to the node that makes a job of the entry, or sets it aside.
CREATE FUNCTION enqueue(
    kind text, args jsonb DEFAULT '[]', queue text DEFAULT NULL, options jsonb DEFAULT '{}', meta jsonb DEFAULT '{}'
) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER AS $body$
DECLARE
    now_us constant bigint := floor(extract(epoch FROM clock_timestamp()) * 1000000);
    -- A UUID of version 7, with the microseconds in the twelve bits after the version, so that ids sort as calls do.
    fraction constant integer := (now_us % 1000) * 4096 / 1000;
    bytes bytea := overlay(uuid_send(gen_random_uuid()) PLACING substring(int8send(now_us / 1000) FROM 3) FROM 1 FOR 6);
    most_bytes constant integer := 1048576;
    queue_in_options constant text := options ->> 'queue';
    job_id uuid;
    known uuid;
    document jsonb;
    problems text;
BEGIN
    IF queue IS NOT NULL AND coalesce(jsonb_typeof(options), 'object') = 'object' THEN
        options := coalesce(options, '{}') || jsonb_build_object('queue', queue);
    END IF;
    bytes := set_byte(set_byte(bytes, 6, 112 | (fraction >> 8)), 7, fraction & 255);
    job_id := encode(bytes, 'hex')::uuid;
    document := jsonb_strip_nulls(jsonb_build_object('id', job_id, 'type', kind))
        || jsonb_build_object('args', args, 'options', coalesce(options, '{}'), 'meta', coalesce(meta, '{}'));
    SELECT string_agg(format('%s: found %s; allowed is %s', path, value, allowed), '; ') INTO problems FROM (
        SELECT member, coalesce(left((document -> member)::text, 60), 'nothing'), text FROM (VALUES
            ('type', 'string', 'the type of the job, such as ''email.send'''),
            ('args', 'array', 'an array of arguments, such as ''[4711]'', which may be empty'),
            ('options', 'object', 'an object, such as ''{"priority": 5}'''),
            ('meta', 'object', 'an object, such as ''{"trace": "7f3a"}''')
        ) AS shape (member, form, text) WHERE jsonb_typeof(document -> member) IS DISTINCT FROM form
        UNION ALL
        SELECT 'queue', format('"%s", and "%s" in options', queue, queue_in_options), 'one of the two'
        WHERE queue <> queue_in_options
        UNION ALL
        SELECT 'the job', octet_length(document::text) || ' bytes',
            most_bytes || ' bytes; store large data elsewhere and pass a reference to it'
        WHERE octet_length(document::text) > most_bytes
    ) AS wrong (path, value, allowed);
    IF problems IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'the job is not valid: ' || problems,
            HINT = 'Nothing was enqueued. Correct what is listed, and call the function again.';
    END IF;
    IF jsonb_typeof(options -> 'idempotency_key') = 'string' THEN
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
REVOKE ALL ON FUNCTION enqueue(text, jsonb, text, jsonb, jsonb) FROM PUBLIC;
