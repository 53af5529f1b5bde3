-- 16 slots instead of 64: the stamps of a node are a fifth of a millisecond apart and not four fifths. The stamps of a slot are
-- others now, so every slot begins above all that were given so far. Run it when no node runs.
UPDATE node SET ceiling = (SELECT max(ceiling) FROM node);
UPDATE node SET content_bytes = (SELECT sum(content_bytes) FROM node) WHERE slot = 0;
UPDATE node SET content_bytes = 0 WHERE slot > 0;
DELETE FROM node WHERE slot > 15;
