//! The JSON of an entity.
#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| table::fuzzing::entity(body));
