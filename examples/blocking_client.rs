//! Ids in a program without a runtime.
//!
//! ```sh
//! idgen type add order
//! cargo run --example blocking_client -- 127.0.0.1:5900
//! ```

use std::error::Error;
use std::time::Duration;

use idgen::client::{BlockingClient, Code, Config, Order};

fn main() -> Result<(), Box<dyn Error>> {
    let mut config = Config::new(std::env::args().skip(1));
    config.deadline = Duration::from_millis(500);
    let client = BlockingClient::new(config)?;

    println!("an id: {}", client.next_id("order")?);
    for range in client.next_ids("order", 1_000)? {
        println!("{} ids from {} on", range.count, range.first);
    }

    // The same key gives the same ids, also after a time-out: an order that is placed
    // twice keeps its number.
    let order = Order::of(1).request_key("cart-4711");
    assert_eq!(client.issue("order", &order)?, client.issue("order", &order)?);

    match client.next_id("no-such-type") {
        Err(error) if error.code() == Some(&Code::UnknownType) => println!("{error}"),
        Err(error) if error.is_retriable() => println!("try again: {error}"),
        other => println!("{other:?}"),
    }
    Ok(())
}
