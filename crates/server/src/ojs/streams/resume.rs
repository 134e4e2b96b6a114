//! Where a stream starts: now, or after the last event that its client has seen.

use super::id_here;
use crate::app::App;
use crate::ojs::events::parts_of;
use crate::request::Query;
use axum::http::HeaderMap;
use serde_json::{Value, json};

/// Where a stream starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// With what happens from now on: the client has seen nothing, up to this event.
    Now(u64),
    /// After the event with this number of this process.
    After(u64),
    /// With what happens from now on, because what the client has seen last is not known here.
    Unknown(u64, Why),
}

/// Why a stream has a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The events are not stored any more, or lie further back than a stream may be behind.
    Dropped,
    /// The last event that the client has seen is of another process: another node, or this one before its start.
    OtherProcess,
    /// What the client names is no event of a server of this kind.
    UnknownId,
}

impl Start {
    /// Reads `Last-Event-ID`, or `last_event_id` of the query for clients that cannot set a header. Clients that
    /// reconnect by themselves repeat the query as it was and update the header, so the header comes first.
    pub(super) fn read(headers: &HeaderMap, query: &Query, app: &App) -> Self {
        let now = app.engine.latest_event();
        let header = headers.get("last-event-id").map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
        let Some(id) = header.filter(|id| !id.is_empty()).or_else(|| query.get("last_event_id").map(str::to_owned))
        else {
            return Self::Now(now);
        };
        match parts_of(id.trim()) {
            Some((process, number)) if process == app.boot && number <= now => Self::After(number),
            Some((process, _)) if process != app.boot => Self::Unknown(now, Why::OtherProcess),
            _ => Self::Unknown(now, Why::UnknownId),
        }
    }

    /// The number of the event after which the stream goes on.
    pub(super) const fn number(self) -> u64 {
        match self {
            Self::Now(number) | Self::After(number) | Self::Unknown(number, _) => number,
        }
    }
}

/// What a stream says where events are missing that its client might expect. It goes on after this event.
pub(super) fn gap(app: &App, why: Why, missed: Option<u64>, goes_on_after: u64) -> Value {
    let (reason, message) = match why {
        Why::Dropped => ("dropped", "events before this one are not stored any more, or the client was too slow"),
        Why::OtherProcess => ("other_process", "the last event seen is of another node, or from before a restart"),
        Why::UnknownId => ("unknown_id", "the last event seen is not an event of this server"),
    };
    let mut gap = json!({
        "reason": reason,
        "message": format!("{message}; look up what must not be missed"),
        "goes_on_after": id_here(app, goes_on_after),
    });
    if let Some(missed) = missed {
        gap["missed_at_most"] = missed.into();
    }
    gap
}
