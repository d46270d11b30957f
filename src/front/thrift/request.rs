//! A complete request: its method, and its arguments where they are there and
//! of the right type.
//!
//! An argument that is missing or of another type is `INVALID_ARGUMENT` with its
//! name in the IDL, unless the method can do without it.

use std::ops::RangeInclusive;

use thrift::ApplicationErrorKind;

use crate::domain::Error;

use super::method::Method;
use super::reply::Answer;
use super::wire::{Args, Header};

/// Message type of a call.
const CALL: u8 = 1;
/// Message type of a call that nobody waits for.
pub const ONEWAY: u8 = 4;

/// A complete request, still in the bytes that it came in.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// All bytes of the message.
    pub message: &'a [u8],
    /// Its header.
    pub header: Header,
    /// Its arguments.
    pub args: Args,
}

impl<'a> Request<'a> {
    /// The name of the method as sent.
    pub fn name(&self) -> &'a [u8] {
        let start = self.header.name_start;
        &self.message[start..start + self.header.name_len]
    }

    /// The method to call, or why none will be.
    pub fn method(&self) -> Result<Method, Answer> {
        if !matches!(self.header.kind, CALL | ONEWAY) {
            return Err(Answer::Refused(
                ApplicationErrorKind::InvalidMessageType,
                format!("message type {} is not a call", self.header.kind),
            ));
        }
        Method::from_name(self.name()).ok_or_else(|| {
            let shown: String = String::from_utf8_lossy(self.name()).chars().take(128).collect();
            Answer::Refused(
                ApplicationErrorKind::UnknownMethod,
                format!("this service has no method {shown:?}"),
            )
        })
    }

    /// Whether nobody waits for a reply.
    pub fn is_oneway(&self) -> bool {
        self.header.kind == ONEWAY
    }

    /// A text that may be missing.
    pub(super) fn text(&self, id: i16, field: &'static str) -> Result<Option<&'a str>, Error> {
        let Some(bytes) = self.args.bytes(id, self.message) else {
            return Ok(None);
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(error) => Err(Error::invalid(
                field,
                format!("{field} is not UTF-8 from byte {} on", error.valid_up_to()),
            )),
        }
    }

    /// A text that must be there and not be empty.
    pub(super) fn filled(&self, id: i16, field: &'static str) -> Result<&'a str, Error> {
        match self.text(id, field)? {
            None => Err(Error::invalid(field, format!("{field} is missing"))),
            Some("") => Err(Error::invalid(field, format!("{field} is empty"))),
            Some(text) => Ok(text),
        }
    }

    /// A text that may be missing; an empty one counts as missing.
    pub(super) fn given(&self, id: i16, field: &'static str) -> Result<Option<&'a str>, Error> {
        Ok(self.text(id, field)?.filter(|text| !text.is_empty()))
    }

    /// An i32 that must be there and in `range`.
    pub(super) fn i32(
        &self,
        id: i16,
        field: &'static str,
        range: RangeInclusive<i64>,
    ) -> Result<i64, Error> {
        within(self.args.i32(id).map(i64::from), field, range)
    }

    /// An i64 that must be there and in `range`.
    pub(super) fn i64(
        &self,
        id: i16,
        field: &'static str,
        range: RangeInclusive<i64>,
    ) -> Result<i64, Error> {
        within(self.args.i64(id), field, range)
    }
}

fn within(
    value: Option<i64>,
    field: &'static str,
    range: RangeInclusive<i64>,
) -> Result<i64, Error> {
    match value {
        None => Err(Error::invalid(field, format!("{field} is missing"))),
        Some(value) if range.contains(&value) => Ok(value),
        Some(value) => {
            let (low, high) = range.into_inner();
            Err(Error::invalid(
                field,
                format!("{field} {value} is out of range: it must be from {low} to {high}"),
            ))
        }
    }
}
