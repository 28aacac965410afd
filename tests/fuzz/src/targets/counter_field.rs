//! A hash's field and value: read as the rules say, and written as they were read.
//!
//! The first line is the field's name, the second its value.

use crate::limiter::counter::{BucketLayout, Buckets};
use crate::oracle::stored;

pub fn check(input: &[u8]) {
    let (name, value) = match input.iter().position(|&byte| byte == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, &[][..]),
    };
    let layout = BucketLayout::parse(name);
    let as_numbers = layout.map(|layout| (layout.window().get(), layout.buckets()));
    assert_eq!(as_numbers, stored::division(name));
    let Some(layout) = layout else {
        return;
    };
    assert_eq!(
        layout.field().as_slice(),
        name,
        "it is not named as it was read"
    );

    let buckets = Buckets::parse(value, layout);
    if let Some(buckets) = &buckets {
        assert_eq!(
            buckets.value().as_slice(),
            value,
            "it is not written as it was read"
        );
    }
    let read = buckets.map(|buckets| stored::Field {
        window: layout.window().get(),
        buckets: layout.buckets(),
        index: buckets.index(),
        counts: buckets.counts().to_vec(),
    });
    assert_eq!(read, stored::field(name, value));
}
