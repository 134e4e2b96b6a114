//! Writing claims: the arrays of all of them come as one parameter for each column, and each row takes its slices.

use super::{counted_from, names, statements, unnested_from};

/// The parameters of claims: for each the first and last place of its jobs, and its columns.
const OF_CLAIMS: [(&str, &str); 11] = [
    ("first", "integer"),
    ("last", "integer"),
    ("source", "bigint"),
    ("due_us", "bigint"),
    ("alive_us", "bigint"),
    ("lease_us", "bigint"),
    ("expires_us", "bigint"),
    ("queue", "integer"),
    ("priority", "integer"),
    ("version", "smallint"),
    ("gone", "bytea"),
];
/// Then the columns of all jobs.
const OF_JOBS: [(&str, &str); 3] = [("ids", "uuid"), ("rests", "bytea"), ("failures", "bytea")];
/// How many parameters claims take.
pub(super) const PARAMETERS: usize = OF_CLAIMS.len() + OF_JOBS.len();

/// Inserts claims by the parameters from the number `from` on, and returns their numbers and first jobs. Where `which`
/// is given, that is a condition on the claims `u`, with the number of another claim as one more column.
pub(super) fn insert(from: usize, which: Option<&str>) -> String {
    let jobs: Vec<String> = (from + OF_CLAIMS.len()..)
        .zip(OF_JOBS)
        .map(|(place, (_, kind))| format!("(${place}::{kind}[])[u.first:u.last]"))
        .collect();
    let columns = names(&OF_CLAIMS[2..]);
    let claims = match which {
        None => unnested_from(from, &OF_CLAIMS),
        // The parameter behind those of the jobs.
        Some(which) => {
            let more = format!("unnest(${}::bigint[]) AS no, ", from + PARAMETERS);
            format!(
                "{} WHERE {which}",
                unnested_from(from, &OF_CLAIMS).replacen("SELECT ", &format!("SELECT {more}"), 1)
            )
        }
    };
    format!(
        "INSERT INTO claims ({columns}, {}) SELECT {columns}, {} FROM {claims} RETURNING no, ids[1] AS first",
        names(&OF_JOBS),
        jobs.join(", ")
    )
}

statements! {
    /// Claims of jobs that are locked in `live`.
    CLAIM_BLOCKS = format!(
        "WITH gone AS (DELETE FROM live WHERE ctid = ANY (${tids}::tid[])), counted AS ({}) {}",
        counted_from(PARAMETERS + 2), insert(1, None), tids = PARAMETERS + 1
    );
    /// Claims of another store.
    ARRIVE_ACTIVE = format!("WITH counted AS ({}) {}", counted_from(PARAMETERS + 1), insert(1, None));
}
