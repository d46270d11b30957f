//! What the fuzz targets reach of the front's inside; only built for them.

use thrift::ApplicationErrorKind;

use super::messages::{Input, Next};
use super::reply::{self, Answer, ReplyTo};
use super::request::ONEWAY;
use super::wire::{Dialect, Header};

/// What a connection makes of the bytes that it receives.
#[derive(Debug, Default, PartialEq)]
pub struct Cut {
    /// What was found, in order, as text.
    pub found: Vec<String>,
    /// To whom the replies in `replies` go, in order.
    pub addressees: Vec<(Dialect, Header, String)>,
    /// What can be answered without a service: everything is refused.
    pub replies: Vec<u8>,
    /// Whether the node would have closed the connection.
    pub closed: bool,
}

/// Cuts `chunks`, which arrive one after another, into messages of at most
/// `limit` bytes, as a connection does. Also tells the most memory, in bytes,
/// that the input held.
pub fn cut<'a>(chunks: impl Iterator<Item = &'a [u8]>, limit: usize) -> (Cut, usize) {
    let mut input = Input::new(limit);
    let mut cut = Cut::default();
    let mut most = 0;
    for mut chunk in chunks {
        while !chunk.is_empty() {
            let space = input.space();
            let (now, later) = chunk.split_at(chunk.len().min(space.capacity() - space.len()));
            space.extend_from_slice(now);
            chunk = later;
            most = most.max(input.capacity());
            while !cut.closed && next(&mut input, &mut cut) {}
            if cut.closed {
                return (cut, most);
            }
        }
    }
    (cut, most)
}

/// Takes the next message; false when there is none, or none can be trusted.
fn next(input: &mut Input, cut: &mut Cut) -> bool {
    let (bytes, cursor) = input.parts();
    match cursor.next(bytes) {
        Next::More => return false,
        Next::Request { request, dialect } => {
            let answer = request.method();
            let text = String::from_utf8_lossy(request.name()).into_owned();
            cut.found.push(format!("{:?} {text} {:?}", request.header, request.args));
            let (kind, why) = match answer {
                Ok(method) => (ApplicationErrorKind::InternalError, method.name().to_owned()),
                Err(Answer::Refused(kind, why)) => (kind, why),
                Err(other) => unreachable!("{other:?} is no refusal"),
            };
            refuse(cut, dialect, request.header, text, Answer::Refused(kind, why));
        }
        Next::Malformed { kind, to, in_sync } => {
            cut.found.push(format!("{kind:?} {:?} {in_sync}", to.map(|to| to.0)));
            cut.closed = !(in_sync && to.is_some());
            if let Some((header, name, dialect)) = to {
                let answer = Answer::Refused(ApplicationErrorKind::ProtocolError, kind.to_string());
                let name = String::from_utf8_lossy(name).into_owned();
                refuse(cut, dialect, header, name, answer);
            }
            if cut.closed {
                return false;
            }
        }
        Next::Foreign(kind) => {
            cut.found.push(format!("{kind:?}"));
            cut.closed = true;
            return false;
        }
    }
    cursor.done();
    true
}

fn refuse(cut: &mut Cut, dialect: Dialect, header: Header, name: String, answer: Answer) {
    if header.kind == ONEWAY {
        return;
    }
    let to = ReplyTo { dialect, strict: header.strict, name: &name, seqid: header.seqid };
    reply::append(&mut cut.replies, &to, answer).expect("a refusal fits every frame");
    cut.addressees.push((dialect, header, name));
}
