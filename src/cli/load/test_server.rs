//! A server for tests that answers as a script says: rightly, wrongly, late or
//! not at all. Written on the protocols alone, so that it shares no generated
//! code with the client under test.

use std::collections::HashMap;
use std::io::{BufReader, BufWriter};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TCompactInputProtocol, TCompactOutputProtocol,
    TFieldIdentifier, TInputProtocol, TListIdentifier, TMessageIdentifier, TMessageType,
    TOutputProtocol, TStructIdentifier, TType,
};
use thrift::transport::{TFramedReadTransport, TFramedWriteTransport};

use super::client::{Protocol, Transport, WireArgs};

/// What the server says of its type, whatever that is called. Describing it is
/// not one of the calls that the script sees.
pub struct Info {
    pub mode: &'static str,
    pub options: &'static str,
    pub first_id: i64,
    pub max_id: i64,
    /// Asked for at each call.
    pub next_id: Box<dyn Fn() -> i64 + Send + Sync>,
    pub left: i64,
    /// While false, the server says that it does not know the type.
    pub known: Arc<AtomicBool>,
}

impl Default for Info {
    fn default() -> Self {
        Info::of("strict", "{}")
    }
}

impl Info {
    pub fn of(mode: &'static str, options: &'static str) -> Self {
        let next_id = Box::new(|| 1);
        let known = Arc::new(AtomicBool::new(true));
        Info { mode, options, first_id: 1, max_id: i64::MAX - 1, next_id, left: 0, known }
    }
}

/// A call as the server sees it.
pub struct Asked {
    pub method: String,
    /// The id type.
    pub id_type: String,
    /// How many calls this server answered before.
    pub number: u64,
    /// How many ids are asked for.
    pub count: i64,
    /// Empty where none is given.
    pub gate_pass: String,
}

/// What the server does about it.
pub enum Reply {
    Id(i64),
    Ranges(Vec<(i64, i64)>),
    Texts(Vec<String>),
    /// `IdGenException`.
    Raise(&'static str, bool),
    /// `ResLong` with this code, and a text in `ext`.
    Original(i32, i64, &'static str),
    /// No answer until the server is stopped.
    Hang,
    /// Ends the connection.
    Close,
}

type Script = dyn Fn(Asked) -> Reply + Send + Sync;

struct Shared {
    info: Info,
    script: Box<Script>,
    wire: WireArgs,
    stopped: AtomicBool,
    calls: AtomicU64,
    sockets: Mutex<Vec<TcpStream>>,
    released: Mutex<bool>,
    release: Condvar,
}

/// Stops when dropped: no connection is answered any more.
pub struct TestServer {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl TestServer {
    pub fn start(script: impl Fn(Asked) -> Reply + Send + Sync + 'static) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::start_at(any, WireArgs::default(), script)
    }

    /// A server of a type that is not a plain strict one.
    pub fn start_of(info: Info, script: impl Fn(Asked) -> Reply + Send + Sync + 'static) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::start_with(any, WireArgs::default(), info, script)
    }

    pub fn start_at(
        address: SocketAddr,
        wire: WireArgs,
        script: impl Fn(Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start_with(address, wire, Info::default(), script)
    }

    fn start_with(
        address: SocketAddr,
        wire: WireArgs,
        info: Info,
        script: impl Fn(Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            info,
            script: Box::new(script),
            wire,
            stopped: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            sockets: Mutex::default(),
            released: Mutex::new(false),
            release: Condvar::new(),
        });
        let for_acceptor = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || accept(&listener, &for_acceptor));
        TestServer { address, shared, acceptor: Some(acceptor) }
    }

    pub fn name(&self) -> String {
        self.address.to_string()
    }

    /// How many calls it got.
    pub fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::SeqCst)
    }

    /// Waits until it got `calls` calls; panics when they do not come.
    pub fn wait_for(&self, calls: u64) {
        let deadline = super::now() + Duration::from_secs(30);
        while self.calls() < calls {
            assert!(super::now() < deadline, "only {} calls came", self.calls());
            std::thread::yield_now();
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the acceptor.
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().unwrap();
        }
        for socket in self.shared.sockets.lock().unwrap().drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
        *self.shared.released.lock().unwrap() = true;
        self.shared.release.notify_all();
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((socket, _)) = listener.accept() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        socket.set_nodelay(true).unwrap();
        let clone = socket.try_clone().unwrap();
        shared.sockets.lock().unwrap().push(clone);
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            let (mut input, mut output) = protocols(&socket, &shared.wire);
            while answer(&shared, &mut *input, &mut *output).is_ok() {}
            let _ = socket.shutdown(Shutdown::Both);
        });
    }
}

type Protocols = (Box<dyn TInputProtocol + Send>, Box<dyn TOutputProtocol + Send>);

fn protocols(socket: &TcpStream, wire: &WireArgs) -> Protocols {
    let input = BufReader::new(socket.try_clone().unwrap());
    let output = BufWriter::new(socket.try_clone().unwrap());
    match (wire.transport, wire.protocol) {
        (Transport::Framed, Protocol::Binary) => (
            Box::new(TBinaryInputProtocol::new(TFramedReadTransport::new(input), true)),
            Box::new(TBinaryOutputProtocol::new(TFramedWriteTransport::new(output), true)),
        ),
        (Transport::Framed, Protocol::Compact) => (
            Box::new(TCompactInputProtocol::new(TFramedReadTransport::new(input))),
            Box::new(TCompactOutputProtocol::new(TFramedWriteTransport::new(output))),
        ),
        (Transport::Unframed, Protocol::Binary) => (
            Box::new(TBinaryInputProtocol::new(input, true)),
            Box::new(TBinaryOutputProtocol::new(output, true)),
        ),
        (Transport::Unframed, Protocol::Compact) => (
            Box::new(TCompactInputProtocol::new(input)),
            Box::new(TCompactOutputProtocol::new(output)),
        ),
    }
}

fn answer(
    shared: &Shared,
    input: &mut dyn TInputProtocol,
    output: &mut dyn TOutputProtocol,
) -> thrift::Result<()> {
    let message = input.read_message_begin()?;
    let (texts, numbers) = arguments(input)?;
    input.read_message_end()?;
    if message.name == "describeType" {
        return reply_with(message, output, |output| match &shared.info {
            info if info.known.load(Ordering::SeqCst) => write_info(output, info),
            _ => write_reply(output, &Reply::Raise("UNKNOWN_TYPE", false)),
        });
    }
    let place = if message.name == "getId" { 2 } else { 1 };
    let gate_pass = match message.name.as_str() {
        "nextShardedId" => 2,
        "issueIds" => 4,
        _ => 5,
    };
    let number = shared.calls.fetch_add(1, Ordering::SeqCst);
    let reply = (shared.script)(Asked {
        method: message.name.clone(),
        id_type: texts.get(&place).cloned().unwrap_or_default(),
        number,
        count: i64::from(numbers.get(&2).copied().unwrap_or(1)),
        gate_pass: texts.get(&gate_pass).cloned().unwrap_or_default(),
    });
    let closed = || thrift::Error::from("the script closes the connection");
    match reply {
        Reply::Close => return Err(closed()),
        Reply::Hang => {
            let guard = shared.released.lock().unwrap();
            drop(shared.release.wait_while(guard, |r| !*r).unwrap());
            return Err(closed());
        }
        _ => {}
    }
    reply_with(message, output, |output| write_reply(output, &reply))
}

fn reply_with(
    message: TMessageIdentifier,
    output: &mut dyn TOutputProtocol,
    write: impl FnOnce(&mut dyn TOutputProtocol) -> thrift::Result<()>,
) -> thrift::Result<()> {
    let (name, sequence) = (message.name, message.sequence_number);
    let message = TMessageIdentifier::new(name, TMessageType::Reply, sequence);
    output.write_message_begin(&message)?;
    output.write_struct_begin(&TStructIdentifier::new("result"))?;
    write(output)?;
    output.write_field_stop()?;
    output.write_struct_end()?;
    output.write_message_end()?;
    output.flush()
}

type Arguments = (HashMap<i16, String>, HashMap<i16, i32>);

fn arguments(input: &mut dyn TInputProtocol) -> thrift::Result<Arguments> {
    let mut arguments = Arguments::default();
    input.read_struct_begin()?;
    loop {
        let field = input.read_field_begin()?;
        let id = field.id.unwrap_or(0);
        match field.field_type {
            TType::Stop => break,
            TType::String => drop(arguments.0.insert(id, input.read_string()?)),
            TType::I32 => drop(arguments.1.insert(id, input.read_i32()?)),
            other => input.skip(other)?,
        }
        input.read_field_end()?;
    }
    input.read_struct_end()?;
    Ok(arguments)
}

fn write_info(output: &mut dyn TOutputProtocol, info: &Info) -> thrift::Result<()> {
    output.write_field_begin(&TFieldIdentifier::new("success", TType::Struct, 0))?;
    output.write_struct_begin(&TStructIdentifier::new("TypeInfo"))?;
    output.write_field_begin(&TFieldIdentifier::new("mode", TType::String, 2))?;
    output.write_string(info.mode)?;
    for (id, number) in [(6, info.first_id), (7, (info.next_id)()), (8, info.max_id)] {
        output.write_field_begin(&TFieldIdentifier::new("number", TType::I64, id))?;
        output.write_i64(number)?;
    }
    output.write_field_begin(&TFieldIdentifier::new("live", TType::Struct, 22))?;
    output.write_struct_begin(&TStructIdentifier::new("LiveState"))?;
    output.write_field_begin(&TFieldIdentifier::new("left", TType::I64, 8))?;
    output.write_i64(info.left)?;
    output.write_field_stop()?;
    output.write_struct_end()?;
    output.write_field_begin(&TFieldIdentifier::new("options", TType::String, 23))?;
    output.write_string(info.options)?;
    output.write_field_stop()?;
    output.write_struct_end()
}

fn write_reply(output: &mut dyn TOutputProtocol, reply: &Reply) -> thrift::Result<()> {
    match reply {
        Reply::Id(id) => {
            output.write_field_begin(&TFieldIdentifier::new("success", TType::I64, 0))?;
            output.write_i64(*id)?;
        }
        Reply::Ranges(ranges) => {
            output.write_field_begin(&TFieldIdentifier::new("success", TType::List, 0))?;
            output.write_list_begin(&TListIdentifier::new(TType::Struct, ranges.len() as i32))?;
            for (first, count) in ranges {
                output.write_struct_begin(&TStructIdentifier::new("IdRange"))?;
                output.write_field_begin(&TFieldIdentifier::new("first", TType::I64, 1))?;
                output.write_i64(*first)?;
                output.write_field_begin(&TFieldIdentifier::new("count", TType::I64, 2))?;
                output.write_i64(*count)?;
                output.write_field_stop()?;
                output.write_struct_end()?;
            }
            output.write_list_end()?;
        }
        Reply::Texts(texts) => {
            output.write_field_begin(&TFieldIdentifier::new("success", TType::List, 0))?;
            output.write_list_begin(&TListIdentifier::new(TType::String, texts.len() as i32))?;
            for text in texts {
                output.write_string(text)?;
            }
            output.write_list_end()?;
        }
        Reply::Raise(code, retriable) => {
            output.write_field_begin(&TFieldIdentifier::new("error", TType::Struct, 1))?;
            output.write_struct_begin(&TStructIdentifier::new("IdGenException"))?;
            output.write_field_begin(&TFieldIdentifier::new("code", TType::String, 1))?;
            output.write_string(code)?;
            output.write_field_begin(&TFieldIdentifier::new("message", TType::String, 2))?;
            output.write_string("as the script says")?;
            output.write_field_begin(&TFieldIdentifier::new("retriable", TType::Bool, 3))?;
            output.write_bool(*retriable)?;
            output.write_field_stop()?;
            output.write_struct_end()?;
        }
        Reply::Original(res, value, ext) => {
            output.write_field_begin(&TFieldIdentifier::new("success", TType::Struct, 0))?;
            output.write_struct_begin(&TStructIdentifier::new("ResLong"))?;
            output.write_field_begin(&TFieldIdentifier::new("res", TType::I32, 1))?;
            output.write_i32(*res)?;
            output.write_field_begin(&TFieldIdentifier::new("value", TType::I64, 2))?;
            output.write_i64(*value)?;
            output.write_field_begin(&TFieldIdentifier::new("ext", TType::String, 3))?;
            output.write_string(ext)?;
            output.write_field_stop()?;
            output.write_struct_end()?;
        }
        Reply::Hang | Reply::Close => unreachable!("these have no reply"),
    }
    Ok(())
}
