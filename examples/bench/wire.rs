//! A connection that costs the client little: commands are encoded beforehand and sent many at a
//! time, and of the replies only as much is read as tells whether they are what was expected.

use std::io::{Read, Write};
use std::net::TcpStream;

/// How many commands are on their way at once.
const CHUNK: usize = 200;

/// Commands as the server reads them.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    /// Adds a command, written with one space between its words.
    pub fn push(&mut self, line: &str) {
        let count = line.split(' ').count();
        self.bytes.extend(format!("*{count}\r\n").bytes());
        for word in line.split(' ') {
            self.bytes
                .extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
        }
        self.ends.push(self.bytes.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }
}

impl<T: AsRef<str>> FromIterator<T> for Batch {
    fn from_iter<I: IntoIterator<Item = T>>(lines: I) -> Self {
        let mut batch = Self::default();
        for line in lines {
            batch.push(line.as_ref());
        }
        batch
    }
}

#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    buffer: Box<[u8]>,
    at: usize,
    filled: usize,
}

impl Wire {
    pub fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server takes connections");
        stream.set_nodelay(true).expect("a TCP stream");
        Self {
            stream,
            buffer: vec![0; 1 << 16].into(),
            at: 0,
            filled: 0,
        }
    }

    /// Runs commands, pipelined, and says how many replies were arrays whose first integer is not 0:
    /// the limited calls. An error reply ends the program.
    pub fn run(&mut self, batch: &Batch) -> usize {
        let mut limited = 0;
        let mut from = 0;
        for ends in batch.ends.chunks(CHUNK) {
            let to = ends.last().copied().unwrap_or(from);
            self.stream
                .write_all(&batch.bytes[from..to])
                .expect("the server reads");
            from = to;
            limited += ends.iter().filter(|_| self.reply() != 0).count();
        }
        limited
    }

    /// Reads a whole reply, of which it gives the first integer of an array, or 0.
    fn reply(&mut self) -> i64 {
        let (kind, number) = self.header();
        let mut first = None;
        match kind {
            b'$' => self.skip(number),
            b'*' => {
                let mut left = number;
                while left > 0 {
                    let (kind, number) = self.header();
                    match kind {
                        b'*' => left += number,
                        b'$' => self.skip(number),
                        _ => {}
                    }
                    first.get_or_insert(number);
                    left -= 1;
                }
            }
            _ => {}
        }
        first.unwrap_or(0)
    }

    /// The first byte of a line, and the number on the rest of it.
    fn header(&mut self) -> (u8, i64) {
        let kind = self.byte();
        if kind == b'-' {
            self.fail();
        }
        let (mut number, mut sign) = (0_i64, 1);
        loop {
            match self.byte() {
                b'\n' => return (kind, sign * number),
                b'-' => sign = -1,
                digit @ b'0'..=b'9' => {
                    number = number
                        .wrapping_mul(10)
                        .wrapping_add(i64::from(digit - b'0'));
                }
                _ => {}
            }
        }
    }

    /// Passes over a string and the end of its line.
    fn skip(&mut self, length: i64) {
        for _ in 0..length.saturating_add(2).max(0) {
            self.byte();
        }
    }

    fn fail(&mut self) -> ! {
        let mut text = Vec::new();
        loop {
            match self.byte() {
                b'\r' => panic!("the server answered: {}", String::from_utf8_lossy(&text)),
                byte => text.push(byte),
            }
        }
    }

    fn byte(&mut self) -> u8 {
        if self.at == self.filled {
            self.at = 0;
            self.filled = self.stream.read(&mut self.buffer).expect("a reply");
            assert!(self.filled > 0, "the server closed the connection");
        }
        let byte = self.buffer[self.at];
        self.at += 1;
        byte
    }
}
