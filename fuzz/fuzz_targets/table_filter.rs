//! `$filter` of the Table service: parsed and planned.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| table::fuzzing::filter(text));
