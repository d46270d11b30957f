//! Reading whole messages with one call to the kernel per event.

use std::io::{ErrorKind, Read, Result};

/// Room for what one read brings, shared by all connections.
pub struct Buffer(Vec<u8>);

/// The beginning of a message whose end has not come yet.
#[derive(Default)]
pub struct Rest(Vec<u8>);

/// What a read found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// So many bytes are at hand.
    Bytes {
        filled: usize,
        all: bool,
    },
    Nothing,
    End,
}

impl Buffer {
    pub fn new(bytes: usize) -> Buffer {
        Buffer(vec![0; bytes])
    }

    /// Reads once, behind what was left over. `all` is false where the kernel
    /// may have more: only then must it be asked again.
    pub fn fill(&mut self, from: &mut impl Read, rest: &Rest) -> Result<Found> {
        let kept = rest.0.len();
        self.0[..kept].copy_from_slice(&rest.0);
        match from.read(&mut self.0[kept..]) {
            Ok(0) => Ok(Found::End),
            Ok(count) => {
                let filled = kept + count;
                Ok(Found::Bytes { filled, all: filled < self.0.len() })
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Found::Nothing),
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                Ok(Found::Bytes { filled: kept, all: false })
            }
            Err(error) => Err(error),
        }
    }

    pub fn bytes(&self, filled: usize) -> &[u8] {
        &self.0[..filled]
    }
}

impl Rest {
    /// Keeps `bytes` for the next read. Fails where a buffer would be full of them.
    pub fn keep(&mut self, bytes: &[u8], of: &Buffer) -> Result<()> {
        if bytes.len() >= of.0.len() {
            return Err(ErrorKind::InvalidData.into());
        }
        self.0.clear();
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}
