-- Lists of runs: those of a program that go on, or that have ended, the newest first; and those that have keys, by key.
-- Of a long key only the beginning fits into an index.
CREATE INDEX run_states_by_program ON run_states (program, (ended_us IS NULL), id);
CREATE INDEX run_states_in_order_of_keys ON run_states (substring(key FROM 1 FOR 600)) WHERE key IS NOT NULL;

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
