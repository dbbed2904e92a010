-- The queue, beside the tables of records. Only `ready` and `leased` change all the time, and both are narrow.

-- Which machines are alike: a target, threads and a compiler, as a name.
CREATE TABLE classes (
  id INT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 200));

-- Who may work for which class.
CREATE TABLE permits (role NAME NOT NULL, class INT NOT NULL REFERENCES classes, PRIMARY KEY (role, class));

-- How much somebody may ask for; the empty name is everybody else.
CREATE TABLE quotas (
  role NAME PRIMARY KEY,
  runs BIGINT NOT NULL,      -- runs in all
  items BIGINT NOT NULL,     -- items of a run
  waiting BIGINT NOT NULL,   -- items of a run that wait or are leased
  leases INT NOT NULL);      -- items that a worker holds
INSERT INTO quotas VALUES ('', 10000, 1000000, 20000, 64);

-- Runs whose items are handed out.
CREATE TABLE fleet_runs (
  run_id BIGINT PRIMARY KEY REFERENCES runs (id),
  owner NAME NOT NULL,
  class INT NOT NULL REFERENCES classes,
  priority SMALLINT NOT NULL,
  weight SMALLINT NOT NULL,
  input_seed BIGINT NOT NULL,
  begun TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  deadline TIMESTAMPTZ NOT NULL,
  cancelled BOOLEAN NOT NULL DEFAULT false,
  -- Over, and nothing of it waits or is leased.
  closed BOOLEAN NOT NULL DEFAULT false,
  -- The program in the words of the run: a schedule names what its own text names, and of a program that several runs tune, records keep the
  -- first text alone.
  def TEXT NOT NULL,
  sizes TEXT NOT NULL,
  text TEXT NOT NULL,
  items BIGINT NOT NULL DEFAULT 0,
  -- When the next item of the run has its turn; see `enqueue`.
  turn BIGINT NOT NULL DEFAULT 0);
CREATE INDEX fleet_runs_owner ON fleet_runs (owner);
CREATE INDEX fleet_runs_open ON fleet_runs (class, priority, turn) WHERE NOT closed;

-- What to try: written once. (run, number) makes enqueueing idempotent.
CREATE TABLE items (
  run_id BIGINT NOT NULL,
  number BIGINT NOT NULL,
  origin BIGINT NOT NULL,
  algorithm BIGINT,
  point BYTEA NOT NULL,
  schedule BYTEA NOT NULL,
  lines BIGINT[] NOT NULL,
  PRIMARY KEY (run_id, number));

-- By whose lease an outcome came: written once, with the trial.
CREATE TABLE done (
  run_id BIGINT NOT NULL,
  number BIGINT NOT NULL,
  lease UUID NOT NULL,
  worker BIGINT,
  attempts SMALLINT NOT NULL,
  stored TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (run_id, number));

CREATE TABLE workers (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  role NAME NOT NULL,
  name TEXT COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
  class INT NOT NULL REFERENCES classes,
  description TEXT NOT NULL CHECK (length(description) <= 4096),
  -- What its probe said; a share of the class's own.
  probe DOUBLE PRECISION,
  draining BOOLEAN NOT NULL DEFAULT false,
  quarantined TEXT,
  -- Items in a row that were lost with it.
  lost INT NOT NULL DEFAULT 0,
  -- What it completed since it was last trusted, and how much of that was wrong or crashed.
  tried BIGINT NOT NULL DEFAULT 0,
  wrong BIGINT NOT NULL DEFAULT 0,
  joined TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  seen TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (role, name))
  WITH (fillfactor = 50);
CREATE INDEX workers_class ON workers (class);

-- Items that wait. The order of the key is the order of leasing.
CREATE TABLE ready (
  class INT NOT NULL,
  priority SMALLINT NOT NULL,
  turn BIGINT NOT NULL,
  run_id BIGINT NOT NULL,
  number BIGINT NOT NULL,
  attempts SMALLINT NOT NULL DEFAULT 0,
  PRIMARY KEY (class, priority, turn, run_id, number))
  WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000000);

CREATE INDEX ready_run ON ready (run_id);

-- Where to begin looking: dead entries before this are not walked, also while a long transaction keeps them.
CREATE TABLE marks (
  class INT NOT NULL,
  priority SMALLINT NOT NULL,
  turn BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (class, priority))
  WITH (fillfactor = 20);

-- Whoever holds its one row sweeps.
CREATE TABLE sweeps (id INT PRIMARY KEY);
INSERT INTO sweeps VALUES (1);

-- Items that somebody holds. No index has the deadline, so that heartbeats move nothing.
CREATE TABLE leased (
  run_id BIGINT NOT NULL,
  number BIGINT NOT NULL,
  class INT NOT NULL,
  priority SMALLINT NOT NULL,
  turn BIGINT NOT NULL,
  attempts SMALLINT NOT NULL,
  lease UUID NOT NULL,
  worker BIGINT NOT NULL,
  deadline TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (run_id, number))
  WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000000);
CREATE INDEX leased_worker ON leased (worker);
