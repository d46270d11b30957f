//! One TCP connection: a call out, its answer in, one at a time.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::Protocol;
use super::wire::{Call, HEADER, Said, decode, encode};

/// Buffers that one long answer has made larger than this are not kept.
const BUFFER_KEPT: usize = 64 * 1024;

/// Why there was no answer; the connection is of no more use.
#[derive(Debug)]
pub(super) enum Broken {
    /// It ended before the first byte of the answer: a peer that was closing it has not
    /// seen the call.
    Early(String),
    /// It ended later.
    Late(String),
    /// What came is no answer to the call.
    Nonsense(String),
}

/// A connection without a call under way.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
    seqid: i32,
    /// When it was last used.
    pub used: Instant,
}

impl Connection {
    /// A connection to `HOST:PORT`.
    pub async fn open(address: &str) -> io::Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            input: Vec::new(),
            output: Vec::new(),
            seqid: 0,
            used: Instant::now(),
        })
    }

    /// Whether nothing has come on it: neither its end, nor bytes that nobody asked for.
    pub fn is_quiet(&self) -> bool {
        let mut byte = [0];
        matches!(self.stream.try_read(&mut byte), Err(e) if e.kind() == io::ErrorKind::WouldBlock)
    }

    /// One call. Whoever drops the future before its end must drop the connection too:
    /// the answer may still come.
    pub async fn call<C: Call>(
        &mut self,
        call: &C,
        protocol: Protocol,
        max_reply: usize,
    ) -> Result<Said<C::Answer>, Broken> {
        self.seqid = self.seqid.wrapping_add(1);
        encode(&mut self.output, protocol, self.seqid, call);
        let early = |e: io::Error| Broken::Early(e.to_string());
        self.stream.write_all(&self.output).await.map_err(early)?;
        let end = self.read_frame(max_reply).await?;
        let said = decode::<C>(&self.input[HEADER..end], protocol, self.seqid);
        if said.is_ok() && self.input.len() > end {
            return Err(Broken::Nonsense("bytes after the answer".to_owned()));
        }
        for buffer in [&mut self.input, &mut self.output] {
            buffer.clear();
            if buffer.capacity() > BUFFER_KEPT {
                *buffer = Vec::new();
            }
        }
        self.used = Instant::now();
        said.map_err(Broken::Nonsense)
    }

    /// Reads a frame into `input` and tells where it ends.
    async fn read_frame(&mut self, max_reply: usize) -> Result<usize, Broken> {
        loop {
            let have = self.input.len();
            let mut want = 512;
            if let Some(header) = self.input.first_chunk::<HEADER>() {
                let length = u32::from_be_bytes(*header) as usize;
                if length > max_reply {
                    return Err(Broken::Nonsense(format!(
                        "an answer of {length} bytes; at most {max_reply} are taken"
                    )));
                }
                if have >= HEADER + length {
                    return Ok(HEADER + length);
                }
                // As it comes, so that a claim alone takes no memory.
                want = (HEADER + length - have).min(BUFFER_KEPT);
            }
            self.input.reserve(want);
            let read = self.stream.read_buf(&mut self.input).await;
            let lost = match read {
                Ok(0) => "closed by the node".to_owned(),
                Ok(_) => continue,
                Err(e) => e.to_string(),
            };
            return Err(if have == 0 { Broken::Early(lost) } else { Broken::Late(lost) });
        }
    }
}
