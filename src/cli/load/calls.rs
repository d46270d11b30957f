//! A call through the generated client, on any transport and protocol, and
//! what its failures are called.
//!
//! A request leaves in one write and a reply is read through a buffer, as the
//! load shares the machine's cores with the server that it measures.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TCompactInputProtocol, TCompactOutputProtocol,
    TInputProtocol, TOutputProtocol,
};
use thrift::transport::{TFramedReadTransport, TFramedWriteTransport};
use thrift::{ApplicationErrorKind, TransportErrorKind};

use super::client::{Protocol, Transport, WireArgs};
use super::errors::{CallError, ErrorClass};
use super::request::{Answer, Method, Request};
use crate::domain::ErrorCode;
use crate::front::thrift::generated::{
    IdGenException, IdGenServiceSyncClient, IdRange, RES_NOT_WORKING, RES_SUCCESS, ResLong,
    TIdGenServiceSyncClient, TypeInfo,
};

/// The socket as the protocols see it: errors that mean the same get the same
/// kind, which the generated client's error type would otherwise blur.
#[derive(Clone)]
pub(super) struct Wire(pub(super) Arc<TcpStream>);

fn unify(error: io::Error) -> io::Error {
    let kind = match error.kind() {
        // How Linux reports that SO_RCVTIMEO or SO_SNDTIMEO ran out.
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut,
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
            io::ErrorKind::ConnectionReset
        }
        _ => return error,
    };
    io::Error::new(kind, error)
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buffer).map_err(unify)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes).map_err(unify)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The same with TLS. One thread uses it; the lock is for the compiler.
#[derive(Clone)]
pub(super) struct TlsWire(Arc<Mutex<StreamOwned<ClientConnection, Wire>>>);

impl TlsWire {
    /// Agrees on TLS, within the time-outs of the socket.
    pub(super) fn agree(
        mut wire: Wire,
        config: Arc<ClientConfig>,
        host: ServerName<'static>,
    ) -> io::Result<Self> {
        let mut connection = ClientConnection::new(config, host).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut wire)?;
        }
        Ok(TlsWire(Arc::new(Mutex::new(StreamOwned::new(connection, wire)))))
    }

    fn stream(&self) -> MutexGuard<'_, StreamOwned<ClientConnection, Wire>> {
        self.0.lock().expect("no holder panics")
    }
}

impl Read for TlsWire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream().read(buffer)
    }
}

impl Write for TlsWire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream().flush()
    }
}

/// The generated client, whatever its transport and protocol: one virtual call
/// per request, instead of one per field of it.
pub(super) trait Calls: Send {
    /// `gate_pass` is one of the request's, where it has any.
    fn call(&mut self, request: &Request, gate_pass: Option<&str>) -> Result<Answer, CallError>;

    /// The settings of `id_type`.
    fn describe(&mut self, id_type: &str) -> Result<TypeInfo, CallError>;
}

pub(super) fn generated_client<R, W>(input: R, output: W, args: &WireArgs) -> Box<dyn Calls>
where
    R: Read + Send + 'static,
    W: Write + Send + 'static,
{
    // Large enough for any reply of one id, and for its request.
    let input = BufReader::with_capacity(4_096, input);
    let output = BufWriter::with_capacity(1_024, output);
    match args.transport {
        Transport::Framed => {
            let input = TFramedReadTransport::new(input);
            let output = TFramedWriteTransport::new(output);
            with_protocol(input, output, args.protocol)
        }
        Transport::Unframed => with_protocol(input, output, args.protocol),
    }
}

fn with_protocol<R, W>(input: R, output: W, protocol: Protocol) -> Box<dyn Calls>
where
    R: Read + Send + 'static,
    W: Write + Send + 'static,
{
    match protocol {
        Protocol::Binary => Box::new(IdGenServiceSyncClient::new(
            TBinaryInputProtocol::new(input, true),
            TBinaryOutputProtocol::new(output, true),
        )),
        Protocol::Compact => Box::new(IdGenServiceSyncClient::new(
            TCompactInputProtocol::new(input),
            TCompactOutputProtocol::new(output),
        )),
    }
}

impl<I, O> Calls for IdGenServiceSyncClient<I, O>
where
    I: TInputProtocol + Send,
    O: TOutputProtocol + Send,
{
    fn call(&mut self, request: &Request, gate_pass: Option<&str>) -> Result<Answer, CallError> {
        let id_type = request.id_type.clone();
        let count = i32::try_from(request.count).unwrap_or(i32::MAX);
        let ranges = match (request.method, gate_pass.map(str::to_owned)) {
            (Method::GetId, _) => {
                let result = self.get_id("idgen-load".to_owned(), id_type);
                return result.map_err(named).and_then(original_answer);
            }
            (Method::NextId, pass) if request.texts => {
                // An empty text counts as not given.
                let pass = pass.unwrap_or_default();
                let texts = self.issue_string_ids(id_type, count, true, String::new(), pass);
                return texts.map(Answer::Texts).map_err(named);
            }
            (Method::NextId, Some(pass)) if count == 1 => {
                return self.next_sharded_id(id_type, pass).map(Answer::One).map_err(named);
            }
            (Method::NextId, None) if count == 1 => {
                return self.next_id(id_type).map(Answer::One).map_err(named);
            }
            (Method::NextId, Some(pass)) => self.issue_ids(id_type, count, String::new(), pass),
            (Method::NextId, None) => self.next_ids(id_type, count),
        };
        Ok(Answer::Many(ranges.map_err(named)?.iter().map(pair).collect()))
    }

    fn describe(&mut self, id_type: &str) -> Result<TypeInfo, CallError> {
        self.describe_type(id_type.to_owned()).map_err(named)
    }
}

fn pair(range: &IdRange) -> (i64, i64) {
    (range.first, range.count)
}

/// The original interface tells failures by a number beside the value. Ours
/// puts the stable code in front of the message; another server may not, and
/// then the number must do.
fn original_answer(result: ResLong) -> Result<Answer, CallError> {
    if let (Some(RES_SUCCESS), Some(id)) = (result.res, result.value) {
        return Ok(Answer::One(id));
    }
    let message = result.ext.unwrap_or_default();
    let named = message
        .split_once(": ")
        .and_then(|(name, _)| ErrorCode::ALL.into_iter().find(|c| c.as_str() == name));
    let res = result.res.unwrap_or(0);
    let passing = named.map_or(res == RES_NOT_WORKING, ErrorCode::is_retriable);
    let class = match passing {
        true => ErrorClass::Passing,
        false => ErrorClass::Refused,
    };
    let kind = named.map_or_else(|| format!("RES_{res}"), |code| code.as_str().to_owned());
    Err(CallError::new(class, &kind, &message))
}

/// What a failed call of the generated client is called.
pub(super) fn named(error: thrift::Error) -> CallError {
    match error {
        thrift::Error::User(error) => match error.downcast_ref::<IdGenException>() {
            Some(exception) => {
                let class = match exception.retriable {
                    Some(true) => ErrorClass::Passing,
                    _ => ErrorClass::Refused,
                };
                let code = exception.code.as_deref().unwrap_or("UNNAMED");
                CallError::new(class, code, exception.message.as_deref().unwrap_or(""))
            }
            None => CallError::new(ErrorClass::Refused, "exception", &error.to_string()),
        },
        thrift::Error::Application(error) => match error.kind {
            ApplicationErrorKind::UnknownMethod => {
                CallError::new(ErrorClass::Refused, "unknown_method", &error.message)
            }
            // The client raises this too, for a reply to something else.
            _ => CallError::new(ErrorClass::Lost, "application", &error.message),
        },
        thrift::Error::Transport(error) => {
            let kind = match error.kind {
                TransportErrorKind::TimedOut => "timeout",
                TransportErrorKind::NotOpen | TransportErrorKind::EndOfFile => "disconnected",
                TransportErrorKind::NegativeSize | TransportErrorKind::SizeLimit => "protocol",
                _ => "transport",
            };
            CallError::new(ErrorClass::Lost, kind, &error.message)
        }
        thrift::Error::Protocol(error) => {
            CallError::new(ErrorClass::Lost, "protocol", &error.message)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use clap::ValueEnum;

    use super::*;

    /// Counts the writes, each of which would be a system call and a packet.
    struct Counting(Arc<AtomicUsize>);

    impl Write for Counting {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_request_leaves_in_one_write() {
        for transport in Transport::value_variants() {
            for protocol in Protocol::value_variants() {
                let pass = Some("gate-1");
                for (method, count, texts, pass) in [
                    (Method::NextId, 1, false, None),
                    (Method::NextId, 9, false, None),
                    (Method::NextId, 1, false, pass),
                    (Method::NextId, 9, false, pass),
                    (Method::NextId, 9, true, pass),
                    (Method::GetId, 1, false, None),
                ] {
                    let wire = WireArgs {
                        transport: *transport,
                        protocol: *protocol,
                        ..WireArgs::default()
                    };
                    let writes = Arc::new(AtomicUsize::new(0));
                    let output = Counting(Arc::clone(&writes));
                    let mut calls = generated_client(io::empty(), output, &wire);
                    // As long as a name may be.
                    let name = "n".repeat(128);
                    let request = Request { texts, ..Request::new(&name, method, count) };
                    let error = calls.call(&request, pass).unwrap_err();
                    assert_eq!(error.kind, "disconnected", "{error}");
                    assert_eq!(writes.load(Ordering::SeqCst), 1, "{wire:?}, {method:?}");
                }
            }
        }
    }
}
