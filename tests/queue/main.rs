//! The Queue service from outside: every operation over HTTP, with the answers Azure gives.
//!
//! One file per operation, by Azure's name; what goes across operations has files of its own. Each test has a server to
//! itself.

#[path = "../harness/mod.rs"]
mod harness;
mod stage;

// Across operations.
mod consumers;
mod races;
mod requests;
mod rights;
mod versions;

// Queues.
mod create_queue;
mod delete_queue;
mod list_queues;
mod set_queue_acl;
mod set_queue_metadata;
mod set_queue_service_properties;

// Messages.
mod clear_messages;
mod delete_message;
mod get_messages;
mod peek_messages;
mod put_message;
mod update_message;

/// Rows that do not get the right answer yet: (`table: row`, why). See [`harness::Table`].
const NOT_YET: &[(&str, &str)] = &[];
