-- Lists of runs: those of a program that go on, or that have ended, the newest first; and those that have keys, by key.
-- Of a long key only the beginning fits into an index.
CREATE INDEX run_states_by_program ON run_states (program, (ended_us IS NULL), id);
CREATE INDEX run_states_in_order_of_keys ON run_states (substring(key FROM 1 FOR 600)) WHERE key IS NOT NULL;

-- Timers in the order in which runs are called: many schedules are due at the same moment.
DROP INDEX run_states_timer;
CREATE INDEX run_states_timer ON run_states (timer_us, id) WHERE timer_us IS NOT NULL;

-- Limits on runs.

-- Whether claims of a queue have to look at limits: some are set for it, or a job with limits of its own was enqueued.
ALTER TABLE queue_names ADD COLUMN limited boolean NOT NULL DEFAULT false;

-- The limits of a job besides that of its queue, as the programs write them.
ALTER TABLE specs ADD COLUMN limits bytea;
-- The same, followed by the type of the job where that is limited: jobs with the same value are limited alike.
ALTER TABLE live ADD COLUMN lane bytea;
ALTER TABLE claims ADD COLUMN lane bytea;

-- Jobs without limits of their own as before; the others by lane, so that a lane is passed over without reading its
-- jobs.
DROP INDEX live_ready;
CREATE INDEX live_ready ON live (queue, priority DESC, available_us, id) WHERE state = 2 AND lane IS NULL;
CREATE INDEX live_lanes ON live (queue, lane, priority DESC, available_us, id) WHERE state = 2 AND lane IS NOT NULL;
CREATE INDEX claims_lane ON claims (lane) WHERE lane IS NOT NULL;

-- What is stored of a group of jobs besides the jobs: what is set for it, and when its runs started.
CREATE TABLE limit_groups (
    -- `key:`, `queue:` or `type:`, and a name.
    name    text COLLATE "C" PRIMARY KEY,
    body    bytea NOT NULL,
    -- Whether something is set for it.
    is_set  boolean NOT NULL,
    -- When nothing of it matters any more; absent where something is set for good.
    over_us bigint
) WITH (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX limit_groups_set ON limit_groups (name) WHERE is_set;
CREATE INDEX limit_groups_over ON limit_groups (over_us) WHERE over_us IS NOT NULL;

-- Unique jobs.

-- The jobs that must be unique, by key. What a key stands for is locked by advisory locks, which `unique.rs` describes,
-- and all that is written here is written under them.
CREATE TABLE unique_jobs (
    id         uuid PRIMARY KEY,
    key        bytea NOT NULL,
    created_us bigint NOT NULL,
    -- The state in which it ended, numbered as in `live`, once a node has seen that when it looked for the key.
    over       smallint
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX unique_jobs_key ON unique_jobs (key, over, created_us, id);

-- Runs that listen to events: nodes read which these are, and what each of them wants.
ALTER TABLE run_states ADD COLUMN listens boolean NOT NULL DEFAULT false;
CREATE INDEX run_states_that_listen ON run_states (id) WHERE listens;

-- Retries in blocks: jobs that fail together and are due at the same time wait together, in one row of `claims`. The
-- column `state` says what the jobs of a row are: 3 active, or 4 retryable, and `due_us` when they are due then.
ALTER TABLE claims
    ADD COLUMN state smallint NOT NULL DEFAULT 3,
    -- How many jobs have not left a row of jobs that wait.
    ADD COLUMN jobs smallint NOT NULL DEFAULT 0;
DROP INDEX claims_due;
CREATE INDEX claims_due ON claims (due_us) WHERE state = 3;
-- By queue, so that a queue whose jobs are held back is passed over without reading them.
CREATE INDEX claims_retry ON claims (queue, due_us) WHERE state = 4;
CREATE INDEX claims_expires ON claims (expires_us) WHERE state = 4 AND expires_us IS NOT NULL;

CREATE OR REPLACE VIEW jobs AS
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
    SELECT s.id, s.kind, s.body, s.policy, s.own_policy, c.queue, c.priority, c.state, NULL, c.due_us, c.expires_us,
        NULL, false, e.rest, e.failures
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
