//! Azolla's protocol on the job engine: its messages, tasks as jobs, and jobs as they are answered. It opens no
//! connection and reads no clock.

mod error;
mod name;
mod outcome;
mod policy;
mod proto;
mod report;
mod task;
mod value;

pub use error::data_of;
pub use name::{domain_prefix, queue_of};
pub use outcome::{Answer, answer_of};
pub use policy::{ANY_ERROR, Policies, effective, fits_as_any_error};
pub use proto::{common, orchestrator, shepherd};
pub use report::{Report, report_of, too_large};
pub use task::{TaskSettings, submission, task_of};
pub use value::json_of;

/// The longest message that clients take, in bytes. They refuse a longer one.
pub const LONGEST_MESSAGE: usize = 4 << 20;
/// The longest args or kwargs, in bytes: workers get them on their command line, and Linux takes no longer argument.
pub const LONGEST_ARGUMENT: usize = 131_071;
/// The longest result or data of an error that is answered: it has to fit into a message with all that is around it.
pub const LONGEST_VALUE: usize = LONGEST_MESSAGE - (64 << 10);

/// How many bytes a message has on the wire.
#[must_use]
pub fn encoded_len(message: &impl prost::Message) -> usize {
    message.encoded_len()
}
