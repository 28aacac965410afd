//! What is stored, read by the rules alone and added up.

use redis::{Connection, cmd};

use crate::support::oracle::stored::{self, Entry, Field};
use crate::support::run;

/// The field of a counter that divides it in four.
pub const FOUR_BUCKETS: &str = "315576000000/4";

/// A log's entries, oldest first, which have to belong together. A missing one has none.
#[track_caller]
pub fn stored_log(con: &mut Connection, key: &str) -> Vec<Entry> {
    let members: Vec<(Vec<u8>, f64)> = run(con, "ZRANGE", &[key, "0", "-1", "WITHSCORES"]);
    stored::log(&members).unwrap_or_else(|| panic!("{key} is no log: {members:?}"))
}

/// A counter's fields. A missing one has none.
#[track_caller]
pub fn stored_counter(con: &mut Connection, key: &str) -> Vec<Field> {
    let pairs: Vec<(String, String)> = run(con, "HGETALL", &[key]);
    let fields = pairs
        .iter()
        .map(|(name, value)| stored::field(name.as_bytes(), value.as_bytes()));
    let fields: Option<Vec<Field>> = fields.collect();
    fields.unwrap_or_else(|| panic!("{key} is no counter: {pairs:?}"))
}

/// The units that a log's entries hold. Their totals have to agree.
#[track_caller]
pub fn units_of_log(con: &mut Connection, key: &str) -> u64 {
    let mut sum = 0;
    for entry in stored_log(con, key) {
        sum += entry.cost;
        assert_eq!(entry.total, sum, "{key}: {entry:?}");
    }
    sum
}

/// The units that the buckets of a field hold; a missing one holds none.
#[track_caller]
pub fn units_of_counter(con: &mut Connection, key: &str, field: &str) -> u64 {
    let Some(value) = run::<Option<String>>(con, "HGET", &[key, field]) else {
        return 0;
    };
    let field = stored::field(field.as_bytes(), value.as_bytes());
    let field = field.unwrap_or_else(|| panic!("{key} is no counter: {value}"));
    field.counts.iter().sum()
}

/// Writes so many entries of cost 1, one a ms, the last at the given time.
pub fn store_log(con: &mut Connection, key: &str, count: i64, last: i64) {
    for first in (1..=count).step_by(1000) {
        let mut add = cmd("ZADD");
        add.arg(key);
        for number in first..(first + 1000).min(count + 1) {
            add.arg(last - count + number).arg(format!("{number}:1"));
        }
        add.query::<()>(con).expect("ZADD");
    }
}
