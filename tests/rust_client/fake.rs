//! A peer that answers as the test wants, or does not: written on the protocols alone,
//! so that it shares no code with the client.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TCompactInputProtocol, TCompactOutputProtocol,
    TFieldIdentifier, TInputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol,
    TStructIdentifier, TType,
};

/// A call as it came. Arguments are texts and numbers by field.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub method: String,
    pub seqid: i32,
    pub texts: HashMap<i16, String>,
    pub numbers: HashMap<i16, i64>,
    /// The number of the connection, and of the call on it, from 0.
    pub connection: usize,
    pub call: usize,
}

/// What the peer does about a call.
pub enum Reply {
    /// An i64 as the answer.
    Id(i64),
    /// Ranges as `(first, count)`.
    Ranges(Vec<(i64, i64)>),
    /// A lease: first, count, step, milliseconds.
    Lease(i64, i64, i64, i64),
    /// An empty answer.
    Void,
    /// An `IdGenException`: code, and whether it is retriable.
    Raise(&'static str, bool),
    /// An i64 as the answer to another call.
    WrongSeqid,
    /// An i64 as the answer of another method.
    WrongName,
    /// A `TApplicationException` of kind 1.
    UnknownMethod,
    /// These bytes.
    Bytes(Vec<u8>),
    /// These bytes, and the end.
    BytesAndClose(Vec<u8>),
    /// The end.
    Close,
    /// An i64, and the end.
    IdAndClose(i64),
    /// Nothing, ever.
    Hang,
}

type Script = dyn Fn(&Seen) -> Reply + Send + Sync;

/// A listening peer. On drop it stops taking connections and cuts those that it has.
pub struct Fake {
    pub addr: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    stop: Arc<Mutex<bool>>,
}

impl Fake {
    pub fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Fake {
        Self::start_at("127.0.0.1:0", script)
    }

    pub fn start_at(addr: &str, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Fake {
        let listener = TcpListener::bind(addr).expect("a port");
        let addr = listener.local_addr().expect("bound");
        let fake =
            Fake { addr, seen: Arc::default(), streams: Arc::default(), stop: Arc::default() };
        let (seen, streams) = (Arc::clone(&fake.seen), Arc::clone(&fake.streams));
        let (stop, script) = (Arc::clone(&fake.stop), Arc::new(script));
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let Ok(stream) = stream else { return };
                if *stop.lock().unwrap() {
                    return;
                }
                streams.lock().unwrap().push(stream.try_clone().expect("a socket"));
                let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
                std::thread::spawn(move || converse(stream, number, &seen, &*script));
            }
        });
        fake
    }

    /// As the configuration of a client calls it.
    pub fn name(&self) -> String {
        self.addr.to_string()
    }

    /// All calls so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Closes all connections; takes new ones still.
    pub fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        *self.stop.lock().unwrap() = true;
        // Wakes the listener, which ends then.
        drop(TcpStream::connect(self.addr));
        self.cut();
    }
}

fn converse(mut stream: TcpStream, connection: usize, log: &Mutex<Vec<Seen>>, script: &Script) {
    for call in 0.. {
        let mut header = [0; 4];
        if stream.read_exact(&mut header).is_err() {
            return;
        }
        let mut message = vec![0; u32::from_be_bytes(header) as usize];
        if stream.read_exact(&mut message).is_err() {
            return;
        }
        let compact = message[0] == 0x82;
        let seen = Seen { connection, call, ..parse(&message, compact) };
        log.lock().unwrap().push(seen.clone());
        let reply = script(&seen);
        let close = matches!(reply, Reply::Close | Reply::BytesAndClose(_) | Reply::IdAndClose(_));
        let bytes = match reply {
            Reply::Hang => {
                // Until the client gives up.
                let _ = stream.read(&mut header);
                return;
            }
            Reply::Close => Vec::new(),
            Reply::Bytes(bytes) | Reply::BytesAndClose(bytes) => bytes,
            reply => framed(&seen, compact, &reply),
        };
        if stream.write_all(&bytes).is_err() || close {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

fn parse(message: &[u8], compact: bool) -> Seen {
    let mut rest = message;
    let mut input: Box<dyn TInputProtocol + '_> = match compact {
        true => Box::new(TCompactInputProtocol::new(&mut rest)),
        false => Box::new(TBinaryInputProtocol::new(&mut rest, true)),
    };
    let begin = input.read_message_begin().expect("a message");
    let mut seen = Seen { method: begin.name, seqid: begin.sequence_number, ..Seen::default() };
    input.read_struct_begin().unwrap();
    loop {
        let field = input.read_field_begin().unwrap();
        let id = field.id.unwrap_or(0);
        match field.field_type {
            TType::Stop => return seen,
            TType::String => {
                seen.texts.insert(id, input.read_string().unwrap());
            }
            TType::I32 => {
                seen.numbers.insert(id, input.read_i32().unwrap().into());
            }
            TType::I64 => {
                seen.numbers.insert(id, input.read_i64().unwrap());
            }
            TType::Bool => {
                seen.numbers.insert(id, input.read_bool().unwrap().into());
            }
            other => panic!("no argument has type {other}"),
        }
        input.read_field_end().unwrap();
    }
}

/// A frame around the message that `reply` stands for.
pub fn framed(to: &Seen, compact: bool, reply: &Reply) -> Vec<u8> {
    let mut message = Vec::new();
    {
        let mut out: Box<dyn TOutputProtocol + '_> = match compact {
            true => Box::new(TCompactOutputProtocol::new(&mut message)),
            false => Box::new(TBinaryOutputProtocol::new(&mut message, true)),
        };
        write(&mut *out, to, reply).expect("memory takes every byte");
    }
    let mut frame = (message.len() as u32).to_be_bytes().to_vec();
    frame.append(&mut message);
    frame
}

fn write(out: &mut dyn TOutputProtocol, to: &Seen, reply: &Reply) -> thrift::Result<()> {
    let (name, kind, seqid) = match reply {
        Reply::WrongSeqid => (to.method.as_str(), TMessageType::Reply, to.seqid + 1),
        Reply::WrongName => ("another", TMessageType::Reply, to.seqid),
        Reply::UnknownMethod => (to.method.as_str(), TMessageType::Exception, to.seqid),
        _ => (to.method.as_str(), TMessageType::Reply, to.seqid),
    };
    out.write_message_begin(&TMessageIdentifier::new(name, kind, seqid))?;
    out.write_struct_begin(&TStructIdentifier::new("result"))?;
    let number = |out: &mut dyn TOutputProtocol, id, value| {
        out.write_field_begin(&TFieldIdentifier::new("", TType::I64, id))?;
        out.write_i64(value)?;
        out.write_field_end()
    };
    match reply {
        Reply::Id(id) | Reply::IdAndClose(id) => number(out, 0, *id)?,
        Reply::WrongSeqid | Reply::WrongName => number(out, 0, 1)?,
        Reply::Ranges(ranges) => {
            out.write_field_begin(&TFieldIdentifier::new("", TType::List, 0))?;
            let list = thrift::protocol::TListIdentifier::new(TType::Struct, ranges.len() as i32);
            out.write_list_begin(&list)?;
            for &(first, count) in ranges {
                out.write_struct_begin(&TStructIdentifier::new("IdRange"))?;
                number(out, 1, first)?;
                number(out, 2, count)?;
                out.write_field_stop()?;
                out.write_struct_end()?;
            }
            out.write_list_end()?;
            out.write_field_end()?;
        }
        Reply::Lease(first, count, step, ttl_ms) => {
            out.write_field_begin(&TFieldIdentifier::new("", TType::Struct, 0))?;
            out.write_struct_begin(&TStructIdentifier::new("RangeLease"))?;
            for (id, value) in [(1, first), (2, count), (3, step), (4, ttl_ms)] {
                number(out, id, *value)?;
            }
            out.write_field_stop()?;
            out.write_struct_end()?;
            out.write_field_end()?;
        }
        Reply::Raise(code, retriable) => {
            out.write_field_begin(&TFieldIdentifier::new("", TType::Struct, 1))?;
            out.write_struct_begin(&TStructIdentifier::new("IdGenException"))?;
            for (id, text) in [(1, *code), (2, "for tests"), (4, "a_field")] {
                if id == 4 {
                    out.write_field_begin(&TFieldIdentifier::new("", TType::Bool, 3))?;
                    out.write_bool(*retriable)?;
                    out.write_field_end()?;
                }
                out.write_field_begin(&TFieldIdentifier::new("", TType::String, id))?;
                out.write_string(text)?;
                out.write_field_end()?;
            }
            out.write_field_stop()?;
            out.write_struct_end()?;
            out.write_field_end()?;
        }
        Reply::UnknownMethod => {
            out.write_field_begin(&TFieldIdentifier::new("", TType::String, 1))?;
            out.write_string("no such method")?;
            out.write_field_end()?;
            out.write_field_begin(&TFieldIdentifier::new("", TType::I32, 2))?;
            out.write_i32(1)?;
            out.write_field_end()?;
        }
        Reply::Void | Reply::Bytes(_) | Reply::BytesAndClose(_) | Reply::Close | Reply::Hang => {}
    }
    out.write_field_stop()?;
    out.write_struct_end()?;
    out.write_message_end()?;
    out.flush()
}

/// A script that gives leases as long as they are asked for, one after another.
pub fn leases() -> impl Fn(&Seen) -> Reply + Send + Sync + 'static {
    let next = std::sync::atomic::AtomicI64::new(1);
    move |seen| {
        let (count, ttl_ms) = (seen.numbers[&2], seen.numbers[&3]);
        let first = next.fetch_add(count, std::sync::atomic::Ordering::SeqCst);
        Reply::Lease(first, count, 1, ttl_ms)
    }
}
