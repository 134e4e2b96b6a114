//! Many jobs from a file of lines.

use super::Output;
use super::envelope::EnvelopeArgs;
use crate::client::{Client, Send};
use crate::{exit::Failed, input, output};
use indicatif::{ProgressBar, ProgressStyle};
use redrive_policy::wire::parse_json;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// So many jobs share one request, and its flush.
const CHUNK_JOBS: usize = 100;
/// A request stays below what servers accept, whatever its jobs weigh.
const CHUNK_BYTES: usize = 512 << 10;
/// No line may be longer than this.
const MAX_LINE: u64 = 1 << 20;

pub(super) fn run(client: &Client, path: &Path, envelope: &EnvelopeArgs, output_as: Output) -> Result<(), Failed> {
    let options = envelope.options()?;
    let (mut lines, bar) = opened(path)?;
    let mut chunk = Chunk::default();
    let (mut accepted, mut ids) = (0, Vec::new());
    loop {
        let line = lines.next_line(path).map_err(|failed| so_far(failed, accepted))?;
        let full = match &line {
            Some(line) => chunk.jobs.len() == CHUNK_JOBS || chunk.bytes + line.text.len() > CHUNK_BYTES,
            None => true,
        };
        if full && !chunk.jobs.is_empty() {
            let jobs = chunk.sent(client).map_err(|failed| so_far(failed, accepted))?;
            accepted += jobs.len();
            match output_as {
                Output::Text => {}
                Output::Quiet => output::text(&format!("{}\n", jobs.join("\n")))?,
                Output::Json => ids.extend(jobs),
            }
            bar.set_position(chunk.end);
            bar.set_message(format!("{accepted} jobs"));
            chunk = Chunk::default();
        }
        let Some(line) = line else { break };
        chunk.add(&line, path, &options).map_err(|failed| so_far(failed, accepted))?;
    }
    bar.finish_and_clear();
    match output_as {
        Output::Text => output::text(&format!("{accepted} jobs enqueued\n")),
        Output::Quiet => Ok(()),
        Output::Json => output::json(&json!({ "count": accepted, "ids": ids })),
    }
}

/// A failure in the middle, with the jobs that are enqueued already.
fn so_far(failed: Failed, accepted: usize) -> Failed {
    Failed { message: format!("{}\n{accepted} jobs before it are enqueued and stay so", failed.message), ..failed }
}

struct Line {
    number: usize,
    text: String,
    /// How many bytes of the file are read, this line included.
    end: u64,
}

struct Lines {
    source: Box<dyn BufRead>,
    number: usize,
    read: u64,
}

fn opened(path: &Path) -> Result<(Lines, ProgressBar), Failed> {
    let unreadable = |error| Failed::usage(format!("cannot read {}: {error}", input::shown(path)));
    let (source, bar): (Box<dyn BufRead>, _) = if path == Path::new("-") {
        (Box::new(BufReader::new(std::io::stdin())), ProgressBar::new_spinner().with_style(style("{spinner} {msg}")))
    } else {
        let file = File::open(path).map_err(unreadable)?;
        let size = file.metadata().map_err(unreadable)?.len();
        let bar = ProgressBar::new(size).with_style(style("{bar:40} {bytes}/{total_bytes} {msg} {eta} left"));
        (Box::new(BufReader::new(file)), bar)
    };
    Ok((Lines { source, number: 0, read: 0 }, bar))
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Lines {
    /// The next line that holds something.
    fn next_line(&mut self, path: &Path) -> Result<Option<Line>, Failed> {
        loop {
            let mut bytes = Vec::new();
            let read = (&mut self.source).take(MAX_LINE).read_until(b'\n', &mut bytes);
            let read = read.map_err(|error| Failed::usage(format!("cannot read {}: {error}", input::shown(path))))?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.read += read as u64;
            let place = || format!("{} line {}", input::shown(path), self.number);
            if read as u64 == MAX_LINE && bytes.last() != Some(&b'\n') {
                return Err(Failed::invalid(format!(
                    "{} is longer than {MAX_LINE} bytes; a job has to fit in",
                    place()
                )));
            }
            let text = String::from_utf8(bytes).map_err(|_| Failed::invalid(format!("{} is not UTF-8", place())))?;
            if !text.trim().is_empty() {
                return Ok(Some(Line { number: self.number, text, end: self.read }));
            }
        }
    }
}

#[derive(Default)]
struct Chunk {
    jobs: Vec<Value>,
    bytes: usize,
    /// The line that its first job stands on.
    first: usize,
    last: usize,
    end: u64,
}

impl Chunk {
    fn add(&mut self, line: &Line, path: &Path, options: &Map<String, Value>) -> Result<(), Failed> {
        let refused = |why: String| Failed::invalid(format!("{} line {}: {why}", input::shown(path), line.number));
        let mut job = parse_json(line.text.trim()).map_err(|error| refused(error.message))?;
        let Some(members) = job.as_object_mut() else {
            return Err(refused("not a job; allowed is {\"type\": …, \"args\": […], \"options\": {…}}".to_owned()));
        };
        members.entry("args").or_insert_with(|| json!([]));
        if !options.is_empty() {
            let own = members.entry("options").or_insert_with(|| json!({}));
            let Some(own) = own.as_object_mut() else {
                return Err(refused("/options is not an object".to_owned()));
            };
            for (key, value) in options {
                own.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        if self.jobs.is_empty() {
            self.first = line.number;
        }
        (self.last, self.end) = (line.number, line.end);
        self.bytes += line.text.len();
        self.jobs.push(job);
        Ok(())
    }

    /// Enqueues the jobs, all or none; answers their ids.
    fn sent(&mut self, client: &Client) -> Result<Vec<String>, Failed> {
        let document = json!({ "jobs": std::mem::take(&mut self.jobs) });
        let answer = client.ask(Send::Post(&document), "/ojs/v1/jobs/batch").map_err(|failed| Failed {
            message: format!("lines {} to {} are not enqueued: {}", self.first, self.last, failed.message),
            ..failed
        })?;
        if let Some(existing) = answer["existing"].as_array() {
            let (first, last) = (self.first, self.last);
            eprintln!("lines {first} to {last}: {} were already there, not enqueued", existing.len());
        }
        let jobs = answer["jobs"].as_array().into_iter().flatten();
        Ok(jobs.filter_map(|job| job["id"].as_str().map(str::to_owned)).collect())
    }
}
