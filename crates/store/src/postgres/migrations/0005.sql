-- Lists of runs: those of a program that go on, or that have ended, the newest first; and those that have keys, by key.
-- Of a long key only the beginning fits into an index.
CREATE INDEX run_states_by_program ON run_states (program, (ended_us IS NULL), id);
CREATE INDEX run_states_in_order_of_keys ON run_states (substring(key FROM 1 FOR 600)) WHERE key IS NOT NULL;

-- Runs that listen to events: nodes read which these are, and what each of them wants.
ALTER TABLE run_states ADD COLUMN listens boolean NOT NULL DEFAULT false;
CREATE INDEX run_states_that_listen ON run_states (id) WHERE listens;
