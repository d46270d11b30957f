//! Builds the crate again when the files of the admin page change, which are part
//! of the program (`src/front/http/page.rs`). Makes nothing itself.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The client alone has no page.
    if std::env::var_os("CARGO_FEATURE_SERVER").is_none() {
        return;
    }
    // Cargo takes a path that does not exist for one that has just changed, each time.
    let page = Path::new("web-admin/dist");
    let watched = if page.exists() { page } else { Path::new("web-admin") };
    println!("cargo:rerun-if-changed={}", watched.display());
}
