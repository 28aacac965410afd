//! The real commands, asked what the models were asked, on a server whose clock is set for each call.

use redis::{Cmd, Connection, pipe};

use crate::limiters::Kind;
use crate::support::clock::Frozen;
use crate::support::{Reply, reply_of};
use crate::traffic::{History, Traffic};

/// How many calls of each traffic and limiter are played to the server.
pub const COMPARED: usize = 2_000;

/// One call for the server, and the model's reply to it.
#[derive(Debug)]
struct Question {
    at: i64,
    key: String,
    command: Cmd,
    expected: Reply,
}

/// Questions of any number of keys, which the server gets in the order of time.
#[derive(Debug, Default)]
pub struct Comparison {
    questions: Vec<Question>,
}

impl Comparison {
    /// Adds the first calls that these clients made, each client with a key of its own.
    pub fn add(&mut self, traffic: Traffic, kind: Kind, clients: &[History]) {
        let numbered = clients.iter().enumerate();
        let calls = numbered.flat_map(|(client, history)| history.iter().map(move |c| (client, c)));
        let questions = calls.take(COMPARED).filter_map(|(client, call)| {
            let key = traffic.key(kind, client);
            Some(Question {
                at: call.at,
                command: kind.command(&key)?,
                key,
                expected: call.reply,
            })
        });
        self.questions.extend(questions);
    }

    /// Asks them all, fails at the first reply that is not the model's, and says how many there were.
    pub fn run(mut self) -> usize {
        // Stable: calls of one key and ms stay in their order.
        self.questions.sort_by_key(|question| question.at);
        let mut frozen = Frozen::start();
        for same_ms in self.questions.chunk_by(|one, next| one.at == next.at) {
            frozen.set(same_ms[0].at);
            ask(&mut frozen.con, same_ms);
        }
        self.questions.len()
    }
}

fn ask(con: &mut Connection, same_ms: &[Question]) {
    let mut pipeline = pipe();
    for question in same_ms {
        pipeline.add_command(question.command.clone());
    }
    let replies: Vec<Vec<i64>> = pipeline
        .query(con)
        .unwrap_or_else(|error| panic!("{error}"));
    for (question, reply) in same_ms.iter().zip(&replies) {
        let Question {
            at, key, expected, ..
        } = question;
        assert_eq!(reply_of(reply), *expected, "server, model: {key} at {at}");
    }
}
