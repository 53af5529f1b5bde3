//! The Blob service from outside: every operation over HTTP, with the answers Azure gives.
//!
//! One file per operation, by Azure's name; the tables that go across operations have files of their own. Each test has
//! a server to itself.

#[path = "../harness/mod.rs"]
mod harness;
mod stage;

// Across operations.
mod blob_batch;
mod blob_conditions;
mod blob_operations;
mod container_operations;
mod copy_sources;
mod customer_keys;
mod earlier_folders;
mod not_yet;
mod races;
mod requests;
mod static_website;
mod structured_body;
mod versions;

// Containers.
mod create_container;
mod delete_container;
mod lease_container;
mod list_blobs;
mod list_containers;
mod restore_container;
mod set_container_acl;
mod set_container_metadata;

// Blobs.
mod abort_copy_blob;
mod append_blob_seal;
mod append_block;
mod append_block_from_url;
mod copy_blob;
mod copy_blob_from_url;
mod delete_blob;
mod find_blobs_by_tags;
mod get_blob;
mod get_block_list;
mod get_page_ranges;
mod incremental_copy_blob;
mod lease_blob;
mod put_blob;
mod put_blob_from_url;
mod put_block;
mod put_block_from_url;
mod put_block_list;
mod put_page;
mod put_page_from_url;
mod query_blob_contents;
mod set_blob_immutability_policy;
mod set_blob_metadata;
mod set_blob_properties;
mod set_blob_tags;
mod set_blob_tier;
mod snapshot_blob;
mod undelete_blob;

/// Rows that do not get the right answer yet: (`table: row`, why). See [`harness::Table`].
const NOT_YET: &[(&str, &str)] = &[];
