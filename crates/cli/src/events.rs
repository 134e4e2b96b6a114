//! `redrive events`: what happened lately, and what happens now.

use crate::client::{CommonArgs, Send, escaped, failed, wait_for};
use crate::exit::Failed;
use crate::output::{self, word};
use redrive_worker::{Client, EventGap, EventInfo, EventStream, Events, Followed};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Go on with what happens, until the command is interrupted, or the job of --job has ended
    #[arg(long, short)]
    follow: bool,
    /// Only events of these types, or patterns such as 'job.*'
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    types: Vec<String>,
    /// Only events of these queues
    #[arg(long = "queue", value_name = "QUEUE", value_delimiter = ',')]
    queues: Vec<String>,
    /// Only events of this job
    #[arg(long, value_name = "ID")]
    job: Option<String>,
    /// Only what happened after the event of this id
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

const EXAMPLES: &str = "\
Examples:
  redrive events
  redrive events --follow --type job.failed,job.discarded --queue mail
  redrive events --follow --type 'workflow.*' --json
  redrive events --follow --job 019c5654-7040-7000-8000-2f6d1a0c9b11

The server has the latest 10,000 events of its process in memory. With --follow, a connection that is lost is
opened again, and the command goes on after the last event; where events are missing, a line says so. With
--json, each event is one line.";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let client = args.common.event_client()?;
    let events = selected(args, &client);
    if args.follow {
        return wait_for(follow(args, events));
    }
    let listed = wait_for(list(args, &events))?;
    if let (Some(job), true) = (&args.job, listed.is_empty()) {
        // A job without events may have ended long ago; one that does not exist is a mistake.
        args.common.client()?.ask(Send::Get, &format!("/ojs/v1/jobs/{}", escaped(job)))?;
    }
    listed.iter().try_for_each(|event| show(args, event).map(drop))
}

/// Those that are asked for. The server tells the events of one queue, or of all.
fn selected(args: &Args, client: &Client) -> Events {
    let mut events = client.events().types(args.types.iter().cloned());
    if let Some(after) = &args.after {
        events = events.after(after);
    }
    match (&args.job, args.queues.as_slice()) {
        (Some(job), _) => events.job(job),
        (None, [queue]) => events.queue(queue),
        (None, _) => events,
    }
}

fn is_wanted(args: &Args, event: &EventInfo) -> bool {
    args.queues.is_empty() || event.queue().is_some_and(|queue| args.queues.iter().any(|wanted| wanted == queue))
}

async fn list(args: &Args, events: &Events) -> Result<Vec<EventInfo>, Failed> {
    let mut listed = events.list().await.map_err(|error| failed(&error))?;
    listed.retain(|event| is_wanted(args, event));
    Ok(listed)
}

/// What happened lately, and what happens from then on.
async fn follow(args: &Args, events: Events) -> Result<(), Failed> {
    let open = async |events: Events| events.follow().await.map_err(|error| failed(&error));
    if args.after.is_some() {
        return go_on(args, open(events).await?, None).await;
    }
    // The stream is open before the list is read, so that nothing lies between them. The stream of a job that has
    // ended tells its state where it cannot tell what happened, and goes on after the list instead.
    let stream = if args.job.is_none() { Some(open(events.clone()).await?) } else { None };
    let listed = list(args, &events).await?;
    for event in &listed {
        if !show(args, event)? {
            return Ok(());
        }
    }
    let last = listed.last().map(|event| event.id().to_owned());
    let stream = match (stream, &last) {
        (Some(stream), _) => stream,
        (None, Some(last)) => open(events.after(last)).await?,
        (None, None) => open(events).await?,
    };
    go_on(args, stream, last.as_deref()).await
}

/// Prints what comes, except for what was printed before, up to the event of this id.
async fn go_on(args: &Args, mut stream: EventStream, printed: Option<&str>) -> Result<(), Failed> {
    let mut is_lost = false;
    while let Some(followed) = stream.next().await.map_err(|error| failed(&error))? {
        let is_open = match &followed {
            Followed::Event(event) if !is_wanted(args, event) || is_up_to(event.id(), printed) => true,
            Followed::Event(event) => show(args, event)?,
            Followed::Gap(gap) => show_gap(args, gap)?,
            Followed::Lost { error, .. } if !is_lost => {
                eprintln!("redrive: {}; it is called again until it answers", output::plain(&error.to_string()));
                true
            }
            _ => true,
        };
        is_lost = matches!(followed, Followed::Lost { .. });
        if !is_open {
            return Ok(());
        }
    }
    Ok(())
}

/// Whether an event is not behind another one of the same process.
fn is_up_to(id: &str, printed: Option<&str>) -> bool {
    let parts = |id: &str| {
        let (process, number) = id.rsplit_once('-')?;
        Some((process.to_owned(), number.parse::<u64>().ok()?))
    };
    match (parts(id), printed.and_then(parts)) {
        (Some((process, number)), Some((printed_by, last))) => process == printed_by && number <= last,
        _ => false,
    }
}

/// Prints that events are missing; false if nobody reads it.
fn show_gap(args: &Args, gap: &EventGap) -> Result<bool, Failed> {
    if args.common.json {
        let mut line = gap.document().clone();
        line["type"] = "gap".into();
        return output::line_while_open(format!("{line}\n").as_bytes());
    }
    let missed = gap.missed_at_most().map_or_else(String::new, |missed| format!("up to {missed} "));
    let line = format!("-- {missed}events are missing here: {}\n", gap.message());
    output::line_while_open(output::plain(&line).as_bytes())
}

/// Prints an event; false if nobody reads it.
fn show(args: &Args, event: &EventInfo) -> Result<bool, Failed> {
    if args.common.json {
        return output::line_while_open(format!("{}\n", event.document()).as_bytes());
    }
    let data = event.data();
    let details = ["job_type", "queue", "attempt", "worker_id", "duration_ms", "reason", "next_retry_at"];
    let details = details.into_iter().filter(|key| !data[*key].is_null());
    let mut details: Vec<String> = details.map(|key| format!("{key}={}", word(&data[key]))).collect();
    let error = ["error", "last_error"].into_iter().map(|key| &data[key]["message"]).find(|error| error.is_string());
    details.extend(error.map(|error| format!("error={}", word(error))));
    let line = format!("{}  {:<22}  {}  {}\n", event.time(), event.kind(), event.subject(), details.join(" "));
    output::line_while_open(output::plain(&line).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_listed_is_not_printed_again() {
        assert!(is_up_to("evt-0000000a-9", Some("evt-0000000a-10")));
        assert!(is_up_to("evt-0000000a-10", Some("evt-0000000a-10")));
        assert!(!is_up_to("evt-0000000a-11", Some("evt-0000000a-10")));
        assert!(!is_up_to("evt-0000000b-9", Some("evt-0000000a-10")), "another process counts for itself");
        assert!(!is_up_to("evt-0000000a-9", None));
    }
}
