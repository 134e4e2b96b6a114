//! Errors of tasks, as they are stored and as they are answered.

use crate::common::ErrorResult;
use crate::value::json_text;
use redrive_ojs::AttemptError;
use redrive_store::Blob;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// An error as it is stored of the attempt that it ended.
pub(crate) fn stored(error: &ErrorResult, most_bytes: usize, nesting: usize) -> Blob {
    let data = Some(error.data.as_str()).filter(|data| !data.trim().is_empty());
    let details = data.map(|data| json_text(data, nesting).unwrap_or_else(|| json!(data).to_string()));
    let code = details.as_deref().and_then(code_in).unwrap_or_default();
    let error = AttemptError {
        type_name: &error.r#type,
        code: &code,
        message: &error.message,
        retryable: Some(error.retriable),
        details: details.as_deref(),
        ..AttemptError::default()
    };
    Blob::from(error.stored(most_bytes))
}

/// The code that workers put into the data of an error.
fn code_in(details: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Data {
        code: Option<String>,
    }
    serde_json::from_str::<Data>(details).ok()?.code
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Stored<'e> {
    r#type: String,
    code: Option<String>,
    message: String,
    retryable: Option<bool>,
    #[serde(borrow)]
    details: Option<&'e RawValue>,
}

/// A stored error as it is answered.
pub(crate) fn answered(error: &[u8]) -> ErrorResult {
    let Stored { r#type, code, message, retryable, details } = serde_json::from_slice(error).unwrap_or_default();
    let data = match (details, code) {
        (None, Some(code)) => json!({ "code": code }).to_string(),
        (details, _) => data_of(details.map(RawValue::get)),
    };
    ErrorResult { r#type, message, data, retriable: retryable.unwrap_or(false) }
}

/// The data of an error as clients read it: an object. What is none is in one.
#[must_use]
pub fn data_of(details: Option<&str>) -> String {
    match details {
        None | Some("null") => "{}".to_owned(),
        Some(details) if details.starts_with('{') => details.to_owned(),
        Some(details) => {
            let value: Value = serde_json::from_str(details).unwrap_or_else(|_| details.into());
            json!({ "data": value }).to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(data: &str) -> String {
        let error = ErrorResult { r#type: "E".into(), message: "m".into(), data: data.into(), retriable: true };
        let answered = answered(&stored(&error, 10_000, 64));
        assert_eq!((&*answered.r#type, &*answered.message, answered.retriable), ("E", "m", true));
        answered.data
    }

    #[test]
    fn section_5_the_data_of_an_error_is_always_an_object() {
        assert_eq!(round("{\"code\":\"E7\",\"n\":1.50}"), "{\"code\":\"E7\",\"n\":1.50}");
        assert_eq!(round(""), "{}");
        assert_eq!(round("null"), "{}");
        assert_eq!(round("[1]"), "{\"data\":[1]}");
        assert_eq!(round("\"text\""), "{\"data\":\"text\"}");
        assert_eq!(round("{broken"), "{\"data\":\"{broken\"}");
    }

    #[test]
    fn errors_of_other_workers_and_of_the_server_have_data_too() {
        let error = answered(br#"{"type":"timeout","code":"timeout","message":"too long"}"#);
        assert_eq!((&*error.r#type, &*error.data, error.retriable), ("timeout", "{\"code\":\"timeout\"}", false));
        assert_eq!(answered(b"").data, "{}");
    }
}
