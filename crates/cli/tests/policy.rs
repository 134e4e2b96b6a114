//! The contract of the command line, through the real binary.

#![allow(clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Output, Stdio};

fn redrive(args: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_redrive"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // A command that refuses its arguments closes its input unread; that is not a failure of the test.
    let _ = child.stdin.take().expect("piped").write_all(stdin.as_bytes());
    child.wait_with_output().expect("the binary ends")
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    })
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn check_of_a_valid_policy_prints_its_canonical_form_and_its_warnings() {
    let output = redrive(&["policy", "check", "-", "--dialect", "ojs", "--json"], r#"{"max_attempts": 12}"#);
    assert_eq!(output.status.code(), Some(0));
    let report = json_of(&output);
    assert_eq!(report["valid"], true);
    assert_eq!(report["dialect"], "ojs");
    assert_eq!(report["policy"]["attempts"], json!({ "at_most": 12 }));
    let warning = &report["warnings"][0];
    assert_eq!(warning["code"], "jitter-collapses-at-cap");
    assert_eq!(warning["path"], "/max_interval");
    assert!(warning["message"].as_str().is_some_and(|text| text.contains("50 %")), "{warning}");
}

#[test]
fn check_of_an_invalid_policy_lists_every_problem() {
    let policy = r#"{"max_attempts": -1, "backoff_coefficient": 0.5, "jitter": "yes", "max_retry": 3}"#;
    let output = redrive(&["policy", "check", "-", "--dialect", "ojs", "--json"], policy);
    assert_eq!(output.status.code(), Some(1));
    let report = json_of(&output);
    assert_eq!(report["valid"], false);
    assert_eq!(report["dialect"], "ojs");
    let mut paths: Vec<&str> =
        report["errors"].as_array().expect("errors").iter().filter_map(|error| error["path"].as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["/backoff_coefficient", "/jitter", "/max_attempts", "/max_retry"]);
    let people = redrive(&["policy", "check", "-", "--dialect", "ojs"], policy);
    assert_eq!(people.status.code(), Some(1));
    assert!(people.stdout.is_empty());
    assert!(stderr(&people).contains("4 problems"), "{}", stderr(&people));
}

#[test]
fn the_dialect_is_recognised_where_the_shape_tells_it() {
    for (policy, dialect) in [
        (json!({"max_attempts": 3}), "ojs"),
        (json!({"wait": {}}), "azolla"),
        (json!({"policy": {"jitter": 0.1}}), "taskharbor"),
        (json!({"job": {"max_attempts": 3}}), "taskharbor"),
        (json!({"max_retries": 3}), "exosphere"),
        (json!({"policies": [{"match": {"codes": ["*"]}, "attempts": 2}]}), "mwl"),
    ] {
        let report = json_of(&redrive(&["policy", "check", "-", "--json"], &policy.to_string()));
        assert_eq!(report["dialect"], dialect, "{policy}");
        assert_eq!(report["valid"], true, "{policy}");
    }
    let ambiguous = redrive(&["policy", "check", "-"], "{}");
    assert_eq!(ambiguous.status.code(), Some(1));
    assert!(stderr(&ambiguous).contains("ojs, azolla, taskharbor, exosphere"), "{}", stderr(&ambiguous));
}

#[test]
fn an_unknown_dialect_is_wrong_usage_and_the_known_ones_are_named() {
    let output = redrive(&["policy", "check", "-", "--dialect", "cron"], "{}");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("known are ojs, azolla, taskharbor, exosphere, mwl"), "{}", stderr(&output));
}

#[test]
fn a_file_that_is_not_there_is_wrong_usage() {
    let output = redrive(&["policy", "check", "no/such/file.json"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no/such/file.json"), "{}", stderr(&output));
}

#[test]
fn malformed_documents_are_refused_with_line_and_column() {
    for (format, text, place, word) in [
        ("json", "{\n \"max_attempts\": 3,,\n}", "line 2, column 20", "JSON"),
        ("json", "{\"a\": 1e400}", "line 1", "out of range"),
        ("json", "{\"a\": NaN}", "line 1", "JSON"),
        ("json", "{\"jitter\": true, \"jitter\": false}", "line 1", "twice"),
        ("yaml", "max_attempts: 3\nmax_attempts: 4\n", "line 2", "duplicate"),
        ("yaml", "max_attempts: [3\n", "line", "YAML"),
        ("yaml", "backoff_coefficient: .nan\n", "line 1", "finite"),
        ("toml", "max_attempts = 3\njitter = yes\n", "line 2", "TOML"),
        ("toml", "backoff_coefficient = nan\n", "line 1", "finite"),
        ("toml", "jitter = true\njitter = true\n", "line 2", "duplicate"),
    ] {
        let output = redrive(&["policy", "check", "-", "--dialect", "ojs", "--format", format], text);
        assert_eq!(output.status.code(), Some(1), "{text}");
        let message = stderr(&output);
        assert!(message.contains(place) && message.contains(word), "{text:?}: {message}");
        let report =
            json_of(&redrive(&["policy", "check", "-", "--dialect", "ojs", "--format", format, "--json"], text));
        assert_eq!(report["valid"], false, "{text}");
    }
}

#[test]
fn hostile_documents_end_with_an_error_and_not_with_a_crash() {
    let deep = "[".repeat(100_000);
    let bomb = "a: &a [x,x,x,x,x,x,x,x]\n".to_owned()
        + &(b'b'..b'k')
            .map(|name| {
                let (name, before) = (char::from(name), char::from(name - 1));
                format!("{name}: &{name} [*{before},*{before},*{before},*{before},*{before},*{before},*{before},*{before}]\n")
            })
            .collect::<String>();
    let large = " ".repeat(2 << 20);
    for (format, text) in
        [("json", &deep), ("yaml", &deep), ("toml", &format!("a = {deep}")), ("yaml", &bomb), ("json", &large)]
    {
        let output = redrive(&["policy", "check", "-", "--dialect", "ojs", "--format", format], text);
        assert_eq!(output.status.code(), Some(1), "{format}: {}", stderr(&output));
        assert!(stderr(&output).len() < 1_000, "{format}");
    }
}

#[test]
fn yaml_and_toml_say_the_same_as_json() {
    let documents = [
        ("json", r#"{"max_attempts": 4, "initial_interval": "PT2S", "non_retryable_errors": ["auth.*"]}"#),
        ("yaml", "max_attempts: 4\ninitial_interval: PT2S\nnon_retryable_errors:\n  - auth.*\n"),
        ("toml", "max_attempts = 4\ninitial_interval = \"PT2S\"\nnon_retryable_errors = [\"auth.*\"]\n"),
    ];
    let policies = documents.map(|(format, text)| {
        json_of(&redrive(&["policy", "check", "-", "--json", "--format", format], text))["policy"].clone()
    });
    assert_eq!(policies[0], policies[1]);
    assert_eq!(policies[0], policies[2]);
}

#[test]
fn replay_prints_one_verdict_for_each_failure_and_stops_at_the_first_stop() {
    let script = json!({ "policy": {}, "failures": vec![json!({"type": "external.timeout"}); 9] });
    let output = redrive(&["policy", "replay", "-", "--dialect", "ojs", "--json", "--seed", "7"], &script.to_string());
    assert_eq!(output.status.code(), Some(0));
    let report = json_of(&output);
    let verdicts = report["verdicts"].as_array().expect("verdicts");
    assert_eq!(verdicts.len(), 3);
    assert_eq!(verdicts[0]["min_ms"], 500.0);
    assert_eq!(verdicts[1]["max_ms"], 3000.0);
    assert_eq!(verdicts[2]["reason"], "max_attempts");
    assert_eq!(verdicts[2]["disposition"], "discard");
    let again = redrive(&["policy", "replay", "-", "--dialect", "ojs", "--json", "--seed", "7"], &script.to_string());
    assert_eq!(again.stdout, output.stdout, "the same seed gives the same delays");
    let other = redrive(&["policy", "replay", "-", "--dialect", "ojs", "--json", "--seed", "8"], &script.to_string());
    assert_ne!(other.stdout, output.stdout);
}

#[test]
fn replay_refuses_a_bad_policy_and_bad_failures_with_their_paths() {
    for (script, path) in [
        (json!({"policy": {"jitter": 1}, "failures": []}), "/policy/jitter"),
        (json!({"policy": {}, "failures": [{"type": "a"}, {"type": 3}]}), "/failures/1/type"),
        (json!({"policy": {}, "failures": [{}]}), "/failures/0/type"),
        (json!({"policy": {}}), "/failures"),
        (json!([]), ""),
    ] {
        let output = redrive(&["policy", "replay", "-", "--dialect", "ojs", "--json"], &script.to_string());
        assert_eq!(output.status.code(), Some(1), "{script}");
        assert_eq!(json_of(&output)["errors"][0]["path"], path, "{script}");
    }
}

#[test]
fn convert_names_what_is_lost_and_strict_fails_on_it() {
    let azolla = r#"{"stop": {"max_delay": 60}, "retry": {"include_errors": ["A"]}}"#;
    let arguments = ["policy", "convert", "-", "--from", "azolla", "--to", "ojs", "--json"];
    let output = redrive(&arguments, azolla);
    assert_eq!(output.status.code(), Some(0));
    let report = json_of(&output);
    assert_eq!(report["policy"]["max_attempts"], 5);
    let lost = report["lost"].as_array().expect("lost");
    assert!(lost.iter().any(|loss| loss["path"] == "/stop/max_delay"), "{report}");
    assert!(lost.iter().all(|loss| loss["message"].as_str().is_some_and(|text| !text.is_empty())));
    assert_eq!(redrive(&[&arguments[..], &["--strict"]].concat(), azolla).status.code(), Some(1));

    let ojs = r#"{"max_attempts": 5, "jitter": false, "on_exhaustion": "dead_letter"}"#;
    let strict = redrive(&["policy", "convert", "-", "--from", "ojs", "--to", "taskharbor", "--json", "--strict"], ojs);
    assert_eq!(strict.status.code(), Some(0), "{}", stdout(&strict));
    assert_eq!(json_of(&strict)["lost"], json!([]));
}

#[test]
fn schedule_lists_the_retries_for_people_and_for_programs() {
    let policy = r#"{"max_attempts": 11, "jitter": false}"#;
    let text = stdout(&redrive(&["policy", "schedule", "-"], policy));
    assert!(text.lines().any(|line| line.starts_with("10 ") && line.contains("5 min")), "{text}");
    let report = json_of(&redrive(&["policy", "schedule", "-", "--json"], policy));
    let rows = report["schedules"][0]["rows"].as_array().expect("rows");
    let delays: Vec<f64> = rows.iter().filter_map(|row| row["delay"]["mean_ms"].as_f64()).collect();
    assert_eq!(delays, [1e3, 2e3, 4e3, 8e3, 16e3, 32e3, 64e3, 128e3, 256e3, 300e3]);
}

#[test]
fn explain_says_why() {
    let text = stdout(&redrive(&["policy", "explain", "-", "--type", "external.timeout"], r#"{"max_attempts": 2}"#));
    assert!(text.contains("Attempt 1 failed (external.timeout): retry in"), "{text}");
    assert!(text.contains("Attempt 2 failed"), "{text}");
    assert!(text.contains("stop (max_attempts): the job is discarded"), "{text}");
    assert!(text.contains("This was attempt 2 of at most 2."), "{text}");
}

#[test]
fn pictures_and_pages_are_written_where_asked() {
    let folder = std::env::temp_dir().join(format!("redrive-pictures-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let at = |name: &str| folder.join(name).to_string_lossy().into_owned();
    std::fs::write(at("<script>.json"), r#"{"max_attempts": 5}"#).expect("a policy");
    let schedule = redrive(&["policy", "schedule", &at("<script>.json"), "--svg", &at("a.svg")], "");
    assert_eq!(schedule.status.code(), Some(0), "{}", stderr(&schedule));
    let simulate = [
        "policy",
        "simulate",
        &at("<script>.json"),
        "--jobs",
        "100",
        "--outage",
        "1m",
        "--svg",
        &at("b.svg"),
        "--html",
        &at("c.html"),
    ];
    let simulate = redrive(&simulate, "");
    assert_eq!(simulate.status.code(), Some(0), "{}", stderr(&simulate));
    for name in ["a.svg", "b.svg", "c.html"] {
        let text = std::fs::read_to_string(at(name)).expect("written");
        assert!(text.contains("<svg"), "{name}");
        assert!(!text.contains("<script>"), "{name}: names are escaped");
    }
    std::fs::remove_dir_all(&folder).expect("removed");
    let nowhere = redrive(&["policy", "schedule", "-", "--svg", "no/such/folder/a.svg"], r#"{"max_attempts": 5}"#);
    assert_eq!(nowhere.status.code(), Some(2), "{}", stderr(&nowhere));
}

#[test]
fn simulate_prints_its_outcome_for_programs() {
    let arguments = ["policy", "simulate", "-", "--jobs", "1000", "--outage", "1m", "--capacity", "50", "--json"];
    let policy = r#"{"max_attempts": 9, "jitter": false}"#;
    let output = redrive(&arguments, policy);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json_of(&output);
    let outcome = &report["policies"][0]["outcome"];
    let count = |key: &str| outcome[key].as_u64().unwrap_or_else(|| panic!("{key} in {outcome}"));
    assert_eq!(count("succeeded") + count("given_up") + count("waiting"), 1_000);
    assert_eq!(outcome["busiest_instant"]["share"], 1.0, "without jitter all come back at one instant");
    assert_eq!(redrive(&arguments, policy).stdout, output.stdout, "the same seed gives the same outcome");
    for (flag, value) in [("--jobs", "0"), ("--failure-rate", "1.5"), ("--capacity", "0")] {
        let refused = redrive(&["policy", "simulate", "-", flag, value], policy);
        assert_eq!(refused.status.code(), Some(2), "{flag} {value}");
        assert!(stderr(&refused).contains("allowed is"), "{}", stderr(&refused));
    }
}

#[test]
fn settings_of_other_systems_are_read_wherever_a_policy_is() {
    let output = redrive(&["policy", "convert", "-", "--from", "sidekiq", "--to", "ojs", "--json"], r#"{"retry": 10}"#);
    assert_eq!(json_of(&output)["policy"]["max_attempts"], 11, "{}", stdout(&output));
    let check = redrive(&["policy", "check", "-", "--dialect", "temporal", "--json"], r#"{"maximumAttempts": 4}"#);
    assert_eq!(json_of(&check)["policy"]["attempts"], json!({ "at_most": 4 }));
    assert_eq!(json_of(&check)["dialect"], "temporal");
}

#[test]
fn every_command_has_examples_in_its_help() {
    for command in ["check", "schedule", "replay", "explain", "convert", "simulate"] {
        let output = redrive(&["policy", command, "--help"], "");
        assert_eq!(output.status.code(), Some(0), "{command}");
        assert!(stdout(&output).contains(&format!("redrive policy {command} ")), "{command}: {}", stdout(&output));
        assert!(stdout(&output).contains("Examples:"), "{command}");
    }
}

#[test]
fn completions_for_bash_zsh_and_fish() {
    for (shell, word) in [("bash", "_redrive()"), ("zsh", "#compdef redrive"), ("fish", "complete -c redrive")] {
        let output = redrive(&["completions", shell], "");
        assert_eq!(output.status.code(), Some(0));
        assert!(stdout(&output).contains(word), "{shell}");
        assert!(stdout(&output).contains("simulate"), "{shell} knows the commands");
    }
}

#[test]
fn a_typo_is_named_and_leads_to_no_other_dialect() {
    let output = redrive(&["policy", "check", "-"], r#"{"max_attemps": 5}"#);
    assert_eq!(output.status.code(), Some(1));
    let printed = stderr(&output);
    assert!(printed.contains("did you mean \"max_attempts\" of ojs?") && !printed.contains("azolla"), "{printed}");
}

#[test]
fn wrappers_and_imported_settings_are_recognised() {
    let exosphere = r#"{"nodes": [], "retry_policy": {"max_retries": 3, "strategy": "FIXED", "backoff_factor": 500}}"#;
    let report = json_of(&redrive(&["policy", "check", "-", "--json"], exosphere));
    assert_eq!((&report["valid"], &report["dialect"]), (&json!(true), &json!("exosphere")));
    assert_eq!(report["warnings"][0]["code"], "inside-of-a-document");
    assert_eq!(report["warnings"][0]["path"], "/retry_policy");
    let bullmq = r#"{"attempts": 5, "backoff": {"type": "exponential", "delay": 1000}}"#;
    assert_eq!(json_of(&redrive(&["policy", "check", "-", "--json"], bullmq))["dialect"], "bullmq");
}

#[test]
fn every_key_that_azolla_ignores_draws_a_warning() {
    let report = json_of(&redrive(&["policy", "check", "-", "-d", "azolla", "--json"], r#"{"stp": {}, "waiting": 1}"#));
    let ignored: Vec<(&Value, &Value)> = report["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|warning| warning["code"] == "ignored-key")
        .map(|warning| (&warning["path"], &warning["instead"]))
        .collect();
    assert_eq!(ignored.len(), 2, "{report}");
    assert_eq!(ignored[0].0, "/stp");
    assert!(ignored[0].1.as_str().unwrap().contains("\"stop\""), "{report}");
}

#[test]
fn explain_and_replay_read_imported_settings() {
    let temporal = r#"{"initialInterval": "1s", "maximumAttempts": 3}"#;
    let explained = redrive(&["policy", "explain", "-", "-d", "temporal"], temporal);
    assert_eq!(explained.status.code(), Some(0), "{}", stderr(&explained));
    assert!(String::from_utf8_lossy(&explained.stdout).contains("Attempt 3 failed"));
    let script = format!(r#"{{"policy": {temporal}, "failures": [{{"type": "error"}}]}}"#);
    let replayed = json_of(&redrive(&["policy", "replay", "-", "--json"], &script));
    assert_eq!(replayed["verdicts"][0]["delay_ms"], 1000.0);
}

#[test]
fn explain_says_where_it_stops_and_uses_an_error_that_is_retried() {
    let long = redrive(&["policy", "explain", "-"], r#"{"max_attempts": 20}"#);
    let printed = String::from_utf8_lossy(&long.stdout).into_owned();
    assert!(printed.contains("not the end: 10 failures are shown, and the policy has 19 retries in all"), "{printed}");
    let short = redrive(&["policy", "explain", "-"], r#"{"max_attempts": 3}"#);
    assert!(!String::from_utf8_lossy(&short.stdout).contains("not the end"));
    let azolla = r#"{"retry": {"include_errors": ["TimeoutError"]}}"#;
    let printed = redrive(&["policy", "explain", "-"], azolla);
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert!(printed.starts_with("Attempt 1 failed (TimeoutError): retry"), "{printed}");
}

#[test]
fn what_convert_says_is_what_the_documents_say() {
    let convert = |policy: &str, from: &str, to: &str| {
        json_of(&redrive(&["policy", "convert", "-", "--from", from, "--to", to, "--json"], policy))
    };
    let lost_at = |report: &Value, path: &str| {
        let lost = report["lost"].as_array().unwrap().iter().filter(|loss| loss["path"] == path);
        lost.filter_map(|loss| loss["message"].as_str()).collect::<Vec<_>>().join("\n")
    };
    // The cap is set: no warning may say that there is none.
    let capped =
        convert(r#"{"max_attempts": 4, "max_interval": "PT3S", "backoff_strategy": "polynomial"}"#, "ojs", "azolla");
    assert_eq!(capped["policy"]["wait"]["max_delay"], 3.0);
    let cap = lost_at(&capped, "/max_interval");
    assert!(!cap.contains("no cap"), "{cap}");
    // A rule that is never used is a rule of the document all the same.
    let three = r#"{"policies": [{"match": {"codes": ["A"]}, "attempts": 2}, {"match": {"codes": ["A"]}, "attempts": 9},
                    {"match": {"codes": ["B"]}, "attempts": 5, "backoff": {"initial": "PT1S"}}]}"#;
    let rules = lost_at(&convert(three, "mwl", "ojs"), "/policies");
    assert!(rules.contains("3 rules in order: ojs cannot say that; one rule for all instead"), "{rules}");
    let linear = convert(r#"{"backoff_strategy": "linear"}"#, "ojs", "ojs");
    assert_eq!(linear["lost"], json!([]));
    assert_eq!(linear["warnings"][0]["code"], "beyond-the-schema");
    assert_eq!(convert("{}", "ojs", "ojs")["warnings"], json!([]));
}
