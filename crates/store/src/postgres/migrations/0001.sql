-- Times are microseconds since the Unix epoch by the database's clock; spans are milliseconds.
-- Texts have the character 0, which PostgreSQL cannot keep, written as U+0001 '0' (and U+0001 as U+0001 '1').

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

-- What is said about a job. Written once, and there for as long as the job is kept.
CREATE TABLE specs (
    id          uuid PRIMARY KEY,
    kind        text COLLATE "C" NOT NULL,
    body        bytea NOT NULL,
    policy      integer,
    own_policy  bytea,
    timeout_ms  double precision,
    lease_ms    double precision,
    key         bytea
);
CREATE UNIQUE INDEX specs_by_key ON specs (sha256(key)) WHERE key IS NOT NULL;

-- The jobs that can still run: small rows that change often. States are numbered as in the lifecycle:
-- 0 scheduled, 1 pending, 2 available, 3 active, 4 retryable, 5 completed, 6 cancelled, 7 discarded.
CREATE TABLE live (
    id            uuid NOT NULL,
    created_us    bigint NOT NULL,
    available_us  bigint,
    started_us    bigint,
    finished_us   bigint,
    due_us        bigint,
    expires_us    bigint,
    alive_us      bigint,
    until_us      bigint,
    deadline_us   bigint,
    span_ms       double precision,
    nonce         bigint,
    last_delay_ms double precision,
    queue         integer NOT NULL,
    priority      integer NOT NULL,
    attempt       integer NOT NULL,
    leases        integer NOT NULL,
    revivals      integer NOT NULL,
    releases      integer NOT NULL,
    failed        integer NOT NULL,
    state         smallint NOT NULL,
    dead          boolean NOT NULL,
    worker        text,
    history       text,
    result        bytea
) WITH (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);
-- The jobs that have ended: the same columns, written once and read seldom.
CREATE TABLE ended (LIKE live);

ALTER TABLE live ADD PRIMARY KEY (id);
CREATE INDEX live_ready ON live (queue, priority DESC, available_us, id) WHERE state = 2;
CREATE INDEX live_due ON live (due_us, id) WHERE due_us IS NOT NULL;
CREATE INDEX live_expires ON live (expires_us, id) WHERE expires_us IS NOT NULL AND state <> 3;
CREATE INDEX live_lease_end ON live ((LEAST(until_us, deadline_us)), id) WHERE state = 3;

ALTER TABLE ended ADD PRIMARY KEY (id);
CREATE INDEX ended_finished ON ended (finished_us, id) WHERE NOT dead;
CREATE INDEX ended_dead ON ended (finished_us, id) WHERE dead;

CREATE TABLE failures (
    job     uuid NOT NULL,
    number  integer NOT NULL,
    life    integer NOT NULL,
    attempt integer NOT NULL,
    at_us   bigint NOT NULL,
    error   bytea NOT NULL,
    verdict text NOT NULL,
    PRIMARY KEY (job, number)
);
