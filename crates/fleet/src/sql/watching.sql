-- Status functions.

-- The status of each class. Completed items are counted at completion, never recounted.
CREATE FUNCTION status()
RETURNS TABLE (o_class TEXT, o_ready BIGINT, o_leased BIGINT, o_done BIGINT, o_workers BIGINT, o_quarantined BIGINT, o_runs BIGINT, o_kinds BIGINT[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT c.name, coalesce(q.count, 0), coalesce(l.count, 0), (SELECT sum(k)::BIGINT FROM unnest(s.kinds) k), s.workers, s.quarantined,
         (SELECT count(*) FROM fleet_runs f WHERE f.class = c.id AND NOT f.closed AND NOT f.cancelled AND f.deadline > clock_timestamp()), s.kinds
  FROM classes c
  LEFT JOIN (SELECT class, count(*) FROM ready GROUP BY class) q ON q.class = c.id
  LEFT JOIN (SELECT class, count(*) FROM leased GROUP BY class) l ON l.class = c.id
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE w.quarantined IS NULL AND w.seen > clock_timestamp() - interval '2 minutes') AS workers,
           count(*) FILTER (WHERE w.quarantined IS NOT NULL) AS quarantined,
           ARRAY(SELECT c.kinds[k] + coalesce(sum(w.kinds[k]), 0)::BIGINT FROM generate_series(1, 7) k LEFT JOIN workers w ON w.class = c.id GROUP BY k ORDER BY k) AS kinds
    FROM workers w WHERE w.class = c.id) s
  ORDER BY c.name $$;

-- Workers seen in the last hour, and quarantined ones.
CREATE FUNCTION workers_now()
RETURNS TABLE (o_name TEXT, o_class TEXT, o_state TEXT, o_reason TEXT, o_seen DOUBLE PRECISION, o_probe DOUBLE PRECISION, o_held BIGINT, o_kinds BIGINT[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT w.name, c.name,
         CASE WHEN w.quarantined IS NOT NULL THEN 'set aside' WHEN w.seen < clock_timestamp() - interval '2 minutes' THEN 'gone'
              WHEN w.draining THEN 'draining' WHEN h.held > 0 THEN 'busy' ELSE 'idle' END,
         w.quarantined, extract(epoch FROM clock_timestamp() - w.seen)::DOUBLE PRECISION, w.probe, h.held, w.kinds
  FROM workers w JOIN classes c ON c.id = w.class CROSS JOIN LATERAL (SELECT count(*) AS held FROM leased l WHERE l.worker = w.id) h
  WHERE w.seen > clock_timestamp() - interval '1 hour' OR w.quarantined IS NOT NULL
  ORDER BY c.name, w.name LIMIT 10000 $$;

-- The latest runs, those that are not over first.
CREATE FUNCTION runs_now(p_limit INT)
RETURNS TABLE (o_run TEXT, o_class TEXT, o_def TEXT, o_sizes TEXT, o_strategy TEXT, o_owner TEXT, o_items BIGINT, o_waiting BIGINT, o_held BIGINT,
               o_dropped BIGINT, o_best DOUBLE PRECISION, o_age DOUBLE PRECISION, o_status TEXT)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT r.uid, c.name, f.def, f.sizes, r.strategy, f.owner::TEXT, f.items, (SELECT count(*) FROM ready q WHERE q.run_id = f.run_id),
         (SELECT count(*) FROM leased l WHERE l.run_id = f.run_id), f.dropped,
         (SELECT min(b.seconds) FROM (SELECT f.best AS seconds UNION ALL SELECT x.seconds FROM bests x WHERE x.run_id = f.run_id) b),
         extract(epoch FROM clock_timestamp() - f.begun)::DOUBLE PRECISION,
         CASE WHEN r.status IS NOT NULL THEN r.status WHEN f.cancelled THEN 'cancelled' WHEN f.deadline < clock_timestamp() THEN 'over'
              WHEN f.driver IS NOT NULL AND f.held < clock_timestamp() THEN 'left' ELSE 'running' END
  FROM fleet_runs f JOIN runs r ON r.id = f.run_id JOIN classes c ON c.id = f.class
  ORDER BY f.cancelled OR f.deadline < clock_timestamp(), f.run_id DESC LIMIT least(greatest(p_limit, 0), 1000) $$;

-- The best-so-far curve of a run.
CREATE FUNCTION curve(p_run TEXT) RETURNS TABLE (o_elapsed DOUBLE PRECISION, o_seconds DOUBLE PRECISION)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT s.elapsed, s.seconds FROM (
    SELECT t.elapsed, t.seconds, min(t.seconds) OVER (ORDER BY t.elapsed, t.number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM trials t JOIN runs r ON r.id = t.run_id JOIN fleet_runs f ON f.run_id = r.id WHERE r.uid = p_run AND t.kind = 0 AND t.cut = 0) s
  WHERE s.before IS NULL OR s.seconds < s.before ORDER BY s.elapsed LIMIT 1000 $$;

-- The activity of each class in the last `p_seconds` seconds.
CREATE FUNCTION samples_since(p_seconds DOUBLE PRECISION)
RETURNS TABLE (o_class TEXT, o_age DOUBLE PRECISION, o_done BIGINT, o_ready BIGINT, o_leased BIGINT, o_workers BIGINT)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT c.name, extract(epoch FROM clock_timestamp() - s.at)::DOUBLE PRECISION, s.done, s.ready, s.leased, s.workers
  FROM samples s JOIN classes c ON c.id = s.class
  WHERE s.at > clock_timestamp() - make_interval(secs => least(greatest(p_seconds, 0), 86400)) ORDER BY c.name, s.at LIMIT 100000 $$;
