-- Times are microseconds since the Unix epoch by the cluster's time, which goes on evenly: the database's clock and
-- `offset_us` of the table `clock`. Spans are milliseconds.
-- Texts have the character 0, which PostgreSQL cannot store, written as U+0001 '0' (and U+0001 as U+0001 '1').

CREATE TABLE queue_names (
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
    -- Some hundred jobs that came one after the other have the same number here. It leads from the id of a job that is
    -- active or has ended to its row.
    source      bigint NOT NULL,
    -- What redrives of the job replaced, as the programs write it.
    revisions   bytea
);
CREATE UNIQUE INDEX specs_by_key ON specs (sha256(key)) WHERE key IS NOT NULL;

-- The jobs that wait: small rows that come and go. What the database itself looks at has columns; everything else about
-- a job is in `rest` and `failures`, as the programs write it. States are numbered as in the lifecycle: 0 scheduled,
-- 1 pending, 2 available, 3 active, 4 retryable, 5 completed, 6 cancelled, 7 discarded.
CREATE TABLE live (
    id            uuid NOT NULL,
    available_us  bigint,
    -- When it is due.
    due_us        bigint,
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
CREATE INDEX live_due ON live (queue, due_us, id) WHERE due_us IS NOT NULL;
CREATE INDEX live_expires ON live (expires_us, id) WHERE expires_us IS NOT NULL;

-- The jobs that are active, in blocks: one row for the jobs that a worker claimed at once, and that have all in common
-- that the database looks at. The arrays have an element for each of them and never change; `gone` says which jobs have
-- left, and the last one takes the row along. A heartbeat moves jobs to another row.
CREATE TABLE claims (
    source        bigint NOT NULL,
    no            bigint GENERATED ALWAYS AS IDENTITY,
    -- When a run is overdue: at the end of its lease or its deadline, whichever is first.
    due_us        bigint NOT NULL,
    -- The last heartbeat, and how long each of them extends the lease.
    alive_us      bigint NOT NULL,
    lease_us      bigint NOT NULL,
    expires_us    bigint,
    queue         integer NOT NULL,
    priority      integer NOT NULL,
    -- Each change counts it up.
    revision      integer NOT NULL DEFAULT 0,
    -- The version of its rows.
    version       smallint NOT NULL,
    -- A bit for each job, the lowest of each byte first: whether it has left.
    gone          bytea NOT NULL,
    ids           uuid[] NOT NULL,
    rests         bytea[] NOT NULL,
    -- Absent where no job has any.
    failures      bytea[],
    PRIMARY KEY (source, no)
) WITH (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
-- Large ones go out of the row as they are, so that a change of `gone` does not write them again.
ALTER TABLE claims ALTER COLUMN rests SET STORAGE EXTERNAL, ALTER COLUMN failures SET STORAGE EXTERNAL,
    ALTER COLUMN ids SET STORAGE EXTERNAL;
CREATE INDEX claims_due ON claims (due_us);

-- The jobs that have ended: written once and read seldom. One row has jobs that ended at once and that have all in
-- common that the database looks at. The arrays have an element for each of them and never change.
CREATE TABLE ended (
    source        bigint NOT NULL,
    finished_us   bigint NOT NULL,
    expires_us    bigint,
    queue         integer NOT NULL,
    priority      integer NOT NULL,
    -- The row and the failures of the largest job, in bytes, so that lists need not look at the arrays.
    bytes         integer NOT NULL,
    state         smallint NOT NULL,
    -- How many have not left it. The last one takes the row along.
    jobs          smallint NOT NULL,
    dead          boolean NOT NULL,
    ids           uuid[] NOT NULL,
    -- The places of those that have left, from 1; absent where none has.
    gone          smallint[],
    rests         bytea[] NOT NULL,
    -- Absent where no job has any.
    failures      bytea[]
) WITH (autovacuum_vacuum_scale_factor = 0.05);
-- Ids cannot be compressed. What else is stored of jobs that ended at once is much alike.
ALTER TABLE ended ALTER COLUMN ids SET STORAGE EXTERNAL;
CREATE INDEX ended_source ON ended (source);
CREATE INDEX ended_finished ON ended (dead, finished_us);
CREATE INDEX ended_dead ON ended (queue, finished_us) WHERE dead;

-- How many jobs of a queue went from one state to another: each transaction adds rows, and their sum says how many jobs
-- there are. New jobs come from no state, and jobs that are removed go to none. State 8 is that of dead letters, which
-- are discarded. Now and then a node replaces rows by their sum.
CREATE TABLE counts (
    queue  integer NOT NULL,
    was    smallint,
    state  smallint,
    jobs   bigint NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);

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
