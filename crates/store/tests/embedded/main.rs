//! The embedded store: the suite, and everything that can happen to a folder.

mod conformance;
mod damage;
mod history;
mod power;
mod sim;
mod subject;
mod workload;
