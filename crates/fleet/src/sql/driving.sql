-- Functions of drivers. A process that takes a run over finds all of its state here.

-- Makes the caller the driver of a run: nobody else can add items. A driver that seems alive stays,
-- unless the caller insists.
CREATE FUNCTION drive(p_run TEXT, p_seconds DOUBLE PRECISION, p_insist BOOLEAN) RETURNS TEXT
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_run fleet_runs;
BEGIN
  IF p_seconds IS NULL OR NOT (p_seconds BETWEEN 1 AND 3600) OR p_insist IS NULL THEN PERFORM refuse('22003', 'a number is missing or out of range'); END IF;
  SELECT f.* INTO v_run FROM fleet_runs f JOIN runs r ON r.id = f.run_id WHERE r.uid = p_run AND f.owner = session_user FOR UPDATE OF f;
  IF v_run.run_id IS NULL THEN PERFORM refuse('42501', 'there is no such run of yours'); END IF;
  IF v_run.cancelled OR v_run.deadline < clock_timestamp() THEN PERFORM refuse('55000', 'the run is over'); END IF;
  IF v_run.held > clock_timestamp() AND NOT p_insist THEN PERFORM refuse('55000', 'another process goes on with the run'); END IF;
  UPDATE fleet_runs SET driver = gen_random_uuid(), held = clock_timestamp() + make_interval(secs => p_seconds)
    WHERE run_id = v_run.run_id RETURNING * INTO v_run;
  RETURN v_run.driver::TEXT;
END $$;

-- The run of its current driver.
CREATE FUNCTION driven(p_run TEXT, p_driver TEXT) RETURNS fleet_runs LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_run fleet_runs;
BEGIN
  SELECT f.* INTO v_run FROM fleet_runs f JOIN runs r ON r.id = f.run_id WHERE r.uid = p_run AND f.owner = session_user FOR UPDATE OF f;
  IF v_run.run_id IS NULL THEN PERFORM refuse('42501', 'there is no such run of yours'); END IF;
  IF v_run.driver::TEXT IS DISTINCT FROM p_driver THEN PERFORM refuse('55000', 'the run was taken over by another process'); END IF;
  RETURN v_run;
END $$;

-- A heartbeat of the driver with its best time; returns the status of the run.
CREATE FUNCTION hold(p_run TEXT, p_driver TEXT, p_seconds DOUBLE PRECISION, p_best DOUBLE PRECISION)
RETURNS TABLE (o_workers INT, o_roof DOUBLE PRECISION, o_gflops DOUBLE PRECISION, o_gbps DOUBLE PRECISION, o_over BOOLEAN)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_run fleet_runs;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  IF p_seconds IS NULL OR NOT (p_seconds BETWEEN 0 AND 3600) OR p_best IS NOT NULL AND NOT (p_best BETWEEN 1e-10 AND 1e7) THEN
    PERFORM refuse('22003', 'a number is missing or out of range'); END IF;
  v_run := driven(p_run, p_driver);
  UPDATE fleet_runs SET held = clock_timestamp() + make_interval(secs => p_seconds), best = coalesce(p_best, best) WHERE run_id = v_run.run_id;
  RETURN QUERY SELECT (SELECT count(*)::INT FROM workers w WHERE w.class = v_run.class AND w.quarantined IS NULL AND NOT w.draining
                         AND w.seen > clock_timestamp() - interval '2 minutes'),
                      v_run.roof, v_run.gflops, v_run.gbps, v_run.cancelled OR v_run.deadline < clock_timestamp();
END $$;

-- The items of a run ordered by number, with their known outcomes.
CREATE FUNCTION history(p_run TEXT, p_after BIGINT, p_limit INT)
RETURNS TABLE (o_number BIGINT, o_kind INT, o_cut BOOLEAN, o_seconds DOUBLE PRECISION, o_raw DOUBLE PRECISION, o_spread DOUBLE PRECISION,
               o_runs BIGINT, o_roofline DOUBLE PRECISION, o_detail TEXT, o_elapsed DOUBLE PRECISION, o_worker TEXT, o_attempts INT,
               o_origin TEXT, o_algorithm TEXT, o_point BYTEA, o_schedule TEXT, o_finals BOOLEAN)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT i.number, t.kind::INT, t.cut <> 0, t.seconds, t.raw_seconds, t.spread, t.runs, t.roofline, x.text, t.elapsed, w.name, d.attempts::INT,
         o.text, a.text, i.point,
         (SELECT coalesce(string_agg(l.text, '' ORDER BY u.place), '') FROM unnest(i.lines) WITH ORDINALITY AS u (id, place) JOIN texts l ON l.id = u.id),
         i.finals
  FROM runs r JOIN fleet_runs f ON f.run_id = r.id JOIN items i ON i.run_id = r.id JOIN texts o ON o.id = i.origin
  LEFT JOIN texts a ON a.id = i.algorithm LEFT JOIN trials t ON (t.run_id, t.number) = (i.run_id, i.number) LEFT JOIN texts x ON x.id = t.detail
  LEFT JOIN done d ON (d.run_id, d.number) = (i.run_id, i.number) LEFT JOIN workers w ON w.id = d.worker
  WHERE r.uid = p_run AND f.owner = session_user AND i.number > p_after ORDER BY i.number LIMIT least(greatest(p_limit, 0), 1000) $$;

-- The latest run of the same command that is not over and has no live driver.
CREATE FUNCTION unfinished(p_hash TEXT, p_target TEXT, p_threads BIGINT, p_compiler TEXT, p_precision TEXT, p_strategy TEXT, p_seed BIGINT, p_space TEXT)
RETURNS TABLE (o_run TEXT) LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT r.uid FROM programs p JOIN keys k ON k.program_id = p.id JOIN runs r ON r.key_id = k.id JOIN fleet_runs f ON f.run_id = r.id
  WHERE p.hash = p_hash AND (k.target, k.threads, k.compiler, k.precision) = (p_target, p_threads, p_compiler, p_precision)
    AND (r.strategy, r.seed, r.space) = (p_strategy, p_seed, p_space) AND f.owner = session_user AND f.driver IS NOT NULL
    AND NOT f.cancelled AND f.deadline > clock_timestamp() AND f.held < clock_timestamp()
  ORDER BY r.id DESC LIMIT 1 $$;

-- Whether finals are over, and their result; null if they were given up.
CREATE FUNCTION final_result(p_run TEXT, p_number BIGINT) RETURNS TABLE (o_done BOOLEAN, o_result TEXT)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT d.lease IS NOT NULL, n.result FROM runs r JOIN fleet_runs f ON f.run_id = r.id JOIN items i ON i.run_id = r.id AND i.number = p_number
  LEFT JOIN done d ON (d.run_id, d.number) = (i.run_id, i.number) LEFT JOIN finals n ON (n.run_id, n.number) = (i.run_id, i.number)
  WHERE r.uid = p_run AND f.owner = session_user AND i.finals $$;

-- A worker completes finals.
CREATE FUNCTION complete_finals(p_worker BIGINT, p_run BIGINT, p_number BIGINT, p_lease TEXT, p_result TEXT) RETURNS TEXT
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_lease leased;
BEGIN
  IF p_result IS NULL OR octet_length(p_result) > 1048576 THEN PERFORM refuse('22023', 'an outcome is incomplete or impossible'); END IF;
  IF NOT EXISTS (SELECT FROM workers WHERE id = p_worker AND role = session_user) THEN PERFORM refuse('42501', 'there is no such worker of yours'); END IF;
  DELETE FROM leased l WHERE (l.run_id, l.number) = (p_run, p_number) AND l.lease::TEXT = p_lease AND l.worker = p_worker
    AND (SELECT i.finals FROM items i WHERE (i.run_id, i.number) = (l.run_id, l.number)) RETURNING * INTO v_lease;
  IF v_lease.lease IS NULL THEN
    RETURN CASE WHEN EXISTS (SELECT FROM done d JOIN finals n ON (n.run_id, n.number) = (d.run_id, d.number)
                             WHERE (d.run_id, d.number) = (p_run, p_number) AND d.lease::TEXT = p_lease AND d.worker = p_worker) THEN 'again' ELSE 'fenced' END;
  END IF;
  INSERT INTO finals (run_id, number, result) VALUES (p_run, p_number, p_result);
  INSERT INTO done (run_id, number, lease, worker, attempts) VALUES (p_run, p_number, v_lease.lease, p_worker, v_lease.attempts);
  UPDATE workers SET lost = 0 WHERE id = p_worker;
  RETURN 'stored';
END $$;

-- The declared best of a run's key.
CREATE FUNCTION declared(p_run TEXT)
RETURNS TABLE (o_run TEXT, o_number BIGINT, o_seconds DOUBLE PRECISION, o_raw DOUBLE PRECISION, o_origin TEXT, o_algorithm TEXT, o_point BYTEA, o_schedule TEXT)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT e.uid, t.number, b.seconds, t.raw_seconds, o.text, a.text, t.point,
         (SELECT coalesce(string_agg(l.text, '' ORDER BY u.place), '') FROM unnest(unleb128(t.schedule)) WITH ORDINALITY AS u (id, place) JOIN texts l ON l.id = u.id)
  FROM runs r JOIN fleet_runs f ON f.run_id = r.id JOIN bests b ON b.key_id = r.key_id JOIN runs e ON e.id = b.run_id
  JOIN trials t ON (t.run_id, t.number) = (b.run_id, b.number) JOIN texts o ON o.id = t.origin LEFT JOIN texts a ON a.id = t.algorithm
  WHERE r.uid = p_run AND f.owner = session_user $$;

-- Declares a trial of a run the best of its key, replacing the best that it was measured with (a
-- run, `/` and a number). If there is another best by now, declares nothing and returns that one.
CREATE FUNCTION declare_best(p_run TEXT, p_driver TEXT, p_number BIGINT, p_seconds DOUBLE PRECISION, p_against TEXT, p_replaces TEXT) RETURNS TEXT
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_run fleet_runs;
  v_key BIGINT;
  v_current TEXT;
BEGIN
  PERFORM adding();
  v_run := driven(p_run, p_driver);
  IF p_seconds IS NULL OR NOT (p_seconds BETWEEN 1e-10 AND 1e7) THEN PERFORM refuse('22003', 'a number is missing or out of range'); END IF;
  IF p_against IS NULL OR octet_length(p_against) > 65536 OR p_against::JSON IS NULL OR length(p_replaces) > 100 OR p_replaces ~ '[[:cntrl:]]' THEN
    PERFORM refuse('22023', 'a text is missing or too long'); END IF;
  SELECT t.key_id INTO v_key FROM trials t WHERE (t.run_id, t.number) = (v_run.run_id, p_number) AND t.kind = 0 AND t.cut = 0;
  IF v_key IS NULL THEN PERFORM refuse('22023', 'there is no such trial of the run that was measured'); END IF;
  PERFORM FROM keys WHERE id = v_key FOR UPDATE;
  SELECT e.uid || '/' || b.number INTO v_current FROM bests b JOIN runs e ON e.id = b.run_id WHERE b.key_id = v_key;
  IF v_current <> p_run || '/' || p_number AND v_current IS DISTINCT FROM p_replaces THEN RETURN v_current; END IF;
  INSERT INTO bests (key_id, run_id, number, seconds, against, declared, replaces)
    VALUES (v_key, v_run.run_id, p_number, p_seconds, p_against, (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT, p_replaces)
    ON CONFLICT (key_id) DO UPDATE SET run_id = excluded.run_id, number = excluded.number, seconds = excluded.seconds, against = excluded.against,
      declared = excluded.declared, replaces = excluded.replaces;
  RETURN NULL;
END $$;

-- Ends a run and drops its waiting items. An interrupted run keeps them, so that it can be resumed.
CREATE FUNCTION finish(p_run TEXT, p_driver TEXT, p_status TEXT) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_run fleet_runs;
BEGIN
  IF p_status IS NULL OR p_status NOT IN ('finished', 'exhausted', 'interrupted') THEN PERFORM refuse('22023', 'a run ends finished, exhausted or interrupted'); END IF;
  v_run := driven(p_run, p_driver);
  UPDATE runs SET ended = (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT, status = p_status WHERE id = v_run.run_id;
  UPDATE fleet_runs SET held = clock_timestamp() WHERE run_id = v_run.run_id;
  IF p_status <> 'interrupted' THEN PERFORM cancel(p_run); END IF;
END $$;
