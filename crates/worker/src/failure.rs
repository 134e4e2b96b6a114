//! The failure that a handler returns.

use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// A run that failed: a type that retry policies can match, a message for people, details for
/// programs, and what the handler asks for.
///
/// Every ordinary error becomes one through `?`. Its type is the name of the Rust type without the
/// path, its message is that of the error and of its causes:
///
/// ```
/// use redrive_worker::Failure;
///
/// fn parse(text: &str) -> Result<u32, Failure> {
///     Ok(text.parse::<u32>()?)
/// }
///
/// let failure = parse("seven").unwrap_err();
/// assert_eq!(failure.type_name(), "ParseIntError");
/// assert_eq!(failure.message(), "invalid digit found in string");
/// ```
///
/// It is not a [`std::error::Error`] itself, which is what makes that conversion possible.
pub struct Failure {
    pub(crate) type_name: Cow<'static, str>,
    pub(crate) message: String,
    pub(crate) details: Option<Box<RawValue>>,
    pub(crate) action: FailureAction,
}

/// What a handler asks for with a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FailureAction {
    /// What the policy says.
    #[default]
    Policy,
    /// What the policy says, but with this delay if there is a further run.
    After(Duration),
    /// A dead letter immediately.
    DeadLetter,
    /// Discarded immediately.
    Discard,
}

impl Failure {
    /// A failure with a type, such as `external.timeout`, and a message.
    pub fn new(type_name: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        Self { type_name: type_name.into(), message: message.to_string(), details: None, action: FailureAction::Policy }
    }

    /// A failure from anything that can be displayed, for errors that are not a [`std::error::Error`], such as
    /// those of anyhow. Its type is `error`.
    pub fn other(message: impl fmt::Display) -> Self {
        Self::new("error", message)
    }

    /// The same with another type.
    #[must_use]
    pub fn with_type(mut self, type_name: impl Into<Cow<'static, str>>) -> Self {
        self.type_name = type_name.into();
        self
    }

    /// The same with details for programs. They should be an object; what cannot be written as JSON
    /// is left out.
    #[must_use]
    pub fn with_details(mut self, details: impl Serialize) -> Self {
        self.details = serde_json::value::to_raw_value(&details).ok();
        self
    }

    /// No retry: the job goes to the dead letters at once, for people to look at.
    #[must_use]
    pub fn unrecoverable(mut self) -> Self {
        self.action = FailureAction::DeadLetter;
        self
    }

    /// No retry, and no dead letter: the job is discarded.
    #[must_use]
    pub fn discard(mut self) -> Self {
        self.action = FailureAction::Discard;
        self
    }

    /// If there is a further run, it comes after this time instead of the policy's delay, as for a
    /// `Retry-After`. The limits of the policy apply.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.action = FailureAction::After(delay);
        self
    }

    /// The type.
    #[must_use]
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The details, as JSON text.
    #[must_use]
    pub fn details(&self) -> Option<&str> {
        self.details.as_deref().map(RawValue::get)
    }

    /// Whether the handler rules out any further run.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self.action, FailureAction::DeadLetter | FailureAction::Discard)
    }

    /// The details as Open Job Spec has them: an object; anything else becomes one.
    pub(crate) fn details_object(&self) -> Option<Cow<'_, str>> {
        match self.details()? {
            "null" => None,
            object if object.starts_with('{') => Some(object.into()),
            other => Some(format!("{{\"value\":{other}}}").into()),
        }
    }

    /// The error code with which Open Job Spec carries the signal.
    pub(crate) const fn code(&self) -> Option<&'static str> {
        match self.action {
            FailureAction::DeadLetter => Some("DEAD_LETTER"),
            FailureAction::Discard => Some("DISCARD"),
            FailureAction::Policy | FailureAction::After(_) => None,
        }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { type_name, message, details, action } = self;
        let details = details.as_deref().map(RawValue::get);
        f.debug_struct("Failure")
            .field("type", type_name)
            .field("message", message)
            .field("details", &details)
            .field("action", action)
            .finish()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.type_name, self.message)
    }
}

impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let whole = (&error as &dyn Error).downcast_ref::<std::io::Error>();
        let type_name = match whole {
            // One type covers all errors of disks and sockets; policies match its kind.
            Some(io) => Cow::Owned(format!("io.{:?}", io.kind())),
            None => short_name(std::any::type_name::<E>()),
        };
        Self { type_name, message: with_causes(&error), details: None, action: FailureAction::Policy }
    }
}

/// `a::b::Oops<T>` as `Oops`; a type that is called just `Error`, after the module or crate that it
/// belongs to: `serde_json::error::Error` as `serde_json.Error`.
fn short_name(path: &'static str) -> Cow<'static, str> {
    let path = path.split('<').next().unwrap_or(path);
    let mut parts = path.rsplit("::");
    let name = parts.next().unwrap_or(path);
    if !matches!(name, "Error" | "ErrorKind") {
        return Cow::Borrowed(name);
    }
    match parts.find(|part| !matches!(*part, "error" | "errors" | "err" | "inner" | "private")) {
        Some(home) => Cow::Owned(format!("{home}.{name}")),
        None => Cow::Borrowed(name),
    }
}

/// The message of an error and of its causes; a cause that its parent quotes is not repeated.
fn with_causes(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !message.ends_with(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        next = cause.source();
    }
    message
}

/// What should happen to the job, set where the error occurs.
///
/// ```
/// use redrive_worker::{Failure, ResultExt};
///
/// fn read(text: &str) -> Result<u32, Failure> {
///     // A number that cannot be read today cannot be read tomorrow.
///     text.parse::<u32>().unrecoverable()
/// }
///
/// assert!(read("x").unwrap_err().is_final());
/// ```
pub trait ResultExt<T> {
    /// An error here is not worth a retry: the job becomes a dead letter immediately.
    ///
    /// # Errors
    /// The error, as an unrecoverable failure.
    fn unrecoverable(self) -> Result<T, Failure>;

    /// An error here discards the job.
    ///
    /// # Errors
    /// The error, as a failure that discards the job.
    fn discard(self) -> Result<T, Failure>;

    /// An error here is worth a retry after this time.
    ///
    /// # Errors
    /// The error, as a failure with its own delay.
    fn retry_after(self, delay: Duration) -> Result<T, Failure>;
}

impl<T, E: Into<Failure>> ResultExt<T> for Result<T, E> {
    fn unrecoverable(self) -> Result<T, Failure> {
        self.map_err(|error| error.into().unrecoverable())
    }

    fn discard(self) -> Result<T, Failure> {
        self.map_err(|error| error.into().discard())
    }

    fn retry_after(self, delay: Duration) -> Result<T, Failure> {
        self.map_err(|error| error.into().retry_after(delay))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_has_its_short_name() {
        for (path, name) in [
            ("core::num::error::ParseIntError", "ParseIntError"),
            ("serde_json::error::Error", "serde_json.Error"),
            ("app::mail::SendError<alloc::string::String>", "SendError"),
            ("reqwest::error::Error", "reqwest.Error"),
            ("Error", "Error"),
        ] {
            assert_eq!(short_name(path), name);
        }
    }

    #[test]
    fn an_io_error_is_named_after_its_kind() {
        let failure = Failure::from(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
        assert_eq!(failure.type_name(), "io.ConnectionRefused");
    }

    #[test]
    fn causes_are_not_repeated() {
        #[derive(Debug)]
        struct Outer(std::num::ParseIntError);
        impl fmt::Display for Outer {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the port is not usable")
            }
        }
        impl Error for Outer {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(&self.0)
            }
        }
        let failure = Failure::from(Outer("x".parse::<u16>().unwrap_err()));
        assert_eq!(failure.to_string(), "Outer: the port is not usable: invalid digit found in string");
    }
}
