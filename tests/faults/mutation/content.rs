//! What a key holds, as any client could have written it.

use redis::{Cmd, Pipeline, Value, cmd, from_redis_value_ref};

use crate::support::oracle::grammar::Kind;
use crate::support::oracle::{Counter, Log, Oracle, Shape, stored};

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
    pub fn answer(&self, windows: Option<&[u64]>, shape: Shape) -> Answer {
        match (self.kind, windows) {
            (Kind::Log, _) => self.answer_of_log(),
            (Kind::Counter, Some(windows)) => self.answer_of_counter(windows, shape.buckets),
            (Kind::Counter, None) => match self.fields().into_iter().collect::<Option<Vec<_>>>() {
                Some(fields) => Answer::Of(Oracle::Counter(Counter::holding(&fields))),
                None => Answer::Foreign,
            },
        }
    }

    /// The newest entry is read in any case, the others where they are needed.
    fn answer_of_log(&self) -> Answer {
        let members = self.members();
        if let Some(entries) = stored::log(&members) {
            return Answer::Of(Oracle::Log(Log::holding(&entries)));
        }
        let newest = members.last().expect("what is empty is a log");
        match stored::entry(&newest.0, newest.1) {
            None => Answer::Foreign,
            Some(_) => Answer::PossibleOrForeign,
        }
    }

    fn fields(&self) -> Vec<Option<stored::Field>> {
        let pairs = self.pairs.iter();
        pairs
            .map(|(name, value)| stored::field(name, value))
            .collect()
    }

    /// The fields of the call's windows are read and, where one is missing, some of the others.
    fn answer_of_counter(&self, windows: &[u64], buckets: u64) -> Answer {
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
        let oracle = Oracle::Counter(Counter::holding(&read));
        match foreign {
            0 => Answer::Of(oracle),
            _ if !missing => Answer::Of(oracle),
            foreign if foreign == fields.len() => Answer::Foreign,
            _ => Answer::OfOrForeign(oracle),
        }
    }
}
