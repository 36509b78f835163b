-- The first format of a log. It runs with a search path that holds the log's own schema alone.

-- Where this log is: the server, the database, the schema, the server's timeline, and when the server's files came to be
-- where they are, which no copy of files carries. NULL: the log's owner may not ask, or this server does not know.
CREATE FUNCTION current_place() RETURNS text[]
LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT
AS $$
DECLARE
  found text[] := ARRAY[
    NULL,
    (SELECT d.oid::text FROM pg_database d WHERE d.datname = current_database()),
    (SELECT n.oid::text FROM pg_namespace n WHERE n.nspname = current_schema()),
    NULL,
    NULL
  ];
BEGIN
  BEGIN
    found[1] := (SELECT s.system_identifier::text FROM pg_control_system() s);
  EXCEPTION WHEN OTHERS THEN
    NULL;
  END;
  BEGIN
    -- The control file names a new timeline only some time after a promotion.
    found[4] := left(pg_walfile_name(pg_current_wal_lsn()), 8);
  EXCEPTION WHEN OTHERS THEN
    NULL;
  END;
  BEGIN
    found[5] := (SELECT extract(epoch FROM f.change)::bigint::text FROM pg_stat_file('PG_VERSION') f);
  EXCEPTION WHEN OTHERS THEN
    NULL;
  END;
  RETURN found;
END $$;

CREATE TABLE info (
  one integer PRIMARY KEY CHECK (one = 1),
  store text NOT NULL,
  place text[] NOT NULL -- where the log was last known to be
);
INSERT INTO info VALUES (1, gen_random_uuid(), current_place());

-- Each append locks its one row, and reads there in which epoch the log is. No append updates it: beside a long
-- transaction each update would leave a dead version behind, and the next lock would have to go past all of them.
CREATE TABLE turn (
  one integer PRIMARY KEY CHECK (one = 1),
  epoch text NOT NULL
);

CREATE TABLE events (
  position bigint PRIMARY KEY CHECK (position > 0),
  version bigint NOT NULL,
  time bigint NOT NULL, -- milliseconds since 1970, UTC
  stream text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  data text COLLATE "C" NOT NULL,
  meta text COLLATE "C" NOT NULL,
  hash bytea NOT NULL,
  UNIQUE (stream, version)
);
CREATE INDEX events_by_type ON events (type, position);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% are append-only', TG_TABLE_NAME;
END $$;
CREATE TRIGGER events_are_append_only BEFORE UPDATE OR TRUNCATE ON events
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The segments that hold the log's first events, which the table no longer has.
CREATE TABLE segments (
  last bigint PRIMARY KEY,
  first bigint NOT NULL,
  name text NOT NULL,
  bytes bigint NOT NULL,
  sha256 text NOT NULL,
  hash bytea NOT NULL, -- of the last event
  first_time bigint NOT NULL, -- milliseconds since 1970, UTC
  last_time bigint NOT NULL,
  types text NOT NULL, -- JSON: how many events it has of each
  keys_from bigint NOT NULL -- the lowest position for which it holds an idempotency key; 0: it holds none
);
-- Of each segment the last event of each stream: by it a stream goes on whose events are all archived.
CREATE TABLE archived_streams (
  stream text COLLATE "C" NOT NULL,
  position bigint NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (stream, position)
);
CREATE TRIGGER segments_are_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON segments
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER archived_streams_are_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON archived_streams
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The last position whose event is in a segment alone.
CREATE FUNCTION archive_end() RETURNS bigint LANGUAGE sql STABLE
SET search_path FROM CURRENT
AS $$ SELECT coalesce(max(last), 0) FROM segments $$;

CREATE FUNCTION refuse_loss() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  IF EXISTS (SELECT FROM gone WHERE gone.position > archive_end()) THEN
    RAISE EXCEPTION 'events are append-only';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER events_stay_unless_archived AFTER DELETE ON events REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_loss();

CREATE TABLE idempotency_keys (
  key text COLLATE "C" PRIMARY KEY,
  digest text COLLATE "C" NOT NULL, -- empty: nobody said what was asked
  first bigint NOT NULL,
  last bigint NOT NULL,
  version bigint NOT NULL
);

-- The keys that segments hold: of each the hash with the number of its segment, from 1 on, in ascending order. A row has all
-- entries from the hash `page` on up to the next row's. One row a key would take some 70 bytes, where this takes 10.
CREATE TABLE archived_keys (
  page bigint PRIMARY KEY,
  entries bigint[] NOT NULL
);

-- 44 bits of a key's hash, with room for the number of a segment in the other 19. Two keys may have one hash, so that the
-- whole key decides, which the segment has.
CREATE FUNCTION hash_key(p_key text) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN ('x' || left(encode(sha256(convert_to(p_key, 'UTF8')), 'hex'), 11))::bit(44)::bigint << 19;

-- The numbers of the segments that may hold a key.
CREATE FUNCTION key_segments(p_key text) RETURNS SETOF bigint LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT entry - k.hash
  FROM (SELECT hash_key(p_key) AS hash OFFSET 0) AS k,
    unnest((SELECT a.entries FROM archived_keys a WHERE a.page <= k.hash ORDER BY a.page DESC LIMIT 1)) AS entry
  WHERE entry BETWEEN k.hash AND k.hash + (1 << 19) - 1;
END;

CREATE TABLE snapshots (
  name text COLLATE "C" PRIMARY KEY,
  version bigint NOT NULL,
  position bigint NOT NULL,
  state text NOT NULL
);

-- A released lease keeps its row, so that its token never starts again from one.
CREATE TABLE leases (
  name text COLLATE "C" PRIMARY KEY,
  holder text NOT NULL,
  token bigint NOT NULL,
  expires_at bigint NOT NULL, -- milliseconds since 1970, UTC
  ttl bigint NOT NULL -- milliseconds for which it was taken
);

-- The lives that the log has had, oldest first; the last row holds now.
CREATE TABLE epochs (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  after bigint NOT NULL, -- the last position of the epoch before
  begun_as text NOT NULL
);
INSERT INTO epochs (id, after, begun_as) VALUES (gen_random_uuid(), 0, 'new');
INSERT INTO turn SELECT 1, id FROM epochs;

-- What each writer was answered last, so that one whose connection was cut can ask. Without an answer (time_ms is NULL)
-- the writer was told that the batch is not in the log: if it arrives after all, it fails.
CREATE TABLE batches (
  writer uuid NOT NULL,
  seq bigint NOT NULL,
  settled_at timestamptz NOT NULL DEFAULT now(),
  time_ms bigint,
  base bigint,
  base_hash bytea,
  verdicts text,
  head_hash bytea,
  PRIMARY KEY (writer, seq)
);

CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE
RETURN floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- Refuses a writer that opened another log here, or this one in another epoch: nothing is granted to it any more.
CREATE FUNCTION require_epoch(p_epoch text) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM FROM turn WHERE epoch = p_epoch;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the log was replaced, or goes on after a restore' USING ERRCODE = 'EL001';
  END IF;
END $$;

-- Appends a batch in the order of its appends, of which each gets its own verdict.
--
-- Lists are texts of one entry a line. `streams`, `keys` and `leases` name each once; `floors` has a version that each of
-- the streams has at least, so that an index is not read from far below; `appends` holds two numbers an append: place in
-- `streams`, number of events. `conditions` holds four more: expected version (-1 any, -2 none, -3 exists), place in `keys`,
-- place in `leases` (0: none), token; it is empty where no append of the batch can be refused. `digests` has a line an
-- append, and the last four one an event.
--
-- `compared` says of keys in how many segments they were looked for and not found.
--
-- Verdicts are four numbers each, as append/writer-messages.ts has them. The rest is for the writer to compute the same
-- hashes again: `base` and `base_hash` are the log's head before the batch, `head_hash` is that after it.
--
-- Each statement of the loops takes about 0.1 µs, and others wait for the turn meanwhile: there are as few as can be.
CREATE FUNCTION append(
  p_writer uuid, p_seq bigint, p_epoch text, p_now bigint, p_known bigint, p_known_hash bytea,
  p_streams text, p_floors bigint[], p_keys text, p_leases text, p_appends bigint[], p_conditions bigint[],
  p_digests text, p_ids text, p_types text, p_datas text, p_metas text, p_compared bigint[],
  OUT time_ms bigint, OUT base bigint, OUT base_hash bytea, OUT verdicts text, OUT head_hash bytea
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT
-- Waiting for a turn longer than this, a writer is better told to come back.
SET lock_timeout = '2s'
-- Planning each batch took a third of the time, and a plan made while the tables were empty would scan them.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
-- Before PostgreSQL 18 a scan that is off counts as so dear that the plan is compiled: 10 ms a batch.
SET jit = off
AS $$
DECLARE
  clock bigint;
  is_current boolean;
  head_time bigint;
  streams text[] := string_to_array(p_streams, E'\n');
  keys text[];
  digests text[];
  ids text[] := string_to_array(p_ids, E'\n');
  types text[] := string_to_array(p_types, E'\n');
  datas text[] := string_to_array(p_datas, E'\n');
  metas text[] := string_to_array(p_metas, E'\n');
  is_conditional boolean := p_conditions <> '{}';
  -- Of each stream.
  stream_versions bigint[];
  -- Of each key: what was kept for it, and whether this batch did so.
  key_digests text[];
  key_firsts bigint[];
  key_lasts bigint[];
  key_versions bigint[];
  -- How many segments may hold it, beside those where it was looked for.
  key_places bigint[];
  new_keys integer[] := '{}';
  -- Of each lease.
  tokens bigint[];
  expiries bigint[];
  -- Of each event; NULL where its append was refused.
  positions bigint[] := array_fill(NULL::bigint, ARRAY[array_length(ids, 1)]);
  versions bigint[] := positions;
  places bigint[] := positions;
  hashes bytea[] := array_fill(NULL::bytea, ARRAY[array_length(ids, 1)]);
  -- Four numbers of each append.
  results bigint[] := array_fill(0::bigint, ARRAY[array_length(p_appends, 1) * 2]);
  -- Of the append that is being decided.
  stream bigint;
  events bigint;
  version bigint;
  expected bigint;
  key integer;
  lease integer;
  digest text;
  -- Each with the line breaks around it, as it is hashed.
  name_line text;
  time_line text;
  head bigint;
  result integer := 0;
  event integer := 0;
BEGIN
  SELECT t.epoch = p_epoch INTO is_current FROM turn t FOR UPDATE;
  IF NOT is_current THEN
    PERFORM require_epoch(p_epoch);
  END IF;
  clock := coalesce(p_now, now_ms());
  SELECT e.position, e.time, e.hash INTO base, head_time, base_hash FROM events e ORDER BY e.position DESC LIMIT 1;
  IF NOT FOUND THEN
    base := 0;
    head_time := 0;
    base_hash := decode(repeat('00', 32), 'hex');
  END IF;
  -- After a failover the writer may have seen what this server never had.
  IF p_known > 0 AND (p_known <> base OR p_known_hash <> base_hash) THEN
    PERFORM FROM events e WHERE e.position = p_known AND e.hash = p_known_hash;
    -- What is archived was there.
    IF NOT FOUND AND p_known > archive_end() THEN
      RAISE EXCEPTION 'position % is not what it was', p_known USING ERRCODE = 'EL001';
    END IF;
  END IF;
  -- A clock that was set back must not make the log run backwards.
  time_ms := greatest(clock, head_time);
  time_line := E'\n' || time_ms || E'\n';
  head := base;
  head_hash := base_hash;

  -- Below zero: the stream is shorter than its floor.
  stream_versions := ARRAY(SELECT coalesce((SELECT e.version FROM events e WHERE e.stream = s.name AND e.version >= s.floor
    ORDER BY e.version DESC LIMIT 1), (SELECT a.version FROM archived_streams a WHERE a.stream = s.name AND a.version >= s.floor
    ORDER BY a.position DESC LIMIT 1), -s.floor) FROM unnest(streams, p_floors) AS s (name, floor));
  IF p_keys <> '' THEN
    keys := string_to_array(p_keys, E'\n');
    digests := string_to_array(p_digests, E'\n');
    SELECT array_agg(i.digest ORDER BY k.at), array_agg(i.first ORDER BY k.at), array_agg(i.last ORDER BY k.at),
        array_agg(i.version ORDER BY k.at)
      INTO key_digests, key_firsts, key_lasts, key_versions
      FROM unnest(keys) WITH ORDINALITY AS k (key, at) LEFT JOIN idempotency_keys i ON i.key = k.key;
    IF EXISTS (SELECT FROM archived_keys) THEN
      -- How many entries of a row have the hash: those up to its last one, without those before its first one.
      SELECT array_agg(
          (SELECT width_bucket(k.hash + (1 << 19) - 1, a.entries) - width_bucket(k.hash - 1, a.entries)
            FROM archived_keys a WHERE a.page <= k.hash ORDER BY a.page DESC LIMIT 1) - coalesce(p_compared[k.at], 0)
          ORDER BY k.at)
        INTO key_places
        FROM (SELECT hash_key(n.key) AS hash, n.at FROM unnest(keys) WITH ORDINALITY AS n (key, at) OFFSET 0) AS k;
    END IF;
  END IF;
  IF p_leases <> '' THEN
    SELECT array_agg(l.token ORDER BY n.at), array_agg(l.expires_at ORDER BY n.at) INTO tokens, expiries
      FROM unnest(string_to_array(p_leases, E'\n')) WITH ORDINALITY AS n (name, at) LEFT JOIN leases l ON l.name = n.name;
  END IF;

  FOR number IN 1 .. array_length(p_appends, 1) / 2 LOOP
    stream := p_appends[number * 2 - 1];
    events := p_appends[number * 2];
    version := stream_versions[stream];
    IF version < 0 THEN
      RAISE EXCEPTION 'stream % had version %', streams[stream], p_floors[stream] USING ERRCODE = 'EL001';
    END IF;
    IF is_conditional THEN
      expected := p_conditions[result + 1];
      key := p_conditions[result + 2];
      lease := p_conditions[result + 3];
      digest := coalesce(digests[number], '');
      IF key > 0 AND key_firsts[key] IS NOT NULL THEN
        IF key_digests[key] <> '' AND digest <> '' AND key_digests[key] <> digest THEN
          results[result + 1] := 5;
        ELSE
          results[result + 1] := 1;
          results[result + 2] := key_firsts[key];
          results[result + 3] := key_lasts[key];
          results[result + 4] := key_versions[key];
        END IF;
      ELSIF key > 0 AND key_places[key] > 0 THEN
        results[result + 1] := 6;
      ELSIF lease > 0 AND (tokens[lease] = p_conditions[result + 4] AND expiries[lease] > clock) IS NOT TRUE THEN
        results[result + 1] := 3;
      ELSIF (expected >= 0 AND version <> expected) OR (expected = -2 AND version > 0) OR (expected = -3 AND version = 0) THEN
        results[result + 1] := 2;
        results[result + 2] := version;
      ELSIF key > 0 THEN
        key_digests[key] := digest;
        key_firsts[key] := head + 1;
        key_lasts[key] := head + events;
        key_versions[key] := version + events;
        new_keys := new_keys || key;
      END IF;
    END IF;
    IF results[result + 1] = 0 THEN
      name_line := E'\n' || streams[stream] || E'\n';
      results[result + 2] := head + 1;
      FOR i IN event + 1 .. event + events LOOP
        head := head + 1;
        version := version + 1;
        head_hash := sha256(head_hash || convert_to(head || name_line || version || E'\n' || ids[i] || E'\n' || types[i] ||
          time_line || datas[i] || E'\n' || metas[i], 'UTF8'));
        positions[i] := head;
        versions[i] := version;
        places[i] := stream;
        hashes[i] := head_hash;
      END LOOP;
      results[result + 3] := head;
      results[result + 4] := version;
      stream_versions[stream] := version;
    END IF;
    result := result + 4;
    event := event + events;
  END LOOP;

  INSERT INTO events (position, version, time, stream, type, id, data, meta, hash)
    SELECT positions[i], versions[i], append.time_ms, streams[places[i]], types[i], ids[i], datas[i], metas[i], hashes[i]
    FROM generate_series(1, array_length(ids, 1)) AS i
    WHERE positions[i] IS NOT NULL;
  IF new_keys <> '{}' THEN
    INSERT INTO idempotency_keys (key, digest, first, last, version)
      SELECT keys[k], key_digests[k], key_firsts[k], key_lasts[k], key_versions[k] FROM unnest(new_keys) AS k;
  END IF;
  verdicts := array_to_string(results, ' ');
  -- Fails when the writer was told that the batch is not in the log.
  INSERT INTO batches VALUES (p_writer, p_seq, DEFAULT, time_ms, base, base_hash, verdicts, head_hash);
  -- The writer sends a batch once it knows what became of all before it.
  IF p_seq % 256 = 0 THEN
    DELETE FROM batches b WHERE b.writer = p_writer AND b.seq < p_seq AND b.time_ms IS NOT NULL;
  END IF;
END $$;

-- Where the log is now; what cannot be asked is taken to be as it was.
CREATE FUNCTION place_now() RETURNS text[]
LANGUAGE sql SECURITY DEFINER
SET search_path FROM CURRENT
AS $$
  SELECT array_agg(coalesce(p.now, p.noted) ORDER BY p.at)
  FROM info i, unnest(i.place, current_place()) WITH ORDINALITY AS p (noted, now, at)
$$;

-- Whether the log is a copy, or was set back to one. What was not known before says nothing.
CREATE FUNCTION is_elsewhere() RETURNS boolean
LANGUAGE sql SECURITY DEFINER
SET search_path FROM CURRENT
AS $$ SELECT EXISTS (SELECT FROM info i, unnest(i.place, place_now()) AS p (noted, now) WHERE p.noted <> p.now) $$;

-- Notes where the log is, for a writer that knows that it has lost nothing on its way there: what it has seen is an event of
-- the log, or the end of a segment.
CREATE FUNCTION note_place(p_epoch text, p_position bigint, p_hash text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT
SET lock_timeout = '2s'
AS $$
BEGIN
  PERFORM FROM turn FOR UPDATE;
  PERFORM require_epoch(p_epoch);
  UPDATE info SET place = place_now()
    WHERE p_position = 0 OR EXISTS (SELECT FROM events e WHERE e.position = p_position AND e.hash = decode(p_hash, 'hex'))
      OR EXISTS (SELECT FROM segments s WHERE s.last = p_position AND s.hash = decode(p_hash, 'hex'));
END $$;

-- Goes on with the log as with a restored one. As `copy`: only where it is elsewhere, since of several that find so one
-- begins the epoch.
CREATE FUNCTION begin_epoch(p_begun_as text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT
SET lock_timeout = '2s'
AS $$
DECLARE
  begun text := gen_random_uuid();
BEGIN
  PERFORM FROM turn FOR UPDATE;
  IF p_begun_as = 'copy' AND NOT is_elsewhere() THEN
    RETURN;
  END IF;
  INSERT INTO epochs (id, after, begun_as)
    VALUES (begun, coalesce((SELECT max(e.position) FROM events e), 0), p_begun_as);
  UPDATE turn SET epoch = begun;
  UPDATE info SET place = place_now();
END $$;

-- What became of a batch whose answer was lost: its answer, or NULLs when it is not in the log and never will be.
CREATE FUNCTION resolve(
  p_writer uuid, p_seq bigint,
  OUT time_ms bigint, OUT base bigint, OUT base_hash bytea, OUT verdicts text, OUT head_hash bytea
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT
SET lock_timeout = '2s'
AS $$
BEGIN
  PERFORM FROM turn FOR UPDATE;
  SELECT b.time_ms, b.base, b.base_hash, b.verdicts, b.head_hash INTO time_ms, base, base_hash, verdicts, head_hash
    FROM batches b WHERE b.writer = p_writer AND b.seq = p_seq;
  IF NOT FOUND THEN
    INSERT INTO batches (writer, seq) VALUES (p_writer, p_seq);
  END IF;
END $$;

-- A lease with more than twice its time left was taken before a clock was set back.
CREATE FUNCTION is_running(p_expires_at bigint, p_ttl bigint, p_now bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE
RETURN p_expires_at > p_now AND p_expires_at - p_now <= 2 * p_ttl;

-- Takes a lease or renews it; no row while another holds it. In turn with appends: once it is answered, everything that
-- was appended under the lease before is in the log, and nothing more will be.
CREATE FUNCTION acquire_lease(
  p_epoch text, p_name text, p_holder text, p_ttl bigint, p_steal boolean, p_now bigint
) RETURNS TABLE (token bigint, expires_at bigint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT
SET lock_timeout = '2s'
AS $$
#variable_conflict use_column
DECLARE
  clock bigint;
  held leases;
  is_renewed boolean;
BEGIN
  PERFORM FROM turn FOR UPDATE;
  PERFORM require_epoch(p_epoch);
  clock := coalesce(p_now, now_ms());
  SELECT * INTO held FROM leases l WHERE l.name = p_name;
  is_renewed := FOUND AND held.expires_at > clock AND held.holder = p_holder;
  IF FOUND AND is_running(held.expires_at, held.ttl, clock) AND NOT is_renewed AND NOT p_steal THEN
    RETURN;
  END IF;
  RETURN QUERY INSERT INTO leases AS l (name, holder, token, expires_at, ttl)
    -- An expired lease gets a new token even for its old holder: what it fenced before may be out of date.
    VALUES (p_name, p_holder, coalesce(held.token, 0) + (NOT is_renewed)::integer, clock + p_ttl, p_ttl)
    ON CONFLICT (name) DO UPDATE SET
      holder = excluded.holder, token = excluded.token, expires_at = excluded.expires_at, ttl = excluded.ttl
    RETURNING l.token, l.expires_at;
END $$;

CREATE FUNCTION release_lease(p_epoch text, p_name text, p_token bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT
SET lock_timeout = '2s'
AS $$
BEGIN
  PERFORM FROM turn FOR UPDATE;
  PERFORM require_epoch(p_epoch);
  UPDATE leases SET expires_at = 0 WHERE name = p_name AND token = p_token;
END $$;

-- Never replaces one that holds more: another instance may be further on.
CREATE FUNCTION save_snapshot(p_epoch text, p_names text, p_version bigint, p_position bigint, p_state text) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path FROM CURRENT
AS $$
  SELECT require_epoch(p_epoch);
  INSERT INTO snapshots AS s (name, version, position, state)
    SELECT name, p_version, p_position, p_state FROM string_to_table(p_names, E'\n') AS name
  ON CONFLICT (name) DO UPDATE SET version = excluded.version, position = excluded.position, state = excluded.state
    WHERE s.version <> excluded.version OR s.position <= excluded.position
$$;

CREATE FUNCTION remove_snapshots(p_epoch text, p_names text) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path FROM CURRENT
AS $$
  SELECT require_epoch(p_epoch);
  DELETE FROM snapshots WHERE name = ANY (string_to_array(p_names, E'\n'))
$$;

-- The version of a stream at a position, if the table has its next event; else that before its first one there.
CREATE FUNCTION version_at(p_stream text, p_position bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path FROM CURRENT
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
  low bigint := coalesce((SELECT min(e.version) FROM events e WHERE e.stream = p_stream), 1) - 1;
  high bigint := coalesce((SELECT max(e.version) FROM events e WHERE e.stream = p_stream), 0) + 1;
  middle bigint;
BEGIN
  WHILE low + 1 < high LOOP
    middle := (low + high) / 2;
    IF (SELECT e.position FROM events e WHERE e.stream = p_stream AND e.version = middle) <= p_position THEN
      low := middle;
    ELSE
      high := middle;
    END IF;
  END LOOP;
  RETURN low;
END $$;

-- The last position whose event was recorded at or before a time; that of the archive's end: the table has none. Times never
-- fall along the log.
CREATE FUNCTION position_until(p_time bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path FROM CURRENT
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
  low bigint := archive_end();
  high bigint := coalesce((SELECT max(e.position) FROM events e), 0) + 1;
  middle bigint;
BEGIN
  WHILE low + 1 < high LOOP
    middle := (low + high) / 2;
    IF (SELECT e.time FROM events e WHERE e.position = middle) <= p_time THEN
      low := middle;
    ELSE
      high := middle;
    END IF;
  END LOOP;
  RETURN low;
END $$;

-- Records a segment and removes its events. Without effect unless it is the next one, and ends with an event of that hash.
-- Of the segment only its file is taken as it is said to be: all else comes from the events that are removed.
CREATE FUNCTION record_segment(p_epoch text, p_file text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT
SET lock_timeout = '2s'
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
  file jsonb := p_file::jsonb;
  first bigint := file ->> 'first';
  last bigint := file ->> 'last';
BEGIN
  PERFORM require_epoch(p_epoch);
  -- One at a time; readers go on.
  LOCK TABLE segments IN SHARE ROW EXCLUSIVE MODE;
  PERFORM FROM events e WHERE e.position = last AND encode(e.hash, 'hex') = file ->> 'hash' AND first = archive_end() + 1;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  -- The next event builds on the newest one.
  IF NOT EXISTS (SELECT FROM events e WHERE e.position > last) THEN
    RAISE EXCEPTION 'the newest event is never archived';
  END IF;
  INSERT INTO segments
    SELECT last, first, file ->> 'name', (file ->> 'bytes')::bigint, file ->> 'sha256', decode(file ->> 'hash', 'hex'),
      min(t.first_time), max(t.last_time), json_object_agg(t.type, t.events)::text, (file ->> 'keysFrom')::bigint
    FROM (
      SELECT e.type, count(*) AS events, min(e.time) AS first_time, max(e.time) AS last_time
      FROM events e WHERE e.position BETWEEN first AND last GROUP BY e.type
    ) t
    HAVING sum(t.events) = last - first + 1;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'events between positions % and % are missing', first, last;
  END IF;
  INSERT INTO archived_streams (stream, position, version)
    SELECT e.stream, max(e.position), max(e.version) FROM events e
    WHERE e.position BETWEEN first AND last GROUP BY e.stream;
  DELETE FROM events e WHERE e.position BETWEEN first AND last;
END $$;

-- Replaces whole keys by their hashes, which the segment that ends at that position holds. A key that the log knows
-- otherwise, or no longer whole, stays as it is.
CREATE FUNCTION record_keys(p_epoch text, p_last bigint, p_keys text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT
SET lock_timeout = '2s'
SET jit = off
-- Each of the keys is looked for in an index, whatever the statistics say of the tables.
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
  segment bigint := (SELECT count(*) FROM segments s WHERE s.last <= p_last HAVING max(s.last) = p_last);
  removed bigint[];
BEGIN
  PERFORM require_epoch(p_epoch);
  LOCK TABLE archived_keys IN SHARE ROW EXCLUSIVE MODE;
  -- The number of a segment has 19 bits.
  IF segment IS NULL OR segment >= 1 << 19 THEN
    RETURN;
  END IF;
  WITH gone AS (
    DELETE FROM idempotency_keys i
    USING json_to_recordset(p_keys::json) AS k (key text, digest text, first bigint, last bigint, version bigint)
    WHERE i.key = k.key AND (i.digest, i.first, i.last, i.version) = (k.digest, k.first, k.last, k.version)
    RETURNING i.key
  )
  SELECT array_agg(hash_key(gone.key) + segment) INTO removed FROM gone;
  -- A row has 64 at the most, which are 512 bytes; a full one is cut in equal parts.
  WITH located AS (
    SELECT coalesce((SELECT max(a.page) FROM archived_keys a WHERE a.page <= r.entry), 0) AS page, r.entry
    FROM unnest(removed) AS r (entry)
  ), merged AS (
    SELECT l.page, l.entry FROM located l
    UNION
    SELECT a.page, unnest(a.entries) FROM (SELECT DISTINCT l.page FROM located l) p JOIN archived_keys a ON a.page = p.page
  ), counted AS (
    SELECT m.page, m.entry, row_number() OVER (PARTITION BY m.page ORDER BY m.entry) - 1 AS at,
      count(*) OVER (PARTITION BY m.page) AS entries
    FROM merged m
  ), cut AS (
    -- Entries of one hash stay together.
    SELECT c.page, c.entry,
      min(c.at * ceil(c.entries / 64.0)::bigint / c.entries) OVER (PARTITION BY c.page, c.entry >> 19) AS part
    FROM counted c
  )
  INSERT INTO archived_keys (page, entries)
    SELECT CASE c.part WHEN 0 THEN c.page ELSE min(c.entry) >> 19 << 19 END, array_agg(c.entry ORDER BY c.entry)
    FROM cut c GROUP BY c.page, c.part
  ON CONFLICT (page) DO UPDATE SET entries = excluded.entries;
END $$;

-- Answers to writers that are long gone; their batches would be refused by the server's own deadline.
CREATE FUNCTION forget_batches() RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path FROM CURRENT
AS $$ DELETE FROM batches WHERE settled_at < now() - interval '1 day' $$;

DO $$
BEGIN
  EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA %I FROM PUBLIC', current_schema());
END $$;
