//! Writing claims: the arrays of all of them come as one parameter for each column, and each row takes its slices.

use super::{counted_from, statements};

/// The parameters of claims: for each the first and last place of its jobs, the last place of what is the same for all
/// of them, of its sources, its version, what has left and when it is due; then for each job its columns.
const OF_CLAIMS: [(&str, &str); 8] = [
    ("first", "integer"),
    ("last", "integer"),
    ("same", "integer"),
    ("first_source", "integer"),
    ("last_source", "integer"),
    ("version", "smallint"),
    ("gone", "bytea"),
    ("due_us", "bigint"),
];
const OF_JOBS: [(&str, &str, &str); 9] = [
    ("ids", "uuid", "last"),
    ("queues", "integer", "same"),
    ("priorities", "integer", "same"),
    ("expires_us", "bigint", "last"),
    ("dues_us", "bigint", "same"),
    ("alive_us", "bigint", "same"),
    ("lease_us", "bigint", "same"),
    ("rests", "bytea", "last"),
    ("failures", "bytea", "last"),
];
/// How many parameters claims take.
pub(super) const PARAMETERS: usize = OF_CLAIMS.len() + 1 + OF_JOBS.len();

/// Inserts claims by the parameters from the number `from` on, and returns their numbers and first jobs. `more` are
/// further columns that are given for each claim, and `which` is a condition on them.
pub(super) fn insert(from: usize, more: &[(&str, &str)], which: &str) -> String {
    let mut place = from..;
    let mut next = |kind: &str| format!("${}::{kind}[]", place.next().unwrap_or_default());
    let claims: Vec<String> = OF_CLAIMS.iter().map(|(_, kind)| next(kind)).collect();
    let sources = next("bigint");
    let jobs: Vec<String> =
        OF_JOBS.iter().map(|(_, kind, last)| format!("({})[b.first:b.{last}]", next(kind))).collect();
    let more_arrays: Vec<String> = more.iter().map(|(_, kind)| next(kind)).collect();
    let names: Vec<&str> = OF_CLAIMS.iter().chain(more).map(|(name, _)| *name).collect();
    format!(
        "INSERT INTO claims (version, gone, due_us, sources, {columns}) \
         SELECT b.version, b.gone, b.due_us, ({sources})[b.first_source:b.last_source], {jobs} \
         FROM unnest({claims}) AS b ({names}) WHERE {which} RETURNING no, ids[1] AS first",
        columns = OF_JOBS.map(|(name, ..)| name).join(", "),
        jobs = jobs.join(", "),
        claims = [claims, more_arrays].concat().join(", "),
        names = names.join(", ")
    )
}

statements! {
    /// Claims of jobs that are locked in `live`.
    CLAIM_BLOCKS = format!(
        "WITH gone AS (DELETE FROM live WHERE id = ANY (${ids}::uuid[])), counted AS ({counted}) {insert}",
        ids = PARAMETERS - 8, counted = counted_from(PARAMETERS + 1), insert = insert(1, &[], "true")
    );
    /// Claims of another store.
    ARRIVE_ACTIVE =
        format!("WITH counted AS ({}) {}", counted_from(PARAMETERS + 1), insert(1, &[], "true"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_are_where_the_other_statements_expect_them() {
        let place = OF_CLAIMS.len() + 2;
        assert_eq!(place, PARAMETERS - 8);
        assert!(insert(1, &[], "true").contains(&format!("(${place}::uuid[])[b.first:b.last]")));
    }
}
