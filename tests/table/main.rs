//! The Table service from outside: every operation over HTTP, with the answers Azure gives.
//!
//! One file per operation, by Azure's name; what goes across operations has files of its own. Each test has a server to
//! itself.

#[path = "../harness/mod.rs"]
mod harness;
mod stage;

// Across operations.
mod entity_operations;
mod payloads;
mod requests;
mod rights;
mod transfers;

// The service and its tables.
mod set_table_acl;
mod tables;

// Entities.
mod entity_group_transaction;
mod query_entities;

/// Rows that do not get the right answer yet: (`table: row`, why). See [`harness::Table`].
const NOT_YET: &[(&str, &str)] = &[];
