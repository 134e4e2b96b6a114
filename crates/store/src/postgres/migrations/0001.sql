-- Times are microseconds since the Unix epoch by the cluster's time, which goes on evenly: the database's clock and
-- `offset_us` of the table `clock`. Spans are milliseconds.
-- Texts have the character 0, which PostgreSQL cannot store, written as U+0001 '0' (and U+0001 as U+0001 '1').

CREATE TABLE queues (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text COLLATE "C" NOT NULL UNIQUE,
    paused     boolean NOT NULL,
    created_us bigint NOT NULL
);

CREATE TABLE policies (
    id   integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    json bytea NOT NULL
);
CREATE UNIQUE INDEX policies_by_text ON policies (sha256(json));

-- The specs of jobs. Written once, and stored for as long as the job.
CREATE TABLE specs (
    id          uuid PRIMARY KEY,
    kind        text COLLATE "C" NOT NULL,
    body        bytea NOT NULL,
    policy      integer,
    own_policy  bytea,
    timeout_ms  double precision,
    lease_ms    double precision,
    key         bytea,
    -- What redrives of the job replaced, as the programs write it.
    revisions   bytea
);
CREATE UNIQUE INDEX specs_by_key ON specs (sha256(key)) WHERE key IS NOT NULL;

-- The jobs that can still run: small rows that change often. What the database itself looks at has columns;
-- everything else about a job is in `rest` and `failures`, as the programs write it. Each write counts
-- `revision` up. States are numbered as in the lifecycle: 0 scheduled, 1 pending, 2 available, 3 active,
-- 4 retryable, 5 completed, 6 cancelled, 7 discarded.
CREATE TABLE live (
    id            uuid NOT NULL,
    revision      bigint NOT NULL,
    available_us  bigint,
    -- When a waiting job is due, or a run overdue: at the end of its lease or its deadline, whichever is first.
    due_us        bigint,
    -- Of a run: its last heartbeat, and how long each of them extends the lease.
    alive_us      bigint,
    lease_us      bigint,
    expires_us    bigint,
    queue         integer NOT NULL,
    priority      integer NOT NULL,
    state         smallint NOT NULL,
    rest          bytea NOT NULL,
    failures      bytea
) WITH (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);
-- Not unique, because `specs` is: to check that a second time at every write costs more than the entry itself.
CREATE INDEX live_id ON live (id);
CREATE INDEX live_ready ON live (queue, priority DESC, available_us, id) WHERE state = 2;
-- By queue, so that a queue whose jobs are held back is passed over without reading them.
CREATE INDEX live_due ON live (queue, due_us, id) WHERE state <> 3 AND due_us IS NOT NULL;
CREATE INDEX live_overdue ON live (due_us, id) WHERE state = 3;
CREATE INDEX live_expires ON live (expires_us, id) WHERE expires_us IS NOT NULL;

-- The jobs that have ended: written once and read seldom.
CREATE TABLE ended (
    id            uuid NOT NULL,
    revision      bigint NOT NULL,
    finished_us   bigint NOT NULL,
    expires_us    bigint,
    queue         integer NOT NULL,
    priority      integer NOT NULL,
    state         smallint NOT NULL,
    dead          boolean NOT NULL,
    rest          bytea NOT NULL,
    failures      bytea
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX ended_id ON ended (id);
CREATE INDEX ended_finished ON ended (dead, finished_us, id);
CREATE INDEX ended_dead ON ended (queue, finished_us, id) WHERE dead;

-- The one row that makes the database's clock the time of the cluster. Where that clock is set, a node takes
-- the step out of the time here.
CREATE TABLE clock (
    single    boolean PRIMARY KEY DEFAULT true CHECK (single),
    -- What is added to the database's clock, in microseconds.
    offset_us bigint NOT NULL,
    -- How often that was changed.
    revision  bigint NOT NULL,
    -- The time when a node last wrote it here.
    latest_us bigint NOT NULL
);
INSERT INTO clock (offset_us, revision, latest_us) VALUES (0, 0, 0);
