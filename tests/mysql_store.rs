//! The range store against real servers: MariaDB and MySQL 8, the same tests.

mod support;

use std::sync::Arc;

use idgen::adapters::mysql::MysqlStore;
use idgen::ports::{RangeStore, conformance};
use support::sql_server::{SqlServer, TestDb};

macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod on_mariadb {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(super::support::mariadb::shared()).await;
            })+
        }
        mod on_mysql8 {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(super::support::mysql8::shared()).await;
            })+
        }
    };
}

on_both!(conforms);

async fn store(db: &TestDb) -> Arc<MysqlStore> {
    Arc::new(MysqlStore::connect(db.app.clone()).await.expect("a store"))
}

async fn conforms(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let store: Arc<dyn RangeStore> = store(&db).await;
    conformance::range_store(store).await;
}
