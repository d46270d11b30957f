//! The OpenAPI 3.1 document of the admin API, made from the table of operations
//! ([`super::operations`]) and the types that they take and answer.

use std::collections::{BTreeMap, BTreeSet};

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use super::MAX_HEADER_BYTES;
use super::answer::ID_FIELDS;
use super::codes::{Fault, of_code, of_fault};
use super::operations::{Operation, Request};
use super::problem::PROBLEM_JSON;
use super::schema::ProblemJson;
use crate::domain::ErrorCode;

/// Where components are in the document.
const COMPONENTS: &str = "#/components/schemas/";

/// What every operation may be refused with: a part is out of reach or too slow, or
/// there is a defect.
const ALWAYS: [ErrorCode; 4] =
    [ErrorCode::Unavailable, ErrorCode::Deadline, ErrorCode::Overloaded, ErrorCode::Internal];

/// Types whose `id` is the number of something else than an id, and never text.
const NUMBERED: [&str; 4] = ["InstanceJson", "InstanceRefJson", "InstanceState", "DrainTarget"];

/// A status, and the codes and titles of the problems that are answered with it.
type Problems = (u16, Vec<(&'static str, &'static str)>);

/// The whole document.
pub(super) fn document<S>(operations: &[Operation<S>]) -> Value {
    let mut taken = settings().for_deserialize().into_generator();
    let mut answered = settings().for_serialize().into_generator();
    answered.subschema_for::<ProblemJson>();
    let mut refused = BTreeSet::new();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for operation in operations {
        let request = Request::new(taken);
        let (described, request) = describe(operation, request, &mut answered, &mut refused);
        taken = request.schemas;
        let method = operation.method.as_str().to_lowercase();
        paths.entry(operation.path).or_default().insert(method, described);
    }
    let mut schemas = taken.take_definitions(true);
    let mut answers = answered.take_definitions(true);
    for (name, schema) in &mut answers {
        if !NUMBERED.contains(&name.as_str()) {
            ids_or_text(schema);
        }
    }
    schemas.extend(answers);
    let mut responses: Map<_, _> = refused.iter().map(|p| (problem_name(p), problem(p))).collect();
    let long = format!("Address and headers are longer than {MAX_HEADER_BYTES} bytes together.");
    responses.insert("431".to_owned(), json!({ "description": long }));
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "IdGen admin API",
            "version": crate::VERSION,
            "summary": "Id types, Redis instances, ids and logs of an IdGen cluster.",
            "description": "Ids are 64-bit numbers; with `?ids=string` they are decimal text in \
                answers, for languages whose numbers are doubles. Times (`_ms`) are Unix \
                milliseconds by the clock of the range store. Errors are problem details \
                (RFC 9457) with a stable `code`. Answers may get new fields; ignore those that \
                you do not know. `x-required-role` is the weakest role that may do an operation: \
                view, operate, administer.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/api/v1", "description": "This node"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": responses,
            "securitySchemes": {
                "token": {
                    "type": "http", "scheme": "bearer",
                    "description": "The admin token of the configuration, or an API token.",
                },
                "session": {
                    "type": "apiKey", "in": "cookie", "name": "idgen_session",
                    "description": "The cookie of a login; `__Host-idgen_session` where it is \
                        sent over TLS only. A request that is not a GET needs `csrf` as well.",
                },
                "csrf": {
                    "type": "apiKey", "in": "header", "name": "X-Idgen-Csrf",
                    "description": "The value `csrf` of the session, with its cookie.",
                },
            },
        },
    });
    tidy(&mut document);
    document
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    })
}

fn describe<S>(
    operation: &Operation<S>,
    mut request: Request,
    answered: &mut SchemaGenerator,
    refused: &mut BTreeSet<Problems>,
) -> (Value, Request) {
    (operation.takes)(&mut request);
    let mut responses: BTreeMap<_, Value> = BTreeMap::new();
    for answer in &operation.answers {
        // An operation may answer a status in several forms.
        let described = responses.entry(answer.status.to_string()).or_insert_with(|| json!({}));
        described["description"] = json!(answer.description);
        if let Some((media_type, schema)) = answer.content {
            let schema = schema.map_or(json!({}), |make| make(answered).to_value());
            described["content"][media_type] = json!({"schema": schema});
        }
        if !answer.headers.is_empty() {
            described["headers"] = json!(answer.headers);
        }
    }
    for status in problems(operation, &request) {
        let reference = format!("#/components/responses/{}", problem_name(&status));
        responses.insert(status.0.to_string(), json!({ "$ref": reference }));
        refused.insert(status);
    }
    // Refused before anything is known of the request.
    responses.insert("431".to_owned(), json!({ "$ref": "#/components/responses/431" }));
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.path.split('/').nth(1).unwrap_or_default()],
        "summary": operation.summary,
        "description": operation.description,
        "responses": responses,
        "security": [],
    });
    if let Some(role) = operation.role {
        described["x-required-role"] = json!(role.as_str());
        let session = match operation.method == axum::http::Method::GET {
            true => json!({"session": []}),
            false => json!({"session": [], "csrf": []}),
        };
        described["security"] = json!([{"token": []}, session]);
    }
    if !request.parameters.is_empty() {
        described["parameters"] = json!(std::mem::take(&mut request.parameters));
    }
    if let Some(schema) = request.body.take() {
        described["requestBody"] = json!({
            "required": true, "content": {"application/json": {"schema": schema}},
        });
    }
    (described, request)
}

/// What an operation may be refused with: codes and their titles by their status.
fn problems<S>(
    operation: &Operation<S>,
    request: &Request,
) -> BTreeMap<u16, Vec<(&'static str, &'static str)>> {
    let mut faults = operation.faults.clone();
    let mut codes = operation.refuses.clone();
    codes.extend(ALWAYS);
    if !request.parameters.is_empty() || request.body.is_some() {
        codes.push(ErrorCode::InvalidArgument);
    }
    if request.reads_body {
        faults.extend([Fault::TooLarge, Fault::SlowBody]);
    }
    if request.body.is_some() {
        faults.push(Fault::MediaType);
    }
    if operation.role.is_some() {
        faults.push(Fault::Unauthenticated);
        codes.push(ErrorCode::PermissionDenied);
    }
    let mut found: BTreeMap<u16, Vec<_>> = BTreeMap::new();
    for code in codes {
        let (status, title) = of_code(code);
        found.entry(status.as_u16()).or_default().push((code.as_str(), title));
    }
    for fault in faults {
        let (code, status, title) = of_fault(fault);
        found.entry(status.as_u16()).or_default().push((code, title));
    }
    for problems in found.values_mut() {
        problems.sort_unstable();
        problems.dedup();
    }
    found
}

/// `409.CONFLICT.RETIRED`
fn problem_name((status, problems): &Problems) -> String {
    let codes = problems.iter().map(|(code, _)| format!(".{code}"));
    codes.fold(status.to_string(), |name, code| name + &code)
}

fn problem((status, problems): &Problems) -> Value {
    let lines: Vec<_> =
        problems.iter().map(|(code, title)| format!("`{code}`: {title}.")).collect();
    let codes: Vec<_> = problems.iter().map(|(code, _)| *code).collect();
    json!({
        "description": lines.join(" "),
        "content": {PROBLEM_JSON: {"schema": {
            "allOf": [{"$ref": format!("{COMPONENTS}ProblemJson")}],
            "properties": {"status": {"const": status}, "code": {"enum": codes}},
        }}},
    })
}

/// Ids in an answer may be text, where `ids=string` asks for that (`answer.rs`).
fn ids_or_text(schema: &mut Value) {
    let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, field) in fields {
        if !ID_FIELDS.contains(&name.as_str()) {
            continue;
        }
        let field = match field.get_mut("items") {
            Some(items) => items,
            None => field,
        };
        let Some(field) = field.as_object_mut() else { continue };
        let is_integer = |kind: &Value| kind == "integer";
        match field.get_mut("type") {
            Some(Value::Array(kinds)) if kinds.iter().any(is_integer) => {
                kinds.push("string".into())
            }
            Some(kind) if is_integer(kind) => *kind = json!(["integer", "string"]),
            _ => continue,
        }
        field.insert("pattern".to_owned(), json!("^-?[0-9]{1,19}$"));
    }
}

/// Makes of names and comments of Rust what a reader of the document expects.
fn tidy(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = plain(text);
            }
            if let Some(Value::String(reference)) = fields.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(COMPONENTS)
            {
                *reference = format!("{COMPONENTS}{}", component(name));
            }
            if let Some(Value::Object(schemas)) = fields.get_mut("schemas") {
                let named = std::mem::take(schemas).into_iter();
                *schemas = named.map(|(name, schema)| (component(&name), schema)).collect();
            }
            fields.values_mut().for_each(tidy);
        }
        _ => {}
    }
}

/// `ListJson_for_TypeJson` is `ListOfType`.
fn component(name: &str) -> String {
    name.replace("Json", "").replace("_for_", "Of")
}

/// A comment without its line breaks and links.
fn plain(comment: &str) -> String {
    let words: Vec<_> = comment.split_whitespace().collect();
    words.join(" ").replace("[`", "`").replace("`]", "`")
}

#[cfg(test)]
#[path = "openapi_tests.rs"]
mod tests;
