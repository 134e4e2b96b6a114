//! Flows as programs of runs: a definition is a run that is only there to be read and replaced, and a flow that runs
//! is a run whose state is the machine's, with what is told of it. It knows no HTTP and reads no clock.

mod calls;
mod definitions;
mod events;
mod program;
mod retries;
mod state;
mod view;

pub use calls::{HTTP_QUEUE, HttpCall, HttpRequest, http_answer, http_call};
pub use definitions::{
    DEFINITION, DefinitionState, Definitions, MAX_STORED, REMOVE, REPLACE, VersionState, definition_key, is_name,
};
pub use events::Event;
pub use program::{CANCEL, FLOW, Flows};
pub use state::FlowState;
pub use view::{RunView, Shown, state_name};
