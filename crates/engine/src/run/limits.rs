//! What a run may not exceed.

/// The limits of runs. A run that exceeds one fails, and its result names the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// The largest state, in bytes.
    pub state_bytes: usize,
    /// How many jobs and runs one run may start.
    pub children: u64,
    /// How many runs may be above a run.
    pub depth: u32,
    /// How many jobs and runs one step may start: all of them are written at once.
    pub children_of_step: usize,
    /// How many messages of a run are read at once.
    pub messages: usize,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { state_bytes: 4 << 20, children: 1_000_000, depth: 16, children_of_step: 10_000, messages: 1_000 }
    }
}
