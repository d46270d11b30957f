//! The parts of `benches/contenders` that could be wrong without being seen: a
//! benchmark has no test harness of its own.

macro_rules! part {
    ($($name:ident $path:literal),+ $(,)?) => {
        $(
            #[allow(dead_code, missing_docs, reason = "the benchmark uses more of it")]
            #[path = $path]
            mod $name;
        )+
    };
}

part! {
    cpu "../benches/contenders/cpu.rs",
    floor "../benches/contenders/floor.rs",
    guard "../benches/contenders/guard.rs",
    inbox "../benches/contenders/inbox.rs",
    lean "../benches/contenders/lean.rs",
    line_up "../benches/contenders/line_up.rs",
    numbers "../benches/contenders/numbers.rs",
    redis_csv "../benches/contenders/redis_csv.rs",
    sample "../benches/contenders/sample.rs",
    targets "../benches/contenders/targets.rs",
    wire "../benches/contenders/wire.rs",
}

#[path = "bench_parts/load.rs"]
mod load;
#[path = "bench_parts/ratios.rs"]
mod ratios;
#[path = "bench_parts/replies.rs"]
mod replies;
#[path = "bench_parts/times.rs"]
mod times;
