//! The operations of the admin API: one table, from which both the router
//! (`routes.rs`) and the OpenAPI document (`openapi.rs`) are made. An address that is
//! not in the table is not served, and one that is, is in the document.
//!
//! # How to add an operation
//!
//! 1. Write the handler. Its arguments say what it takes, and nothing else does: the
//!    parameters and the body of the document are read from its signature, by
//!    [`Takes`]. So [`Name`], [`QueryOf`], [`JsonBody`] and the like are all that is
//!    needed; a new extractor implements [`Takes`] beside its definition.
//! 2. Derive `schemars::JsonSchema` for what it takes and answers. The comment of a
//!    field is its description, `#[schemars(range(min = 1, max = 9))]`, `length(…)`
//!    and `pattern(…)` its bounds. `#[serde(…)]` counts, but for functions
//!    (`deserialize_with`), which need `#[schemars(with = "…")]`.
//! 3. Add it to the function `operations` of its module:
//!
//!    ```text
//!    get("listThings", "/things", Role::View, list::<A>)
//!        .about("Lists things", "By name. `limit` is for pages.")
//!        .answers::<ListJson<ThingJson>>(200, "The things.")
//!        .refuses(&[ErrorCode::UnknownInstance]),
//!    ```
//!
//!    A new module is named in `routes::operations`. [`Operation::open`] makes an
//!    operation that needs no credentials.
//! 4. Run `IDGEN_UPDATE=1 cargo test --lib openapi`, which writes `idl/openapi.json`.
//!    `cargo test --test openapi` then tries the operation with made-up requests.
//!
//! What every operation may be answered (400, 401, 403, 500, 503, 504; 408, 413 and
//! 415 where there is a body) needs no word.

use axum::extract::State;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::auth::Actor;
use super::codes::Fault;
use super::extract::{JsonBody, Name, NoBody, QueryOf};
use crate::domain::access::Role;
use crate::domain::{ErrorCode, TypeName};

/// What a request of an operation holds.
pub(super) struct Request {
    /// Makes the schemas of what is taken.
    pub(super) schemas: SchemaGenerator,
    /// Parameters, as in the document.
    pub(super) parameters: Vec<Value>,
    /// Whether a body is read, be it to be thrown away.
    pub(super) reads_body: bool,
    /// The schema of the JSON body, if there is one.
    pub(super) body: Option<Schema>,
}

/// An argument of a handler, or the list of them all, that knows what of a request it
/// reads.
pub(super) trait Takes {
    /// Adds it to `request`.
    fn note(request: &mut Request);
}

/// The arguments of a handler are one type in axum: a marker, and a tuple with them.
macro_rules! takes_all {
    ($($argument:ident),*) => {
        impl<M, $($argument: Takes),*> Takes for (M, $($argument,)*) {
            fn note(request: &mut Request) {
                $($argument::note(request);)*
                // Not every list has an argument.
                let _ = request;
            }
        }
    };
}

takes_all!();
takes_all!(A);
takes_all!(A, B);
takes_all!(A, B, C);
takes_all!(A, B, C, D);
takes_all!(A, B, C, D, E);
takes_all!(A, B, C, D, E, F);

impl<S> Takes for State<S> {
    fn note(_: &mut Request) {}
}

impl Takes for NoBody {
    fn note(request: &mut Request) {
        request.reads_body = true;
    }
}

impl Takes for Name {
    fn note(request: &mut Request) {
        request.parameters.push(json!({
            "name": "name", "in": "path", "required": true,
            "description": "Name of the id type or of the Redis instance, as in the path.",
            "schema": {
                "type": "string", "maxLength": TypeName::MAX_LEN, "pattern": TypeName::PATTERN,
            },
        }));
    }
}

impl Takes for Actor {
    fn note(request: &mut Request) {
        request.parameters.push(json!({
            "name": "X-Idgen-Actor", "in": "header", "required": false,
            "description": "Who asks, for the audit log; cut to 128 characters. A note, not a \
                            proof.",
            "schema": {"type": "string"},
            "example": "alice",
        }));
    }
}

impl Request {
    /// Of an operation that takes nothing yet.
    pub(super) fn new(schemas: SchemaGenerator) -> Self {
        Request { schemas, parameters: Vec::new(), reads_body: false, body: None }
    }
}

impl<T: JsonSchema> Takes for JsonBody<T> {
    fn note(request: &mut Request) {
        request.reads_body = true;
        request.body = Some(request.schemas.subschema_for::<T>());
    }
}

/// Of a handler that looks at something else before it refuses a body.
impl<T: JsonSchema, E> Takes for Result<JsonBody<T>, E> {
    fn note(request: &mut Request) {
        JsonBody::<T>::note(request);
    }
}

impl<T: JsonSchema> Takes for QueryOf<T> {
    fn note(request: &mut Request) {
        let schema = T::json_schema(&mut request.schemas);
        let required = schema.get("required").and_then(Value::as_array).cloned();
        let required = required.unwrap_or_default();
        let fields = schema.get("properties").and_then(Value::as_object).cloned();
        for (name, mut schema) in fields.unwrap_or_default() {
            let description = schema.as_object_mut().and_then(|s| s.remove("description"));
            without_null(&mut schema);
            request.parameters.push(json!({
                "name": name, "in": "query", "required": required.contains(&json!(name)),
                "description": description, "schema": schema,
            }));
        }
    }
}

/// A field of a query is there or not; it is never null.
fn without_null(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    let is_null = |value: &Value| value == "null" || value == &json!({"type": "null"});
    for name in ["type", "anyOf"] {
        if let Some(Value::Array(alternatives)) = fields.get_mut(name) {
            alternatives.retain(|alternative| !is_null(alternative));
        }
    }
    if let Some([only]) = fields.get("type").and_then(Value::as_array).map(Vec::as_slice) {
        let only = only.clone();
        fields.insert("type".to_owned(), only);
    }
    if let Some([Value::Object(only)]) =
        fields.get("anyOf").and_then(Value::as_array).map(Vec::as_slice)
    {
        let only = only.clone();
        fields.remove("anyOf");
        fields.extend(only);
    }
    if fields.get("default").is_some_and(Value::is_null) {
        fields.remove("default");
    }
}

/// One answer of success.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) description: &'static str,
    /// The media type, and the schema where it is JSON; nothing where there is no body.
    pub(super) content: Option<(&'static str, Option<MakeSchema>)>,
    /// Headers of the answer and what they tell.
    pub(super) headers: Map<String, Value>,
}

type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// An operation: an address and a method, who may use it, what it does, takes and
/// answers, and the handler that does it.
pub(super) struct Operation<S> {
    pub(super) id: &'static str,
    pub(super) method: Method,
    /// The address below `/api/v1`.
    pub(super) path: &'static str,
    /// The address that the router knows, where that is another.
    pub(super) served_at: &'static str,
    /// The weakest role that may; `None`: everybody, without credentials.
    pub(super) role: Option<Role>,
    /// Whether a token with the role `issue` may, too.
    pub(super) for_callers: bool,
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
    pub(super) takes: fn(&mut Request),
    pub(super) answers: Vec<Answer>,
    pub(super) refuses: Vec<ErrorCode>,
    /// What else it is refused with, before the service or beside it.
    pub(super) faults: Vec<Fault>,
    pub(super) handler: MethodRouter<S>,
}

/// An operation that only looks.
pub(super) fn get<H: Handler<T, S>, T: Takes + 'static, S: Clone + Send + Sync + 'static>(
    id: &'static str,
    path: &'static str,
    role: Role,
    handler: H,
) -> Operation<S> {
    operation(id, (Method::GET, MethodFilter::GET), path, role, handler)
}

/// An operation that does or makes something.
pub(super) fn post<H: Handler<T, S>, T: Takes + 'static, S: Clone + Send + Sync + 'static>(
    id: &'static str,
    path: &'static str,
    role: Role,
    handler: H,
) -> Operation<S> {
    operation(id, (Method::POST, MethodFilter::POST), path, role, handler)
}

/// An operation that changes what is there.
pub(super) fn patch<H: Handler<T, S>, T: Takes + 'static, S: Clone + Send + Sync + 'static>(
    id: &'static str,
    path: &'static str,
    role: Role,
    handler: H,
) -> Operation<S> {
    operation(id, (Method::PATCH, MethodFilter::PATCH), path, role, handler)
}

/// An operation that ends or removes something.
pub(super) fn delete<H: Handler<T, S>, T: Takes + 'static, S: Clone + Send + Sync + 'static>(
    id: &'static str,
    path: &'static str,
    role: Role,
    handler: H,
) -> Operation<S> {
    operation(id, (Method::DELETE, MethodFilter::DELETE), path, role, handler)
}

fn operation<H: Handler<T, S>, T: Takes + 'static, S: Clone + Send + Sync + 'static>(
    id: &'static str,
    (method, filter): (Method, MethodFilter),
    path: &'static str,
    role: Role,
    handler: H,
) -> Operation<S> {
    Operation {
        id,
        method,
        path,
        served_at: path,
        role: Some(role),
        for_callers: role == Role::Issue,
        summary: "",
        description: "",
        takes: T::note,
        answers: Vec::new(),
        refuses: Vec::new(),
        faults: Vec::new(),
        handler: on(filter, handler),
    }
}

impl<S> Operation<S> {
    /// What it does, in a few words, and what else there is to know of it.
    pub(super) fn about(mut self, summary: &'static str, description: &'static str) -> Self {
        (self.summary, self.description) = (summary, description);
        self
    }

    /// The router knows it as one of the addresses `served_at`, whose handler looks
    /// which.
    pub(super) fn served_at(mut self, served_at: &'static str) -> Self {
        self.served_at = served_at;
        self
    }

    /// A token with the role `issue` may, too.
    pub(super) fn for_callers(mut self) -> Self {
        self.for_callers = true;
        self
    }

    /// It needs no credentials.
    pub(super) fn open(mut self) -> Self {
        self.role = None;
        self
    }

    /// It is answered `status` with the JSON of `T`.
    pub(super) fn answers<T: JsonSchema>(self, status: u16, description: &'static str) -> Self {
        let schema: MakeSchema = |schemas| schemas.subschema_for::<T>();
        self.answer(status, description, Some(("application/json", Some(schema))))
    }

    /// It is answered `status` with a body that is not of this API's JSON. Named again
    /// with another media type, it is answered in either form.
    pub(super) fn answers_as(
        self,
        status: u16,
        media_type: &'static str,
        description: &'static str,
    ) -> Self {
        self.answer(status, description, Some((media_type, None)))
    }

    /// It is answered `status` without a body.
    pub(super) fn answers_nothing(self, status: u16, description: &'static str) -> Self {
        self.answer(status, description, None)
    }

    fn answer(
        mut self,
        status: u16,
        description: &'static str,
        content: Option<(&'static str, Option<MakeSchema>)>,
    ) -> Self {
        self.answers.push(Answer { status, description, content, headers: Map::new() });
        self
    }

    /// The answer that was named last has the header `name`.
    pub(super) fn with_header(mut self, name: &str, description: &str) -> Self {
        if let Some(answer) = self.answers.last_mut() {
            let header = json!({"description": description, "schema": {"type": "string"}});
            answer.headers.insert(name.to_owned(), header);
        }
        self
    }

    /// It may be refused for these reasons, which the service does not know.
    pub(super) fn faults(mut self, faults: &[Fault]) -> Self {
        self.faults.extend(faults);
        self
    }

    /// It may be refused with these codes, beside those that every operation has.
    pub(super) fn refuses(mut self, codes: &[ErrorCode]) -> Self {
        self.refuses.extend(codes);
        self
    }
}
