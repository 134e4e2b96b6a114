//! Names of queues and job types in a configuration file.

use redrive_ojs::{is_queue, is_type};

/// Why this is not a valid name of a queue.
pub(super) fn queue(name: &str) -> Result<(), String> {
    if is_queue(name) {
        return Ok(());
    }
    let allowed = "lower-case letters, digits, dots and hyphens, with a letter or digit first";
    let meant = plain(name).replace('_', "-");
    Err(refusal("queue", name, allowed, Some(meant).filter(|meant| is_queue(meant))))
}

/// Why this is neither a valid job type nor a valid pattern.
pub(super) fn kind(name: &str) -> Result<(), String> {
    let check = |name: &str| is_type(name.strip_suffix(".*").unwrap_or(name));
    if check(name) {
        return Ok(());
    }
    if name == "*" {
        return Err("found a pattern that matches all types; write such a policy under [policies.server]".to_owned());
    }
    let allowed = "words of lower-case letters, digits, _ and -, with a letter first, joined by dots, such as \
                   \"mail.send\"; or the first of them with \".*\" for all types with that prefix, such as \"mail.*\"";
    let meant = match plain(name) {
        prefix if prefix.ends_with('*') => format!("{}.*", prefix.trim_end_matches(['*', '.'])),
        whole => whole,
    };
    Err(refusal("job type", name, allowed, Some(meant).filter(|meant| check(meant))))
}

fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '/', ':'], ".")
}

fn refusal(what: &str, name: &str, allowed: &str, meant: Option<String>) -> String {
    let meant = meant.map(|meant| format!("; did you mean \"{meant}\"?")).unwrap_or_default();
    format!("found \"{name}\", which is not a valid {what} and would never apply; allowed are {allowed}{meant}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_can_never_match_is_refused_with_a_suggestion() {
        for good in ["mail.send", "mail.*", "a.b.*"] {
            assert_eq!(kind(good), Ok(()), "{good}");
        }
        for (wrong, meant) in
            [("Mail.Send", "mail.send"), ("mail*", "mail.*"), ("mail send", "mail.send"), ("mail.**", "mail.*")]
        {
            let message = kind(wrong).unwrap_err();
            assert!(message.contains(&format!("did you mean \"{meant}\"?")), "{message}");
        }
        assert!(kind("*").unwrap_err().contains("[policies.server]"));
        assert!(kind("*.send").is_err() && kind("").is_err());
        assert_eq!(queue("reports.eu-1"), Ok(()));
        assert!(queue("My_Queue").unwrap_err().contains("did you mean \"my-queue\"?"));
        assert!(queue("mail.*").is_err(), "queues have no patterns");
    }
}
