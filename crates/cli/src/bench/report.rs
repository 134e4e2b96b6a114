//! The figures of a run, for people and for programs.

use super::phase::{Measured, Plan};
use crate::output;
use serde_json::{Value, json};

impl Measured {
    fn per_second(&self) -> f64 {
        self.jobs as f64 / self.took.as_secs_f64().max(1e-9)
    }

    fn to_json(&self, plan: &Plan) -> Value {
        json!({
            "phase": self.phase.letter(),
            "title": self.phase.title(plan),
            "jobs": self.jobs,
            "runs": self.runs,
            "seconds": rounded(self.took.as_secs_f64(), 1e3),
            "jobs_per_second": self.per_second().round(),
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
            "max_ms": self.max_ms,
            "client_cpu_seconds": self.process_cpu.map(|cpu| cpu.as_secs_f64()),
        })
    }
}

fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

pub(super) fn to_json(plan: &Plan, measured: &[Measured], health: &Value) -> Value {
    let phases: Vec<Value> = measured.iter().map(|measured| measured.to_json(plan)).collect();
    json!({ "server": health, "phases": phases })
}

pub(super) fn table(plan: &Plan, measured: &[Measured]) -> String {
    let head = ["PHASE", "JOBS", "JOBS/S", "P50 MS", "P99 MS", "MAX MS", "CLIENT CPU"].map(str::to_owned).to_vec();
    let row = |measured: &Measured| {
        let cpu = measured.process_cpu.map_or_else(String::new, |cpu| {
            format!("{:.0} %", 100.0 * cpu.as_secs_f64() / measured.took.as_secs_f64().max(1e-9))
        });
        vec![
            format!("{:2}  {}", measured.phase.letter(), measured.phase.title(plan)),
            measured.jobs.to_string(),
            format!("{:.0}", measured.per_second()),
            format!("{:.2}", measured.p50_ms),
            format!("{:.2}", measured.p99_ms),
            format!("{:.1}", measured.max_ms),
            cpu,
        ]
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(measured.iter().map(row)).collect();
    format!(
        "{}\nTimes are those of requests; in phases c, d, w and g, from the request for jobs to the answer that they are settled.\n\
         All counts were verified: each job was completed once, after three runs in d and d1 and one in the others.\n",
        output::table(&rows)
    )
}
