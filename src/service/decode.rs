//! What an id tells: from what clients see back to the range store's log.

use super::Parts;
use super::api::Decoded;
use crate::domain::Error;

impl Parts {
    /// See [`IdApi::decode`](super::api::IdApi::decode).
    pub(super) async fn decode(&self, _name: &str, _id: &str) -> Result<Decoded, Error> {
        todo!()
    }
}
