//! The words of each command: taken or turned down as the rules say, and read as they say.
//!
//! The first line names the command, each other line is one word.

use crate::commands::arguments::declared::{AGE, BUCKETS, COST, FORCE, HEADERS, STRICT};
use crate::commands::arguments::{
    Clause as Read, Limits, Options, parse, parse_all, parse_ids, parse_lease, parse_refund,
};
use crate::limiter::counter::Shape;
use crate::limiter::lease::{LeaseId, Take};
use crate::limiter::tier::Tiers;
use crate::limiter::units::{Cost, Millis, Timestamp};
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

fn module_reads(name: Name, words: &[&[u8]]) -> Result<Request, Error> {
    let declared: Vec<Argument> = name.options().iter().map(option).collect();
    let key = || words[0].to_vec();
    let args = words[1..].iter().copied();
    match name {
        Name::Refund => {
            let (units, age) = parse_refund(args, &declared)?;
            Ok(Request::Refund {
                key: key(),
                units: units.get(),
                age: age.map(|age| Millis::from(age).get()),
            })
        }
        Name::Release => Ok(Request::Release {
            key: key(),
            ids: parse_ids(args)?.iter().map(id).collect(),
        }),
        Name::All => {
            let all = parse_all(words.iter().copied(), &declared)?;
            let clauses = all.clauses.iter().zip(&words[1..]);
            let clauses = clauses.map(|(clause, key)| Clause {
                key: key.to_vec(),
                asks: clause_asks(clause),
            });
            Ok(request(clauses.collect(), &all.options))
        }
        Name::Lease => {
            let (take, options) = parse_lease(args, &declared)?;
            let (key, asks) = (key(), lease(&take));
            Ok(request(vec![Clause { key, asks }], &options))
        }
        Name::Log | Name::Counter | Name::Peek => {
            let one = parse(args, &declared)?;
            let kind = match name {
                Name::Log => Some(Kind::Log),
                Name::Counter => Some(Kind::Counter),
                _ => None,
            };
            let options = &one.options;
            let asks = limit(kind, &one.tiers, options.cost(), options.shape());
            Ok(request(vec![Clause { key: key(), asks }], options))
        }
    }
}

fn option(word: &&str) -> Argument {
    match *word {
        "COST" => COST,
        "FORCE" => FORCE,
        "HEADERS" => HEADERS,
        "BUCKETS" => BUCKETS,
        "STRICT" => STRICT,
        "AGE" => AGE,
        other => panic!("{other} is no option of the module's"),
    }
}

fn clause_asks(clause: &Read) -> Asks {
    match clause {
        Read::Log(Limits { tiers, cost }) => {
            limit(Some(Kind::Log), tiers, *cost, Options::default().shape())
        }
        Read::Counter(Limits { tiers, cost }, shape) => {
            limit(Some(Kind::Counter), tiers, *cost, *shape)
        }
        Read::Lease(take) => lease(take),
    }
}

fn limit(kind: Option<Kind>, tiers: &Tiers, cost: Cost, shape: Shape) -> Asks {
    let tiers = tiers.each().iter();
    Asks::Limit {
        kind,
        tiers: tiers
            .map(|tier| (tier.limit.get(), tier.window.get()))
            .collect(),
        cost: cost.get(),
        buckets: Some(shape.buckets.get()),
        strict: shape.strict,
    }
}

fn lease(take: &Take) -> Asks {
    // A time to live has no other use than to be added to a time.
    let end = Timestamp::from_millis(0) + take.ttl;
    Asks::Lease {
        limit: take.limit.get(),
        ttl: end.as_millis().unsigned_abs(),
        id: id(&take.id),
    }
}

/// An id is kept as the member that is stored for it.
fn id(id: &LeaseId) -> Vec<u8> {
    let member = id.member();
    member.strip_prefix(b"@").expect("a member").to_vec()
}

fn request(clauses: Vec<Clause>, options: &Options) -> Request {
    Request::Limit {
        clauses,
        force: options.force,
        headers: options.headers,
    }
}
