//! The program `idgen`: parses, dispatches, ends with an exit code.

use std::io;
use std::process::ExitCode;

use idgen::app::WIRING;
use idgen::cli::{Console, run};

/// The allocator of the C library keeps the memory of types that have left the
/// node: after 100 000 of them, all of it (docs/performance.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let environment = std::env::vars_os().collect();
    let mut console =
        Console { input: &mut io::stdin().lock(), out: &mut io::stdout(), err: &mut io::stderr() };
    ExitCode::from(run(std::env::args_os(), &environment, &mut console, &WIRING))
}
