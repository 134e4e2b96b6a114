//! Limits on what one job may hold.

/// How much a job may hold. A server lets its operator set each of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest `args` of one job, in bytes of JSON.
    pub args_bytes: usize,
    /// The longest error of one failed attempt that is stored whole, in bytes of JSON.
    pub error_bytes: usize,
    /// How deep `args`, `meta` and other values may nest; at most 120.
    pub nesting: usize,
    /// The longest name of a queue, of a job type, and of a worker, in bytes.
    pub name_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { args_bytes: 512 << 10, error_bytes: 16 << 10, nesting: 64, name_bytes: 255 }
    }
}
