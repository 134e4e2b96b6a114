//! The messages and services, as tonic and prost make them of the definition in `proto`.
//!
//! They are checked in, so that a build needs no compiler of definitions; `tests/generated.rs` makes them anew and
//! compares. Their names are those of Azolla's packages, because the paths of calls have them.

/// What the services share.
#[allow(missing_docs, unreachable_pub, clippy::all)]
#[rustfmt::skip]
pub mod common {
    include!("generated/azolla.common.rs");
}

/// What the server serves: the calls of clients, and the streams of shepherds.
#[allow(missing_docs, unreachable_pub, clippy::all)]
#[rustfmt::skip]
pub mod orchestrator {
    include!("generated/azolla.orchestrator.rs");
}

/// What a shepherd serves to its workers.
#[allow(missing_docs, unreachable_pub, clippy::all)]
#[rustfmt::skip]
pub mod shepherd {
    include!("generated/azolla.shepherd.rs");
}
