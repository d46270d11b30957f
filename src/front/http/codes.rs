//! The one table from failures to HTTP: domain codes, and what can go wrong
//! before a request reaches the service.

use axum::http::StatusCode;

use crate::domain::ErrorCode;

/// Why a request did not get as far as the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// No cookie or token, or one that lets nobody in.
    Unauthenticated,
    /// No such address.
    NoRoute,
    /// The address does not know the method.
    Method,
    /// The body is longer than allowed.
    TooLarge,
    /// The body is not declared as JSON.
    MediaType,
    /// The body did not come in time.
    SlowBody,
    /// Too many attempts.
    RateLimited,
    /// No account, session or token of that name.
    NotFound,
}

/// Status and title of a domain code.
pub(super) fn of_code(code: ErrorCode) -> (StatusCode, &'static str) {
    match code {
        ErrorCode::UnknownType => (StatusCode::NOT_FOUND, "No such id type"),
        ErrorCode::UnknownInstance => (StatusCode::NOT_FOUND, "No such Redis instance"),
        // Not 410: a retired type can be restored.
        ErrorCode::Retired => (StatusCode::CONFLICT, "The id type is retired"),
        ErrorCode::InvalidArgument => (StatusCode::BAD_REQUEST, "An argument breaks a rule"),
        ErrorCode::AlreadyExists => (StatusCode::CONFLICT, "It exists already"),
        ErrorCode::Conflict => (StatusCode::CONFLICT, "It was changed, or is in use"),
        ErrorCode::Exhausted => (StatusCode::CONFLICT, "The id type has no ids left"),
        ErrorCode::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "A part is out of reach"),
        ErrorCode::Deadline => (StatusCode::GATEWAY_TIMEOUT, "The answer came too late"),
        ErrorCode::Overloaded => (StatusCode::SERVICE_UNAVAILABLE, "Too much is waiting"),
        ErrorCode::PermissionDenied => (StatusCode::FORBIDDEN, "Not allowed"),
        ErrorCode::QuotaExceeded => (StatusCode::TOO_MANY_REQUESTS, "The quota is used up"),
        ErrorCode::ClockBackwards => (StatusCode::SERVICE_UNAVAILABLE, "The clock went back"),
        ErrorCode::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "A defect of the service"),
    }
}

/// Code, status and title of a fault before the service.
pub(super) fn of_fault(fault: Fault) -> (&'static str, StatusCode, &'static str) {
    match fault {
        Fault::Unauthenticated => {
            ("UNAUTHENTICATED", StatusCode::UNAUTHORIZED, "Nothing valid was shown")
        }
        Fault::NoRoute => ("NO_SUCH_ADDRESS", StatusCode::NOT_FOUND, "No such address"),
        Fault::Method => (
            "METHOD_NOT_ALLOWED",
            StatusCode::METHOD_NOT_ALLOWED,
            "The address does not know this method",
        ),
        Fault::TooLarge => {
            ("BODY_TOO_LARGE", StatusCode::PAYLOAD_TOO_LARGE, "The body is too long")
        }
        Fault::MediaType => {
            ("NOT_JSON", StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body is not declared as JSON")
        }
        Fault::SlowBody => {
            ("BODY_TIMEOUT", StatusCode::REQUEST_TIMEOUT, "The body did not come in time")
        }
        Fault::RateLimited => ("RATE_LIMITED", StatusCode::TOO_MANY_REQUESTS, "Too many attempts"),
        Fault::NotFound => ("NOT_FOUND", StatusCode::NOT_FOUND, "There is none of that name"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_an_error_status_and_retries_are_5xx_or_429() {
        for code in ErrorCode::ALL {
            let (status, _) = of_code(code);
            assert!(status.is_client_error() || status.is_server_error());
            if code.is_retriable() {
                let too_many = status == StatusCode::TOO_MANY_REQUESTS;
                assert!(status.is_server_error() || too_many, "{code}");
            }
        }
    }
}
