//! What endpoints take and answer: a table for each group, in the order in which readers need them.

mod admin;
mod dead;
mod events;
mod exosphere;
mod flows;
mod jobs;
mod queues;
mod runs;
mod server;
mod workers;

use super::operation::Group;

/// All groups.
pub(super) const GROUPS: [&Group; 15] = [
    &jobs::JOBS,
    &workers::PROTOCOL,
    &dead::DEAD_LETTERS,
    &queues::QUEUES,
    &queues::LIMITS,
    &runs::WORKFLOWS,
    &runs::SCHEDULES,
    &flows::FLOWS,
    &events::EVENTS,
    &events::WEBHOOKS,
    &admin::ADMIN,
    &workers::OPERATED,
    &exosphere::GRAPHS,
    &server::SERVER,
    &exosphere::EXOSPHERE,
];
