//! The attempts of retries on a line of time: what ran when, how it ended, and what is next.

mod drawn;
mod printed;
#[cfg(test)]
mod tests;

pub use drawn::attempts_svg;
pub use printed::attempts_text;

/// How many retries are drawn, the newest.
const MAX_RETRIES: usize = 20;
/// How many attempts of a retry are listed, the newest.
const MAX_LISTED: usize = 20;

/// What is drawn. Texts may be of any kind and length; they are escaped, and cut in pictures. Times are milliseconds
/// since the start of all of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempts {
    /// What stands above all of it.
    pub title: String,
    /// A line below the title.
    pub subtitle: String,
    /// Where the line of time ends for what has not ended.
    pub now_ms: f64,
    /// The retries, the oldest first.
    pub retries: Vec<Retry>,
    /// How many retries there were before these.
    pub omitted: u64,
}

/// Something that is tried again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// What it is.
    pub name: String,
    /// How far it is.
    pub state: String,
    /// Its attempts, the oldest first.
    pub attempts: Vec<Attempt>,
    /// How many attempts there were before these.
    pub omitted: u64,
    /// When it goes on, and what is said of it.
    pub next: Option<(f64, String)>,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Its number, from 1.
    pub number: u64,
    /// When it began.
    pub from_ms: f64,
    /// When it ended, if it has.
    pub to_ms: Option<f64>,
    /// How it ended.
    pub end: End,
    /// What is said of it, a line each; the first is the most important.
    pub says: Vec<String>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It runs.
    Runs,
    /// It has succeeded.
    Success,
    /// It has failed.
    Failure,
    /// It was interrupted.
    Interrupted,
}

impl Attempts {
    /// The retries that are drawn, and how many are not.
    fn drawn(&self) -> (&[Retry], u64) {
        let from = self.retries.len().saturating_sub(MAX_RETRIES);
        (&self.retries[from..], self.omitted + from as u64)
    }

    /// The last moment that is drawn.
    fn end_ms(&self) -> f64 {
        let (retries, _) = self.drawn();
        let ends = retries.iter().flat_map(|retry| {
            let attempts = retry.attempts.iter().map(|attempt| attempt.to_ms.unwrap_or(self.now_ms));
            attempts.chain(retry.next.as_ref().map(|(at, _)| *at))
        });
        ends.filter(|end| end.is_finite()).fold(1.0, f64::max)
    }
}

impl Retry {
    /// The attempts that are listed, and how many are not.
    fn listed(&self) -> (&[Attempt], u64) {
        let from = self.attempts.len().saturating_sub(MAX_LISTED);
        (&self.attempts[from..], self.omitted + from as u64)
    }
}
