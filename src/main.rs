//! The program `idgen`: parses, dispatches, ends with an exit code.

use std::io;
use std::process::ExitCode;

use idgen::cli::exit::Failure;
use idgen::cli::{Console, Wiring, run};

fn main() -> ExitCode {
    let wiring = Wiring {
        serve: |_| Err(not_here("serve")),
        schema_apply: |_| Err(not_here("schema apply")),
        schema_check: |_| Err(not_here("schema check")),
        schema_print: String::new,
        mysql_facts: |_| Err(not_here("the check of MySQL")),
    };
    let environment = std::env::vars_os().collect();
    let mut console = Console {
        input: &mut io::stdin().lock(),
        out: &mut io::stdout(),
        err: &mut io::stderr(),
    };
    ExitCode::from(run(
        std::env::args_os(),
        &environment,
        &mut console,
        &wiring,
    ))
}

fn not_here(what: &str) -> Failure {
    Failure::failed(format_args!("{what} is not part of this build"))
}
