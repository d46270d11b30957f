//! The yardstick for everything behind the front: the same Thrift front, in a
//! process of its own, whose service answers with a constant.

use std::error::Error as StdError;
use std::io::Write;
use std::sync::Arc;

use idgen::domain::{Error, ErrorCode, IdRange, InstanceId, TypeName, TypeRecord, TypeSpec};
use idgen::front::thrift::{ThriftConfig, ThriftMetrics, ThriftServer};
use idgen::service::api::{Decoded, IdApi, NodeStatus, Order, RangeLease, TypeStatus};

/// The argument with which this program becomes a null server.
pub const ARGUMENT: &str = "serve-null";

struct Null;

fn nothing() -> Error {
    Error::new(ErrorCode::Internal, "a null server has nothing to say")
}

impl IdApi for Null {
    async fn next_id(&self, _name: &str) -> Result<i64, Error> {
        Ok(1_000_000_007)
    }

    async fn next_ids(&self, _name: &str, order: Order<'_>) -> Result<Vec<IdRange>, Error> {
        let range = IdRange::new(1, 1 + order.count).map_err(|_| nothing())?;
        Ok(vec![range])
    }

    async fn next_string_ids(
        &self,
        _name: &str,
        _order: Order<'_>,
        _with_prefix: bool,
    ) -> Result<Vec<String>, Error> {
        Err(nothing())
    }

    async fn lease_range(&self, _: &str, _: i64, _: i64) -> Result<RangeLease, Error> {
        Err(nothing())
    }

    async fn decode(&self, _: &str, _: &str) -> Result<Decoded, Error> {
        Err(nothing())
    }

    /// A plain type: what the load asks for before it begins.
    async fn describe(&self, name: &str) -> Result<TypeStatus, Error> {
        let spec = TypeSpec::new(TypeName::parse(name)?);
        let record = TypeRecord::created(&spec, InstanceId(1), 0);
        Ok(TypeStatus { record, view: None, local: None, exhausted_at_ms: None })
    }

    async fn create_type(&self, _spec: TypeSpec, _actor: &str) -> Result<TypeRecord, Error> {
        Err(nothing())
    }

    async fn node_status(&self) -> NodeStatus {
        NodeStatus {
            node: "null".to_owned(),
            version: env!("CARGO_PKG_VERSION"),
            uptime_s: 0,
            ready: true,
            draining: false,
            types_loaded: 0,
            parts: Vec::new(),
        }
    }
}

/// Serves on a free port, whose address it prints first, until SIGTERM.
pub fn serve() -> Result<(), Box<dyn StdError>> {
    // With as many workers as a node has.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(idgen::app::default_workers())
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let server = ThriftServer::bind(ThriftConfig::new("127.0.0.1:0".parse()?)).await?;
        println!("{}", server.local_addr());
        std::io::stdout().flush()?;
        let metrics = Arc::new(ThriftMetrics::register(&prometheus::Registry::new())?);
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let mut terminate =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        let serving = tokio::spawn(server.serve(Arc::new(Null), metrics, stopped));
        terminate.recv().await;
        stop.send(true)?;
        serving.await?;
        Ok(())
    })
}
