//! Ids in a program on tokio.
//!
//! ```sh
//! idgen type add order
//! cargo run --example async_client -- 127.0.0.1:5900 127.0.0.1:5901
//! ```

use std::error::Error;

use idgen::client::{Client, Config};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // All nodes of the cluster: calls take turns, and leave a node that is dead.
    let client = Client::new(Config::new(std::env::args().skip(1)))?;

    // Clones share connections.
    let tasks = (0..4).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { client.next_string_id("order", true).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        println!("{}", task.await??);
    }
    let info = client.describe("order").await?;
    println!("{} is {}", info.name.unwrap_or_default(), info.mode.unwrap_or_default());
    Ok(())
}
