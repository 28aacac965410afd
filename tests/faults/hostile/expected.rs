//! What each command may be answered, by the rules and by what its keys hold.

use redis::{Value, from_redis_value_ref};

use super::words::Line;
use crate::support::oracle::grammar::{self, Clause, Fault, Kind, Name, Refusal, Request};
use crate::support::{Reply, all_replies, reply_of};

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    Nothing,
    Log,
    Counter,
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
        Request::Limit { clauses, .. } => clauses
            .iter()
            .flat_map(|clause| faults_of_limit(*name, clause, holds(&clause.key)))
            .collect(),
    };
    if faults.is_empty() {
        Expected::Reply(request)
    } else {
        Expected::Error(Refusal::Faults(faults))
    }
}

fn wrong_type() -> Fault {
    exactly("WRONGTYPE Operation against a key holding the wrong kind of value")
}

fn foreign_set() -> Fault {
    exactly("ERR key holds a sorted set that SLIDE.LOG did not write")
}

fn foreign_hash() -> Fault {
    exactly("ERR key holds a hash that SLIDE.COUNTER did not write")
}

fn exactly(sentence: &str) -> Fault {
    Fault::Exactly(sentence.to_owned())
}

fn fault_of_refund(holds: Holds) -> Option<Fault> {
    match holds {
        Holds::Nothing | Holds::Log | Holds::Counter => None,
        Holds::ForeignSet => Some(foreign_set()),
        Holds::ForeignHash => Some(foreign_hash()),
        Holds::Other => Some(wrong_type()),
    }
}

fn faults_of_limit(name: Name, clause: &Clause, holds: Holds) -> Vec<Fault> {
    let is_log = matches!(holds, Holds::Log | Holds::ForeignSet);
    let kind = match (name, clause.kind) {
        (_, Some(kind)) => kind,
        (Name::Log, None) => Kind::Log,
        // A peek takes the key for what it is.
        (Name::Peek, None) if is_log => Kind::Log,
        _ => Kind::Counter,
    };
    let mut faults = Vec::new();
    if name == Name::Peek && is_log && (clause.buckets.is_some() || clause.strict) {
        faults.push(Fault::Names(vec!["BUCKETS".into(), "STRICT".into()]));
    }
    match (kind, holds) {
        (_, Holds::Nothing) | (Kind::Log, Holds::Log) | (Kind::Counter, Holds::Counter) => {}
        (Kind::Log, Holds::ForeignSet) => faults.push(foreign_set()),
        (Kind::Counter, Holds::ForeignHash) => faults.push(foreign_hash()),
        _ => faults.push(wrong_type()),
    }
    faults
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

/// Checks that a good command's reply is possible at all.
#[track_caller]
pub fn check_reply(line: &Line, request: &Request, reply: &Value) {
    match request {
        Request::Refund { units, .. } => {
            let taken = from_redis_value_ref::<u64>(reply);
            let possible = taken.as_ref().is_ok_and(|taken| taken <= units);
            assert!(possible, "{}: {reply:?}", show(line));
        }
        Request::Limit { clauses, cost, .. } if line.0 == Name::All => {
            let (limited, replies) = all_replies(reply);
            assert_eq!(replies.len(), clauses.len(), "{}", show(line));
            for (clause, reply) in clauses.iter().zip(&replies) {
                check_five(line, clause, *cost, *reply);
            }
            let any = replies.iter().any(|reply| reply.limited == 1);
            assert_eq!(limited, i64::from(any), "{}", show(line));
        }
        Request::Limit {
            clauses,
            cost,
            headers,
            ..
        } => {
            let Value::Array(parts) = reply else {
                panic!("{}: no array but {reply:?}", show(line));
            };
            assert_eq!(parts.len(), 5 + usize::from(*headers), "{}", show(line));
            let five = Value::Array(parts[..5].to_vec());
            let five: Vec<i64> = from_redis_value_ref(&five).expect("five integers");
            check_five(line, &clauses[0], *cost, reply_of(&five));
            if *headers {
                check_headers(line, five[0] == 1, &parts[5]);
            }
        }
    }
}

fn check_five(line: &Line, clause: &Clause, cost: u64, reply: Reply) {
    let int = |number: u64| i64::try_from(number).expect("less than 2^53");
    let longest = clause.tiers.iter().map(|tier| tier.1).max();
    let longest = int(longest.expect("at least one tier"));
    let never = clause.tiers.iter().any(|tier| tier.0 < cost);
    let is_a_limit = clause.tiers.iter().any(|tier| int(tier.0) == reply.limit);
    let possible = matches!(reply.limited, 0 | 1)
        && is_a_limit
        && (0..=reply.limit).contains(&reply.remaining)
        && (-1..=2 * longest).contains(&reply.retry_after)
        && (0..=2 * longest).contains(&reply.reset_after)
        && (reply.retry_after == -1) == never
        && (reply.limited == 0 || reply.retry_after != 0);
    assert!(possible, "{}: {reply:?}", show(line));
}

fn check_headers(line: &Line, limited: bool, headers: &Value) {
    let headers: Vec<(String, String)> = from_redis_value_ref(headers)
        .unwrap_or_else(|error| panic!("{}: {error}: {headers:?}", show(line)));
    let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
    let always = [
        "X-RateLimit-Limit",
        "X-RateLimit-Remaining",
        "X-RateLimit-Reset",
        "RateLimit-Policy",
        "RateLimit",
    ];
    let possible =
        names == always || (limited && names.split_last() == Some((&"Retry-After", &always[..])));
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
