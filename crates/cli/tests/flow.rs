//! `redrive flow`, through the real binary.

#![allow(clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Output, Stdio};

const GUIDE: &str = include_str!("../../../docs/guides/flows.md");

fn redrive(args: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_redrive"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let _ = child.stdin.take().expect("piped").write_all(stdin.as_bytes());
    child.wait_with_output().expect("the binary ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The blocks of the guide in a language, in their order.
fn blocks(language: &str) -> Vec<&'static str> {
    let open = format!("```{language}\n");
    let starts = GUIDE.split(open.as_str()).skip(1);
    starts.map(|rest| rest.split("```").next().expect("a block has an end")).collect()
}

#[test]
fn the_examples_of_the_guide_print_what_it_says() {
    let (definitions, outputs) = (blocks("json"), blocks("text"));
    assert_eq!((definitions.len(), outputs.len()), (4, 4));
    for (definition, expected) in definitions.into_iter().zip(outputs) {
        let checked = redrive(&["flow", "check", "-"], definition);
        assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
        let ran = redrive(&["flow", "run", "-", "--virtual-time", "--seed", "1"], definition);
        assert_eq!((ran.status.code(), text(&ran.stdout)), (Some(0), expected.to_owned()), "{}", text(&ran.stderr));
    }
}

#[test]
fn the_picture_of_the_guide_is_what_graph_draws() {
    let folder = std::env::temp_dir().join(format!("redrive-flow-graph-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let [saga, svg] = ["saga.json", "saga.svg"].map(|name| folder.join(name).display().to_string());
    std::fs::write(&saga, blocks("json")[1]).expect("a file");
    let drawn = redrive(&["flow", "graph", &saga, "--svg", &svg], "");
    assert_eq!(drawn.status.code(), Some(0), "{}", text(&drawn.stderr));
    let picture = std::fs::read_to_string(&svg).expect("a picture");
    let hint = "redrive flow graph saga.json --svg docs/images/flow.svg";
    assert!(picture == include_str!("../../../docs/images/flow.svg"), "the picture has changed: {hint}");
    let printed = text(&redrive(&["flow", "graph", "-"], blocks("json")[1]).stdout);
    assert!(printed.contains("┌─ cancel-flight ") && printed.contains("catch Hotel.* ├──╮"), "{printed}");
    let refused = redrive(&["flow", "graph", "-", "--svg", &svg], "{}");
    assert_eq!(refused.status.code(), Some(1));
    std::fs::remove_dir_all(folder).expect("it is there");
}

#[test]
fn every_problem_of_a_definition_is_listed_with_its_place() {
    let definition = "{\n  \"$schema\": \"https://mwl.dev/v0.1/flow/schema.json\",\n  \"entrypoint\": \"frist\",\n  \
                      \"steps\": {\n    \"first\": { \"action\": \"Pas\" },\n    \"second\": { \"action\": \"Pass\", \
                      \"next\": \"first\", \"output\": \"{{ 1 + }}\" }\n  }\n}";
    for command in ["check", "run"] {
        let output = redrive(&["flow", command, "-", "--json"], definition);
        assert_eq!(output.status.code(), Some(1));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let places: Vec<Value> = report["errors"]
            .as_array()
            .expect("errors")
            .iter()
            .map(|error| json!([error["path"], error["line"], error["column"]]))
            .collect();
        let expected = [
            json!(["/entrypoint", 3, 17]),
            json!(["/steps/first/action", 5, 26]),
            json!(["/steps/second/output", 6, 62]),
        ];
        assert_eq!(places, expected, "{report:#}");
    }
    let output = redrive(&["flow", "check", "-"], definition);
    let message = text(&output.stderr);
    assert!(message.contains("standard input:3:17: /entrypoint: there is no step \"frist\""), "{message}");
    assert!(message.contains("did you mean \"first\"?"), "{message}");
}

#[test]
fn the_result_is_the_only_output_and_a_failure_is_one_too() {
    let definition = r#"{ "$schema": "https://mwl.dev/v0.1/flow/schema.json", "entrypoint": "a",
        "steps": { "a": { "action": "Raise", "result": { "code": "A.B", "details": "{{ step.input }}" } } } }"#;
    let folder = std::env::temp_dir().join(format!("redrive-flow-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let input = folder.join("input.json");
    std::fs::write(&input, "{\"n\": 1.5}").expect("a file");
    let output = redrive(&["flow", "run", "-", "--input", &input.display().to_string(), "--json"], definition);
    assert_eq!(output.status.code(), Some(0));
    let expected = json!({ "type": "error", "code": "A.B", "details": { "n": 1.5 } });
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).expect("JSON"), expected);
    std::fs::remove_dir_all(folder).expect("it is there");
}
