//! Names that a request uses and that mean nothing where they stand.

use redrive_policy::resembling;

/// What is said of a name that is not known: which are, and which of them it resembles. `what` is what
/// it names, such as a field.
pub fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let near = resembling(name, known).map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
    match known {
        [] => format!("unknown {what}; none is allowed here"),
        [only] => format!("unknown {what}; allowed is {only}{near}"),
        _ => format!("unknown {what}; allowed are {}{near}", known.join(", ")),
    }
}
