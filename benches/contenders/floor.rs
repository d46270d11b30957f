//! The floor: as little as a server can do that takes a frame and gives one.
//!
//! One thread; per event one read, and one write for all whole frames in it.
//! What is in a request is not looked at; the reply is always the same, as long
//! as that to `nextId`. A server that does more cannot be faster over this
//! kernel's sockets.

use std::error::Error as StdError;
use std::io::{self, ErrorKind, Write};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use crate::inbox::{Buffer, Found, Rest};
use crate::wire;

/// The argument with which this program becomes the floor.
pub const ARGUMENT: &str = "serve-floor";

const LISTENER: Token = Token(usize::MAX);
const BUFFER_BYTES: usize = 64 * 1024;

struct Connection {
    stream: TcpStream,
    rest: Rest,
}

/// Serves on a free port, whose address it prints first, until it is ended.
pub fn serve() -> Result<(), Box<dyn StdError>> {
    let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
    println!("{}", listener.local_addr()?);
    io::stdout().flush()?;
    Ok(run(listener)?)
}

/// Serves `listener` for ever.
pub fn run(mut listener: TcpListener) -> io::Result<()> {
    let reply = wire::reply_with(1_000_000_007);
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(1_024);
    let mut buffer = Buffer::new(BUFFER_BYTES);
    let mut replies = Vec::new();
    // By token; those that are closed stay empty.
    let mut connections: Vec<Option<Connection>> = Vec::new();
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => (),
        }
        for event in &events {
            if event.token() == LISTENER {
                while let Some(mut stream) = accept(&listener)? {
                    let token = Token(connections.len());
                    stream.set_nodelay(true)?;
                    poll.registry().register(&mut stream, token, Interest::READABLE)?;
                    connections.push(Some(Connection { stream, rest: Rest::default() }));
                }
                continue;
            }
            let place = &mut connections[event.token().0];
            if let Some(connection) = place
                && connection.answer(&mut buffer, &mut replies, &reply).is_err()
            {
                *place = None;
            }
        }
    }
}

fn accept(listener: &TcpListener) -> io::Result<Option<TcpStream>> {
    match listener.accept() {
        Ok((stream, _)) => Ok(Some(stream)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

impl Connection {
    /// Fails where the connection is to be closed. A peer that does not take its
    /// replies loses it too: clients here never have so many calls in flight.
    fn answer(
        &mut self,
        buffer: &mut Buffer,
        replies: &mut Vec<u8>,
        reply: &[u8],
    ) -> io::Result<()> {
        loop {
            let (filled, all) = match buffer.fill(&mut self.stream, &self.rest)? {
                Found::Bytes { filled, all } => (filled, all),
                Found::Nothing => return Ok(()),
                Found::End => return Err(ErrorKind::UnexpectedEof.into()),
            };
            let mut bytes = buffer.bytes(filled);
            replies.clear();
            while let Some(length) =
                wire::frame_length(bytes).map_err(|()| ErrorKind::InvalidData)?
                && let Some(rest) = bytes.get(length..)
            {
                bytes = rest;
                replies.extend_from_slice(reply);
            }
            self.rest.keep(bytes, buffer)?;
            if !replies.is_empty() && self.stream.write(replies)? != replies.len() {
                return Err(ErrorKind::WriteZero.into());
            }
            if all {
                return Ok(());
            }
        }
    }
}
