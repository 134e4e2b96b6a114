//! Every retry of a policy, and how long each takes.
