//! The File service from outside: every operation over HTTP, with the answers Azure gives.
//!
//! One file per operation, by Azure's name; what goes across operations has files of its own. Each test has a server to
//! itself.

#[path = "../harness/mod.rs"]
mod harness;
mod signatures;
mod stage;

// Across operations.
mod directory_operations;
mod file_operations;
mod file_sources;
mod names;
mod nfs_properties;
mod not_yet;
mod quota;
mod races;
mod random_trees;
mod requests;
mod rights;
mod share_operations;
mod smb_properties;
mod sparse_files;
mod structured_body;
mod versions;

// Shares.
mod create_permission;
mod create_share;
mod delete_share;
mod get_share_stats;
mod lease_share;
mod list_shares;
mod restore_share;
mod set_file_service_properties;
mod set_share_acl;
mod set_share_metadata;
mod set_share_properties;
mod snapshot_share;

// Directories.
mod create_directory;
mod delete_directory;
mod list_directories_and_files;
mod list_handles;
mod rename_directory;
mod set_directory_metadata;
mod set_directory_properties;

// Files.
mod abort_copy_file;
mod copy_file;
mod create_file;
mod create_hard_link;
mod create_symbolic_link;
mod delete_file;
mod get_file;
mod lease_file;
mod list_ranges;
mod put_range;
mod put_range_from_url;
mod rename_file;
mod set_file_metadata;
mod set_file_properties;

/// Rows that do not get the right answer yet: (`table: row`, why). See [`harness::Table`].
const NOT_YET: &[(&str, &str)] = &[];
