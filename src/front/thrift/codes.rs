//! The one table from the service's errors to what Thrift clients see.
//!
//! The original methods answer with a number in `res`, and with code and
//! message in `ext`; the typed methods raise [`IdGenException`].

use crate::domain::{Error, ErrorCode};

use super::generated::{
    IdGenException, RES_BAD_PARAMETER, RES_INNER_ERROR, RES_NO_CONTENT, RES_NOT_WORKING,
    RES_SUCCESS, ResBool, ResLong, ResStr,
};

/// `res` of an original method that failed with `code`.
///
/// `draining` tells whether this node is shutting down: then "unavailable"
/// means the node itself, which the original interface has a number for.
pub fn res(code: ErrorCode, draining: bool) -> i32 {
    match code {
        ErrorCode::InvalidArgument => RES_BAD_PARAMETER,
        ErrorCode::Exhausted => RES_NO_CONTENT,
        ErrorCode::Unavailable | ErrorCode::Overloaded if draining => RES_NOT_WORKING,
        ErrorCode::UnknownType
        | ErrorCode::UnknownInstance
        | ErrorCode::Retired
        | ErrorCode::AlreadyExists
        | ErrorCode::Conflict
        | ErrorCode::Unavailable
        | ErrorCode::Deadline
        | ErrorCode::Overloaded
        | ErrorCode::PermissionDenied
        | ErrorCode::QuotaExceeded
        | ErrorCode::ClockBackwards
        | ErrorCode::Internal => RES_INNER_ERROR,
    }
}

/// The exception of a typed method.
pub fn exception(error: Error) -> IdGenException {
    IdGenException {
        code: Some(error.code.as_str().to_owned()),
        message: Some(error.message),
        retriable: Some(error.code.is_retriable()),
        field: error.field.map(str::to_owned),
    }
}

/// The answer of getId: a failed one has the value -1, which its clients test for.
pub fn res_long(result: Result<i64, Error>, draining: bool) -> ResLong {
    match result {
        Ok(id) => ResLong { res: Some(RES_SUCCESS), value: Some(id), ext: None },
        Err(error) => ResLong {
            res: Some(res(error.code, draining)),
            value: Some(-1),
            ext: Some(error.to_string()),
        },
    }
}

/// The answer of getStrId and echo: a failed one has no value.
pub fn res_str(result: Result<Option<String>, Error>, draining: bool) -> ResStr {
    match result {
        Ok(value) => ResStr { res: Some(RES_SUCCESS), value, ext: None },
        Err(error) => ResStr {
            res: Some(res(error.code, draining)),
            value: None,
            ext: Some(error.to_string()),
        },
    }
}

/// The answer of addNewId.
pub fn res_bool(result: Result<(), Error>, draining: bool) -> ResBool {
    match result {
        Ok(()) => ResBool { res: Some(RES_SUCCESS), value: Some(true), ext: None },
        Err(error) => ResBool {
            res: Some(res(error.code, draining)),
            value: Some(false),
            ext: Some(error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_number() {
        let numbers = |draining| ErrorCode::ALL.map(|code| res(code, draining));
        // In the order of `ErrorCode::ALL`.
        assert_eq!(
            numbers(false),
            [553, 553, 553, 552, 553, 553, 551, 553, 553, 553, 553, 553, 553, 553]
        );
        assert_eq!(
            numbers(true),
            [553, 553, 553, 552, 553, 553, 551, 550, 553, 550, 553, 553, 553, 553]
        );
    }

    #[test]
    fn a_failure_tells_code_message_and_field() {
        let error = || Error::invalid("idName", "idName is missing");
        let long = res_long(Err(error()), false);
        assert_eq!((long.res, long.value), (Some(552), Some(-1)));
        assert_eq!(long.ext.as_deref(), Some("INVALID_ARGUMENT: idName is missing"));
        assert_eq!(res_str(Err(error()), false).value, None);
        assert_eq!(res_bool(Err(error()), false).value, Some(false));

        let raised = exception(error());
        assert_eq!(raised.code.as_deref(), Some("INVALID_ARGUMENT"));
        assert_eq!(raised.field.as_deref(), Some("idName"));
        assert_eq!(raised.retriable, Some(false));
        let raised = exception(Error::new(ErrorCode::Deadline, "late"));
        assert_eq!((raised.retriable, raised.field), (Some(true), None));
    }
}
