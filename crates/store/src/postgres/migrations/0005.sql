-- Lists of runs: those of a program that go on, or that have ended, the newest first; and those that have keys, by key.
-- Of a long key only the beginning fits into an index.
CREATE INDEX run_states_by_program ON run_states (program, (ended_us IS NULL), id);
CREATE INDEX run_states_in_order_of_keys ON run_states (substring(key FROM 1 FOR 600)) WHERE key IS NOT NULL;

-- Timers in the order in which runs are called: many schedules are due at the same moment.
DROP INDEX run_states_timer;
CREATE INDEX run_states_timer ON run_states (timer_us, id) WHERE timer_us IS NOT NULL;
