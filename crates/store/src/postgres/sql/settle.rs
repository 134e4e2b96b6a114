//! The statement that writes what became of runs. Each claim is written on the condition that no other transaction has
//! written it meanwhile, and what becomes of its jobs is written if and only if that holds.

use super::{WAITING, blocks, ended, unnested_from, waiting_columns};
use crate::postgres::run::insert_of_claims;
use std::sync::OnceLock;

/// What the statement has to do. What is not needed is left out of it: each part costs, even with nothing to do.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::postgres) struct Shape {
    /// Claims that all jobs leave.
    pub(in crate::postgres) whole: bool,
    /// Claims that some jobs leave.
    pub(in crate::postgres) part: bool,
    /// Jobs that have ended.
    pub(in crate::postgres) ended: bool,
    /// Jobs that wait again.
    pub(in crate::postgres) back: bool,
    /// Jobs whose leases were extended, in new claims.
    pub(in crate::postgres) again: bool,
    /// Messages to the runs of jobs.
    pub(in crate::postgres) told: bool,
}

/// The statement. It returns the numbers of the claims that were written, and for each new claim its number and its
/// first job.
pub(in crate::postgres) fn settle(shape: Shape) -> &'static str {
    static TEXTS: [OnceLock<String>; 64] = [const { OnceLock::new() }; 64];
    let Shape { whole, part, ended, back, again, told } = shape;
    let flags = [whole, part, ended, back, again, told];
    let place = flags.iter().fold(0, |sum, flag| 2 * sum + usize::from(*flag));
    TEXTS[place].get_or_init(|| text(shape))
}

fn text(shape: Shape) -> String {
    let mut from = 1;
    let mut parts = Vec::new();
    let (mut written, mut counted) = (Vec::new(), Vec::new());
    const GUARD: &str = "c.source = u.source AND c.no = u.no AND c.revision = u.revision RETURNING c.no";
    const CLAIM: [(&str, &str); 3] = [("source", "bigint"), ("no", "bigint"), ("revision", "integer")];
    if shape.whole {
        let claims = unnested_from(from, &CLAIM);
        parts.push(format!("whole AS (DELETE FROM claims c USING {claims} WHERE {GUARD})"));
        written.push("SELECT no FROM whole");
        from += 3;
    }
    if shape.part {
        let claims = unnested_from(from, &[&CLAIM[..], &[("gone", "bytea")]].concat());
        let change = "UPDATE claims c SET revision = c.revision + 1, gone = u.gone FROM";
        parts.push(format!("part AS ({change} {claims} WHERE {GUARD})"));
        written.push("SELECT no FROM part");
        from += 4;
    }
    parts.push(format!("written AS MATERIALIZED ({})", written.join(" UNION ALL ")));
    const WRITTEN: &str = "u.no = ANY (ARRAY(SELECT no FROM written))";
    if shape.ended {
        let state = "CASE WHEN dead THEN 8::smallint ELSE state END AS state";
        parts.push(format!("over AS ({} RETURNING queue, {state}, jobs)", ended::insert(from, Some(WRITTEN))));
        counted.push("SELECT queue, state, jobs FROM over");
        from += ended::PARAMETERS + 1;
    }
    if shape.back {
        let all = [&WAITING[..], &[("no", "bigint")]].concat();
        parts.push(format!(
            "back AS (INSERT INTO live ({columns}) SELECT {columns} FROM {jobs} WHERE {WRITTEN} \
               RETURNING queue, state, 1::smallint AS jobs)",
            columns = waiting_columns(),
            jobs = unnested_from(from, &all)
        ));
        counted.push("SELECT queue, state, jobs FROM back");
        from += all.len();
    }
    if !counted.is_empty() {
        parts.push(format!(
            "counted AS (INSERT INTO counts (queue, was, state, jobs) \
               SELECT queue, 3, state, sum(jobs) FROM ({}) moved GROUP BY queue, state)",
            counted.join(" UNION ALL ")
        ));
    }
    let mut answer = "SELECT no, NULL::uuid FROM written".to_owned();
    if shape.again {
        parts.push(format!("again AS ({})", blocks::insert_claims(from, Some(WRITTEN))));
        answer.push_str(" UNION ALL SELECT no, first FROM again");
        from += blocks::CLAIM_PARAMETERS + 1;
    }
    if shape.told {
        parts.push(format!("told AS ({})", insert_of_claims(from, WRITTEN)));
    }
    format!("WITH {} {answer}", parts.join(", "))
}
