-- Rows of the seam. A b-tree takes no key of more than 2,700 bytes, so a longer one is cut: `head` begins it, `rest` is
-- what follows, and `disc` (the SHA-256 of `rest`, or nothing) makes it unique. Keys sort as (head, rest).
CREATE TABLE entry (
    head bytea NOT NULL,
    disc bytea NOT NULL,
    rest bytea NOT NULL,
    -- The stamp of the decision that wrote the row: a row of the same version is the same row.
    version bigint NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (head, disc)
);

-- Which commits were done, so that one whose answer got lost is not done twice, and the last stamp of each partition.
CREATE TABLE committed (
    part bigint NOT NULL,
    stamp bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (part, stamp)
);
CREATE INDEX committed_at ON committed USING brin (at);

-- Contents. Small ones have their bytes here; the others have them in the byte store, where `extent` says.
CREATE TABLE content (
    id bigint PRIMARY KEY,
    length bigint NOT NULL,
    sum bigint,
    bytes bytea,
    -- When nobody referred to it any longer. Who has it open may still read it; then it is removed.
    dropped timestamptz
);
ALTER TABLE content ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE INDEX content_dropped ON content (dropped) WHERE dropped IS NOT NULL;

CREATE TABLE extent (
    content bigint NOT NULL,
    number integer NOT NULL,
    object text NOT NULL,
    length bigint NOT NULL,
    sums bytea NOT NULL,
    PRIMARY KEY (content, number)
);
CREATE INDEX extent_object ON extent (object);

-- Runs of nodes. Objects in the byte store are named after the run that wrote them; what an ended run has not stored by
-- then it will never store.
CREATE TABLE epoch (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ended boolean NOT NULL DEFAULT false,
    swept boolean NOT NULL DEFAULT false
);

-- Each running node has a slot: its stamps are those that leave its number as remainder, below its ceiling.
CREATE TABLE node (
    slot integer PRIMARY KEY,
    epoch bigint NOT NULL DEFAULT 0,
    expires timestamptz NOT NULL DEFAULT '-infinity',
    ceiling bigint NOT NULL DEFAULT 0,
    -- When the node's oldest read began that still runs, and when it said so.
    oldest_read timestamptz NOT NULL DEFAULT '-infinity',
    said_at timestamptz NOT NULL DEFAULT '-infinity',
    content_bytes bigint NOT NULL DEFAULT 0
);
INSERT INTO node (slot) SELECT generate_series(0, 63);

-- What all nodes share. `clock_offset` is for tests of time, in seconds.
CREATE TABLE state (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    clock_offset bigint NOT NULL DEFAULT 0
);
INSERT INTO state DEFAULT VALUES;

-- Commits a batch of decisions of one partition, if all they have read is still so.
--
-- The order matters: first the partition, then every row that is read or changed, so that nobody changes them before this
-- ends; then what cannot be locked (rows that are not there, ranges) is looked at, each with a fresh snapshot; then the
-- writes. Answers `outcome`: 0 committed, 1 something has changed, 2 a node whose objects are stored has ended.
-- `last` is the partition's last stamp.
CREATE FUNCTION commit_batch(
    p_part bigint, p_first bigint, p_stamp bigint,
    p_read_head bytea[], p_read_disc bytea[], p_read_version bigint[],
    p_own_head bytea[], p_own_disc bytea[], p_own_version bigint[],
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
BEGIN
    outcome := 1;
    dropped_bytes := 0;
    PERFORM pg_advisory_xact_lock(p_part);
    SELECT stamp INTO last FROM committed WHERE part = p_part ORDER BY stamp DESC LIMIT 1;
    last := coalesce(last, 0);
    IF last >= p_first THEN
        -- Done already, by a call whose answer got lost? Then this one must not end before that one is as durable as any:
        -- a write of its own makes it wait for the standby.
        UPDATE committed SET at = clock_timestamp() WHERE part = p_part AND stamp = p_stamp;
        IF FOUND THEN
            outcome := 0;
        END IF;
        RETURN;
    END IF;

    IF cardinality(p_own_head) > 0 THEN
        SELECT count(*) INTO found_count FROM (
            SELECT 1 FROM unnest(p_own_head, p_own_disc, p_own_version) AS k (head, disc, version)
            JOIN entry e ON e.head = k.head AND e.disc = k.disc AND e.version = k.version FOR UPDATE OF e) AS held;
        IF found_count <> cardinality(p_own_head) THEN
            RETURN;
        END IF;
    END IF;
    IF cardinality(p_from_head) + cardinality(p_void_head) > 0 THEN
        PERFORM 1 FROM unnest(p_put_head || p_del_head, p_put_disc || p_del_disc) AS k (head, disc)
            JOIN entry e ON e.head = k.head AND e.disc = k.disc FOR UPDATE OF e;
    END IF;
    IF cardinality(p_read_head) > 0 THEN
        SELECT count(*) INTO found_count FROM (
            SELECT 1 FROM unnest(p_read_head, p_read_disc, p_read_version) AS k (head, disc, version)
            JOIN entry e ON e.head = k.head AND e.disc = k.disc AND e.version = k.version FOR SHARE OF e) AS held;
        IF found_count <> cardinality(p_read_head) THEN
            RETURN;
        END IF;
    END IF;
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

    INSERT INTO committed (part, stamp) VALUES (p_part, p_stamp);
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

-- A slot for a node that starts: one that nobody holds, whose stamps lie furthest back.
CREATE FUNCTION claim_slot(p_lease interval, OUT slot integer, OUT epoch bigint, OUT ceiling bigint)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT n.slot, n.ceiling INTO slot, ceiling FROM node n WHERE n.expires < clock_timestamp()
        ORDER BY n.ceiling LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO epoch DEFAULT VALUES RETURNING id INTO epoch;
    UPDATE node n SET epoch = claim_slot.epoch, expires = clock_timestamp() + p_lease,
        oldest_read = clock_timestamp(), said_at = clock_timestamp() WHERE n.slot = claim_slot.slot;
END $$;

-- A node says that it lives. Answers nothing if its slot has been given to another.
CREATE FUNCTION renew_slot(
    p_slot integer, p_epoch bigint, p_lease interval, p_ceiling bigint, p_oldest timestamptz, p_bytes bigint
) RETURNS TABLE (now timestamptz, clock_offset bigint, content_bytes bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE node n SET expires = clock_timestamp() + p_lease, ceiling = greatest(n.ceiling, p_ceiling),
        oldest_read = p_oldest, said_at = clock_timestamp(), content_bytes = n.content_bytes + p_bytes
        WHERE n.slot = p_slot AND n.epoch = p_epoch;
    IF FOUND THEN
        RETURN QUERY SELECT clock_timestamp(), s.clock_offset,
            (SELECT sum(n.content_bytes)::bigint FROM node n) FROM state s;
    END IF;
END $$;
