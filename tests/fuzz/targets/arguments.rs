#![no_main]

use slide_fuzz::targets::arguments;

libfuzzer_sys::fuzz_target!(|input: &[u8]| arguments::check(input));
