//! The embedded store: the suite, and everything that can happen to a folder.

mod conformance;
mod sim;
mod subject;
