#![no_main]

use slide_fuzz::targets::lease;

libfuzzer_sys::fuzz_target!(|input: &[u8]| lease::check(input));
