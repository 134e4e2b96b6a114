//! The place of an event among those of a process, and where those go on who have seen one.

use serde_json::{Value, json};
use std::fmt;
use std::str::FromStr;

/// The id of an event. Numbers start anew with each process, so that the process is part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    /// The process.
    pub process: u32,
    /// The number of the event there, from 1; 0 is before all of them.
    pub number: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "evt-{:08x}-{}", self.process, self.number)
    }
}

/// A text that is not the id of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnEventId;

impl FromStr for EventId {
    type Err = NotAnEventId;

    fn from_str(text: &str) -> Result<Self, NotAnEventId> {
        let parts = || {
            let (process, number) = text.strip_prefix("evt-")?.split_once('-')?;
            Some(Self { process: u32::from_str_radix(process, 16).ok()?, number: number.parse().ok()? })
        };
        parts().ok_or(NotAnEventId)
    }
}

impl EventId {
    /// Its number for a list of this process. An event of another process comes before all of this one.
    #[must_use]
    pub const fn number_in(self, process: u32) -> u64 {
        if self.process == process { self.number } else { 0 }
    }
}

/// Where a stream of events starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamStart {
    /// With what happens from now on: the client has seen nothing, up to this event.
    Now(u64),
    /// After the event with this number of this process.
    After(u64),
    /// With what happens from now on, because what the client has seen last is not known here.
    Unknown(u64, GapReason),
}

/// Why a stream has a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapReason {
    /// The events are not stored any more, or lie further back than a stream may be behind.
    Dropped,
    /// The last event that the client has seen is of another process: another node, or this one before its start.
    OtherProcess,
    /// What the client names is no event of a server of this kind.
    UnknownId,
}

impl StreamStart {
    /// For a client that has seen this event last, in a process whose latest event has the number `latest`.
    #[must_use]
    pub fn of(last_seen: Option<&str>, process: u32, latest: u64) -> Self {
        let Some(id) = last_seen else { return Self::Now(latest) };
        match id.trim().parse::<EventId>() {
            Ok(id) if id.process == process && id.number <= latest => Self::After(id.number),
            Ok(id) if id.process != process => Self::Unknown(latest, GapReason::OtherProcess),
            _ => Self::Unknown(latest, GapReason::UnknownId),
        }
    }

    /// The number of the event after which the stream goes on.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Self::Now(number) | Self::After(number) | Self::Unknown(number, _) => number,
        }
    }
}

/// What a stream says where events are missing that its client might expect. It goes on after this event.
#[must_use]
pub fn gap(reason: GapReason, missed: Option<u64>, goes_on_after: EventId) -> Value {
    let (reason, message) = match reason {
        GapReason::Dropped => ("dropped", "events before this one are not stored any more, or the client was too slow"),
        GapReason::OtherProcess => {
            ("other_process", "the last event seen is of another node, or from before a restart")
        }
        GapReason::UnknownId => ("unknown_id", "the last event seen is not an event of this server"),
    };
    let mut gap = json!({
        "reason": reason,
        "message": format!("{message}; look up what must not be missed"),
        "goes_on_after": goes_on_after.to_string(),
    });
    if let Some(missed) = missed {
        gap["missed_at_most"] = missed.into();
    }
    gap
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_its_process_and_one_of_another_process_comes_before_all() {
        let id = EventId { process: 7, number: 42 };
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!((id.number_in(7), id.number_in(8)), (42, 0));
        for wrong in ["", "42", "evt-", "evt-7", "evt-x-1", "evt-00000007-", "evt-00000007--1"] {
            assert_eq!(wrong.parse::<EventId>(), Err(NotAnEventId), "{wrong}");
        }
    }

    #[test]
    fn a_stream_resumes_only_after_an_event_of_its_process() {
        assert_eq!(StreamStart::of(None, 7, 9), StreamStart::Now(9));
        assert_eq!(StreamStart::of(Some(" evt-00000007-4 "), 7, 9), StreamStart::After(4));
        assert_eq!(StreamStart::of(Some("evt-00000007-10"), 7, 9), StreamStart::Unknown(9, GapReason::UnknownId));
        assert_eq!(StreamStart::of(Some("evt-00000008-4"), 7, 9), StreamStart::Unknown(9, GapReason::OtherProcess));
        assert_eq!(StreamStart::of(Some("4"), 7, 9), StreamStart::Unknown(9, GapReason::UnknownId));
    }
}
