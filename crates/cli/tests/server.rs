//! The server and the commands that talk to it, through the real binary.

#![allow(clippy::expect_used, clippy::panic)]

mod harness;

#[path = "server/backups.rs"]
mod backups;
#[path = "server/commands.rs"]
mod commands;
#[path = "server/connections.rs"]
mod connections;
#[path = "server/cron.rs"]
mod cron;
#[path = "server/events.rs"]
mod events;
#[path = "server/flow.rs"]
mod flow;
#[path = "server/graph.rs"]
mod graph;
#[path = "server/guides.rs"]
mod guides;
#[path = "server/hostile.rs"]
mod hostile;
#[path = "server/http.rs"]
mod http;
#[path = "server/key.rs"]
mod key;
#[path = "server/languages.rs"]
mod languages;
#[path = "server/lifecycle.rs"]
mod lifecycle;
#[path = "server/output.rs"]
mod output;
#[path = "server/start.rs"]
mod start;
#[path = "server/store.rs"]
mod store;
#[path = "server/webhook.rs"]
mod webhook;
#[path = "server/workers.rs"]
mod workers;
#[path = "server/workflow.rs"]
mod workflow;
