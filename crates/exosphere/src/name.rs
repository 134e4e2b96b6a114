//! Names of namespaces, graphs and nodes, and the queues that follow from them.

use redrive_ojs::queue_word;

/// The longest name, in bytes.
const LONGEST: usize = 255;

/// Whether a text can be the name of a namespace, of a graph or of a node.
///
/// # Errors
/// What is wrong with it.
pub fn check_name(what: &str, text: &str) -> Result<(), String> {
    let fits = !text.is_empty() && text.len() <= LONGEST && text.trim() == text;
    if fits && !text.chars().any(|c| c.is_control() || matches!(c, '/' | '?' | '#')) {
        return Ok(());
    }
    Err(format!(
        "found {what} {text:?}; allowed are 1 to {LONGEST} bytes without control characters, / ? #, and blanks around them"
    ))
}

/// The queue of the states of a node.
#[must_use]
pub fn queue_of(namespace: &str, node: &str) -> String {
    format!("exosphere.{}.{}", queue_word(namespace), queue_word(node))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_have_names_of_open_job_spec_and_differ_where_the_names_do() {
        assert_eq!(queue_of("MyProject", "ResilientNode"), "exosphere.-my-project.-resilient-node");
        let names = ["a", "A", "-a", "a.b", "a-02e", "0a", "-0a", "é", "_", "a_b"];
        let mut queues: Vec<String> = names.iter().flat_map(|ns| names.iter().map(|node| queue_of(ns, node))).collect();
        assert!(queues.iter().all(|queue| redrive_ojs::is_queue(queue)), "{queues:?}");
        queues.sort();
        queues.dedup();
        assert_eq!(queues.len(), names.len() * names.len());
    }

    #[test]
    fn names_that_cannot_be_in_a_path_are_refused() {
        for name in ["a", "My Project", "é"] {
            assert_eq!(check_name("a node", name), Ok(()));
        }
        for name in ["", " a", "a/b", "a?b", "a#b", "a\nb", &"x".repeat(256)] {
            assert!(check_name("a node", name).is_err(), "{name:?}");
        }
    }
}
