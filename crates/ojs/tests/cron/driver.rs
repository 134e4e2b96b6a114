//! Drives a program in memory, as an engine would.
