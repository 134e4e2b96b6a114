//! Run a closure under a policy, async or blocking.
