//! Who has what open: the one table that REST operations and SMB opens both enter.
