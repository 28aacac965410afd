#![no_main]

use slide_fuzz::targets::counter_field;

libfuzzer_sys::fuzz_target!(|input: &[u8]| counter_field::check(input));
