//! A builder for policies in Rust code.
