//! Jobs as bytes, for the stores that keep them: little-endian, counts as varints, lengths before contents.

mod event;
#[cfg(test)]
mod golden;
pub(crate) mod limits;
pub(crate) mod revision;
pub(crate) mod row;
pub(crate) mod run;
#[cfg(test)]
pub(crate) mod samples;
mod unique;
pub(crate) mod verdict;

use redrive_policy::{Moment, Span};

use std::fmt;

/// Why bytes cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// No version writes this: the bytes are damaged, or something else wrote them.
    Malformed(&'static str),
    /// A newer version of this program wrote them.
    Newer { what: &'static str, found: u8, known: u8 },
}

pub(crate) use Unreadable::Malformed;

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(why) => f.write_str(why),
            Self::Newer { what, found, known } => write!(
                f,
                "{what} has version {found}, and this program reads versions up to {known}; upgrade redrive on this node"
            ),
        }
    }
}

/// Writing.
pub(crate) trait Encode {
    fn byte(&mut self, byte: u8);
    fn raw(&mut self, bytes: &[u8]);

    /// Seven bits to a byte, the lowest first; the high bit says that there is more.
    fn count(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    fn word(&mut self, number: u64) {
        self.raw(&number.to_le_bytes());
    }

    fn moment(&mut self, moment: Moment) {
        self.raw(&moment.micros().to_le_bytes());
    }

    fn span(&mut self, span: Span) {
        self.word(span.ms().to_bits());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len() as u64);
        self.raw(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }
}

impl Encode for Vec<u8> {
    fn byte(&mut self, byte: u8) {
        self.push(byte);
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Reads the version that every item begins with. Versions count from 1.
fn version(from: &mut Decoder<'_>, what: &'static str, known: u8) -> Result<u8, Unreadable> {
    match from.byte()? {
        0 => Err(Malformed("an item has version 0, which no program writes")),
        found if found > known => Err(Unreadable::Newer { what, found, known }),
        found => Ok(found),
    }
}

/// A span from its milliseconds. A minus zero is never written.
fn span(ms: f64) -> Result<Span, Unreadable> {
    let span = Span::try_from(ms).ok().filter(|_| ms.is_sign_positive());
    span.ok_or(Malformed("a span is negative, too long or no number"))
}

/// Reading, from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes that are still to be read.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn raw(&mut self, length: usize) -> Result<&'a [u8], Unreadable> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed("a record ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed("a record ends too early"))?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Unreadable> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn count(&mut self) -> Result<u64, Unreadable> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                // One spelling only, so that what was read is written as the same bytes.
                return if byte == 0 && shift > 0 {
                    Err(Malformed("a count is longer than it needs"))
                } else {
                    Ok(number)
                };
            }
        }
        Err(Malformed("a count does not fit into 64 bits"))
    }

    pub(crate) fn small(&mut self) -> Result<u32, Unreadable> {
        u32::try_from(self.count()?).map_err(|_| Malformed("a count does not fit into 32 bits"))
    }

    pub(crate) fn word(&mut self) -> Result<u64, Unreadable> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn moment(&mut self) -> Result<Moment, Unreadable> {
        self.array().map(i64::from_le_bytes).map(Moment::from_micros)
    }

    pub(crate) fn span(&mut self) -> Result<Span, Unreadable> {
        span(f64::from_bits(self.word()?))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Unreadable> {
        let length = usize::try_from(self.count()?).map_err(|_| Malformed("a length is too large"))?;
        self.raw(length)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Unreadable> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("a flag is neither 0 nor 1")),
        }
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Unreadable> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("a text is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX];
        let mut bytes = Vec::new();
        for number in numbers {
            bytes.count(number);
        }
        bytes.moment(Moment::from_micros(-7));
        bytes.span(Span::saturating_ms(0.1 + 0.2));
        bytes.text("grüße");
        let mut decoder = Decoder::new(&bytes);
        for number in numbers {
            assert_eq!(decoder.count(), Ok(number));
        }
        assert_eq!(decoder.moment(), Ok(Moment::from_micros(-7)));
        assert_eq!(decoder.span(), Ok(Span::saturating_ms(0.1 + 0.2)));
        assert_eq!(decoder.text(), Ok("grüße"));
        assert!(decoder.is_empty());
    }

    #[test]
    fn nonsense_is_an_error_and_never_a_panic() {
        assert!(Decoder::new(&[0xff; 11]).count().is_err());
        assert!(Decoder::new(&[0x80, 0]).count().is_err());
        assert!(Decoder::new(&(-0.0_f64).to_bits().to_le_bytes()).span().is_err());
        assert!(Decoder::new(&[0xff, 0xff, 0xff, 0xff, 0x7f]).small().is_err());
        assert!(Decoder::new(&[5, b'a']).bytes().is_err());
        assert!(Decoder::new(&[1, 0xff]).text().is_err());
        assert!(Decoder::new(&f64::NAN.to_bits().to_le_bytes()).span().is_err());
        assert!(Decoder::new(&[]).byte().is_err());
    }
}
