//! The program `idgen`: parses, dispatches, ends with an exit code.

use std::io;
use std::process::ExitCode;

use idgen::app::WIRING;
use idgen::cli::{Console, run};

/// The allocator of the C library keeps the memory of types that have left the
/// node, nearly all of it; this one gives it back within ten seconds
/// (docs/performance.md, "Many types").
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let environment = std::env::vars_os().collect();
    let mut console =
        Console { input: &mut io::stdin().lock(), out: &mut io::stdout(), err: &mut io::stderr() };
    ExitCode::from(run(std::env::args_os(), &environment, &mut console, &WIRING))
}
