//! Section `clients`: what programs must show that take ids.

use super::reader::Reader;
use super::setting::{Kind, Setting};

const TOKENS: Setting = Setting {
    key: "clients.tokens",
    flag: Some("clients-tokens"),
    env: "IDGEN_CLIENTS_TOKENS",
    // As before there were callers: who reaches the port takes ids.
    kind: Kind::Choice { default: "off", choices: &["off", "required"] },
    meaning: "Whether calls about id types, over Thrift and on the routes of other systems, need \
              an API token for the type (docs/access.md); `off`: a token that is shown counts, with its quota, and none is needed",
};

pub(super) const SETTINGS: &[&Setting] = &[&TOKENS];

/// Settings of the programs that take ids.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientsSettings {
    /// Whether a call without a token is refused.
    pub tokens_required: bool,
}

impl ClientsSettings {
    pub(super) fn read(reader: &mut Reader) -> Self {
        ClientsSettings { tokens_required: reader.choice(&TOKENS) == "required" }
    }
}
