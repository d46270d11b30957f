//! The first call of a connection, where the configuration has a token:
//!
//! ```text
//! void authenticate(1: string token) throws (1: IdGenException error)
//! ```
//!
//! Written by hand, because the IDL of this version does not have the method. When it
//! does, [`SignIn`] becomes the generated structure of its arguments, and this file
//! keeps nothing but the implementation of [`Call`] for it (its answer is empty, which
//! the macro in `wire` does not cover).

use thrift::protocol::{
    TFieldIdentifier, TInputProtocol, TOutputProtocol, TSerializable, TStructIdentifier, TType,
};

use super::wire::Call;
use crate::thrift_api::IdGenException;

/// The arguments of `authenticate`.
pub(super) struct SignIn<'a> {
    pub token: &'a str,
}

impl Call for SignIn<'_> {
    const NAME: &'static str = "authenticate";
    type Answer = ();

    fn write(&self, out: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        out.write_struct_begin(&TStructIdentifier::new("authenticate_args"))?;
        out.write_field_begin(&TFieldIdentifier::new("token", TType::String, 1))?;
        out.write_string(self.token)?;
        out.write_field_end()?;
        out.write_field_stop()?;
        out.write_struct_end()
    }

    fn read(input: &mut dyn TInputProtocol) -> thrift::Result<Option<Result<(), IdGenException>>> {
        let mut raised = None;
        input.read_struct_begin()?;
        loop {
            let field = input.read_field_begin()?;
            match (field.field_type, field.id) {
                (TType::Stop, _) => break,
                (TType::Struct, Some(1)) => {
                    raised = Some(IdGenException::read_from_in_protocol(input)?);
                }
                (other, _) => input.skip(other)?,
            }
            input.read_field_end()?;
        }
        input.read_struct_end()?;
        Ok(Some(raised.map_or(Ok(()), Err)))
    }
}
