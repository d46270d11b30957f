//! `make bench`: the service beside its yardsticks, in one run.
//!
//! Every server is a process of its own, and all are there from the start; the
//! load comes from this process. The contenders take turns, a few seconds each,
//! round after round, so that whatever disturbs the machine disturbs them all;
//! reported are medians over the rounds, the spread, and ratios within rounds.
//! Speed is warned about, never failed on: it depends on the machine.
//!
//! - `line_up` says who the contenders are, `targets` what is asked of them;
//! - `compare` lets them take turns, `turn` is one of these;
//! - `lean` is the load, of `wire`'s calls; `blocking` is what applications do;
//! - `floor` and `null_server` are yardsticks, `stage` is everything that runs,
//!   of `node`, `servers` and `process`;
//! - `cpu` tells whose processor time a turn took, `numbers` are medians;
//! - `results` go to people by `table`, `guard` and `plot`;
//! - `scale` is how things grow with connections, nodes and types, `ramp` what
//!   happens while a rate doubles.

mod blocking;
mod compare;
mod cpu;
mod facts;
mod floor;
mod guard;
mod inbox;
mod lean;
mod line_up;
mod node;
mod null_server;
mod numbers;
mod options;
mod plot;
mod process;
mod ramp;
mod redis_csv;
mod results;
mod sample;
mod scale;
mod servers;
mod stage;
mod table;
mod targets;
mod turn;
mod wire;

use std::process::ExitCode;

use clap::Parser;

use options::Options;

/// That of the program under test: so the null server, which is this program,
/// differs from a node by nothing but what is behind the front.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let first = std::env::args().nth(1);
    let served = match first.as_deref() {
        Some(null_server::ARGUMENT) => null_server::serve(),
        Some(floor::ARGUMENT) => floor::serve(),
        _ => return measure(),
    };
    exit_code(served.map_err(|e| e.to_string()))
}

fn measure() -> ExitCode {
    let options = Options::parse();
    if !options.bench {
        // `cargo test --benches` runs this too, and must not measure for minutes.
        println!("run by `make bench`, or `cargo bench --bench contenders`");
        return ExitCode::SUCCESS;
    }
    exit_code(match options.scale {
        Some(what) => scale::measure(what, &options),
        None => compare::run(&options),
    })
}

fn exit_code(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("contenders: {error}");
            ExitCode::FAILURE
        }
    }
}
