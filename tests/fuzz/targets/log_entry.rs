#![no_main]

use slide_fuzz::targets::log_entry;

libfuzzer_sys::fuzz_target!(|input: &[u8]| log_entry::check(input));
