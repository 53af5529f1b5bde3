-- The time of all nodes is this server's clock, and `ahead` of it when a server has taken over whose clock is behind: what
-- one server has shown none takes back. Nodes raise it (`renew_slot`).
ALTER TABLE state ADD COLUMN ahead interval NOT NULL DEFAULT '0';
CREATE FUNCTION cluster_time() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT clock_timestamp() + ahead FROM state
$$;

-- How often something could not be removed. Then `dropped` is when it is tried again, and so is `again`.
ALTER TABLE content ADD COLUMN tries integer NOT NULL DEFAULT 0;
ALTER TABLE epoch ADD COLUMN tries integer NOT NULL DEFAULT 0,
    ADD COLUMN again timestamptz NOT NULL DEFAULT '-infinity';
-- Nodes that had lost their place wrote objects under this run, which never was one.
INSERT INTO epoch (id, ended) OVERRIDING SYSTEM VALUE VALUES (0, true);

-- `false`: the name was taken so that a call still on its way comes too late; nothing was committed.
ALTER TABLE committed ADD COLUMN done boolean NOT NULL DEFAULT true;

-- A slot for a node that starts: one that nobody holds, whose stamps lie furthest back. That of a node that is only silent
-- is taken last: it may be alive, with uploads and downloads under way.
CREATE OR REPLACE FUNCTION claim_slot(p_lease interval, OUT slot integer, OUT epoch bigint, OUT ceiling bigint)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT n.slot, n.ceiling INTO slot, ceiling FROM node n WHERE n.expires < clock_timestamp()
        ORDER BY n.epoch <> 0 AND n.expires > '-infinity', n.ceiling LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO epoch DEFAULT VALUES RETURNING id INTO epoch;
    -- Until it says so itself nobody knows how old its reads are.
    UPDATE node n SET epoch = claim_slot.epoch, expires = clock_timestamp() + p_lease,
        oldest_read = '-infinity', said_at = clock_timestamp() WHERE n.slot = claim_slot.slot;
END $$;

-- A node says that it lives, and what time it has. Answers nothing if its slot has been given to another.
DROP FUNCTION renew_slot(integer, bigint, interval, bigint, timestamptz, bigint);
CREATE FUNCTION renew_slot(
    p_slot integer, p_epoch bigint, p_lease interval, p_ceiling bigint, p_oldest timestamptz, p_bytes bigint,
    p_now timestamptz, p_slack interval
) RETURNS TABLE (microseconds bigint, clock_offset bigint, content_bytes bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE node n SET expires = clock_timestamp() + p_lease, ceiling = greatest(n.ceiling, p_ceiling),
        oldest_read = p_oldest, said_at = clock_timestamp(), content_bytes = n.content_bytes + p_bytes
        WHERE n.slot = p_slot AND n.epoch = p_epoch;
    IF FOUND THEN
        UPDATE state s SET ahead = p_now - clock_timestamp() WHERE p_now > clock_timestamp() + s.ahead + p_slack;
        RETURN QUERY SELECT (extract(epoch FROM cluster_time()) * 1000000)::bigint, s.clock_offset,
            (SELECT sum(n.content_bytes)::bigint FROM node n) FROM state s;
    END IF;
END $$;

-- Makes others wait until this session ends its turn: those that commit to one of the partitions or, without any, all that
-- commit. For decisions that others keep getting ahead of. `commit_batch` takes the same locks in the same order.
CREATE FUNCTION take_turn(p_parts bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one_part bigint;
BEGIN
    IF p_parts IS NULL THEN
        PERFORM pg_advisory_lock(1, 'state'::regclass::oid::integer);
    ELSE
        PERFORM pg_advisory_lock_shared(1, 'state'::regclass::oid::integer);
        FOREACH one_part IN ARRAY p_parts LOOP
            PERFORM pg_advisory_lock(one_part);
        END LOOP;
    END IF;
END $$;

-- Commits a batch of decisions of the same partitions, if all they have read is still so. `p_parts` are the numbers of the
-- partitions, which rise: everybody locks them in this order. The commit is noted for each of them; the first one's note is
-- the name by which who lost an answer asks for it.
--
-- The order matters: first whose turn it is (`take_turn`) and the partitions, then every row that is read or changed, so that
-- nobody changes them before this ends; then what cannot be locked (rows that are not there, ranges) is looked at, each with
-- a fresh snapshot; then the writes. Rows are locked in the order of their keys, those that are only read among those that
-- are changed, so that no two calls wait for each other: `p_run_end` says where each run of one kind ends, `p_run_count` how
-- many of its rows must be of their version (the others, without one, are locked as they are). Answers `outcome`: 0
-- committed, 1 something has changed, 2 a node whose objects are stored has ended, 3 it was decided more than 30 seconds
-- ago. `last` is the last stamp of the partitions.
DROP FUNCTION commit_batch(
    bigint, bigint, bigint, bytea[], bytea[], bigint[], bytea[], bytea[], bigint[], bytea[], bytea[],
    bytea[], bytea[], bytea[], bytea[], bigint[], text[], bytea[], bytea[], bytea[], bigint[], bytea[],
    bytea[], bytea[], bytea[], bigint[], bytea[], bytea[], bytea[], bigint[], bigint[], bigint[], bytea[],
    bigint[], integer[], text[], bigint[], bytea[], bigint[], bigint[]);
CREATE FUNCTION commit_batch(
    p_parts bigint[], p_first bigint, p_stamp bigint,
    p_lock_head bytea[], p_lock_disc bytea[], p_lock_version bigint[],
    p_run_end integer[], p_run_count bigint[], p_run_changes boolean[],
    p_void_head bytea[], p_void_disc bytea[],
    p_from_head bytea[], p_from_rest bytea[], p_to_head bytea[], p_to_rest bytea[], p_count bigint[], p_sum text[],
    p_new_head bytea[], p_new_disc bytea[], p_new_rest bytea[], p_new_version bigint[], p_new_value bytea[],
    p_put_head bytea[], p_put_disc bytea[], p_put_rest bytea[], p_put_version bigint[], p_put_value bytea[],
    p_del_head bytea[], p_del_disc bytea[],
    p_content bigint[], p_content_length bigint[], p_content_sum bigint[], p_content_bytes bytea[],
    p_extent_content bigint[], p_extent_number integer[], p_extent_object text[], p_extent_length bigint[],
    p_extent_sums bytea[], p_epoch bigint[],
    p_dropped bigint[],
    OUT outcome integer, OUT last bigint, OUT dropped_bytes bigint
) LANGUAGE plpgsql AS $$
DECLARE
    found_count bigint;
    found_sum text;
    begun integer := 1;
    one_part bigint;
    one_last bigint;
BEGIN
    outcome := 1;
    dropped_bytes := 0;
    PERFORM pg_advisory_xact_lock_shared(1, 'state'::regclass::oid::integer);
    last := 0;
    FOREACH one_part IN ARRAY p_parts LOOP
        PERFORM pg_advisory_xact_lock(one_part);
        SELECT stamp INTO one_last FROM committed WHERE part = one_part ORDER BY stamp DESC LIMIT 1;
        last := greatest(last, one_last);
    END LOOP;
    IF last >= p_first THEN
        -- Done already, by a call whose answer got lost? Then this one must not end before that one is as durable as any:
        -- a write of its own makes it wait for the standby.
        UPDATE committed SET at = clock_timestamp() WHERE part = p_parts[1] AND stamp = p_stamp AND done;
        IF FOUND THEN
            outcome := 0;
        END IF;
        RETURN;
    END IF;
    -- A stamp is a time, in ticks of 100 ns since the year 1. Names of commits are not kept for ever, so one that is too old
    -- may be that of a node which stood still: others have written since, with later stamps that nobody remembers.
    IF p_first < (extract(epoch FROM cluster_time()) * 10000000)::bigint + 621355968000000000 - 300000000 THEN
        outcome := 3;
        RETURN;
    END IF;

    FOR i IN 1 .. cardinality(p_run_end) LOOP
        IF p_run_changes[i] THEN
            SELECT count(held.version) INTO found_count FROM (
                SELECT k.version FROM unnest(p_lock_head[begun:p_run_end[i]], p_lock_disc[begun:p_run_end[i]],
                    p_lock_version[begun:p_run_end[i]]) AS k (head, disc, version)
                JOIN entry e ON e.head = k.head AND e.disc = k.disc AND (k.version IS NULL OR e.version = k.version)
                FOR UPDATE OF e) AS held;
        ELSE
            SELECT count(held.version) INTO found_count FROM (
                SELECT k.version FROM unnest(p_lock_head[begun:p_run_end[i]], p_lock_disc[begun:p_run_end[i]],
                    p_lock_version[begun:p_run_end[i]]) AS k (head, disc, version)
                JOIN entry e ON e.head = k.head AND e.disc = k.disc AND e.version = k.version
                FOR SHARE OF e) AS held;
        END IF;
        IF found_count <> p_run_count[i] THEN
            RETURN;
        END IF;
        begun := p_run_end[i] + 1;
    END LOOP;
    IF cardinality(p_void_head) > 0 THEN
        PERFORM 1 FROM unnest(p_void_head, p_void_disc) AS k (head, disc)
            JOIN entry e ON e.head = k.head AND e.disc = k.disc;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    FOR i IN 1 .. cardinality(p_from_head) LOOP
        SELECT count(*), coalesce(sum(version), 0)::text INTO found_count, found_sum FROM entry
            WHERE head >= p_from_head[i] AND head <= p_to_head[i]
            AND (head, rest) >= (p_from_head[i], p_from_rest[i]) AND (head, rest) < (p_to_head[i], p_to_rest[i]);
        IF found_count <> p_count[i] OR found_sum <> p_sum[i] THEN
            RETURN;
        END IF;
    END LOOP;
    IF cardinality(p_epoch) > 0 THEN
        SELECT count(*) INTO found_count FROM (
            SELECT 1 FROM epoch WHERE id = ANY (p_epoch) AND NOT ended FOR SHARE) AS held;
        IF found_count <> cardinality(p_epoch) THEN
            outcome := 2;
            RETURN;
        END IF;
    END IF;

    INSERT INTO committed (part, stamp) SELECT part, p_stamp FROM unnest(p_parts) AS part;
    IF cardinality(p_new_head) > 0 THEN
        INSERT INTO entry (head, disc, rest, version, value)
            SELECT * FROM unnest(p_new_head, p_new_disc, p_new_rest, p_new_version, p_new_value) ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS found_count = ROW_COUNT;
        IF found_count <> cardinality(p_new_head) THEN
            RAISE EXCEPTION 'a row has come' USING ERRCODE = 'LZ001';
        END IF;
    END IF;
    IF cardinality(p_put_head) > 0 THEN
        INSERT INTO entry (head, disc, rest, version, value)
            SELECT * FROM unnest(p_put_head, p_put_disc, p_put_rest, p_put_version, p_put_value)
            ON CONFLICT (head, disc) DO UPDATE SET version = excluded.version, value = excluded.value;
    END IF;
    IF cardinality(p_del_head) > 0 THEN
        DELETE FROM entry e USING unnest(p_del_head, p_del_disc) AS k (head, disc)
            WHERE e.head = k.head AND e.disc = k.disc;
    END IF;
    IF cardinality(p_content) > 0 THEN
        INSERT INTO content (id, length, sum, bytes)
            SELECT * FROM unnest(p_content, p_content_length, p_content_sum, p_content_bytes);
    END IF;
    IF cardinality(p_extent_content) > 0 THEN
        INSERT INTO extent (content, number, object, length, sums)
            SELECT * FROM unnest(p_extent_content, p_extent_number, p_extent_object, p_extent_length, p_extent_sums);
    END IF;
    IF cardinality(p_dropped) > 0 THEN
        WITH gone AS (
            UPDATE content SET dropped = clock_timestamp() WHERE id = ANY (p_dropped) AND dropped IS NULL RETURNING length
        ) SELECT coalesce(sum(length), 0)::bigint INTO dropped_bytes FROM gone;
    END IF;
    outcome := 0;
END $$;
