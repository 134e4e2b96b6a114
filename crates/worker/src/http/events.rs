//! Server-sent events, as the HTML standard defines their format.

use crate::ClientError;
use std::collections::VecDeque;
use std::time::Duration;

/// The largest event that is read, in bytes.
const LARGEST: usize = 8 << 20;

/// An event as it arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SentEvent {
    pub(crate) name: String,
    pub(crate) data: String,
}

/// What is in the text of a stream, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The id from which on the stream can be resumed.
    Id(String),
    Event(SentEvent),
    /// How long to wait before calling again.
    Retry(Duration),
}

/// Reads the text of a stream as it comes, in parts that end anywhere.
#[derive(Debug, Default)]
pub(crate) struct SentEvents {
    /// What has come of the line that is not at its end.
    line: Vec<u8>,
    /// Whether the last line ended with a carriage return, whose line feed is still to come.
    after_return: bool,
    event: SentEvent,
    id: Option<String>,
    found: VecDeque<Sent>,
}

impl SentEvents {
    /// Takes the next part.
    ///
    /// # Errors
    /// An event is larger than a server would send.
    pub(crate) fn push(&mut self, part: &[u8]) -> Result<(), ClientError> {
        for byte in part {
            let was_return = std::mem::take(&mut self.after_return);
            match byte {
                b'\n' if was_return => {}
                b'\n' | b'\r' => {
                    self.after_return = *byte == b'\r';
                    let line = std::mem::take(&mut self.line);
                    self.take_line(&String::from_utf8_lossy(&line));
                }
                byte => self.line.push(*byte),
            }
            if self.line.len() + self.event.data.len() > LARGEST {
                return Err(ClientError::Garbled(format!("an event has more than {LARGEST} bytes")));
            }
        }
        Ok(())
    }

    /// What comes next of what has arrived whole.
    pub(crate) fn pop(&mut self) -> Option<Sent> {
        self.found.pop_front()
    }

    fn take_line(&mut self, line: &str) {
        if line.is_empty() {
            self.found.extend(self.id.take().map(Sent::Id));
            let mut event = std::mem::take(&mut self.event);
            if event.data.pop().is_some() {
                self.found.push_back(Sent::Event(event));
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                self.event.data.push_str(value);
                self.event.data.push('\n');
            }
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" => self.found.extend(value.parse().ok().map(Duration::from_millis).map(Sent::Retry)),
            // A comment, or a field that is not known.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parts: &[&str]) -> Vec<Sent> {
        let mut events = SentEvents::default();
        parts.iter().for_each(|part| events.push(part.as_bytes()).expect("it is not too large"));
        std::iter::from_fn(|| events.pop()).collect()
    }

    fn event(name: &str, data: &str) -> Sent {
        Sent::Event(SentEvent { name: name.to_owned(), data: data.to_owned() })
    }

    #[test]
    fn events_are_read_wherever_their_parts_end() {
        let text =
            "retry: 3000\nid: a-0\n\nid: a-1\nevent: job.started\ndata: {\"ü\":1}\n\n:heartbeat\n\ndata:x\ndata: y\n\n";
        let all = vec![
            Sent::Retry(Duration::from_secs(3)),
            Sent::Id("a-0".to_owned()),
            Sent::Id("a-1".to_owned()),
            event("job.started", "{\"ü\":1}"),
            event("", "x\ny"),
        ];
        assert_eq!(read(&[text]), all);
        let windows = text.replace('\n', "\r\n");
        let old = text.replace('\n', "\r");
        for text in [text, &windows, &old] {
            let parts: Vec<Vec<u8>> = text.bytes().map(|byte| vec![byte]).collect();
            let mut events = SentEvents::default();
            parts.iter().for_each(|part| events.push(part).expect("it is not too large"));
            assert_eq!(std::iter::from_fn(|| events.pop()).collect::<Vec<_>>(), all);
        }
    }

    #[test]
    fn what_is_not_whole_is_no_event() {
        assert_eq!(read(&["id: a-1\nevent: x\ndata: 1\n"]), []);
        assert_eq!(read(&["event: x\n\n", "retry: soon\n", "id: a\0b\n\n", "nonsense\n\n"]), []);
        let mut events = SentEvents::default();
        assert!(events.push(&vec![b'x'; LARGEST + 1]).is_err());
    }
}
