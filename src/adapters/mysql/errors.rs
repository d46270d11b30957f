//! From errors of the driver and the server to errors of the port.
//!
//! Decisions are made on error numbers, never on text; one message carries a
//! number that the caller needs (see [`WRONG_PERIOD`]). The numbers 45001 and
//! up are those that the procedures raise (docs/dba-guide.md has the table);
//! their messages are written for people and are passed on.

use mysql_async::{DriverError, Error as MysqlError, IoError, ServerError};

use crate::domain::{Error, ErrorCode};
use crate::ports::StoreError;

/// Raised by `idgen_lease_range`: the type is assigned to another instance.
pub const NOT_ASSIGNED: u16 = 45008;
/// Raised by `idgen_lease_range` and `idgen_assign_type`: the history was succeeded
/// by another.
pub const SUPERSEDED: u16 = 45009;
/// Raised by `idgen_lease_range`: the server's clock lies outside the period. The
/// first number of the message is that clock.
const WRONG_PERIOD: u16 = 45011;

/// The command that makes or repairs the schema, for messages.
pub const APPLY_HINT: &str = "run `idgen schema apply` with an administrator's account";

/// A call that failed: what it means, and the server's number if it raised one.
#[derive(Debug)]
pub struct Failure {
    /// What it means for the caller.
    pub error: StoreError,
    /// The number of the server's error; `None` if it did not come from there.
    pub errno: Option<u16>,
}

impl Failure {
    /// What an error of the driver means; `target` is where the call was sent.
    pub fn new(target: &str, error: &MysqlError) -> Self {
        let errno = match error {
            MysqlError::Server(error) => Some(error.code),
            _ => None,
        };
        Failure { error: driver_error(target, error), errno }
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

/// The rule that a procedure says was broken.
fn refusal(errno: u16, message: &str) -> Option<Error> {
    let field = match errno {
        45001 => return Some(Error::new(ErrorCode::UnknownType, message)),
        45002 => return Some(Error::new(ErrorCode::UnknownInstance, message)),
        45003 => return Some(Error::new(ErrorCode::Retired, message)),
        45005 => return Some(Error::new(ErrorCode::AlreadyExists, message)),
        45006 | 45010 | 45013 | 45014 | 45016 => {
            return Some(Error::new(ErrorCode::Conflict, message));
        }
        45007 => return Some(Error::new(ErrorCode::Exhausted, message)),
        45012 => return Some(Error::new(ErrorCode::Unavailable, message)),
        45015 => return Some(Error::new(ErrorCode::PermissionDenied, message)),
        45101 => "name",
        45102 => "mode",
        45103 => "prefix",
        45104 => "description",
        45105 => "first_id",
        45106 => "max_id",
        45107 => "min_range",
        45108 => "max_range",
        45109 => "load_interval_ms",
        45110 => "load_percentage",
        45111 => "lock_ttl_ms",
        45112 => "floor",
        45113 => "actor",
        45114 => "consumed",
        45115 => "elapsed_ms",
        45116 => "instance",
        45117 => "history",
        45118 => "count",
        45119 => "url",
        45120 => "options",
        45121 => "at_limit",
        45122 => "format",
        45123 => "calendar",
        45124 => "time_zone",
        45125 => "opaque",
        45126 => "app_id",
        45127 => "snowflake",
        45128 => "sites",
        45129 => "on_redis_loss",
        45130 => "opaque.slices",
        45131 => "sites.count",
        45132 => "sites.site",
        45133 => "snowflake.time_bits",
        45134 => "snowflake.worker_bits",
        45135 => "snowflake.sequence_bits",
        45136 => "snowflake.epoch_ms",
        45137 => "key",
        45138 => "shard",
        45139 => "period",
        45140 => "tail",
        45141 => "bits",
        45142 => "holder",
        45143 => "token",
        45144 => "ttl_ms",
        45145 => "used_until_ms",
        45146 => "generation",
        45147 => "rest_end",
        45148 => "role",
        45149 => "password",
        45150 => "kind",
        45151 => "quota",
        _ => return None,
    };
    Some(Error::invalid(field, message))
}

/// The first whole number in a message.
fn first_number(message: &str) -> Option<i64> {
    let start = message.find(|c: char| c.is_ascii_digit())?;
    let rest = &message[start..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// What an error of the server means for the caller. `target` is where it was
/// sent, without secrets.
fn server_error(target: &str, error: &ServerError) -> StoreError {
    if let Some(refused) = refusal(error.code, &error.message) {
        return StoreError::Refused(refused);
    }
    let said = format!("{target}: {} (error {})", error.message, error.code);
    match error.code {
        WRONG_PERIOD => match first_number(&error.message) {
            Some(now_ms) => StoreError::WrongPeriod { now_ms },
            None => StoreError::Broken(said),
        },
        // No right to connect, to use the database, to read a view or to call.
        1044 | 1045 | 1142 | 1143 | 1227 | 1370 | 1698 | 3118 | 3955 | 4151 => {
            StoreError::Refused(Error::new(ErrorCode::PermissionDenied, said))
        }
        1049 => StoreError::Broken(format!("{said}; create the database, then {APPLY_HINT}")),
        // A table or view is missing, or a view points to nothing.
        1146 | 1356 | 1054 => StoreError::Broken(format!("{said}; {APPLY_HINT}")),
        // A procedure is missing: for a moment only, while it is being replaced.
        1305 => StoreError::Unavailable(format!("{said}; {APPLY_HINT}")),
        // A value that does not fit its parameter.
        1264 | 1366 | 1406 => {
            StoreError::Refused(Error::new(ErrorCode::InvalidArgument, error.message.clone()))
        }
        // Waited too long for a lock, or lost a deadlock: rolled back.
        1205 | 1213 => StoreError::Unavailable(said),
        // Too many connections, by server or by user.
        1040 | 1203 | 1226 => StoreError::Unavailable(said),
        // Shutting down, killed, interrupted, or the network broke.
        1053 | 1077 | 1079 | 1080 | 1152 | 1158..=1161 | 1184 | 1317 | 1927 | 4031 => {
            StoreError::Unavailable(said)
        }
        // Cannot write now: read only (a replica, a promotion), disk, engine,
        // or a commit whose outcome is not known.
        1021 | 1030 | 1114 | 1180 | 1181 | 1290 | 1792 | 1836 | 3100 => {
            StoreError::Unavailable(said)
        }
        _ => StoreError::Broken(said),
    }
}

/// What an error of the driver means for the caller.
fn driver_error(target: &str, error: &MysqlError) -> StoreError {
    match error {
        MysqlError::Server(error) => server_error(target, error),
        MysqlError::Io(IoError::Tls(error)) => {
            StoreError::Broken(format!("{target}: TLS: {error}"))
        }
        // rustls reports a certificate that it does not accept as invalid data.
        MysqlError::Io(IoError::Io(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
            StoreError::Broken(format!("{target}: TLS: {error}"))
        }
        MysqlError::Io(IoError::Io(error)) => StoreError::Unavailable(format!("{target}: {error}")),
        MysqlError::Driver(DriverError::NoClientSslFlagFromServer) => {
            StoreError::Broken(format!("{target}: the server offers no TLS"))
        }
        MysqlError::Driver(DriverError::ConnectionClosed) => {
            StoreError::Unavailable(format!("{target}: connection closed"))
        }
        // Display of the others may hold values of a row; Debug even more.
        MysqlError::Driver(DriverError::FromRow { .. } | DriverError::FromValue { .. }) => {
            StoreError::Broken(format!("{target}: an answer of an unexpected type"))
        }
        other => StoreError::Broken(format!("{target}: {other}")),
    }
}

/// Whether the connection can be used again after `error`.
pub fn is_harmless(error: &MysqlError) -> bool {
    match error {
        MysqlError::Server(error) => !matches!(
            error.code,
            1053 | 1077 | 1079 | 1080 | 1152 | 1158
                ..=1161 | 1184 | 1927 | 4031
                // Read-only: the server was demoted, and another one behind
                // the same name takes the writes now.
                | 1290 | 1792 | 1836 | 3100
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(code: u16) -> StoreError {
        let error = ServerError { code, message: "as told".into(), state: "45000".into() };
        server_error("app@h:3306/idgen", &error)
    }

    #[test]
    fn numbers_decide() {
        let code = |errno| match server(errno) {
            StoreError::Refused(error) => error.code,
            other => panic!("{errno}: {other:?}"),
        };
        assert_eq!(code(45001), ErrorCode::UnknownType);
        assert_eq!(code(45007), ErrorCode::Exhausted);
        assert_eq!(code(45108), ErrorCode::InvalidArgument);
        assert_eq!(code(1045), ErrorCode::PermissionDenied);
        assert!(matches!(server(1213), StoreError::Unavailable(_)));
        assert!(matches!(server(1180), StoreError::Unavailable(_)));
        assert!(matches!(server(1064), StoreError::Broken(_)));
    }

    #[test]
    fn the_clock_of_a_wrong_period_is_read() {
        let told = |message: &str| {
            let error =
                ServerError { code: WRONG_PERIOD, message: message.into(), state: "45000".into() };
            server_error("app@h", &error)
        };
        let said = "the clock is at 1795255121492 ms, outside the period of \"order-7\"";
        assert_eq!(told(said), StoreError::WrongPeriod { now_ms: 1_795_255_121_492 });
        assert!(matches!(told("the clock is elsewhere"), StoreError::Broken(_)));
        assert!(matches!(told("at 99999999999999999999 ms"), StoreError::Broken(_)));
    }

    /// Every number that a procedure raises has its place in the table above,
    /// also those that it hands to one of the checks.
    #[test]
    fn every_number_of_the_procedures_is_known() {
        for source in super::super::sql::ROUTINES {
            for errno in super::super::sql::raised(source) {
                let known = refusal(errno, "").is_some()
                    || matches!(errno, NOT_ASSIGNED | SUPERSEDED | WRONG_PERIOD);
                assert!(known, "{}: {errno}", source.name);
            }
        }
    }
}
