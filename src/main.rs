//! The program `idgen`: parses, dispatches, ends with an exit code.

mod store_tools;

use std::io;
use std::process::ExitCode;

use idgen::cli::exit::Failure;
use idgen::cli::{Console, Wiring, run};

fn main() -> ExitCode {
    let wiring = Wiring {
        serve: |_| Err(not_here("serve")),
        schema_apply: store_tools::schema_apply,
        schema_check: store_tools::schema_check,
        schema_print: idgen::adapters::mysql::schema::print,
        mysql_facts: store_tools::mysql_facts,
    };
    let environment = std::env::vars_os().collect();
    let mut console =
        Console { input: &mut io::stdin().lock(), out: &mut io::stdout(), err: &mut io::stderr() };
    ExitCode::from(run(std::env::args_os(), &environment, &mut console, &wiring))
}

fn not_here(what: &str) -> Failure {
    Failure::failed(format_args!("{what} is not part of this build"))
}
