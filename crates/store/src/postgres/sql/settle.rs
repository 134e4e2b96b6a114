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
    /// Jobs that are in another state.
    pub(in crate::postgres) counted: bool,
}

/// The statement. It returns the numbers of the claims that were written, and for each new claim its number and its
/// first job.
pub(in crate::postgres) fn settle(shape: Shape) -> &'static str {
    static TEXTS: [OnceLock<String>; 128] = [const { OnceLock::new() }; 128];
    let Shape { whole, part, ended, back, again, told, counted } = shape;
    let flags = [whole, part, ended, back, again, told, counted];
    let place = flags.iter().fold(0, |sum, flag| 2 * sum + usize::from(*flag));
    TEXTS[place].get_or_init(|| text(shape))
}

fn text(shape: Shape) -> String {
    let mut from = 1;
    let mut parts = Vec::new();
    let mut written = Vec::new();
    const GUARD: &str = "c.source = u.source AND c.no = u.no AND c.revision = u.revision RETURNING c.no";
    const CLAIM: [(&str, &str); 3] = [("source", "bigint"), ("no", "bigint"), ("revision", "integer")];
    if shape.whole {
        let claims = unnested_from(from, &CLAIM);
        parts.push(format!("whole AS (DELETE FROM claims c USING {claims} WHERE {GUARD})"));
        written.push("SELECT no FROM whole");
        from += 3;
    }
    if shape.part {
        let claims = unnested_from(from, &[&CLAIM[..], &[("gone", "bytea"), ("jobs", "smallint")]].concat());
        let change = "UPDATE claims c SET revision = c.revision + 1, gone = u.gone, jobs = u.jobs FROM";
        parts.push(format!("part AS ({change} {claims} WHERE {GUARD})"));
        written.push("SELECT no FROM part");
        from += 5;
    }
    parts.push(format!("written AS MATERIALIZED ({})", written.join(" UNION ALL ")));
    const WRITTEN: &str = "u.no = ANY (ARRAY(SELECT no FROM written))";
    if shape.ended {
        parts.push(format!("over AS ({})", ended::insert(from, Some(WRITTEN))));
        from += ended::PARAMETERS + 1;
    }
    if shape.back {
        let all = [&WAITING[..], &[("no", "bigint")]].concat();
        parts.push(format!(
            "back AS (INSERT INTO live ({columns}) SELECT {columns} FROM {jobs} WHERE {WRITTEN})",
            columns = waiting_columns(),
            jobs = unnested_from(from, &all)
        ));
        from += all.len();
    }
    if shape.counted {
        let columns =
            [("no", "bigint"), ("queue", "integer"), ("was", "smallint"), ("state", "smallint"), ("jobs", "bigint")];
        parts.push(format!(
            "counted AS (INSERT INTO counts (queue, was, state, jobs) \
               SELECT queue, was, state, sum(jobs)::bigint FROM {} WHERE {WRITTEN} GROUP BY queue, was, state)",
            unnested_from(from, &columns)
        ));
        from += columns.len();
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
