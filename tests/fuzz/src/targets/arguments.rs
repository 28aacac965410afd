//! The words of each command: taken or turned down as the rules say, and read as they say.
//!
//! The first line names the command, each other line is one word.

use crate::commands::arguments::declared::{AGE, BUCKETS, COST, FORCE, HEADERS, STRICT};
use crate::commands::arguments::{
    self as module, Options, parse, parse_all, parse_ids, parse_lease, parse_refund,
};
use crate::limiter::lease::{LeaseId, Take};
use crate::limiter::tier::Tiers;
use crate::limiter::units::{Millis, Timestamp};
use crate::oracle::grammar::{Asks, Clause, Kind, Name, Refusal, Request, read};
use crate::server::{Argument, Error};

pub fn check(input: &[u8]) {
    let mut lines = input.split(|&byte| byte == b'\n');
    let first = lines.next();
    let named = |name: &Name| first == Some(name.spelling().as_bytes());
    let Some(name) = Name::EACH.into_iter().find(named) else {
        return;
    };
    let words: Vec<&[u8]> = lines.collect();
    let expected = read(name, &words);
    if expected == Err(Refusal::Arity) {
        // The server itself turns it down.
        return;
    }
    match (expected, module_reads(name, &words)) {
        (Ok(mut expected), Ok(request)) => {
            spell_out(&mut expected);
            assert_eq!(request, expected);
        }
        (Err(Refusal::Faults(faults)), Err(error)) => {
            let error = error.to_string();
            let told = faults.iter().any(|fault| fault.is_told_by(&error));
            assert!(told, "{faults:?}, but got {error}");
        }
        (expected, got) => panic!("{expected:?}, but got {got:?}"),
    }
}

/// A counter that is not told its number of buckets has one.
fn spell_out(request: &mut Request) {
    if let Request::Limit { clauses, .. } = request {
        for clause in clauses {
            if let Asks::Limit { buckets, .. } = &mut clause.asks {
                buckets.get_or_insert(1);
            }
        }
    }
}

/// The options that a command declares after all else.
fn declared(name: Name) -> &'static [Argument] {
    match name {
        Name::Log => &[COST, FORCE, HEADERS],
        Name::Counter => &[COST, FORCE, HEADERS, BUCKETS, STRICT],
        Name::Lease => &[FORCE],
        Name::Peek => &[COST, HEADERS, BUCKETS, STRICT],
        Name::Refund => &[AGE],
        Name::Release => &[],
        Name::All => &[FORCE, HEADERS],
    }
}

fn module_reads(name: Name, words: &[&[u8]]) -> Result<Request, Error> {
    let key = words[0].to_vec();
    let rest = words[1..].iter().copied();
    match name {
        Name::Refund => {
            let (units, age) = parse_refund(rest, declared(name))?;
            Ok(Request::Refund {
                key,
                units: units.get(),
                age: age.map(|age| Millis::from(age).get()),
            })
        }
        Name::Release => {
            let ids = parse_ids(rest)?.iter().map(bytes).collect();
            Ok(Request::Release { key, ids })
        }
        Name::Lease => {
            let (take, options) = parse_lease(rest, declared(name))?;
            let asks = told_lease(&take);
            Ok(request(vec![Clause { key, asks }], &options))
        }
        Name::All => {
            let all = parse_all(words.iter().copied(), declared(name))?;
            let clauses = all.clauses.iter().zip(&words[1..]);
            let clauses = clauses.map(|(clause, key)| Clause {
                key: key.to_vec(),
                asks: told_clause(clause),
            });
            Ok(request(clauses.collect(), &all.options))
        }
        Name::Log | Name::Counter | Name::Peek => {
            let one = parse(rest, declared(name))?;
            let kind = match name {
                Name::Log => Some(Kind::Log),
                Name::Counter => Some(Kind::Counter),
                _ => None,
            };
            let shape = one.options.shape();
            let asks = Asks::Limit {
                kind,
                tiers: pairs(&one.tiers),
                cost: one.options.cost().get(),
                buckets: Some(shape.buckets.get()),
                strict: shape.strict,
            };
            Ok(request(vec![Clause { key, asks }], &one.options))
        }
    }
}

fn told_clause(clause: &module::Clause) -> Asks {
    let (kind, limits, shape) = match clause {
        module::Clause::Lease(take) => return told_lease(take),
        module::Clause::Log(limits) => (Kind::Log, limits, Options::default().shape()),
        module::Clause::Counter(limits, shape) => (Kind::Counter, limits, *shape),
    };
    Asks::Limit {
        kind: Some(kind),
        tiers: pairs(&limits.tiers),
        cost: limits.cost.get(),
        buckets: Some(shape.buckets.get()),
        strict: shape.strict,
    }
}

fn told_lease(take: &Take) -> Asks {
    let start = Timestamp::from_millis(0);
    Asks::Lease {
        limit: take.limit.get(),
        ttl: (start + take.ttl).since(start).get(),
        id: bytes(&take.id),
    }
}

/// An id without the mark that it is stored with.
fn bytes(id: &LeaseId) -> Vec<u8> {
    id.member()[1..].to_vec()
}

fn pairs(tiers: &Tiers) -> Vec<(u64, u64)> {
    let tiers = tiers.each().iter();
    tiers
        .map(|tier| (tier.limit.get(), tier.window.get()))
        .collect()
}

fn request(clauses: Vec<Clause>, options: &Options) -> Request {
    Request::Limit {
        clauses,
        force: options.force,
        headers: options.headers,
    }
}
