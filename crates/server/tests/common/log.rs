//! Captures the lines of the log.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex, Once};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{Layer, registry};

pub(crate) type Lines = Arc<Mutex<Vec<String>>>;

thread_local! {
    /// Tests run in parallel, each with its tasks on its own thread.
    static CAPTURED: RefCell<Lines> = RefCell::default();
}

/// What the tasks of this thread log from now on: messages, with the fields that they do not repeat. Errors of the
/// server are printed as well.
pub(crate) fn captured() -> Lines {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let _ = tracing::subscriber::set_global_default(registry().with(Capture));
    });
    let lines = Lines::default();
    CAPTURED.set(Arc::clone(&lines));
    lines
}

struct Capture;

impl<S: Subscriber> Layer<S> for Capture {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        let line = line.whole();
        if *event.metadata().level() == Level::ERROR {
            eprintln!("{line}");
        }
        CAPTURED.with_borrow(|lines| lines.lock().expect("no panic").push(line));
    }
}

#[derive(Default)]
struct Line {
    message: String,
    fields: Vec<(&'static str, String)>,
}

impl Line {
    fn whole(self) -> String {
        let is_in_message = |value: &str| self.message.contains(value.trim_matches('"'));
        let more =
            self.fields.iter().filter(|(_, value)| !is_in_message(value)).map(|(key, value)| format!(" {key}={value}"));
        more.fold(self.message.clone(), |line, field| line + &field)
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            key => self.fields.push((key, format!("{value:?}"))),
        }
    }
}
