//! The code in `src/generated` is what the definition in `proto` gives. With `REDRIVE_GENERATE=1` the test writes it.

use std::path::Path;

#[test]
fn the_generated_code_is_what_the_definition_gives() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kept = root.join("src/generated");
    let made = std::env::temp_dir().join(format!("redrive-azolla-{}", std::process::id()));
    std::fs::create_dir_all(&made).unwrap();
    let write = std::env::var_os("REDRIVE_GENERATE").is_some();
    let folder = if write { &kept } else { &made };
    let files = protox::compile(["orchestrator.proto", "shepherd.proto"], [root.join("proto")]).unwrap();
    tonic_prost_build::configure().build_transport(false).out_dir(folder).compile_fds(files).unwrap();
    let names = ["azolla.common.rs", "azolla.orchestrator.rs", "azolla.shepherd.rs"];
    let differing: Vec<&str> = names
        .into_iter()
        .filter(|name| std::fs::read(folder.join(name)).unwrap() != std::fs::read(kept.join(name)).unwrap())
        .collect();
    std::fs::remove_dir_all(&made).unwrap();
    assert!(differing.is_empty(), "{differing:?} differ: REDRIVE_GENERATE=1 cargo test -p redrive-azolla");
}
