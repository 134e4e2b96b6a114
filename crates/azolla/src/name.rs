//! The queues of domains and shepherd groups, and the types of tasks.

use redrive_ojs::{is_type, queue_word};

/// What the queues of all domains, and the types of all tasks, begin with.
const BASE: &str = "azolla.";
/// What the type of a task begins with whose name is no type of Open Job Spec.
const ESCAPED: &str = "x-";

/// What the queues of a domain begin with.
#[must_use]
pub fn domain_prefix(domain: &str) -> String {
    format!("{BASE}{}.", queue_word(domain))
}

/// The queue of a group of shepherds in a domain.
#[must_use]
pub fn queue_of(domain: &str, group: &str) -> String {
    format!("{}{}", domain_prefix(domain), queue_word(group))
}

/// The key of the limit that all tasks of a domain share.
pub(crate) fn limit_key(domain: &str) -> String {
    format!("{BASE}{}", queue_word(domain))
}

/// The type of the jobs of tasks with this name. A name that is no type is written as the word of a queue.
pub(crate) fn kind_of(name: &str) -> String {
    match is_type(name) && !name.starts_with(ESCAPED) {
        true => format!("{BASE}{name}"),
        false => format!("{BASE}{ESCAPED}{}", queue_word(name)),
    }
}

/// The name of a task of which only the type is known: an application has enqueued it as a job.
pub(crate) fn name_of_kind(kind: &str) -> &str {
    kind.strip_prefix(BASE).unwrap_or(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const NAMES: [&str; 12] =
        ["", "a", "A", "-a", "send_email", "mail.send", "x-a", "x--a", "x", "é", "Mail Send", "mail.1"];

    #[test]
    fn queues_and_types_have_names_of_open_job_spec_and_differ_where_the_names_do() {
        let queues: BTreeSet<String> =
            NAMES.iter().flat_map(|domain| NAMES.iter().map(|group| queue_of(domain, group))).collect();
        assert_eq!(queues.len(), NAMES.len() * NAMES.len());
        assert!(queues.iter().all(|queue| redrive_ojs::is_queue(queue)), "{queues:?}");
        let kinds: BTreeSet<String> = NAMES.iter().map(|name| kind_of(name)).collect();
        assert_eq!(kinds.len(), NAMES.len());
        assert!(kinds.iter().all(|kind| is_type(kind)), "{kinds:?}");
    }

    #[test]
    fn plain_names_stay_readable() {
        assert_eq!(queue_of("default", "default"), "azolla.default.default");
        assert_eq!(kind_of("mail.send"), "azolla.mail.send");
        assert_eq!(kind_of("SendMail"), "azolla.x--send-mail");
        assert_eq!(name_of_kind("azolla.mail.send"), "mail.send");
    }

    #[test]
    fn the_queues_of_a_domain_are_not_those_of_a_longer_one() {
        assert!(queue_of("a", "b").starts_with(&domain_prefix("a")));
        assert!(!queue_of("a.b", "c").starts_with(&domain_prefix("a")));
        assert!(!queue_of("ab", "c").starts_with(&domain_prefix("a")));
    }
}
