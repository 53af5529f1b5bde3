//! Security descriptors of files and directories, in binary form and as SDDL.
