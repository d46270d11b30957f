//! The program `idgen`: parses, dispatches, ends with an exit code.

use std::io;
use std::process::ExitCode;

use idgen::app::WIRING;
use idgen::cli::{Console, run};

fn main() -> ExitCode {
    let environment = std::env::vars_os().collect();
    let mut console = Console {
        input: &mut io::stdin().lock(),
        out: &mut io::stdout(),
        err: &mut io::stderr(),
    };
    ExitCode::from(run(std::env::args_os(), &environment, &mut console, &WIRING))
}
