//! Traces for an OpenTelemetry collector: OTLP over HTTP, in batches, by a thread of
//! its own. What the collector does not take in time is lost, and never in the way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use crate::config::TraceSettings;

/// How long the collector may take for a batch, and an end for what is left.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Longest answer of the collector that is read, in bytes; its content does not matter.
const MAX_ANSWER: u64 = 64 * 1024;

/// What is wrong with the settings of traces.
#[derive(Debug, thiserror::Error)]
#[error("traces.endpoint: {0}")]
pub struct TraceError(#[from] ExporterBuildError);

/// The way from spans to the collector.
pub(super) struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// `None` where no collector is configured.
    pub(super) fn start(
        settings: &TraceSettings,
        node: &str,
    ) -> Result<Option<Traces>, TraceError> {
        let Some(endpoint) = &settings.endpoint else { return Ok(None) };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .with_timeout(TIMEOUT)
            .with_http_client(Collector::new())
            .build()?;
        let resource = Resource::builder_empty()
            .with_service_name("idgen")
            .with_attributes([
                KeyValue::new("service.version", crate::VERSION),
                KeyValue::new("service.instance.id", node.to_owned()),
            ])
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .build();
        Ok(Some(Traces { provider }))
    }

    /// Takes the spans of this crate. Which calls have one, `front::spans` decides.
    pub(super) fn layer<S>(&self) -> Box<dyn Layer<S> + Send + Sync>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("idgen"))
            .with_threads(false)
            .with_filter(filter_fn(|data| data.is_span() && data.target().starts_with("idgen")))
            .boxed()
    }

    pub(super) fn end(self) {
        if let Err(error) = self.provider.shutdown_with_timeout(TIMEOUT) {
            tracing::debug!(%error, "the last traces are lost");
        }
    }
}

/// Sends batches with the HTTP client that the program has already. It blocks: the
/// thread that calls it has nothing else to do.
#[derive(Debug)]
struct Collector {
    agent: ureq::Agent,
    /// Whether the last batch got there, so that a loss is told once.
    reached: AtomicBool,
}

impl Collector {
    fn new() -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .max_redirects(0)
            .http_status_as_error(false)
            .build();
        Collector { agent: config.into(), reached: AtomicBool::new(true) }
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ureq::Error> {
        let (parts, body) = request.into_parts();
        let answer = self.agent.run(Request::from_parts(parts, body.to_vec()))?;
        let (parts, mut body) = answer.into_parts();
        let body = body.with_config().limit(MAX_ANSWER).read_to_vec()?;
        Ok(Response::from_parts(parts, body.into()))
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let result = self.send(request);
        let problem = match &result {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("it answers {}", answer.status())),
            Err(error) => Some(error.to_string()),
        };
        let reached = self.reached.swap(problem.is_none(), Ordering::Relaxed);
        match problem {
            Some(error) if reached => {
                tracing::warn!(error, "traces are lost: the collector does not take them");
            }
            None if !reached => tracing::info!("the collector takes traces again"),
            _ => {}
        }
        Ok(result?)
    }
}
