//! Names in a request that are not known.

use redrive_policy::resembling;

/// The message about a name that is not known: the known names, and the one that it resembles. `what` says what the
/// name stands for, such as a field.
pub fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let near = resembling(name, known).map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
    match known {
        [] => format!("unknown {what}; none is allowed here"),
        [only] => format!("unknown {what}; allowed is {only}{near}"),
        _ => format!("unknown {what}; allowed are {}{near}", known.join(", ")),
    }
}
