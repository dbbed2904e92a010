-- Migrates a queue from version 1 to version 2; its functions are created anew.
ALTER TABLE classes ADD COLUMN kinds BIGINT[] NOT NULL DEFAULT '{0,0,0,0,0,0,0}';
ALTER TABLE workers ADD COLUMN kinds BIGINT[] NOT NULL DEFAULT '{0,0,0,0,0,0,0}', ADD COLUMN odd INT NOT NULL DEFAULT 0;
ALTER TABLE fleet_runs ADD COLUMN dropped BIGINT NOT NULL DEFAULT 0, ADD COLUMN driver UUID, ADD COLUMN held TIMESTAMPTZ NOT NULL DEFAULT '-infinity',
  ADD COLUMN best DOUBLE PRECISION, ADD COLUMN roof DOUBLE PRECISION, ADD COLUMN gflops DOUBLE PRECISION, ADD COLUMN gbps DOUBLE PRECISION;
ALTER TABLE items ADD COLUMN finals BOOLEAN NOT NULL DEFAULT false;
CREATE TABLE finals (run_id BIGINT NOT NULL, number BIGINT NOT NULL, result TEXT NOT NULL, PRIMARY KEY (run_id, number));
CREATE TABLE benches (run_id BIGINT NOT NULL, worker BIGINT NOT NULL, roof DOUBLE PRECISION NOT NULL, PRIMARY KEY (run_id, worker));
CREATE TABLE samples (class INT NOT NULL, at TIMESTAMPTZ NOT NULL, done BIGINT NOT NULL, ready BIGINT NOT NULL, leased BIGINT NOT NULL, workers BIGINT NOT NULL,
  PRIMARY KEY (class, at));
CREATE INDEX samples_at ON samples (at);
DROP INDEX ready_run;
CREATE INDEX ready_run ON ready (run_id, turn, number);
-- Count completed items once.
UPDATE classes c SET kinds = ARRAY(
  SELECT (SELECT count(*) FROM trials t JOIN done d ON (d.run_id, d.number) = (t.run_id, t.number) JOIN fleet_runs f ON f.run_id = t.run_id
          WHERE f.class = c.id AND t.kind = k) FROM generate_series(0, 6) k ORDER BY k);
