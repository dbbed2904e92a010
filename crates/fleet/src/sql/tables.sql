-- The tables of the queue, beside those of records. Only `ready` and `leased` change often, and
-- both are narrow.

-- Classes of equal machines: a target, threads and a compiler, as a name.
CREATE TABLE classes (
  id INT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 200),
  -- Outcomes by kind that belong to no worker of the class: given up, or of workers that have moved
  -- to another class.
  kinds BIGINT[] NOT NULL DEFAULT '{0,0,0,0,0,0,0}');

-- Roles permitted to work for a class.
CREATE TABLE permits (role NAME NOT NULL, class INT NOT NULL REFERENCES classes, PRIMARY KEY (role, class));

-- Quotas by role; the empty name is the default.
CREATE TABLE quotas (
  role NAME PRIMARY KEY,
  runs BIGINT NOT NULL,      -- runs in all
  items BIGINT NOT NULL,     -- items of a run
  waiting BIGINT NOT NULL,   -- items of a run that wait or are leased
  leases INT NOT NULL);      -- items that a worker holds
INSERT INTO quotas VALUES ('', 10000, 1000000, 20000, 64);

-- Runs of the fleet.
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
  -- Over, without waiting or leased items.
  closed BOOLEAN NOT NULL DEFAULT false,
  -- The program in the run's own text, whose names its schedules use: of a program that several
  -- runs tune, records keep only the first text.
  def TEXT NOT NULL,
  sizes TEXT NOT NULL,
  text TEXT NOT NULL,
  items BIGINT NOT NULL DEFAULT 0,
  -- Items dropped because the run ended first.
  dropped BIGINT NOT NULL DEFAULT 0,
  -- The driver, which alone may add items: a random token, and the time until which it counts as
  -- alive.
  driver UUID,
  held TIMESTAMPTZ NOT NULL DEFAULT '-infinity',
  -- The driver's best time, against which workers cut candidates short.
  best DOUBLE PRECISION,
  -- The roofline's lower bound on the reference machine: the first that tried the program.
  roof DOUBLE PRECISION,
  gflops DOUBLE PRECISION,
  gbps DOUBLE PRECISION,
  -- The turn of the run's next item; see `enqueue`.
  turn BIGINT NOT NULL DEFAULT 0);
CREATE INDEX fleet_runs_owner ON fleet_runs (owner);
CREATE INDEX fleet_runs_open ON fleet_runs (class, priority, turn) WHERE NOT closed;

-- Items to try: written once. (run, number) makes enqueueing idempotent.
CREATE TABLE items (
  run_id BIGINT NOT NULL,
  number BIGINT NOT NULL,
  origin BIGINT NOT NULL,
  algorithm BIGINT,
  point BYTEA NOT NULL,
  schedule BYTEA NOT NULL,
  lines BIGINT[] NOT NULL,
  -- Finals: several schedules timed in turns, rather than one.
  finals BOOLEAN NOT NULL DEFAULT false,
  PRIMARY KEY (run_id, number));

-- Results of finals, which are not trials: they rank several schedules.
CREATE TABLE finals (
  run_id BIGINT NOT NULL,
  number BIGINT NOT NULL,
  result TEXT NOT NULL,
  PRIMARY KEY (run_id, number));

-- The lease of each outcome: written once, with the trial.
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
  -- Its last probe, relative to its class.
  probe DOUBLE PRECISION,
  -- Deviating probes in a row: a machine may be busy for a moment.
  odd INT NOT NULL DEFAULT 0,
  draining BOOLEAN NOT NULL DEFAULT false,
  quarantined TEXT,
  -- Items in a row that it lost.
  lost INT NOT NULL DEFAULT 0,
  -- Items completed since it was last released, and how many were wrong or crashed.
  tried BIGINT NOT NULL DEFAULT 0,
  wrong BIGINT NOT NULL DEFAULT 0,
  -- All items completed for its class, by kind of outcome.
  kinds BIGINT[] NOT NULL DEFAULT '{0,0,0,0,0,0,0}',
  joined TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  seen TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (role, name))
  WITH (fillfactor = 50);
CREATE INDEX workers_class ON workers (class);

-- The roofline's lower bound of a run on a worker's machine, measured when it prepared the run.
CREATE TABLE benches (
  run_id BIGINT NOT NULL,
  worker BIGINT NOT NULL,
  roof DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (run_id, worker));

-- Waiting items. The key has the order of leasing.
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

CREATE INDEX ready_run ON ready (run_id, turn, number);

-- Where leasing begins to look: dead entries before it are skipped, even while a long transaction
-- keeps them.
CREATE TABLE marks (
  class INT NOT NULL,
  priority SMALLINT NOT NULL,
  turn BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (class, priority))
  WITH (fillfactor = 20);

-- A lock: the holder of its one row sweeps.
CREATE TABLE sweeps (id INT PRIMARY KEY);
INSERT INTO sweeps VALUES (1);

-- Leased items. The deadline is in no index, so heartbeats move no index entries.
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

-- Activity every ten seconds of the last day.
CREATE TABLE samples (
  class INT NOT NULL,
  at TIMESTAMPTZ NOT NULL,
  done BIGINT NOT NULL,
  ready BIGINT NOT NULL,
  leased BIGINT NOT NULL,
  workers BIGINT NOT NULL,
  PRIMARY KEY (class, at));
CREATE INDEX samples_at ON samples (at);
