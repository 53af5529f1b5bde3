-- Texts that all nodes share and people change: the accounts.
CREATE TABLE setting (
    name text PRIMARY KEY,
    -- Another one with each change.
    version bigint NOT NULL,
    value text NOT NULL
);
