-- Functions for users and workers. They run with the rights of their owner and look up names in its
-- schema; nobody else touches a table. The caller is `session_user`. The only clock is the
-- server's.

-- Waits while records are removed, as all writers do, since cached numbers of texts would become
-- invalid. Taking the lock requires a privilege on the table.
CREATE FUNCTION adding() RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
  LOCK TABLE texts IN ROW EXCLUSIVE MODE $$;

CREATE FUNCTION refuse(p_code TEXT, p_message TEXT) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '%', p_message USING ERRCODE = p_code;
END $$;

CREATE FUNCTION text_hash(p_text TEXT) RETURNS BYTEA LANGUAGE sql IMMUTABLE AS $$
  SELECT substring(sha256(convert_to(p_text, 'UTF8')) FROM 1 FOR 16) $$;

-- The numbers of distinct texts; inserts new ones. Sorted, so that writers cannot deadlock.
CREATE FUNCTION learn_texts(p_texts TEXT[]) RETURNS BIGINT[] LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_hashes BYTEA[];
BEGIN
  SELECT array_agg(text_hash(u.t) ORDER BY u.o) INTO v_hashes FROM unnest(p_texts) WITH ORDINALITY AS u (t, o);
  INSERT INTO texts (hash, text)
  SELECT n.hash, n.text FROM unnest(v_hashes, p_texts) AS n (hash, text) WHERE NOT EXISTS (SELECT FROM texts t WHERE t.hash = n.hash)
  ORDER BY n.hash ON CONFLICT DO NOTHING;
  RETURN (SELECT array_agg(t.id ORDER BY u.o) FROM unnest(v_hashes) WITH ORDINALITY AS u (hash, o) JOIN texts t ON t.hash = u.hash);
END $$;

CREATE FUNCTION text_number(p_text TEXT) RETURNS BIGINT LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  SELECT id FROM texts WHERE hash = text_hash(p_text) $$;

-- The lines of a text with their newlines, as records split them.
CREATE FUNCTION lines_of(p_text TEXT) RETURNS TABLE (line TEXT, place BIGINT) LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN c.o < c.n THEN c.l || E'\n' ELSE c.l END, c.o
  FROM (SELECT u.l, u.o, count(*) OVER () AS n FROM string_to_table(p_text, E'\n') WITH ORDINALITY AS u (l, o)) c
  WHERE NOT (c.l = '' AND c.o = c.n) $$;

-- Encodes numbers as in the records.
CREATE FUNCTION leb128(p_numbers BIGINT[]) RETURNS BYTEA LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  v_bytes BYTEA := '';
  v_rest BIGINT;
  v_number BIGINT;
BEGIN
  FOREACH v_number IN ARRAY p_numbers LOOP
    v_rest := v_number;
    LOOP
      v_bytes := v_bytes || set_byte('\x00'::BYTEA, 0, ((v_rest & 127) | CASE WHEN v_rest > 127 THEN 128 ELSE 0 END)::INT);
      v_rest := v_rest >> 7;
      EXIT WHEN v_rest = 0;
    END LOOP;
  END LOOP;
  RETURN v_bytes;
END $$;

CREATE FUNCTION unleb128(p_bytes BYTEA) RETURNS BIGINT[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  v_numbers BIGINT[] := '{}';
  v_number BIGINT := 0;
  v_shift INT := 0;
  v_byte INT;
BEGIN
  FOR v_place IN 0 .. octet_length(p_bytes) - 1 LOOP
    v_byte := get_byte(p_bytes, v_place);
    v_number := v_number | ((v_byte & 127)::BIGINT << v_shift);
    v_shift := v_shift + 7;
    IF v_byte < 128 THEN
      v_numbers := v_numbers || v_number;
      v_number := 0;
      v_shift := 0;
    END IF;
  END LOOP;
  RETURN v_numbers;
END $$;

-- The quota of the caller.
CREATE FUNCTION quota() RETURNS quotas LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  SELECT q FROM quotas q WHERE role IN (session_user, '') ORDER BY role DESC LIMIT 1 $$;

-- Begins a run for the fleet. Idempotent.
CREATE FUNCTION begin_run(
  p_uid TEXT, p_class TEXT, p_priority INT, p_weight INT, p_seconds DOUBLE PRECISION, p_input_seed BIGINT,
  p_hash TEXT, p_family TEXT, p_def TEXT, p_sizes TEXT, p_text TEXT, p_flops DOUBLE PRECISION, p_bytes DOUBLE PRECISION,
  p_target TEXT, p_threads BIGINT, p_compiler TEXT, p_precision TEXT,
  p_strategy TEXT, p_seed BIGINT, p_space TEXT, p_meta TEXT)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_class INT;
  v_program BIGINT;
  v_key BIGINT;
  v_run BIGINT;
  v_short TEXT;
BEGIN
  PERFORM adding();
  FOREACH v_short IN ARRAY ARRAY[p_hash, p_family, p_def, p_target, p_compiler, p_strategy, p_space] LOOP
    IF v_short IS NULL OR length(v_short) > 2000 OR v_short ~ '[[:cntrl:]]' THEN
      PERFORM refuse('22023', 'a name is missing, too long, or has a control character'); END IF;
  END LOOP;
  IF p_uid IS NULL OR p_uid !~ '^[A-Za-z0-9-]{1,64}$' THEN PERFORM refuse('22023', 'the name of a run has to be 1 to 64 letters, digits and `-`'); END IF;
  IF p_text IS NULL OR p_sizes IS NULL OR p_meta IS NULL OR octet_length(p_text) > 1048576 OR octet_length(p_sizes) > 65536 OR octet_length(p_meta) > 1048576 THEN
    PERFORM refuse('22023', 'a text is missing or too long'); END IF;
  IF p_priority IS NULL OR p_priority NOT BETWEEN 0 AND 3 OR p_weight IS NULL OR p_weight NOT BETWEEN 1 AND 100
     OR p_threads IS NULL OR p_threads NOT BETWEEN 1 AND 65536 OR p_precision IS NULL OR p_precision NOT IN ('exact', 'fast')
     OR p_seconds IS NULL OR p_seconds NOT BETWEEN 1 AND 2592000
     OR p_flops IS NULL OR p_flops NOT BETWEEN 0 AND 1e300 OR p_bytes IS NULL OR p_bytes NOT BETWEEN 0 AND 1e300 OR p_seed IS NULL OR p_input_seed IS NULL THEN
    PERFORM refuse('22003', 'a number is missing or out of range'); END IF;
  SELECT id INTO v_class FROM classes WHERE name = p_class;
  IF v_class IS NULL THEN PERFORM refuse('22023', 'there is no class "' || left(p_class, 200) || '"'); END IF;
  IF EXISTS (SELECT FROM runs r JOIN fleet_runs f ON f.run_id = r.id WHERE r.uid = p_uid AND f.owner = session_user) THEN RETURN; END IF;
  IF (SELECT count(*) FROM fleet_runs WHERE owner = session_user) >= (quota()).runs THEN
    PERFORM refuse('53400', 'no more runs: the quota is used up'); END IF;
  INSERT INTO programs (hash, family, def, sizes, text, flops, bytes)
    VALUES (p_hash, p_family, p_def, p_sizes, p_text, p_flops, p_bytes) ON CONFLICT (hash) DO NOTHING;
  SELECT id INTO v_program FROM programs WHERE hash = p_hash;
  INSERT INTO keys (program_id, target, threads, compiler, precision)
    VALUES (v_program, p_target, p_threads, p_compiler, p_precision) ON CONFLICT DO NOTHING;
  SELECT id INTO v_key FROM keys WHERE program_id = v_program AND target = p_target AND threads = p_threads
    AND compiler = p_compiler AND precision = p_precision;
  INSERT INTO runs (uid, key_id, strategy, seed, space, meta, started)
    VALUES (p_uid, v_key, p_strategy, p_seed, p_space, p_meta, (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT)
    ON CONFLICT (uid) DO NOTHING RETURNING id INTO v_run;
  IF v_run IS NULL THEN PERFORM refuse('42501', 'there is a run of this name that is not yours'); END IF;
  INSERT INTO fleet_runs (run_id, owner, class, priority, weight, input_seed, deadline, def, sizes, text)
    VALUES (v_run, session_user, v_class, p_priority, p_weight, p_input_seed, clock_timestamp() + make_interval(secs => p_seconds),
            p_def, p_sizes, p_text);
END $$;

-- Adds items to a run; existing ones stay as they are. Runs share a class by weight: each item has
-- a turn, the items of a run are steps of 1000 / weight apart, and a later run begins at the turn
-- that is due. Finals come first: the other items of their run are done.
CREATE FUNCTION enqueue(p_run TEXT, p_numbers BIGINT[], p_origins TEXT[], p_algorithms TEXT[], p_points BYTEA[], p_schedules TEXT[],
                        p_driver TEXT DEFAULT NULL, p_finals BOOLEAN DEFAULT false)
RETURNS INT LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_run fleet_runs;
  v_count INT := coalesce(cardinality(p_numbers), 0);
  v_added INT;
  v_start BIGINT;
  v_priority SMALLINT;
  v_texts TEXT[];
  v_ids BIGINT[];
BEGIN
  PERFORM adding();
  IF v_count NOT BETWEEN 1 AND 1000 OR v_count <> cardinality(p_origins) OR v_count <> cardinality(p_algorithms)
     OR v_count <> cardinality(p_points) OR v_count <> cardinality(p_schedules) THEN
    PERFORM refuse('22023', 'has to have 1 to 1000 items, with all that belongs to each'); END IF;
  IF EXISTS (SELECT FROM unnest(p_numbers, p_origins, p_algorithms, p_points, p_schedules) AS u (n, o, a, p, s)
             WHERE n IS NULL OR n < 0 OR o IS NULL OR length(o) > 2000 OR o ~ '[[:cntrl:]]' OR a IS NULL OR octet_length(a) > 65536
                OR p IS NULL OR octet_length(p) > 20480 OR s IS NULL OR octet_length(s) > 65536) THEN
    PERFORM refuse('22023', 'an item is incomplete or too long'); END IF;
  SELECT f.* INTO v_run FROM fleet_runs f JOIN runs r ON r.id = f.run_id WHERE r.uid = p_run AND f.owner = session_user FOR UPDATE OF f;
  IF v_run.run_id IS NULL THEN PERFORM refuse('42501', 'there is no such run of yours'); END IF;
  IF v_run.driver IS NOT NULL AND v_run.driver::TEXT IS DISTINCT FROM p_driver THEN
    PERFORM refuse('55000', 'the run was taken over by another process'); END IF;
  IF v_run.cancelled OR v_run.deadline < clock_timestamp() THEN PERFORM refuse('55000', 'the run is over'); END IF;
  IF p_finals IS NULL THEN PERFORM refuse('22023', 'an item is incomplete or too long'); END IF;
  IF v_run.items + v_count > (quota()).items THEN PERFORM refuse('53400', 'no more items: the quota of the run is used up'); END IF;
  IF v_run.items + v_count > (quota()).waiting
     AND (SELECT count(*) FROM (SELECT FROM ready q WHERE q.run_id = v_run.run_id LIMIT (quota()).waiting) w)
         + (SELECT count(*) FROM leased l WHERE l.run_id = v_run.run_id) + v_count > (quota()).waiting THEN
    PERFORM refuse('53400', 'too many items wait: the quota of the run is used up'); END IF;
  SELECT array_agg(DISTINCT a.t) INTO v_texts
    FROM (SELECT unnest(p_origins || p_algorithms) AS t UNION ALL SELECT l.line FROM unnest(p_schedules) s, lines_of(s) l) a;
  v_ids := learn_texts(v_texts);
  v_priority := CASE WHEN p_finals THEN 0 ELSE v_run.priority END;
  SELECT CASE WHEN p_finals THEN m.turn ELSE greatest(v_run.turn, m.turn) END INTO v_start
    FROM marks m WHERE m.class = v_run.class AND m.priority = v_priority;
  WITH known AS MATERIALIZED (SELECT * FROM unnest(v_texts, v_ids) AS k (text, id)),
  given AS MATERIALIZED (SELECT * FROM unnest(p_numbers, p_origins, p_algorithms, p_points, p_schedules) WITH ORDINALITY AS u (n, o, a, p, s, at)),
  numbered AS (
    SELECT g.at, array_agg(k.id ORDER BY l.place) AS lines
    FROM given g CROSS JOIN LATERAL lines_of(g.s) l JOIN known k ON k.text = l.line GROUP BY g.at),
  added AS (
    INSERT INTO items (run_id, number, origin, algorithm, point, schedule, lines, finals)
    SELECT v_run.run_id, g.n, o.id, a.id, g.p, leb128(coalesce(w.lines, '{}')), coalesce(w.lines, '{}'), p_finals
    FROM given g JOIN known o ON o.text = g.o LEFT JOIN known a ON a.text = g.a AND g.a <> '' LEFT JOIN numbered w ON w.at = g.at
    ON CONFLICT DO NOTHING RETURNING number)
  INSERT INTO ready (class, priority, turn, run_id, number)
  SELECT v_run.class, v_priority, v_start + row_number() OVER (ORDER BY a.number) * (1000 / v_run.weight), v_run.run_id, a.number FROM added a;
  GET DIAGNOSTICS v_added = ROW_COUNT;
  UPDATE fleet_runs SET items = items + v_added, turn = CASE WHEN p_finals THEN turn ELSE v_start + v_added * (1000 / weight) END
    WHERE run_id = v_run.run_id;
  RETURN v_added;
END $$;

-- The data of a run that workers need to try its items.
CREATE FUNCTION assignment(p_run BIGINT)
RETURNS TABLE (o_uid TEXT, o_class TEXT, o_input_seed BIGINT, o_hash TEXT, o_def TEXT, o_sizes TEXT, o_text TEXT,
               o_target TEXT, o_threads BIGINT, o_compiler TEXT, o_precision TEXT)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT r.uid, c.name, f.input_seed, p.hash, f.def, f.sizes, f.text, k.target, k.threads, k.compiler, k.precision
  FROM fleet_runs f JOIN runs r ON r.id = f.run_id JOIN keys k ON k.id = r.key_id JOIN programs p ON p.id = k.program_id
  JOIN classes c ON c.id = f.class
  WHERE f.run_id = p_run AND EXISTS (SELECT FROM permits m WHERE m.role = session_user AND m.class = f.class) $$;

-- A worker joins; returns its number. A quarantined worker stays quarantined.
CREATE FUNCTION join_class(p_name TEXT, p_class TEXT, p_description TEXT) RETURNS BIGINT
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_class INT;
  v_worker BIGINT;
BEGIN
  IF p_name IS NULL OR p_name !~ '^[A-Za-z0-9._:-]{1,64}$' OR p_description IS NULL OR length(p_description) > 4096 THEN
    PERFORM refuse('22023', 'the name of a worker has to be 1 to 64 letters, digits and `._:-`'); END IF;
  SELECT c.id INTO v_class FROM classes c JOIN permits p ON p.class = c.id AND p.role = session_user WHERE c.name = p_class;
  IF v_class IS NULL THEN PERFORM refuse('42501', 'you may not work for this class'); END IF;
  IF (SELECT count(*) FROM workers WHERE role = session_user) >= 10000 AND NOT EXISTS (SELECT FROM workers WHERE role = session_user AND name = p_name) THEN
    PERFORM refuse('53400', 'no more workers of one role'); END IF;
  -- Its counts for another class stay there.
  UPDATE classes c SET kinds = ARRAY(SELECT a + b FROM unnest(c.kinds, w.kinds) AS u (a, b))
    FROM workers w WHERE w.role = session_user AND w.name = p_name AND w.class <> v_class AND c.id = w.class;
  INSERT INTO workers (role, name, class, description) VALUES (session_user, p_name, v_class, p_description)
    ON CONFLICT (role, name) DO UPDATE SET class = excluded.class, description = excluded.description, seen = clock_timestamp(), draining = false,
      kinds = CASE WHEN workers.class = excluded.class THEN workers.kinds ELSE excluded.kinds END
    RETURNING id INTO v_worker;
  RETURN v_worker;
END $$;

-- Returns the items of a worker to the queue.
CREATE FUNCTION give_back(p_worker BIGINT) RETURNS INT LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_count INT;
BEGIN
  WITH gone AS (DELETE FROM leased WHERE worker = p_worker RETURNING *)
  INSERT INTO ready (class, priority, turn, run_id, number, attempts)
  SELECT class, priority, turn, run_id, number, attempts - 1 FROM gone;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  RETURN v_count;
END $$;

-- Quarantines a worker whose results are wrong or crash far more often than others' of its class:
-- the candidates come from the same runs, so the machine is the cause. Results it stored before
-- stay; records are verified before use.
CREATE FUNCTION judge(p_worker BIGINT) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_least CONSTANT BIGINT := 20;
  v_worker workers;
  v_tried BIGINT;
  v_wrong BIGINT;
BEGIN
  SELECT * INTO v_worker FROM workers WHERE id = p_worker AND quarantined IS NULL AND tried >= v_least AND wrong > tried * 0.3;
  IF v_worker.id IS NULL THEN RETURN; END IF;
  SELECT sum(tried), sum(wrong) INTO v_tried, v_wrong FROM workers WHERE class = v_worker.class AND id <> p_worker AND quarantined IS NULL;
  IF v_tried >= v_least AND v_wrong < v_tried * 0.1 THEN
    UPDATE workers SET quarantined = format('%s of its %s results are wrong or crash, of others %s of %s', wrong, tried, v_wrong, v_tried)
      WHERE id = p_worker;
    PERFORM give_back(p_worker);
  END IF;
END $$;

-- A worker reports its speed. One that differs from most others of its class three times in a row
-- is quarantined: its times would be compared with theirs.
CREATE FUNCTION report_probe(p_worker BIGINT, p_probe DOUBLE PRECISION) RETURNS TEXT
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_worker workers;
  v_usual DOUBLE PRECISION;
  v_others INT;
  v_odd BOOLEAN;
BEGIN
  IF p_probe IS NULL OR NOT (p_probe > 0 AND p_probe < 1e12) THEN PERFORM refuse('22003', 'a number is missing or out of range'); END IF;
  UPDATE workers SET probe = p_probe, seen = clock_timestamp() WHERE id = p_worker AND role = session_user RETURNING * INTO v_worker;
  IF v_worker.id IS NULL THEN PERFORM refuse('42501', 'there is no such worker of yours'); END IF;
  SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY probe), count(*) INTO v_usual, v_others FROM workers
    WHERE class = v_worker.class AND id <> p_worker AND probe IS NOT NULL AND quarantined IS NULL;
  v_odd := v_others >= 2 AND (p_probe < v_usual * 0.7 OR p_probe > v_usual / 0.7);
  UPDATE workers SET odd = CASE WHEN v_odd THEN v_worker.odd + 1 ELSE 0 END WHERE id = p_worker AND (v_odd OR odd > 0);
  IF v_worker.quarantined IS NULL AND v_odd AND v_worker.odd >= 2 THEN
    UPDATE workers SET quarantined = format('its probe says %s, those of its class %s', round(p_probe::numeric, 3), round(v_usual::numeric, 3))
      WHERE id = p_worker RETURNING quarantined INTO v_worker.quarantined;
    PERFORM give_back(p_worker);
  END IF;
  RETURN v_worker.quarantined;
END $$;

-- Whether a worker is drained: it gets no more items and may end.
CREATE FUNCTION is_drained(p_worker BIGINT) RETURNS BOOLEAN LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT coalesce((SELECT draining FROM workers WHERE id = p_worker AND role = session_user), true) $$;

-- Leases items, as many as requested from the run whose turn it is, since starting a program takes
-- a worker longer than continuing one. For the same reason a run that a worker has already prepared
-- (`p_run`) may be up to 64 items of weight 10 ahead of its turn. A lease is a random token, which
-- stays unique even after a crash of the server, unlike a sequence. Losing a lease in such a crash
-- only costs a repetition, so this commit does not wait for the disk.
CREATE FUNCTION lease(p_worker BIGINT, p_most INT, p_seconds DOUBLE PRECISION, p_run BIGINT DEFAULT NULL)
RETURNS TABLE (o_run BIGINT, o_number BIGINT, o_lease TEXT, o_attempts INT, o_schedule TEXT, o_finals BOOLEAN, o_best DOUBLE PRECISION)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_slack CONSTANT BIGINT := 6400;
  v_worker workers;
  v_most INT;
  v_run BIGINT;
  v_priority SMALLINT;
  v_mark BIGINT;
  v_turn BIGINT;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  IF p_most IS NULL OR p_most NOT BETWEEN 1 AND 64 OR p_seconds IS NULL OR NOT (p_seconds BETWEEN 1 AND 3600) THEN
    PERFORM refuse('22003', 'a number is missing or out of range'); END IF;
  SELECT w.* INTO v_worker FROM workers w JOIN permits p ON p.role = w.role AND p.class = w.class
    WHERE w.id = p_worker AND w.role = session_user;
  IF v_worker.id IS NULL THEN PERFORM refuse('42501', 'there is no such worker of yours, or it may not work for this class any more'); END IF;
  IF v_worker.quarantined IS NOT NULL THEN PERFORM refuse('55000', 'the worker is quarantined: ' || v_worker.quarantined); END IF;
  IF v_worker.draining THEN RETURN; END IF;
  v_most := least(p_most, (quota()).leases - (SELECT count(*) FROM leased l WHERE l.worker = p_worker));
  IF v_most <= 0 THEN RETURN; END IF;
  SELECT k.run_id, m.priority, m.turn, k.turn INTO v_run, v_priority, v_mark, v_turn FROM marks m CROSS JOIN LATERAL (
      SELECT q.run_id, q.turn FROM ready q
      WHERE q.class = m.class AND q.priority = m.priority AND q.turn >= m.turn
      ORDER BY q.class, q.priority, q.turn, q.run_id, q.number LIMIT 1 FOR UPDATE SKIP LOCKED) k
    WHERE m.class = v_worker.class ORDER BY m.class, m.priority LIMIT 1;
  IF v_run IS NULL THEN RETURN; END IF;
  IF p_run IS NOT NULL AND p_run <> v_run THEN
    SELECT coalesce((SELECT q.run_id FROM ready q
      WHERE q.run_id = p_run AND q.class = v_worker.class AND q.priority = v_priority AND q.turn BETWEEN v_mark AND v_turn + v_slack
      ORDER BY q.run_id, q.turn, q.number LIMIT 1 FOR UPDATE SKIP LOCKED), v_run) INTO v_run;
  END IF;
  RETURN QUERY
  WITH picked AS MATERIALIZED (
    SELECT q.class, q.priority, q.turn, q.run_id, q.number FROM ready q
    WHERE q.run_id = v_run AND q.class = v_worker.class AND q.priority = v_priority AND q.turn >= v_mark
    ORDER BY q.run_id, q.turn, q.number LIMIT v_most FOR UPDATE SKIP LOCKED),
  taken AS (
    DELETE FROM ready q USING picked k
    WHERE (q.class, q.priority, q.turn, q.run_id, q.number) = (k.class, k.priority, k.turn, k.run_id, k.number) RETURNING q.*),
  held AS (
    INSERT INTO leased (run_id, number, class, priority, turn, attempts, lease, worker, deadline)
    SELECT t.run_id, t.number, t.class, t.priority, t.turn, t.attempts + 1, gen_random_uuid(), p_worker,
           clock_timestamp() + make_interval(secs => p_seconds) FROM taken t RETURNING *)
  SELECT h.run_id, h.number, h.lease::TEXT, h.attempts::INT,
         (SELECT coalesce(string_agg(t.text, '' ORDER BY u.place), '') FROM unnest(i.lines) WITH ORDINALITY AS u (id, place) JOIN texts t ON t.id = u.id),
         i.finals, f.best
  FROM held h JOIN items i ON (i.run_id, i.number) = (h.run_id, h.number) JOIN fleet_runs f ON f.run_id = h.run_id;
END $$;

-- Renews leases; returns those still held. Workers drop the others.
CREATE FUNCTION beat(p_worker BIGINT, p_runs BIGINT[], p_numbers BIGINT[], p_leases TEXT[], p_seconds DOUBLE PRECISION) RETURNS SETOF TEXT
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  IF p_seconds IS NULL OR NOT (p_seconds BETWEEN 1 AND 3600) OR coalesce(cardinality(p_leases), 0) > 1000 THEN
    PERFORM refuse('22003', 'a number is missing or out of range'); END IF;
  UPDATE workers SET seen = clock_timestamp() WHERE id = p_worker AND role = session_user;
  IF NOT FOUND THEN PERFORM refuse('42501', 'there is no such worker of yours'); END IF;
  RETURN QUERY UPDATE leased l SET deadline = clock_timestamp() + make_interval(secs => p_seconds)
    FROM unnest(p_runs, p_numbers, p_leases) AS u (run_id, number, lease)
    WHERE (l.run_id, l.number) = (u.run_id, u.number) AND l.lease::TEXT = u.lease AND l.worker = p_worker RETURNING l.lease::TEXT;
END $$;

-- The factor that normalises a worker's time to the run's reference machine: the ratio of the
-- rooflines there and here. A ratio beyond the allowed difference within a class is not believed.
CREATE FUNCTION told_for(p_there DOUBLE PRECISION, p_here DOUBLE PRECISION) RETURNS DOUBLE PRECISION LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_there > 0 AND p_here > 0 THEN greatest(0.7, least(1 / 0.7, p_there / p_here)) ELSE 1 END $$;

-- A worker reports the roofline of a run on its machine, with its peaks. The first worker to try a
-- program, in this run or an earlier one, becomes the reference machine for times.
CREATE FUNCTION report_roof(p_worker BIGINT, p_run BIGINT, p_roof DOUBLE PRECISION, p_gflops DOUBLE PRECISION, p_gbps DOUBLE PRECISION) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_first fleet_runs;
BEGIN
  IF p_roof IS NULL OR NOT (p_roof BETWEEN 0 AND 1e7) OR p_gflops IS NULL OR NOT (p_gflops BETWEEN 0 AND 1e12) OR p_gbps IS NULL OR NOT (p_gbps BETWEEN 0 AND 1e12) THEN
    PERFORM refuse('22003', 'a number is missing or out of range'); END IF;
  IF NOT EXISTS (SELECT FROM workers w JOIN permits m ON m.role = w.role AND m.class = w.class JOIN fleet_runs f ON f.class = w.class
                 WHERE w.id = p_worker AND w.role = session_user AND w.quarantined IS NULL AND f.run_id = p_run) THEN
    PERFORM refuse('42501', 'there is no such run for a worker of yours'); END IF;
  INSERT INTO benches (run_id, worker, roof) VALUES (p_run, p_worker, p_roof) ON CONFLICT (run_id, worker) DO UPDATE SET roof = excluded.roof;
  SELECT f.* INTO v_first FROM fleet_runs f JOIN runs r ON r.id = f.run_id
    WHERE r.key_id = (SELECT key_id FROM runs WHERE id = p_run) AND f.roof IS NOT NULL ORDER BY f.run_id LIMIT 1;
  UPDATE fleet_runs SET roof = coalesce(v_first.roof, p_roof), gflops = coalesce(v_first.gflops, p_gflops), gbps = coalesce(v_first.gbps, p_gbps)
    WHERE run_id = p_run AND roof IS NULL;
END $$;

-- Stores outcomes with their trials, each once: `stored`, `again` (the same lease: an answer was
-- lost) or `fenced` (the lease was revoked, and another worker has the item).
CREATE FUNCTION complete(
  p_worker BIGINT, p_runs BIGINT[], p_numbers BIGINT[], p_leases TEXT[], p_kinds INT[], p_cuts BOOLEAN[], p_seconds DOUBLE PRECISION[],
  p_raw DOUBLE PRECISION[], p_spreads DOUBLE PRECISION[], p_counts BIGINT[], p_rooflines DOUBLE PRECISION[], p_details TEXT[])
RETURNS TABLE (o_lease TEXT, o_answer TEXT) LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_count INT := coalesce(cardinality(p_runs), 0);
  v_kinds TEXT[] := ARRAY['measured', 'illegal', 'build-failed', 'wrong-result', 'crashed', 'timed-out', 'device-lost'];
BEGIN
  IF v_count NOT BETWEEN 1 AND 1000 OR v_count <> cardinality(p_numbers) OR v_count <> cardinality(p_leases) OR v_count <> cardinality(p_kinds)
     OR v_count <> cardinality(p_cuts) OR v_count <> cardinality(p_seconds) OR v_count <> cardinality(p_raw) OR v_count <> cardinality(p_spreads)
     OR v_count <> cardinality(p_counts) OR v_count <> cardinality(p_rooflines) OR v_count <> cardinality(p_details) THEN
    PERFORM refuse('22023', 'has to have 1 to 1000 outcomes, with all that belongs to each'); END IF;
  IF EXISTS (
    SELECT FROM unnest(p_kinds, p_cuts, p_seconds, p_raw, p_spreads, p_counts, p_rooflines, p_details) AS u (k, c, s, r, d, n, f, t)
    WHERE k IS NULL OR k NOT BETWEEN 0 AND 6 OR c IS NULL OR (k = 0) <> (s IS NOT NULL) OR (k = 0) <> (t IS NULL)
       OR k = 0 AND (NOT (s BETWEEN 1e-10 AND 1e7) OR r IS NULL OR NOT (r BETWEEN 0 AND 1e300) OR d IS NULL OR NOT (d BETWEEN 0 AND 1e300)
                     OR n IS NULL OR n NOT BETWEEN 0 AND 4294967295 OR f IS NOT NULL AND NOT (f BETWEEN 0 AND 1e300))
       OR k > 0 AND (octet_length(t) > 65536 OR NOT starts_with(t, '{"outcome":"' || v_kinds[k + 1] || '"'))) THEN
    PERFORM refuse('22023', 'an outcome is incomplete or impossible'); END IF;
  PERFORM adding();
  IF NOT EXISTS (SELECT FROM workers WHERE id = p_worker AND role = session_user) THEN PERFORM refuse('42501', 'there is no such worker of yours'); END IF;
  PERFORM learn_texts(d.texts) FROM (SELECT array_agg(DISTINCT t) AS texts FROM unnest(p_details) t WHERE t IS NOT NULL) d WHERE d.texts IS NOT NULL;
  RETURN QUERY
  WITH u AS (
    SELECT * FROM unnest(p_runs, p_numbers, p_leases, p_kinds, p_cuts, p_seconds, p_raw, p_spreads, p_counts, p_rooflines, p_details)
      AS u (run_id, number, lease, kind, cut, seconds, raw, spread, runs, roofline, detail)),
  gone AS (
    DELETE FROM leased l USING u WHERE (l.run_id, l.number) = (u.run_id, u.number) AND l.lease::TEXT = u.lease AND l.worker = p_worker
      AND NOT (SELECT i.finals FROM items i WHERE (i.run_id, i.number) = (l.run_id, l.number))
    RETURNING l.run_id, l.number, l.lease, l.attempts, u.kind, u.cut, u.seconds, u.raw, u.spread, u.runs, u.roofline, u.detail),
  kept AS (
    INSERT INTO trials (run_id, number, key_id, origin, point, schedule, kind, cut, seconds, raw_seconds, spread, runs, roofline, detail, elapsed, algorithm)
    SELECT g.run_id, g.number, r.key_id, i.origin, i.point, i.schedule, g.kind, CASE WHEN g.cut AND g.kind = 0 THEN 1 ELSE 0 END, g.seconds * told_for(f.roof, b.roof), g.raw,
           g.spread, g.runs, g.roofline, CASE WHEN g.detail IS NULL THEN NULL ELSE text_number(g.detail) END, greatest(0, extract(epoch FROM clock_timestamp() - f.begun)), i.algorithm
    FROM gone g JOIN items i ON (i.run_id, i.number) = (g.run_id, g.number) JOIN runs r ON r.id = g.run_id JOIN fleet_runs f ON f.run_id = g.run_id
    LEFT JOIN benches b ON b.run_id = g.run_id AND b.worker = p_worker),
  noted AS (INSERT INTO done (run_id, number, lease, worker, attempts) SELECT g.run_id, g.number, g.lease, p_worker, g.attempts FROM gone g),
  counted AS (
    UPDATE workers w SET lost = 0, tried = w.tried + v_count, wrong = w.wrong + (SELECT count(*) FROM u WHERE u.kind IN (3, 4)),
           kinds = ARRAY(SELECT w.kinds[k + 1] + (SELECT count(*) FROM gone g WHERE g.kind = k) FROM generate_series(0, 6) k ORDER BY k)
    WHERE w.id = p_worker)
  SELECT u.lease, CASE WHEN g.lease IS NOT NULL THEN 'stored' WHEN d.lease IS NOT NULL THEN 'again' ELSE 'fenced' END
  FROM u LEFT JOIN gone g ON g.lease::TEXT = u.lease
  LEFT JOIN done d ON (d.run_id, d.number) = (u.run_id, u.number) AND d.lease::TEXT = u.lease AND d.worker = p_worker;
  PERFORM judge(p_worker);
END $$;

-- Revokes expired leases, ends runs that are over, and updates where leasing begins to look. Any
-- worker may call it; one at a time runs.
CREATE FUNCTION sweep(OUT o_returned INT, OUT o_given_up INT, OUT o_dropped INT)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_most CONSTANT INT := 3;        -- workers that an item may lose
  v_patience CONSTANT INT := 20;   -- items in a row that a worker may lose
  v_detail CONSTANT TEXT := '{"outcome":"device-lost"}';
BEGIN
  o_returned := 0; o_given_up := 0; o_dropped := 0;
  IF NOT EXISTS (SELECT FROM sweeps FOR UPDATE SKIP LOCKED) THEN RETURN; END IF;
  PERFORM adding();
  PERFORM learn_texts(ARRAY[v_detail]);
  WITH late AS (SELECT x.run_id, x.number FROM leased x WHERE x.deadline < clock_timestamp() LIMIT 1000 FOR UPDATE SKIP LOCKED),
  gone AS (DELETE FROM leased l USING late e WHERE (l.run_id, l.number) = (e.run_id, e.number) RETURNING l.*),
  fate AS (SELECT g.*, f.cancelled OR f.deadline < clock_timestamp() AS over, r.key_id, f.begun
           FROM gone g JOIN fleet_runs f ON f.run_id = g.run_id JOIN runs r ON r.id = g.run_id),
  back AS (INSERT INTO ready (class, priority, turn, run_id, number, attempts)
           SELECT class, priority, turn, run_id, number, attempts FROM fate WHERE attempts < v_most AND NOT over RETURNING 1),
  dead AS (INSERT INTO trials (run_id, number, key_id, origin, point, schedule, kind, cut, detail, elapsed, algorithm)
           SELECT g.run_id, g.number, g.key_id, i.origin, i.point, i.schedule, 6, 0, text_number(v_detail),
                  greatest(0, extract(epoch FROM clock_timestamp() - g.begun)), i.algorithm
           FROM fate g JOIN items i ON (i.run_id, i.number) = (g.run_id, g.number) WHERE g.attempts >= v_most AND NOT g.over AND NOT i.finals RETURNING 1),
  noted AS (INSERT INTO done (run_id, number, lease, worker, attempts)
            SELECT run_id, number, lease, NULL, attempts FROM fate WHERE attempts >= v_most AND NOT over),
  counted AS (UPDATE classes c SET kinds[7] = c.kinds[7] + b.count
              FROM (SELECT class, count(*) AS count FROM fate WHERE attempts >= v_most AND NOT over GROUP BY class) b WHERE c.id = b.class),
  waived AS (UPDATE fleet_runs f SET dropped = f.dropped + b.count
             FROM (SELECT run_id, count(*) AS count FROM fate WHERE over GROUP BY run_id) b WHERE f.run_id = b.run_id),
  blamed AS (UPDATE workers w SET lost = w.lost + b.count,
                    quarantined = CASE WHEN w.quarantined IS NULL AND w.lost + b.count >= v_patience
                                       THEN format('it lost %s items in a row', w.lost + b.count) ELSE w.quarantined END
             FROM (SELECT worker, count(*) AS count FROM fate GROUP BY worker) b WHERE w.id = b.worker)
  SELECT (SELECT count(*) FROM back), (SELECT count(*) FROM dead) INTO o_returned, o_given_up;
  -- Drop waiting items of runs that are over.
  WITH dropped AS (DELETE FROM ready q USING fleet_runs f
                   WHERE f.run_id = q.run_id AND NOT f.closed AND (f.cancelled OR f.deadline < clock_timestamp()) RETURNING q.run_id),
  counted AS (UPDATE fleet_runs f SET dropped = f.dropped + b.count FROM (SELECT run_id, count(*) AS count FROM dropped GROUP BY run_id) b WHERE f.run_id = b.run_id)
  SELECT count(*) INTO o_dropped FROM dropped;
  UPDATE fleet_runs f SET closed = true WHERE NOT f.closed AND (f.cancelled OR f.deadline < clock_timestamp())
    AND NOT EXISTS (SELECT FROM ready q WHERE q.run_id = f.run_id) AND NOT EXISTS (SELECT FROM leased l WHERE l.run_id = f.run_id);
  -- Items with an earlier turn that are committed later are found by the next sweep.
  UPDATE marks m SET turn = x.turn FROM (
    SELECT y.class, y.priority, coalesce(
      (SELECT q.turn FROM ready q WHERE q.class = y.class AND q.priority = y.priority ORDER BY q.class, q.priority, q.turn LIMIT 1),
      (SELECT max(f.turn) FROM fleet_runs f WHERE f.class = y.class AND f.priority = y.priority AND NOT f.closed), 0) AS turn FROM marks y) x
  WHERE (m.class, m.priority) = (x.class, x.priority) AND m.turn <> x.turn;
  IF NOT EXISTS (SELECT FROM samples WHERE at > clock_timestamp() - interval '10 seconds') THEN
    INSERT INTO samples (class, at, done, ready, leased, workers)
      SELECT c.id, clock_timestamp(), s.o_done, s.o_ready, s.o_leased, s.o_workers FROM status() s JOIN classes c ON c.name = s.o_class;
    DELETE FROM samples WHERE at < clock_timestamp() - interval '1 day';
  END IF;
END $$;

-- Cancels a run: waiting items are dropped, leased ones may still be completed.
CREATE FUNCTION cancel(p_run TEXT) RETURNS BOOLEAN LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_run BIGINT;
  v_count INT;
BEGIN
  UPDATE fleet_runs f SET cancelled = true FROM runs r WHERE r.id = f.run_id AND r.uid = p_run AND f.owner = session_user RETURNING f.run_id INTO v_run;
  IF v_run IS NULL THEN PERFORM refuse('42501', 'there is no such run of yours'); END IF;
  DELETE FROM ready WHERE run_id = v_run;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  UPDATE fleet_runs SET dropped = dropped + v_count WHERE run_id = v_run;
  RETURN true;
END $$;

-- The known outcomes among these items of a run.
CREATE FUNCTION outcomes(p_run TEXT, p_numbers BIGINT[])
RETURNS TABLE (o_number BIGINT, o_kind INT, o_cut BOOLEAN, o_seconds DOUBLE PRECISION, o_raw DOUBLE PRECISION, o_spread DOUBLE PRECISION,
               o_runs BIGINT, o_roofline DOUBLE PRECISION, o_detail TEXT, o_elapsed DOUBLE PRECISION, o_worker TEXT, o_attempts INT)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT t.number, t.kind::INT, t.cut <> 0, t.seconds, t.raw_seconds, t.spread, t.runs, t.roofline, x.text, t.elapsed, w.name, d.attempts::INT
  FROM runs r JOIN fleet_runs f ON f.run_id = r.id JOIN trials t ON t.run_id = r.id JOIN done d ON (d.run_id, d.number) = (t.run_id, t.number)
  LEFT JOIN texts x ON x.id = t.detail LEFT JOIN workers w ON w.id = d.worker
  WHERE r.uid = p_run AND f.owner = session_user AND t.number = ANY (p_numbers) $$;

-- Functions for administrators.

-- Creates a class, with the places where leasing begins to look.
CREATE FUNCTION add_class(p_name TEXT) RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
  WITH c AS (INSERT INTO classes (name) VALUES (p_name) ON CONFLICT DO NOTHING RETURNING id)
  INSERT INTO marks (class, priority) SELECT c.id, p FROM c, generate_series(0, 3) p $$;

CREATE FUNCTION permit(p_role NAME, p_class TEXT) RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
  INSERT INTO permits (role, class) SELECT p_role, id FROM classes WHERE name = p_class ON CONFLICT DO NOTHING $$;

-- Quarantines a worker with a reason, or releases it without one.
CREATE FUNCTION quarantine(p_name TEXT, p_reason TEXT) RETURNS INT LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_count INT := 0;
  v_worker BIGINT;
BEGIN
  FOR v_worker IN UPDATE workers SET quarantined = p_reason, lost = 0, tried = 0, wrong = 0, odd = 0 WHERE name = p_name RETURNING id LOOP
    v_count := v_count + 1;
    IF p_reason IS NOT NULL THEN PERFORM give_back(v_worker); END IF;
  END LOOP;
  RETURN v_count;
END $$;

-- Removes the queue's data of runs that began at least `p_seconds` ago and are over; returns the
-- number of items. Their trials are records, and stay.
CREATE FUNCTION forget(p_seconds DOUBLE PRECISION) RETURNS BIGINT LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_runs BIGINT[];
  v_count BIGINT;
BEGIN
  SELECT array_agg(run_id) INTO v_runs FROM fleet_runs WHERE closed AND begun < clock_timestamp() - make_interval(secs => p_seconds);
  DELETE FROM items WHERE run_id = ANY (v_runs);
  GET DIAGNOSTICS v_count = ROW_COUNT;
  DELETE FROM done WHERE run_id = ANY (v_runs);
  DELETE FROM finals WHERE run_id = ANY (v_runs);
  DELETE FROM benches WHERE run_id = ANY (v_runs);
  RETURN v_count;
END $$;

-- Drains a worker: it ends when it has completed the items it holds. If it joins again, it is a new
-- worker.
CREATE FUNCTION drain(p_name TEXT) RETURNS INT LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_count INT;
BEGIN
  UPDATE workers SET draining = true WHERE name = p_name;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  RETURN v_count;
END $$;
