//! The words of each command: taken or turned down as the rules say, and read as they say.
//!
//! The first line names the command, each other line is one word.

use crate::commands::arguments::{Keyword, Limiter, Options, parse, parse_all, parse_units};
use crate::limiter::counter::Shape;
use crate::limiter::tier::Tiers;
use crate::oracle::grammar::{Clause, Kind, Name, Refusal, Request, read};
use crate::server::Error;

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
            clause.buckets.get_or_insert(1);
        }
    }
}

fn module_reads(name: Name, words: &[&[u8]]) -> Result<Request, Error> {
    match name {
        Name::Refund => Ok(Request::Refund {
            key: words[0].to_vec(),
            units: parse_units(words.get(1).copied())?.get(),
        }),
        Name::All => {
            let all = parse_all(words.iter().copied())?;
            let keys = &words[1..];
            let clauses = all.clauses.iter().zip(keys).map(|(clause, key)| {
                let (kind, shape) = match clause.limiter {
                    Limiter::Log => (Kind::Log, Options::default().shape()),
                    Limiter::Counter(shape) => (Kind::Counter, shape),
                };
                told(key, Some(kind), &clause.tiers, shape)
            });
            Ok(request(clauses.collect(), &all.options))
        }
        Name::Log | Name::Counter | Name::Peek => {
            let known: Vec<Keyword> = name.options().iter().map(keyword).collect();
            let one = parse(words[1..].iter().copied(), &known)?;
            let clause = told(words[0], None, &one.tiers, one.options.shape());
            Ok(request(vec![clause], &one.options))
        }
    }
}

fn keyword(option: &&str) -> Keyword {
    match *option {
        "COST" => Keyword::Cost,
        "FORCE" => Keyword::Force,
        "HEADERS" => Keyword::Headers,
        "BUCKETS" => Keyword::Buckets,
        _ => Keyword::Strict,
    }
}

fn told(key: &[u8], kind: Option<Kind>, tiers: &Tiers, shape: Shape) -> Clause {
    let tiers = tiers.each().iter();
    Clause {
        key: key.to_vec(),
        kind,
        tiers: tiers
            .map(|tier| (tier.limit.get(), tier.window.get()))
            .collect(),
        buckets: Some(shape.buckets.get()),
        strict: shape.strict,
    }
}

fn request(clauses: Vec<Clause>, options: &Options) -> Request {
    Request::Limit {
        clauses,
        cost: options.cost().get(),
        force: options.force,
        headers: options.headers,
    }
}
