//! What each command may be answered, by the rules and by what its keys hold.

use redis::{Value, from_redis_value_ref};

use super::words::Line;
use crate::support::oracle::grammar::{
    self, Asks, Fault, Kind, LONGEST_TTL, Name, Refusal, Request,
};
use crate::support::{Reply, headers_of, reply_of};

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    Nothing,
    Log,
    Counter,
    Leases,
    ForeignSet,
    ForeignHash,
    Other,
}

/// What a command has to be answered.
#[derive(Debug)]
pub enum Expected {
    Reply(Request),
    Error(Refusal),
}

/// What is to be expected of a command, given what each key holds.
pub fn expected((name, words): &Line, holds: impl Fn(&[u8]) -> Holds) -> Expected {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let request = match grammar::read(*name, &words) {
        Ok(request) => request,
        Err(refusal) => return Expected::Error(refusal),
    };
    let faults: Vec<Fault> = match &request {
        Request::Refund { key, .. } => fault_of_refund(holds(key)).into_iter().collect(),
        Request::Release { key, .. } => fault_of(Kind::Lease, holds(key)).into_iter().collect(),
        Request::Limit { clauses, .. } => clauses
            .iter()
            .filter_map(|clause| match kind_of(&clause.asks) {
                Some(kind) => fault_of(kind, holds(&clause.key)),
                None => fault_of_peek(&clause.asks, words.len(), holds(&clause.key)),
            })
            .collect(),
    };
    if faults.is_empty() {
        Expected::Reply(request)
    } else {
        Expected::Error(Refusal::Faults(faults))
    }
}

/// Which limiter is meant; PEEK takes the key for what it is.
fn kind_of(asks: &Asks) -> Option<Kind> {
    match asks {
        Asks::Limit { kind, .. } => *kind,
        Asks::Lease { .. } => Some(Kind::Lease),
    }
}

fn exactly(sentence: &str) -> Fault {
    Fault::Exactly(sentence.to_owned())
}

fn wrong_type() -> Fault {
    exactly("WRONGTYPE Operation against a key holding the wrong kind of value")
}

fn foreign_set(kind: Kind) -> Fault {
    exactly(&format!(
        "ERR key holds a sorted set that SLIDE.{} did not write",
        kind.word()
    ))
}

fn foreign_hash() -> Fault {
    exactly("ERR key holds a hash that SLIDE.COUNTER did not write")
}

/// What is wrong with a key for this limiter. One of the module's own is named.
fn fault_of(kind: Kind, holds: Holds) -> Option<Fault> {
    Some(match (kind, holds) {
        (_, Holds::Nothing)
        | (Kind::Log, Holds::Log)
        | (Kind::Counter, Holds::Counter)
        | (Kind::Lease, Holds::Leases) => return None,
        (Kind::Log | Kind::Lease, Holds::ForeignSet) => foreign_set(kind),
        (Kind::Counter, Holds::ForeignHash) => foreign_hash(),
        (Kind::Log, Holds::Leases) => exactly("ERR key holds leases, SLIDE.LOG did not write it"),
        (Kind::Lease, Holds::Log) => exactly("ERR key holds a log, SLIDE.LEASE did not write it"),
        (Kind::Counter, Holds::Log) => {
            exactly("WRONGTYPE key holds a SLIDE.LOG, SLIDE.COUNTER needs a hash")
        }
        (Kind::Counter, Holds::Leases) => {
            exactly("WRONGTYPE key holds a SLIDE.LEASE, SLIDE.COUNTER needs a hash")
        }
        (Kind::Log | Kind::Lease, Holds::Counter) => exactly(&format!(
            "WRONGTYPE key holds a SLIDE.COUNTER, SLIDE.{} needs a sorted set",
            kind.word()
        )),
        (Kind::Counter, Holds::ForeignSet)
        | (Kind::Log | Kind::Lease, Holds::ForeignHash)
        | (_, Holds::Other) => wrong_type(),
    })
}

fn fault_of_refund(holds: Holds) -> Option<Fault> {
    match holds {
        Holds::Counter | Holds::ForeignHash => fault_of(Kind::Counter, holds),
        _ => fault_of(Kind::Log, holds),
    }
}

/// Of a peek of so many words.
fn fault_of_peek(asks: &Asks, words: usize, holds: Holds) -> Option<Fault> {
    let Asks::Limit {
        tiers,
        buckets,
        strict,
        ..
    } = asks
    else {
        panic!("a peek is of no lease: {asks:?}");
    };
    let has_shape = buckets.is_some() || *strict;
    // The key, then pairs of limit and window.
    let has_options = words > 1 + 2 * tiers.len();
    match holds {
        Holds::Leases if tiers.len() > 1 || has_options => Some(exactly(
            "ERR key holds leases: SLIDE.PEEK then takes one limit with any window, and no options",
        )),
        Holds::Leases => None,
        // Which of two faults comes first is not said.
        Holds::ForeignSet if has_shape => Some(Fault::Names(vec!["key holds a".to_owned()])),
        Holds::Log if has_shape => Some(Fault::Names(vec!["BUCKETS".into(), "STRICT".into()])),
        Holds::Counter | Holds::ForeignHash => fault_of(Kind::Counter, holds),
        _ => fault_of(Kind::Log, holds),
    }
}

/// Checks an error's text.
#[track_caller]
pub fn check_error(line: &Line, refusal: &Refusal, error: &str) {
    let told = match refusal {
        Refusal::Arity => {
            let name = line.0.spelling().to_lowercase();
            let sentence = format!("err wrong number of arguments for '{name}' command");
            error.to_lowercase() == sentence
        }
        Refusal::Faults(faults) => faults.iter().any(|fault| fault.is_told_by(error)),
    };
    assert!(told, "{}: {refusal:?}, but got {error}", show(line));
}

/// Checks that a good command's reply is possible at all. In a dry run only the first integer of those
/// over their limit is another, and nobody is told to come back later.
#[track_caller]
pub fn check_reply(line: &Line, request: &Request, enforced: bool, reply: &Value) {
    let (clauses, headers) = match request {
        Request::Refund { units, .. } => return check_count(line, *units, reply),
        Request::Release { ids, .. } => return check_count(line, ids.len() as u64, reply),
        Request::Limit {
            clauses, headers, ..
        } => (clauses, *headers),
    };
    let Value::Array(parts) = reply else {
        panic!("{}: no array but {reply:?}", show(line));
    };
    let (integers, map) = parts.split_at(parts.len() - usize::from(headers));
    let replies: Vec<Reply> = if line.0 == Name::All {
        integers[1..].iter().map(five).collect()
    } else {
        vec![five(&Value::Array(integers.to_vec()))]
    };
    assert_eq!(replies.len(), clauses.len(), "{}", show(line));
    for (clause, reply) in clauses.iter().zip(&replies) {
        check_five(line, &clause.asks, enforced, *reply);
    }
    let limited = replies.iter().any(|reply| reply.limited == 1);
    assert_eq!(integers[0], Value::Int(limited.into()), "{}", show(line));
    if let [map] = map {
        let tiers = clauses.iter().map(|clause| match &clause.asks {
            Asks::Limit { tiers, .. } => tiers.len(),
            Asks::Lease { .. } => 0,
        });
        let can_pass = replies.iter().all(|reply| reply.retry_after >= 0);
        check_headers(line, tiers.sum(), limited && can_pass, map);
    }
}

#[track_caller]
fn five(integers: &Value) -> Reply {
    reply_of(&from_redis_value_ref::<Vec<i64>>(integers).expect("integers"))
}

#[track_caller]
fn check_count(line: &Line, most: u64, reply: &Value) {
    let count = from_redis_value_ref::<u64>(reply);
    let possible = count.as_ref().is_ok_and(|count| *count <= most);
    assert!(possible, "{}: {reply:?}", show(line));
}

fn check_five(line: &Line, asks: &Asks, enforced: bool, reply: Reply) {
    let int = |number: u64| i64::try_from(number).expect("less than 2^53");
    let (limits, never, longest): (Vec<u64>, bool, u64) = match asks {
        // A peek may be of leases.
        Asks::Limit { tiers, cost, .. } => (
            tiers.iter().map(|tier| tier.0).collect(),
            tiers.iter().any(|tier| tier.0 < *cost),
            tiers.iter().map(|tier| 2 * tier.1).max().expect("a tier"),
        ),
        Asks::Lease { limit, .. } => (vec![*limit], *limit == 0, 0),
    };
    let longest = int(longest.max(LONGEST_TTL));
    let over = reply.retry_after != 0;
    let waits = match reply.retry_after {
        -1 => never,
        // Who holds a place keeps it, even if there is none any more.
        0 => !never || matches!(asks, Asks::Lease { .. }),
        wait => !never && (1..=longest).contains(&wait),
    };
    let possible = waits
        && reply.limited == i64::from(over && enforced)
        && limits.into_iter().any(|limit| int(limit) == reply.limit)
        && (0..=reply.limit).contains(&reply.remaining)
        && (0..=longest).contains(&reply.reset_after);
    assert!(possible, "{}: {reply:?}", show(line));
}

/// Checks the names, and that every tier is listed.
fn check_headers(line: &Line, tiers: usize, retry: bool, headers: &Value) {
    let headers = headers_of(headers);
    let mut names = Vec::new();
    if tiers > 0 {
        names.extend([
            "X-RateLimit-Limit",
            "X-RateLimit-Remaining",
            "X-RateLimit-Reset",
            "RateLimit-Policy",
            "RateLimit",
        ]);
    }
    if retry {
        names.push("Retry-After");
    }
    let listed = |name: &str, parameter: &str| match headers.iter().find(|pair| pair.0 == name) {
        Some((_, value)) => value.matches(parameter).count(),
        None => 0,
    };
    let possible = headers.iter().map(|(name, _)| name.as_str()).eq(names)
        && listed("RateLimit-Policy", ";q=") == tiers
        && listed("RateLimit", ";r=") == tiers;
    assert!(possible, "{}: {headers:?}", show(line));
}

/// A command as a failed test shows it, its long words cut.
pub fn show((name, words): &Line) -> String {
    let word = |word: &Vec<u8>| match word.len() {
        ..200 => word.escape_ascii().to_string(),
        length => format!("({length} bytes) {}…", word[..60].escape_ascii()),
    };
    let words: Vec<String> = words.iter().map(word).collect();
    format!("{} {words:?}", name.spelling())
}
