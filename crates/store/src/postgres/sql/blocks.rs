//! Writing rows that have several jobs: the arrays of all of them come as one parameter for each column, and each row
//! takes its slices.

use super::{counted_from, names, statements, unnested_from};

/// A table of such rows, and its columns besides the arrays, as they are written.
pub(super) struct Blocks {
    pub(super) table: &'static str,
    pub(super) columns: &'static [(&'static str, &'static str)],
}

/// For each row the first and last place of its jobs; its columns follow.
const PLACES: [(&str, &str); 2] = [("first", "integer"), ("last", "integer")];
/// Then the columns of all jobs.
const OF_JOBS: [(&str, &str); 3] = [("ids", "uuid"), ("rests", "bytea"), ("failures", "bytea")];

impl Blocks {
    /// How many parameters the rows take.
    pub(super) const fn parameters(&self) -> usize {
        PLACES.len() + self.columns.len() + OF_JOBS.len()
    }
}

/// Inserts rows by the parameters from the number `from` on. Where `which` is given, that is a condition on the rows
/// `u`, with the number of a claim as one more column.
pub(super) fn insert(blocks: &Blocks, from: usize, which: Option<&str>) -> String {
    let jobs: Vec<String> = (from + PLACES.len() + blocks.columns.len()..)
        .zip(OF_JOBS)
        .map(|(place, (_, kind))| format!("(${place}::{kind}[])[u.first:u.last]"))
        .collect();
    let columns = names(blocks.columns);
    let rows = unnested_from(from, &[&PLACES[..], blocks.columns].concat());
    let rows = match which {
        None => rows,
        // The parameter behind those of the jobs.
        Some(which) => {
            let more = format!("unnest(${}::bigint[]) AS no, ", from + blocks.parameters());
            format!("{} WHERE {which}", rows.replacen("SELECT ", &format!("SELECT {more}"), 1))
        }
    };
    format!(
        "INSERT INTO {} ({columns}, {}) SELECT {columns}, {} FROM {rows}",
        blocks.table,
        names(&OF_JOBS),
        jobs.join(", ")
    )
}

const CLAIMS: Blocks = Blocks {
    table: "claims",
    columns: &[
        ("source", "bigint"),
        ("due_us", "bigint"),
        ("alive_us", "bigint"),
        ("lease_us", "bigint"),
        ("expires_us", "bigint"),
        ("queue", "integer"),
        ("priority", "integer"),
        ("version", "smallint"),
        ("gone", "bytea"),
        ("lane", "bytea"),
        ("state", "smallint"),
        ("jobs", "smallint"),
    ],
};
/// How many parameters claims take.
pub(super) const CLAIM_PARAMETERS: usize = CLAIMS.parameters();

/// Inserts claims, and returns their numbers and first jobs.
pub(super) fn insert_claims(from: usize, which: Option<&str>) -> String {
    format!("{} RETURNING no, ids[1] AS first", insert(&CLAIMS, from, which))
}

statements! {
    /// Claims of jobs that are locked in `live`.
    CLAIM_BLOCKS = format!(
        "WITH gone AS (DELETE FROM live WHERE ctid = ANY (${tids}::tid[])), counted AS ({}) {}",
        counted_from(CLAIM_PARAMETERS + 2), insert_claims(1, None), tids = CLAIM_PARAMETERS + 1
    );
    /// Claims of another store.
    ARRIVE_ACTIVE = format!("WITH counted AS ({}) {}", counted_from(CLAIM_PARAMETERS + 1), insert_claims(1, None));
}
