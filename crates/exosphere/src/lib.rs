//! Exosphere's graphs: templates and their validation, placeholders, and the program that takes a run of a graph from
//! state to state. A run of a graph is a run of the engine, and a state is a job. It knows no HTTP and reads no clock.

mod definition;
mod fields;
mod name;
mod node;
mod programs;
mod report;
mod run;
mod state_id;
mod template;
mod trigger;
mod view;

pub use definition::{GRAPH, GraphDefinition, NODE, REPLACE, graph_key, node_key};
pub use fields::{FieldError, Loc};
pub use name::{check_name, queue_of};
pub use node::{Node, Registration, read_registration};
pub use programs::{Graphs, Nodes};
pub use report::{
    Enqueue, error_document, outputs_document, pruned_document, read_enqueue, read_error, read_outputs, read_page,
    read_prune, read_retry, read_wait,
};
pub use run::{Leases, Manual, RETRY, RUN, Row, RunState, Runs, STATE, Status};
pub use state_id::StateId;
pub use template::{Store, Strategy, Template, TemplateNode, Unites, check, read_template, registered_errors};
pub use trigger::{TriggerRequest, read_trigger};
pub use view::{STATUSES, StateView, Totals, states_of};
