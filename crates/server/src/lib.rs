//! Open Job Spec and Exosphere's API over HTTP, and Azolla's protocol over gRPC. It translates requests into commands
//! of the engine; no rule about jobs is here.

mod access;
mod api_error;
mod app;
mod azolla;
mod backups;
mod discards;
mod edge;
mod endpoints;
mod exosphere;
mod flow;
mod hosts;
mod limits;
mod listen;
mod local;
mod metrics;
mod ojs;
mod openapi;
mod programs;
mod request;
mod response;
mod secrets;
mod webhooks;

pub use access::{ApiKeys, SHORTEST_KEY};
pub use app::{Server, ServerSettings};
pub use azolla::AzollaSettings;
pub use backups::{Backup, BackupError, BackupLabel, BackupSchedule, backups_in};
pub use endpoints::EndpointInfo;
pub use hosts::Hosts;
pub use limits::Limits;
pub use local::LocalStore;
pub use openapi::openapi;
pub use programs::programs;
pub use redrive_exosphere::Leases;
pub use secrets::SecretKeys;
pub use webhooks::WebhookSettings;
