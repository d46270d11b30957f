use super::*;
use crate::cli::load::test_server::{Reply, TestServer};

fn pace(rate: f64, turn: u64, turns: u64) -> Pace {
    let start = now();
    let (measure_from, end) = (start + Duration::from_secs(1), start + Duration::from_secs(3));
    Pace { start, interval: 1e9 / rate, turn, turns, measure_from, end }
}

#[test]
fn the_connections_together_make_the_rate() {
    for (rate, turns) in [(1_000.0, 1), (1_000.0, 7), (3.0, 64), (123_457.0, 64)] {
        let paces = (0..turns).map(|turn| pace(rate, turn, turns));
        let all = paces.map(|p| p.first_after(p.end) - p.first_after(p.measure_from)).sum::<u64>();
        assert!((all as f64 - 2.0 * rate).abs() <= 1.0, "{rate} over {turns}: {all}");
    }
}

#[test]
fn answers_are_told_apart_and_late_ones_are_late() {
    let server = TestServer::start(|asked| {
        assert_eq!((asked.method.as_str(), asked.id_type.as_str()), ("nextId", "t"));
        // A call takes 20 ms, and 100 a second are offered to each connection.
        std::thread::park_timeout(Duration::from_millis(20));
        match asked.number % 4 {
            3 => Reply::Raise("OVERLOADED", true),
            _ => Reply::Id(asked.number as i64 + 1),
        }
    });
    let fate = offer(&Offer {
        nodes: vec![Node::resolve(&server.name()).unwrap()],
        connections: 2,
        id_type: "t".to_owned(),
        rate: 200,
        warm_up: Duration::from_millis(100),
        measured: Duration::from_secs(1),
    })
    .unwrap();
    assert_eq!(fate.offered, 200);
    let refused = fate.errors.of("OVERLOADED");
    assert_eq!((fate.refused.count(), fate.errors.total()), (refused, refused));
    assert_eq!(fate.accepted.count() + refused + fate.unanswered(), 200);
    assert!((40..=60).contains(&refused), "{fate:?}");
    // Half of what was offered is done in time, so the last one waits for as long again.
    assert!(fate.arrived < 110, "{fate:?}");
    assert!(fate.accepted.max_us() > 800_000.0, "{fate:?}");
}
