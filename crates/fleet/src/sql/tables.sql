-- The queue, beside the tables of records. Only `ready` and `leased` change all the time, and both are narrow.

-- Which machines are alike: a target, threads and a compiler, as a name.
CREATE TABLE classes (
  id INT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 200),
  -- Outcomes by kind that are of no worker of the class: given up, or of workers that have gone elsewhere.
  kinds BIGINT[] NOT NULL DEFAULT '{0,0,0,0,0,0,0}');

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
  -- Items that nobody will try: the run was over first.
  dropped BIGINT NOT NULL DEFAULT 0,
  -- The process that proposes: nobody else adds items. A random token, and until when it is believed to live.
  driver UUID,
  held TIMESTAMPTZ NOT NULL DEFAULT '-infinity',
  -- The best time that it knows, beside which workers cut others short.
  best DOUBLE PRECISION,
  -- What no schedule can beat on the machine that times are told for: the first that tried the program.
  roof DOUBLE PRECISION,
  gflops DOUBLE PRECISION,
  gbps DOUBLE PRECISION,
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
  -- Several schedules that are timed in turns, rather than one.
  finals BOOLEAN NOT NULL DEFAULT false,
  PRIMARY KEY (run_id, number));

-- What came of finals: no trials, since they say which of several is the fastest.
CREATE TABLE finals (
  run_id BIGINT NOT NULL,
  number BIGINT NOT NULL,
  result TEXT NOT NULL,
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
  -- Probes in a row that differ from those of the class: a machine may be busy with something else for a moment.
  odd INT NOT NULL DEFAULT 0,
  draining BOOLEAN NOT NULL DEFAULT false,
  quarantined TEXT,
  -- Items in a row that were lost with it.
  lost INT NOT NULL DEFAULT 0,
  -- What it completed since it was last trusted, and how much of that was wrong or crashed.
  tried BIGINT NOT NULL DEFAULT 0,
  wrong BIGINT NOT NULL DEFAULT 0,
  -- All that it ever completed for its class, by kind of outcome.
  kinds BIGINT[] NOT NULL DEFAULT '{0,0,0,0,0,0,0}',
  joined TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  seen TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (role, name))
  WITH (fillfactor = 50);
CREATE INDEX workers_class ON workers (class);

-- What no schedule of a run can beat on the machine of a worker, as that found when it took the run up.
CREATE TABLE benches (
  run_id BIGINT NOT NULL,
  worker BIGINT NOT NULL,
  roof DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (run_id, worker));

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

CREATE INDEX ready_run ON ready (run_id, turn, number);

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

-- How much was going on, every ten seconds of the last day.
CREATE TABLE samples (
  class INT NOT NULL,
  at TIMESTAMPTZ NOT NULL,
  done BIGINT NOT NULL,
  ready BIGINT NOT NULL,
  leased BIGINT NOT NULL,
  workers BIGINT NOT NULL,
  PRIMARY KEY (class, at));
CREATE INDEX samples_at ON samples (at);
