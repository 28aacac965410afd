//! What a key holds, as any client could have written it.

use redis::{Cmd, Pipeline, Value, cmd, from_redis_value_ref};

use crate::support::oracle::{Counter, Log, Oracle, Shape, stored};

/// What is changed: a log or a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Log,
    Counter,
}

impl Kind {
    /// As a clause begins, and a command's name ends.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Log => "LOG",
            Kind::Counter => "COUNTER",
        }
    }

    fn value_type(self) -> &'static str {
        match self {
            Kind::Log => "sorted set",
            Kind::Counter => "hash",
        }
    }
}

/// The members of a sorted set with their scores, or a hash's fields with their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pub kind: Kind,
    pub pairs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What the rules say of the answer to a call.
#[derive(Debug, Clone)]
pub enum Answer {
    /// What a limiter of this state says.
    Of(Oracle),
    /// That the module did not write this.
    Foreign,
    /// One of these: the call need not have seen what is wrong.
    OfOrForeign(Oracle),
    /// An error, or any reply that is possible at all.
    PossibleOrForeign,
}

impl Content {
    /// Replaces what the key holds. A score that the server does not take leaves it missing.
    pub fn write(&self, pipeline: &mut Pipeline, key: &str, expiry: i64) {
        pipeline.cmd("DEL").arg(key);
        for chunk in self.pairs.chunks(1000) {
            let mut add = cmd(match self.kind {
                Kind::Log => "ZADD",
                Kind::Counter => "HSET",
            });
            add.arg(key);
            for (first, second) in chunk {
                match self.kind {
                    Kind::Log => add.arg(second).arg(first),
                    Kind::Counter => add.arg(first).arg(second),
                };
            }
            pipeline.add_command(add);
        }
        pipeline.cmd("PEXPIREAT").arg(key).arg(expiry);
    }

    /// How many commands [`Content::write`] takes.
    pub fn commands(&self) -> usize {
        2 + self.pairs.len().div_ceil(1000)
    }

    /// The command that reads it back.
    pub fn query(kind: Kind, key: &str) -> Cmd {
        let mut query = cmd(match kind {
            Kind::Log => "ZRANGE",
            Kind::Counter => "HGETALL",
        });
        query.arg(key);
        if kind == Kind::Log {
            query.arg(&["0", "-1", "WITHSCORES"]);
        }
        query
    }

    pub fn of(kind: Kind, reply: &Value) -> Self {
        let pairs = from_redis_value_ref(reply).expect("pairs");
        Content { kind, pairs }
    }

    /// As a failed test shows it.
    pub fn show(&self) -> String {
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let pairs = self.pairs.iter();
        let pairs: Vec<(String, String)> = pairs
            .map(|(first, second)| (text(first), text(second)))
            .collect();
        format!("{:?} {pairs:?}", self.kind)
    }

    fn members(&self) -> Vec<(Vec<u8>, f64)> {
        let score = |score: &[u8]| std::str::from_utf8(score).unwrap().parse().unwrap();
        let pairs = self.pairs.iter();
        pairs
            .map(|(member, text)| (member.clone(), score(text)))
            .collect()
    }

    /// What a call of the key's own limiter is to answer. A refund asks of no window.
    pub fn answer(&self, key: &str, windows: Option<&[u64]>, shape: Shape) -> Answer {
        match (self.kind, windows) {
            (Kind::Log, _) => self.answer_of_log(),
            (Kind::Counter, Some(windows)) => self.answer_of_counter(key, windows, shape.buckets),
            (Kind::Counter, None) => match self.fields().into_iter().collect::<Option<Vec<_>>>() {
                Some(fields) => Answer::Of(counter(key, &fields)),
                None => Answer::Foreign,
            },
        }
    }

    /// What the other limiter's command may be told: of which kind the key is, where that is seen.
    pub fn wrong_type(&self) -> Vec<String> {
        let other = match self.kind {
            Kind::Log => Kind::Counter,
            Kind::Counter => Kind::Log,
        };
        let needs = format!("SLIDE.{} needs a {}", other.word(), other.value_type());
        let named = |word: &str| format!("WRONGTYPE key holds a SLIDE.{word}, {needs}");
        let standard = "WRONGTYPE Operation against a key holding the wrong kind of value";
        if self.newest_is_lease() {
            return vec![named("LEASE")];
        }
        let good = match self.kind {
            Kind::Log => vec![self.newest_is_entry()],
            Kind::Counter => self.fields().iter().map(Option::is_some).collect(),
        };
        let mut told = Vec::new();
        if good.contains(&true) {
            told.push(named(self.kind.word()));
        }
        if good.contains(&false) {
            told.push(standard.to_owned());
        }
        told
    }

    /// The errors that a key can be answered which the module did not write, by a peek or another
    /// call.
    pub fn foreign(&self, by_peek: bool) -> Vec<&'static str> {
        const LEASES: &str = "ERR key holds leases, SLIDE.LOG did not write it";
        const PEEKED_LEASES: &str = "ERR key holds leases: SLIDE.PEEK then takes one limit with any \
             window, and no options";
        const LOG: &str = "ERR key holds a sorted set that SLIDE.LOG did not write";
        let has_lease = || {
            let mut members = self.members().into_iter();
            members.any(|(member, score)| stored::place(&member, score).is_some())
        };
        match self.kind {
            Kind::Counter => vec!["ERR key holds a hash that SLIDE.COUNTER did not write"],
            Kind::Log if self.newest_is_lease() && by_peek => vec![PEEKED_LEASES],
            Kind::Log if self.newest_is_lease() => vec![LEASES],
            Kind::Log if has_lease() => vec![LEASES, LOG],
            Kind::Log => vec![LOG],
        }
    }

    fn newest_is_lease(&self) -> bool {
        self.kind == Kind::Log
            && self
                .members()
                .last()
                .is_some_and(|(member, score)| stored::place(member, *score).is_some())
    }

    fn newest_is_entry(&self) -> bool {
        self.members()
            .last()
            .is_some_and(|(member, score)| stored::entry(member, *score).is_some())
    }

    /// The newest entry is read in any case, the others where they are needed.
    fn answer_of_log(&self) -> Answer {
        let members = self.members();
        if let Some(entries) = stored::log(&members) {
            return Answer::Of(Oracle::Log(Log::holding(&entries)));
        }
        if self.newest_is_entry() {
            Answer::PossibleOrForeign
        } else {
            Answer::Foreign
        }
    }

    fn fields(&self) -> Vec<Option<stored::Field>> {
        let pairs = self.pairs.iter();
        pairs
            .map(|(name, value)| stored::field(name, value))
            .collect()
    }

    /// The fields of the call's windows are read and, where one is missing, some of the others.
    fn answer_of_counter(&self, key: &str, windows: &[u64], buckets: u64) -> Answer {
        let fields = self.fields();
        let mut read = Vec::new();
        let mut missing = false;
        for &window in windows {
            let named = self
                .pairs
                .iter()
                .position(|(name, _)| stored::division(name) == Some((window, buckets)));
            match named.map(|place| fields[place].clone()) {
                Some(Some(field)) => read.push(field),
                Some(None) => return Answer::Foreign,
                None => missing = true,
            }
        }
        let foreign = fields.iter().filter(|field| field.is_none()).count();
        let oracle = counter(key, &read);
        match foreign {
            0 => Answer::Of(oracle),
            _ if !missing => Answer::Of(oracle),
            foreign if foreign == fields.len() => Answer::Foreign,
            _ => Answer::OfOrForeign(oracle),
        }
    }
}

fn counter(key: &str, fields: &[stored::Field]) -> Oracle {
    Oracle::Counter(Counter::holding(key.as_bytes(), fields))
}
