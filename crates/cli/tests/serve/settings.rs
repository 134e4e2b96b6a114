//! The origins of settings, and settings that are refused.

use crate::{folder, redrive, settings, text_of};
use serde_json::json;
use std::path::Path;

#[test]
fn flags_come_before_the_environment_before_the_file_before_the_defaults() {
    let dir = folder("precedence");
    let file = "listen = \"127.0.0.1:1\"\ndata = \"from-file\"\nlease = \"1m\"\n[limits]\nbatch = 7\nfetch = 8\n";
    std::fs::write(dir.join("redrive.toml"), file).unwrap();
    let output = redrive(&dir)
        .args(["config", "--json", "--listen", "127.0.0.1:3", "--set", "limits.fetch=10"])
        .envs([("REDRIVE_LISTEN", "127.0.0.1:2"), ("REDRIVE_DATA", "from-env"), ("REDRIVE_LIMITS_FETCH", "9")])
        // As in a command of `redrive work`.
        .env("REDRIVE_JOB_ID", "0192f0c1-7a7e-7c3e-9f55-0d5f1f3a2b4c")
        .output()
        .unwrap();
    let settings = settings(&output);
    for (key, value, from) in [
        ("listen", "127.0.0.1:3", "flag --listen"),
        ("limits.fetch", "10", "flag --set limits.fetch"),
        ("data", "from-env", "environment REDRIVE_DATA"),
        ("lease", "1m", "file redrive.toml"),
        ("limits.batch", "7", "file redrive.toml"),
        ("timeout", "30m", "default"),
    ] {
        assert_eq!((&settings[key]["value"], &settings[key]["from"]), (&json!(value), &json!(from)), "{key}");
        assert!(settings[key]["what"].is_string());
    }
}

#[test]
fn what_is_printed_for_people_can_stand_in_the_file() {
    let dir = folder("printed");
    let set = ["--set", "limits.batch=7", "--set", "limits.body_bytes=2MiB", "--data", "a \"quoted\" folder"];
    let printed = redrive(&dir).arg("config").args(set).output().unwrap();
    assert!(printed.status.success(), "{}", text_of(&printed));
    std::fs::write(dir.join("redrive.toml"), &printed.stdout).unwrap();
    let before =
        settings(&redrive(&dir).args(["config", "--json", "--config", "/dev/null"]).args(set).output().unwrap());
    let after = settings(&redrive(&dir).args(["config", "--json"]).output().unwrap());
    for (key, setting) in after.as_object().unwrap() {
        assert_eq!(setting["value"], before[key]["value"], "{key}");
        let secret = ["api_key", "store"].contains(&key.as_str());
        let from = if secret { "default" } else { "file redrive.toml" };
        assert_eq!(setting["from"], from, "{key}");
    }
}

#[test]
fn the_example_of_the_page_is_a_valid_file() {
    let dir = folder("example");
    let key = "0123456789abcdef0123456789abcdef";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/example.toml");
    // The keys of the example lie outside of this test's folder.
    let example = std::fs::read_to_string(file).unwrap().replace("/etc/redrive/keys", "keys");
    std::fs::write(dir.join("keys"), key).unwrap();
    std::fs::write(dir.join("redrive.toml"), example).unwrap();
    let settings = settings(&redrive(&dir).args(["config", "--json"]).output().unwrap());
    assert_eq!(settings["limits.batch"]["value"], "5000");
    assert_eq!(settings["max_depth"]["value"], "1000000");
}

#[test]
fn limits_of_the_file_are_checked_with_the_rest() {
    let dir = folder("groups");
    let file = "[queues.mail]\nconcurency = 1\n[queues.\"My Queue\"]\n[types.\"a.b\"]\n[keys.api]\nconcurrency = -1\n";
    std::fs::write(dir.join("redrive.toml"), file).unwrap();
    let output = redrive(&dir).arg("config").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    let text = text_of(&output);
    for place in ["queues.mail.concurency: ", "queues.My Queue: ", "types.a.b: ", "keys.api.concurrency: "] {
        assert!(text.contains(&format!("file redrive.toml: {place}")), "{place} in {text}");
    }
}

#[test]
fn leases_of_states_are_checked_with_the_rest() {
    let dir = folder("leases");
    let file = "[exosphere]\nlease = \"soon\"\n[namespaces.\"a/b\"]\nlease = \"1h\"\n\
                [namespaces.a]\nlease = 3600\n[namespaces.b]\nleas = \"1h\"\n[namespaces]\nc = 1\n";
    std::fs::write(dir.join("redrive.toml"), file).unwrap();
    let output = redrive(&dir).arg("config").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    let text = text_of(&output);
    let places = ["exosphere.lease: ", "namespaces: found the namespace \"a/b\"", "namespaces.a.lease: "];
    for place in places.into_iter().chain(["namespaces.b.leas: ", "namespaces.c: "]) {
        assert!(text.contains(place), "{place} in {text}");
    }
    let right = "[exosphere]\nlease = \"90m\"\n[namespaces.\"My Project\"]\nlease = \"PT2H\"\n";
    std::fs::write(dir.join("redrive.toml"), right).unwrap();
    let settings = settings(&redrive(&dir).args(["config", "--json"]).output().unwrap());
    assert_eq!(settings["exosphere.lease"]["value"], "90m");
}

#[test]
fn every_problem_is_listed_at_once() {
    let dir = folder("problems");
    let file = r#"
listen = "nowhere"
color = "red"
[limits]
batch = 0
nestin = 3
[policies.server]
max_attempts = -1
jitter = 5
[policies.queues.slow]
dialect = "perl"
policy = {}
[policies.types."a.b"]
dialect = "azolla"
[policies.color]
x = 1
[caps]
max_attempts = "x"
max_elapsed = "soon"
[caps.queues.slow]
max_attemps = 3
"#;
    std::fs::write(dir.join("redrive.toml"), file).unwrap();
    let mut command = redrive(&dir);
    command.args(["serve", "--set", "limits.page=0", "--set", "nonsense", "--set", "no.such=1"]);
    let output = command.env("REDRIVE_TIMEOUT", "never").env("REDRIVE_COLOR", "red").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "the command line is wrong too");
    let printed = text_of(&output);
    for part in [
        "listen: found \"nowhere\"",
        "color: there is no such setting",
        "limits.batch: found \"0\"",
        "limits.nestin: there is no such setting",
        "policies.server.max_attempts",
        "policies.server.jitter",
        "policies.queues.slow.dialect: unknown dialect \"perl\"",
        "policies.types.a.b: found a dialect without a policy",
        "policies.color: there is no such setting",
        "caps.max_attempts: found \"x\"",
        "caps.max_elapsed: found \"soon\"",
        "caps.queues.slow.max_attemps: there is no such setting",
        "flag --set limits.page: limits.page: found \"0\"",
        "--set nonsense: found no \"=\"",
        "--set no.such: there is no such setting",
        "environment REDRIVE_TIMEOUT: timeout: found \"never\"",
        "environment REDRIVE_COLOR: there is no such setting",
        "17 problems",
    ] {
        assert!(printed.contains(part), "{part} is missing in:\n{printed}");
    }
}

#[test]
fn an_unknown_setting_or_a_name_that_never_matches_suggests_the_right_one() {
    let dir = folder("meant");
    let file = "batch = 7\n[limit]\nfetch = 8\n[limits]\nlong-poll = \"1m\"\n[policies.typs]\n\
                [policies.queues.My_Queue]\n[policies.types.\"Mail.*\"]\n[caps]\nmax_atempts = 1\n[caps.queues.\"a b\"]\n";
    std::fs::write(dir.join("redrive.toml"), file).unwrap();
    let mut command = redrive(&dir);
    let output = command.args(["serve", "--set", "retention.ded=1h"]).env("REDRIVE_LIMIT_BATCH", "7").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let printed = text_of(&output);
    for (wrong, meant) in [
        ("redrive.toml: batch: ", "limits.batch"),
        ("redrive.toml: limit.fetch: ", "limits.fetch"),
        ("redrive.toml: limits.long-poll: ", "limits.long_poll"),
        ("policies.typs: ", "types"),
        ("policies.queues: found \"My_Queue\"", "my-queue"),
        ("policies.types: found \"Mail.*\"", "mail.*"),
        ("caps.max_atempts: ", "max_attempts"),
        ("caps.queues: found \"a b\"", "a.b"),
        ("--set retention.ded: ", "retention.dead"),
        ("environment REDRIVE_LIMIT_BATCH: ", "REDRIVE_LIMITS_BATCH"),
    ] {
        let line = printed.lines().find(|line| line.contains(wrong));
        let line = line.unwrap_or_else(|| panic!("{wrong} is missing in:\n{printed}"));
        assert!(line.ends_with(&format!("did you mean \"{meant}\"?")), "{line}");
    }
    assert!(printed.contains("10 problems"), "{printed}");
}

#[test]
fn other_machines_are_admitted_only_with_a_key_and_keys_are_hidden() {
    let dir = folder("keys");
    let key = "0123456789abcdef0123456789abcdef";
    let open = redrive(&dir).args(["serve", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(open.status.code(), Some(1));
    assert!(text_of(&open).contains("which other machines can reach"), "{}", text_of(&open));
    assert!(text_of(&open).contains("set anyone_may_call = true"), "{}", text_of(&open));
    let both = ["config", "--set", "anyone_may_call=true"];
    let both = redrive(&dir).args(both).env("REDRIVE_API_KEY", key).output().unwrap();
    assert!(text_of(&both).contains("anyone_may_call: found together with a key"), "{}", text_of(&both));
    let with_key =
        redrive(&dir).args(["config", "--listen", "0.0.0.0:0"]).env("REDRIVE_API_KEY", key).output().unwrap();
    assert!(with_key.status.success(), "{}", text_of(&with_key));
    let shown = String::from_utf8(with_key.stdout).unwrap();
    assert!(shown.contains("api_key is set, and not shown") && !shown.contains(key), "{shown}");
    std::fs::write(dir.join("keys"), "too short\n").unwrap();
    let weak = redrive(&dir).args(["config", "--api-key-file", "keys"]).output().unwrap();
    assert!(
        text_of(&weak).contains("found a key of 9 characters") && !text_of(&weak).contains("too short\n"),
        "{}",
        text_of(&weak)
    );
    let on_line = redrive(&dir).args(["config", "--set", &format!("api_key={key}")]).output().unwrap();
    assert!(text_of(&on_line).contains("other users can see keys") && !text_of(&on_line).contains(key));
}

#[test]
fn a_wrong_command_line_and_a_wrong_file_have_different_exit_codes() {
    let dir = folder("exit");
    std::fs::write(dir.join("wrong.toml"), "listen = \"nowhere\"\n").unwrap();
    std::fs::write(dir.join("no-keys.toml"), "api_key_file = \"missing\"\n").unwrap();
    for (args, code, part) in [
        (&["--listen", "nowhere"][..], 2, "allowed is an address with a port"),
        (&["--api-key-file", "missing"], 2, "cannot read \"missing\""),
        (&["--config", "missing.toml"], 2, "cannot read missing.toml"),
        (&["--set", "limits.batch=0"], 2, "limits.batch: found \"0\""),
        (&["--config", "no-keys.toml"], 2, "cannot read \"missing\""),
        (&["--config", "wrong.toml"], 1, "listen: found \"nowhere\""),
    ] {
        let output = redrive(&dir).arg("serve").args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text_of(&output));
        assert!(text_of(&output).contains(part), "{args:?}: {}", text_of(&output));
    }
}

#[test]
fn a_timeout_of_no_time_is_refused_before_anything_is_sent() {
    let output = redrive(&folder("timeout")).args(["enqueue", "a.b", "--timeout", "0s"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text_of(&output).contains("\"0s\" is zero; allowed is a longer time"), "{}", text_of(&output));
}
