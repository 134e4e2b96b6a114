//! `redrive events`.

use crate::harness::{Folder, Server, redrive, stderr, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// Enqueues a job, and cancels it.
fn cancelled(server: &Server, queue: &str) -> String {
    let id = server.enqueue(json!({ "type": "mail.send", "args": [], "options": { "queue": queue } }));
    server.printed(&["job", "cancel", &id]);
    id
}

fn lines(server: &Server, args: &[&str]) -> Vec<Value> {
    let printed = server.printed(&[&["events", "--json"], args].concat());
    printed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["type"].as_str()).collect()
}

#[test]
fn events_are_listed_by_type_queue_job_and_place() {
    let folder = Folder::new("events");
    let server = Server::start(&folder.at("data"));
    assert_eq!(server.printed(&["events"]), "");
    let (mail, slow) = (cancelled(&server, "mail"), cancelled(&server, "slow"));
    let all = lines(&server, &[]);
    assert_eq!(types(&all), ["job.enqueued", "job.cancelled", "job.enqueued", "job.cancelled"]);
    let subjects =
        |args: &[&str]| -> Value { lines(&server, args).iter().map(|event| event["subject"].clone()).collect() };
    let expect = |args: &[&str], ids: &[&String]| assert_eq!(subjects(args), json!(ids), "{args:?}");
    expect(&["--queue", "mail"], &[&mail, &mail]);
    expect(&["--queue", "mail,slow", "--type", "job.cancelled"], &[&mail, &slow]);
    expect(&["--job", &slow], &[&slow, &slow]);
    expect(&["--after", all[2]["id"].as_str().expect("an id")], &[&slow]);
    let text = server.printed(&["events", "--type", "job.*", "--job", &mail]);
    let words: Vec<&str> = text.lines().next().expect("a line").split_whitespace().collect();
    assert_eq!(words[1..], ["job.enqueued", &mail, "job_type=mail.send", "queue=mail", "attempt=0"]);
}

#[test]
fn what_is_mistyped_is_refused_with_what_may_be_meant() {
    let folder = Folder::new("events-wrong");
    let server = Server::start(&folder.at("data"));
    cancelled(&server, "reports");
    let missing = "01890000-0000-7000-8000-000000000001";
    for (args, code, words) in [
        (&["events", "--type", "job.canceled"][..], 1, "did you mean job.cancelled?"),
        (&["events", "--follow", "--type", "job.canceled"], 1, "did you mean job.cancelled?"),
        (&["events", "--follow", "--queue", "report"], 1, "did you mean \"reports\"?"),
        (&["events", "--job", missing], 1, "there is no job"),
        (&["events", "--follow", "--job", missing], 1, "there is no job"),
        (&["events", "--after", "yesterday"], 1, "the id of an event"),
        (&["events", "--folow"], 2, "--follow"),
        (&["evnts"], 2, "events"),
    ] {
        let refused = server.command(args);
        let said = stderr(&refused);
        assert!(refused.status.code() == Some(code) && said.contains(words), "{args:?}: {said}");
    }
    let help = server.printed(&["events", "--help"]);
    assert!(help.contains("Examples:") && help.contains("redrive events --follow"), "{help}");
}

/// A command that follows events, and its lines as they come.
struct Following {
    child: Child,
    lines: Receiver<String>,
}

impl Following {
    fn start(server: &Server, args: &[&str]) -> Self {
        let args = [&["events", "--follow", "--json"], args].concat();
        let mut command = redrive(&args);
        command.env("REDRIVE_SERVER", &server.url).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it runs");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line).map_err(drop))
        });
        Self { child, lines }
    }

    fn next(&self) -> Value {
        let line = self.lines.recv_timeout(crate::harness::TIMEOUT).expect("a line");
        serde_json::from_str(&line).expect("JSON")
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn events_are_followed_through_a_restart_which_is_told() {
    let folder = Folder::new("events-follow");
    let mut server = Server::start(&folder.at("data"));
    let first = cancelled(&server, "mail");
    let following = Following::start(&server, &["--type", "job.*"]);
    let told = [following.next(), following.next()];
    assert_eq!((types(&told), &told[0]["subject"]), (vec!["job.enqueued", "job.cancelled"], &json!(first)));
    let second = cancelled(&server, "slow");
    assert_eq!((&following.next()["type"], &following.next()["subject"]), (&"job.enqueued".into(), &json!(second)));
    let url = server.url.clone();
    server.kill();
    let server = Server::start_on(&url, &folder.at("data"));
    let gap = following.next();
    assert_eq!((&gap["type"], &gap["reason"]), (&"gap".into(), &"other_process".into()), "{gap}");
    let third = cancelled(&server, "mail");
    assert_eq!(following.next()["subject"], third);
}

#[test]
fn following_a_job_ends_with_it_and_a_closed_pipe_ends_following() {
    let folder = Folder::new("events-job");
    let server = Server::start(&folder.at("data"));
    let id = server.enqueue(json!({ "type": "mail.send", "args": [] }));
    let mut following = Following::start(&server, &["--job", &id]);
    assert_eq!(following.next()["type"], "job.enqueued");
    server.succeed(&server.claim("default"));
    let told = [following.next(), following.next()];
    assert_eq!(types(&told), ["job.started", "job.completed"]);
    let ended = until("it ends", || following.child.try_wait().expect("it can be waited for"));
    assert!(ended.success());
    let again = lines(&server, &["--follow", "--job", &id]);
    assert_eq!(types(&again), ["job.enqueued", "job.started", "job.completed"], "nothing is told twice");
    let mut closed = Following::start(&server, &[]);
    assert_eq!(closed.next()["type"], "job.enqueued");
    drop(std::mem::replace(&mut closed.lines, channel().1));
    until("it ends when nobody reads", || {
        cancelled(&server, "mail");
        closed.child.try_wait().expect("it can be waited for")
    });
}
