//! The output of a command. Everything is read, so that the command never blocks; only a limited part is stored.

use std::borrow::Cow;
use std::collections::VecDeque;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Which part is stored, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// The first bytes.
    Start(usize),
    /// The last bytes.
    End(usize),
}

/// What a command printed.
#[derive(Clone, Debug, Default)]
pub(super) struct Captured {
    stored: Vec<u8>,
    /// How many bytes there were in all.
    pub(super) total: u64,
}

impl Captured {
    /// The stored part, with a replacement character for what is not UTF-8.
    pub(super) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stored)
    }

    /// Whether there was more output than is stored.
    pub(super) fn is_cut(&self) -> bool {
        self.total > self.stored.len() as u64
    }
}

/// Reads to the end, or until `stop` completes. A broken pipe counts as the end.
pub(super) async fn capture(
    source: Option<impl AsyncRead + Unpin>,
    part: Part,
    stop: impl Future<Output = ()>,
) -> Captured {
    let Some(mut source) = source else { return Captured::default() };
    let mut buffer = vec![0; 16 << 10];
    let mut stored = VecDeque::new();
    let mut total = 0;
    tokio::pin!(stop);
    loop {
        let read = tokio::select! {
            biased;
            () = &mut stop => break,
            read = source.read(&mut buffer) => read,
        };
        let Ok(count @ 1..) = read else { break };
        total += count as u64;
        let bytes = &buffer[..count];
        match part {
            Part::Start(most) => stored.extend(&bytes[..count.min(most - stored.len())]),
            Part::End(most) => {
                stored.extend(bytes);
                stored.drain(..stored.len().saturating_sub(most));
            }
        }
    }
    Captured { stored: stored.into(), total }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_start_or_the_end_is_stored_and_everything_is_counted() {
        let text: Vec<u8> = (0..100_000_u32).map(|number| (number % 251) as u8).collect();
        for (part, expected) in
            [(Part::Start(10), &text[..10]), (Part::End(10), &text[99_990..]), (Part::Start(200_000), &text[..])]
        {
            let captured = capture(Some(&text[..]), part, std::future::pending()).await;
            assert_eq!((&captured.stored[..], captured.total), (expected, 100_000), "{part:?}");
            assert_eq!(captured.is_cut(), expected.len() < text.len());
        }
    }
}
