//! The methods of the service, by their names on the wire.

/// The methods of the service. The order is that of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `getId`
    GetId,
    /// `getStrId`
    GetStrId,
    /// `addNewId`
    AddNewId,
    /// `echo`
    Echo,
    /// `nextId`
    NextId,
    /// `nextIds`
    NextIds,
    /// `nextStringId`
    NextStringId,
    /// `describeType`
    DescribeType,
    /// `nodeStatus`
    NodeStatus,
    /// `nextShardedId`
    NextShardedId,
    /// `issueIds`
    IssueIds,
    /// `issueStringIds`
    IssueStringIds,
    /// `leaseRange`
    LeaseRange,
    /// `decodeId`
    DecodeId,
    /// `authenticate`
    Authenticate,
}

impl Method {
    /// Every method, for metrics.
    pub const ALL: [Method; 15] = [
        Method::GetId,
        Method::GetStrId,
        Method::AddNewId,
        Method::Echo,
        Method::NextId,
        Method::NextIds,
        Method::NextStringId,
        Method::DescribeType,
        Method::NodeStatus,
        Method::NextShardedId,
        Method::IssueIds,
        Method::IssueStringIds,
        Method::LeaseRange,
        Method::DecodeId,
        Method::Authenticate,
    ];

    /// The name in the IDL.
    pub fn name(self) -> &'static str {
        match self {
            Method::GetId => "getId",
            Method::GetStrId => "getStrId",
            Method::AddNewId => "addNewId",
            Method::Echo => "echo",
            Method::NextId => "nextId",
            Method::NextIds => "nextIds",
            Method::NextStringId => "nextStringId",
            Method::DescribeType => "describeType",
            Method::NodeStatus => "nodeStatus",
            Method::NextShardedId => "nextShardedId",
            Method::IssueIds => "issueIds",
            Method::IssueStringIds => "issueStringIds",
            Method::LeaseRange => "leaseRange",
            Method::DecodeId => "decodeId",
            Method::Authenticate => "authenticate",
        }
    }

    /// The method called `name` on the wire. A match, because every request
    /// comes through here: it looks at the length first and compares few names.
    pub fn from_name(name: &[u8]) -> Option<Method> {
        Some(match name {
            b"getId" => Method::GetId,
            b"getStrId" => Method::GetStrId,
            b"addNewId" => Method::AddNewId,
            b"echo" => Method::Echo,
            b"nextId" => Method::NextId,
            b"nextIds" => Method::NextIds,
            b"nextStringId" => Method::NextStringId,
            b"describeType" => Method::DescribeType,
            b"nodeStatus" => Method::NodeStatus,
            b"nextShardedId" => Method::NextShardedId,
            b"issueIds" => Method::IssueIds,
            b"issueStringIds" => Method::IssueStringIds,
            b"leaseRange" => Method::LeaseRange,
            b"decodeId" => Method::DecodeId,
            b"authenticate" => Method::Authenticate,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_is_found_by_its_name() {
        for method in Method::ALL {
            assert_eq!(Method::from_name(method.name().as_bytes()), Some(method));
        }
        for unknown in [&b""[..], b"getid", b"getI", b"getIdd", b"nextSharded"] {
            assert_eq!(Method::from_name(unknown), None);
        }
    }
}
