//! Bytes as a job that a caller enqueues.

use redrive_ojs::json::Members;
use redrive_ojs::{JobRequest, Limits, PolicyOrigin, body};
use redrive_policy::dialect::Dialect;
use redrive_policy::{Moment, Problems};
use serde_json::Value;

/// A job is refused with what is wrong, or becomes a body that is one JSON object. The arguments, and where the policy
/// came from, are read out of the body as they went in.
pub fn envelope(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(members) = Members::parse(text) else { return };
    let request = JobRequest::read(&members, None, &Limits::default(), Moment::ORIGIN);
    let Ok((request, ())) = request.checked(Ok::<(), Problems>(())) else { return };
    let origin = PolicyOrigin::new("job", Dialect::Ojs, &[]);
    let stored = request.body(&origin);
    let value: Value = serde_json::from_slice(&stored).expect("a body is JSON text");
    assert!(value.is_object(), "{value}");
    assert_eq!(body::args(&stored), request.args);
    assert_eq!(PolicyOrigin::read(&stored), origin);
}
