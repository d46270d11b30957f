//! S0, the Leaf-segment service in Go: `{"code":…,"data":…,"msg":…}` with status 200
//! whatever happens. Code 1000 is a body that cannot be read, 1001 everything else.
//!
//! Reading is open, as there. What changes types needs a token that may operate, unless
//! the configuration says that nobody else reaches the port.

use axum::extract::Request;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::auth::Peer;
use super::params::{Params, push_id, whole};
use super::{App, Shared, answer};
use crate::domain::calendar::Zone;
use crate::domain::{Error, Mode, TypeChange, TypeName, TypeSpec};
use crate::service::admin::AdminApi;
use crate::service::live::api::LiveApi;

const GIN_JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
/// The step of a type for which none is told.
const DEFAULT_STEP: i64 = 2_000;
/// The longest step.
const MAX_STEP: i64 = 10_000_000;

/// Why there is nothing.
enum No {
    /// The body is no JSON of the right form.
    Params,
    /// Something else, with its text.
    Failed(String),
    /// Who asks may not; with the reason.
    Refused(String),
    /// What is refused before anybody looks at it.
    Answered(Box<Response>),
}

impl From<Error> for No {
    fn from(error: Error) -> Self {
        No::Failed(error.message)
    }
}

/// `GET /api/leaf`: the next id.
pub(super) async fn next_id<A: AdminApi + LiveApi>(app: App<A>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if let Err(problem) = whole(body).await {
        return problem.into_response();
    }
    let params = Params::of(&parts, &[]);
    let name = params.get("biz_tag").unwrap_or_default();
    let id = app.next_id(&parts, &name).await;
    app.count(&app.metrics.s0, 1, &id);
    let id = match id {
        Ok(id) => id,
        Err(error) => return No::from(error).answer(),
    };
    let mut text = "{\"code\":0,\"data\":{\"ID\":".to_owned();
    push_id(&mut text, id, params.form());
    text.push_str("},\"msg\":\"success\"}");
    answer(StatusCode::OK, GIN_JSON, text)
}

/// `POST /api/leaf`: makes a type.
pub(super) async fn create<A: AdminApi + LiveApi>(app: App<A>, request: Request) -> Response {
    done(&app.0, create_type(&app.0, request).await)
}

async fn create_type<A: AdminApi + LiveApi>(
    app: &Shared<A>,
    request: Request,
) -> Result<Value, No> {
    let (parts, body) = read(request).await?;
    let name = body.text("biz_tag")?;
    let max_id = body.unsigned("max_id")?.unwrap_or(0);
    let step = body.signed("step")?.unwrap_or(0);
    let mut description = body.text("description")?;
    if description.is_empty() {
        // As its documentation spells it.
        description = body.text("descprition")?;
    }
    let actor = actor(app, &parts, &name).await?;
    if step > MAX_STEP {
        return Err(No::Failed("step limit exceeded".to_owned()));
    }
    if name.is_empty() || step < 0 {
        return Err(No::Failed("param invalid".to_owned()));
    }
    let max_id = i64::try_from(max_id)
        .map_err(|_| Error::invalid("max_id", format!("max_id {max_id} is above 2^63 - 1")))?;
    let step = if step == 0 { DEFAULT_STEP } else { step };
    let new = TypeSpec::new(TypeName::parse(&name)?);
    let spec = TypeSpec {
        mode: Mode::Segment,
        // The next segment there is [max_id, max_id + step).
        first_id: max_id.max(1),
        min_range: step,
        max_range: new.max_range.max(step),
        description: if description.is_empty() { name } else { description },
        ..new
    };
    app.api.create_type(spec, &actor).await?;
    Ok(Value::Null)
}

/// `PUT /api/leaf/step`: the length of the shortest range from now on.
pub(super) async fn set_step<A: AdminApi + LiveApi>(app: App<A>, request: Request) -> Response {
    done(&app.0, change_step(&app.0, request).await)
}

async fn change_step<A: AdminApi + LiveApi>(
    app: &Shared<A>,
    request: Request,
) -> Result<Value, No> {
    let (parts, body) = read(request).await?;
    let step = body.signed("step")?.unwrap_or(0);
    let name = body.text("biz_tag")?;
    let actor = actor(app, &parts, &name).await?;
    if step < 1 || name.is_empty() {
        return Err(No::Failed("param invalid".to_owned()));
    }
    if step > MAX_STEP {
        return Err(No::Failed("step limit exceeded".to_owned()));
    }
    let settings = app.api.settings(&name).await?;
    let change = TypeChange {
        min_range: Some(step),
        max_range: Some(settings.max_range.max(step)),
        ..TypeChange::default()
    };
    app.api.alter_type(&name, change, &actor).await?;
    Ok(Value::Null)
}

/// `PUT /api/leaf/init/cache`: the node gets its ranges now. Costs one id, as a call for
/// an id does, and is as open as that.
pub(super) async fn warm<A: AdminApi + LiveApi>(app: App<A>, request: Request) -> Response {
    done(&app.0, warm_up(&app.0, request).await)
}

/// What S0 tells of a type in memory.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Loaded {
    key: String,
    step: i64,
    current_pos: i64,
    buffer: [Segment; 1],
    update_time: String,
    is_preload: bool,
    waiting: Map<String, Value>,
}

/// The ids at hand, as if they were in a row.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Segment {
    cursor: i64,
    max: i64,
    min: i64,
    init_ok: bool,
}

async fn warm_up<A: AdminApi + LiveApi>(app: &Shared<A>, request: Request) -> Result<Value, No> {
    let (parts, body) = read(request).await?;
    let name = body.text("biz_tag")?;
    let id = app.next_id(&parts, &name).await?;
    let status = app.api.describe(&name).await?;
    let left = match (&status.local, &status.view) {
        (Some(local), _) => local.left,
        (None, Some(view)) => {
            let ranges = [view.current, view.second].into_iter().flatten();
            ranges.map(|r| (r.end() - r.start().max(view.cursor)).max(0) as u64).sum()
        }
        (None, None) => 0,
    };
    let now = Zone::parse(None).expect("UTC is a zone").moment(app.api.now_ms());
    let loaded = Loaded {
        key: name,
        step: status.record.min_range,
        current_pos: 0,
        buffer: [Segment {
            cursor: id,
            max: id.saturating_add_unsigned(left),
            min: id,
            init_ok: true,
        }],
        update_time: format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
            now.year, now.month, now.day, now.hour, now.minute, now.second
        ),
        is_preload: false,
        waiting: Map::new(),
    };
    Ok(json!(loaded))
}

/// Who asks for a change of the type called `name`, for the audit log; refused where
/// that may not be.
async fn actor<A>(app: &Shared<A>, parts: &Parts, name: &str) -> Result<String, No> {
    if app.config.s0_open && !parts.headers.contains_key(AUTHORIZATION) {
        let address = parts.extensions.get::<Peer>().map(|peer| peer.0.to_canonical().to_string());
        return Ok(format!("S0 client at {}", address.as_deref().unwrap_or("an unknown address")));
    }
    let asked = app.access.operator(parts, name).await;
    asked.map_err(|problem| No::Refused(problem.detail().to_owned()))
}

/// Counts a call that is not for an id, and answers it.
fn done<A>(app: &Shared<A>, result: Result<Value, No>) -> Response {
    match result {
        Ok(data) => {
            app.metrics.s0.served.inc();
            // The fields in the order of the alphabet, as there.
            let text = format!("{{\"code\":0,\"data\":{data},\"msg\":\"success\"}}");
            answer(StatusCode::OK, GIN_JSON, text)
        }
        Err(no) => {
            match no {
                No::Refused(_) => app.metrics.s0.refused.inc(),
                _ => app.metrics.s0.failed.inc(),
            }
            no.answer()
        }
    }
}

impl No {
    fn answer(self) -> Response {
        let (code, message) = match self {
            No::Params => (1000, "param Invalid".to_owned()),
            No::Failed(message) | No::Refused(message) => (1001, message),
            No::Answered(response) => return *response,
        };
        let text = format!("{{\"code\":{code},\"msg\":{}}}", json!(message));
        answer(StatusCode::OK, GIN_JSON, text)
    }
}

/// The body of a request, by the rules of Go: an object or `null`, whatever it is
/// declared as; what is unknown does not count, and names match in any case.
struct Body(Map<String, Value>);

async fn read(request: Request) -> Result<(Parts, Body), No> {
    let (parts, body) = request.into_parts();
    let bytes =
        whole(body).await.map_err(|problem| No::Answered(Box::new(problem.into_response())))?;
    // The first value counts, and nothing behind it.
    let first = serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>().next();
    match first {
        Some(Ok(Value::Object(fields))) => Ok((parts, Body(fields))),
        Some(Ok(Value::Null)) => Ok((parts, Body(Map::new()))),
        _ => Err(No::Params),
    }
}

impl Body {
    fn get(&self, name: &str) -> Option<&Value> {
        let any_case = || self.0.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        let value = self.0.get(name).or_else(|| any_case().map(|(_, value)| value));
        value.filter(|value| !value.is_null())
    }

    /// A text; empty where there is none.
    fn text(&self, name: &str) -> Result<String, No> {
        match self.get(name) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(No::Params),
        }
    }

    /// A whole number of 64 bits without a sign.
    fn unsigned(&self, name: &str) -> Result<Option<u64>, No> {
        self.get(name).map(|value| value.as_u64().ok_or(No::Params)).transpose()
    }

    /// A whole number of 32 bits.
    fn signed(&self, name: &str) -> Result<Option<i64>, No> {
        let number = |value: &Value| value.as_i64().filter(|n| i32::try_from(*n).is_ok());
        self.get(name).map(|value| number(value).ok_or(No::Params)).transpose()
    }
}
