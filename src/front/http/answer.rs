//! Sends an answer as JSON, with ids as numbers or as text.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::problem::Problem;
use crate::domain::{Error, ErrorCode};

/// How ids look in an answer: the query `ids`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum IdForm {
    /// As numbers.
    #[default]
    Number,
    /// As decimal text.
    String,
}

/// The fields whose values are ids.
pub(super) const ID_FIELDS: [&str; 13] = [
    "first_id",
    "next_id",
    "max_id",
    "max_position",
    "start",
    "end",
    "cursor",
    "update_id",
    "ids",
    "first",
    "id",
    "position",
    "range_first",
];

/// `value` as a JSON answer.
pub(super) fn json(status: StatusCode, value: &impl Serialize, form: IdForm) -> Response {
    let text = match as_text(value, form) {
        Ok(text) => text,
        Err(error) => {
            let error = Error::new(ErrorCode::Internal, format!("answer: {error}"));
            return Problem::from(error).into_response();
        }
    };
    let headers = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, headers, text).into_response()
}

/// `value` as JSON.
pub(super) fn as_text(value: &impl Serialize, form: IdForm) -> serde_json::Result<String> {
    match form {
        IdForm::Number => serde_json::to_string(value),
        IdForm::String => serde_json::to_value(value).map(|mut value| {
            ids_to_text(&mut value);
            value.to_string()
        }),
    }
}

fn ids_to_text(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(ids_to_text),
        Value::Object(fields) => {
            for (name, value) in fields {
                if ID_FIELDS.contains(&name.as_str()) {
                    to_text(value);
                } else {
                    ids_to_text(value);
                }
            }
        }
        _ => {}
    }
}

fn to_text(value: &mut Value) {
    match value {
        Value::Number(number) => *value = Value::String(number.to_string()),
        Value::Array(items) => items.iter_mut().for_each(to_text),
        other => ids_to_text(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_ids_become_text() {
        let mut value = json!({
            "next_id": 9_007_199_254_740_993_i64, "version": 3, "ids": [1, 2],
            "dispatcher": {"current": {"start": 1, "end": 5}, "left": 4},
            "preview": {"ids": [{"id": 7, "text": "o-7"}]}
        });
        ids_to_text(&mut value);
        assert_eq!(
            value,
            json!({
                "next_id": "9007199254740993", "version": 3, "ids": ["1", "2"],
                "dispatcher": {"current": {"start": "1", "end": "5"}, "left": 4},
                "preview": {"ids": [{"id": "7", "text": "o-7"}]}
            })
        );
    }
}
