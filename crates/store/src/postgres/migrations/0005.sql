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
