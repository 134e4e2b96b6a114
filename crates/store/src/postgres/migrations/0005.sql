-- Lists of runs: those of a program that go on, or that have ended, the newest first; and those that have keys, by key.
-- Of a long key only the beginning fits into an index.
CREATE INDEX run_states_by_program ON run_states (program, (ended_us IS NULL), id);
CREATE INDEX run_states_in_order_of_keys ON run_states (substring(key FROM 1 FOR 600)) WHERE key IS NOT NULL;

-- Limits on runs.

-- Whether claims of a queue have to look at limits: some are set for it, or a job with limits of its own was enqueued.
ALTER TABLE queue_names ADD COLUMN limited boolean NOT NULL DEFAULT false;

-- The limits of a job besides that of its queue, as the programs write them.
ALTER TABLE specs ADD COLUMN limits bytea;
-- The same, followed by the type of the job where that is limited: jobs with the same value are limited alike.
ALTER TABLE live ADD COLUMN lane bytea;
ALTER TABLE claims ADD COLUMN lane bytea;

-- Jobs without limits of their own as before; the others by lane, so that a lane is passed over without reading its jobs.
DROP INDEX live_ready;
CREATE INDEX live_ready ON live (queue, priority DESC, available_us, id) WHERE state = 2 AND lane IS NULL;
CREATE INDEX live_lanes ON live (queue, lane, priority DESC, available_us, id) WHERE state = 2 AND lane IS NOT NULL;
CREATE INDEX claims_lane ON claims (lane) WHERE lane IS NOT NULL;

-- What is stored of a group of jobs besides the jobs: what is set for it, and when its runs started.
CREATE TABLE limit_groups (
    -- `key:`, `queue:` or `type:`, and a name.
    name    text COLLATE "C" PRIMARY KEY,
    body    bytea NOT NULL,
    -- When nothing of it matters any more; absent where something is set for good.
    over_us bigint
) WITH (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
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
