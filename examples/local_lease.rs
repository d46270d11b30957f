//! Millions of ids a second, out of leases.
//!
//! ```sh
//! idgen type add event --mode segment
//! cargo run --example local_lease -- 127.0.0.1:5900
//! ```

use std::error::Error;

use idgen::client::{BlockingClient, Config, LeaseConfig};

fn main() -> Result<(), Box<dyn Error>> {
    let client = BlockingClient::new(Config::new(std::env::args().skip(1)))?;
    let mut config = LeaseConfig::default();
    config.min = 10_000;
    let lease = client.local_lease("event", config)?;

    // One for the whole program.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..100_000 {
                    lease.next_id().expect("a node is there");
                }
            });
        }
        // A handle of its own for a thread that wants the last bit of speed.
        scope.spawn(|| {
            let mut batch = lease.batch(1_000);
            for _ in 0..100_000 {
                batch.next_id().expect("a node is there");
            }
        });
    });
    println!("an id: {}", lease.next_id()?);
    // What is left is given up.
    lease.close();
    Ok(())
}
