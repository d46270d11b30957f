//! Who may do what.

use std::fmt;

/// What somebody may do. Each role may do all that the ones before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Look at everything but other people's sessions, tokens and accounts.
    View,
    /// Change id types and hand out ids.
    Operate,
    /// Everything: Redis instances, accounts, everybody's sessions and tokens.
    Administer,
}

impl Role {
    /// Every role, the weakest first.
    pub const ALL: [Role; 3] = [Role::View, Role::Operate, Role::Administer];

    /// `view`, `operate` or `administer`.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::View => "view",
            Role::Operate => "operate",
            Role::Administer => "administer",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
