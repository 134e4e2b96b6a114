//! Ids of states.

use redrive_store::{Job, JobId, State};
use std::fmt;
use std::str::FromStr;

/// Which state a report is about. A job is a state for each of its runs that count: the first has the id of the job,
/// and each retry adds its number. A further output is a state of its own, with the number of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateId {
    /// The job.
    pub job: JobId,
    /// How often the job was redriven before.
    pub generation: u32,
    /// Which retry it is; 0 is the first run.
    pub retry: u32,
    /// Which output, from 1, where it stands for a further one.
    pub output: Option<u32>,
}

impl StateId {
    /// The state that a job is now.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        // A failure that ended the job made no further state; the end of a branch is no failure.
        let retry = match job.state {
            State::Discarded => job.attempt.saturating_sub(1),
            _ => job.history.failures(),
        };
        Self { job: job.id, generation: job.generation, retry, output: None }
    }
}

impl fmt::Display for StateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.job)?;
        match (self.generation, self.retry) {
            (0, 0) => {}
            (0, retry) => write!(f, "-{retry}")?,
            (generation, retry) => write!(f, "-{retry}-{generation}")?,
        }
        self.output.map_or(Ok(()), |output| write!(f, ".{output}"))
    }
}

impl FromStr for StateId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (job, rest) = text.split_at_checked(JobId::TEXT).ok_or(())?;
        let (rest, output) = match rest.split_once('.') {
            Some((rest, output)) => (rest, Some(output.parse().map_err(|_| ())?)),
            None => (rest, None),
        };
        let mut numbers = match rest.strip_prefix('-') {
            Some(rest) => {
                rest.split('-').map(|number| number.parse::<u32>().map_err(|_| ())).collect::<Result<_, ()>>()?
            }
            None if rest.is_empty() => Vec::new(),
            None => return Err(()),
        };
        numbers.resize(numbers.len().max(2), 0);
        let [retry, generation] = numbers[..] else { return Err(()) };
        let id = Self { job: job.parse().map_err(|_| ())?, generation, retry, output };
        // One way to write each.
        if id.to_string() == text { Ok(id) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = "0190a5c0-0000-7000-8000-000000000001";

    #[test]
    fn ids_are_read_as_they_are_written() {
        for rest in ["", "-1", "-12", "-0-1", "-3-2", ".1", "-1.2", "-0-1.3"] {
            let text = format!("{JOB}{rest}");
            assert_eq!(text.parse::<StateId>().map(|id| id.to_string()), Ok(text));
        }
        for wrong in ["", "x", "-", "-a", "-0", "-1-0", "-1-2-3", ".", ".x", "-+1"] {
            assert_eq!(format!("{JOB}{wrong}").parse::<StateId>().is_ok(), wrong.is_empty(), "{wrong}");
        }
    }
}
