//! Time zones by their names in the IANA database.

use jiff::tz::{TimeZone, TimeZoneDatabase};
use redrive_policy::Problem;

/// The zone that schedules have by default.
pub(super) const UTC: &str = "UTC";

/// Finds a time zone. The database of the system comes first, because it is updated more often than this program.
///
/// # Errors
/// What is allowed instead: offsets and abbreviations have no rules for daylight saving time.
pub(super) fn find(name: &str) -> Result<TimeZone, Problem> {
    if name == UTC {
        return Ok(TimeZone::UTC);
    }
    let found = if name.contains('/') {
        TimeZone::get(name).or_else(|_| TimeZoneDatabase::bundled().get(name)).ok()
    } else {
        None
    };
    found.ok_or_else(|| {
        let allowed =
            "\"UTC\", or a name of the IANA time zone database with area and place, such as \"Europe/Berlin\"";
        Problem::new("", format!("\"{name}\""), allowed)
    })
}
