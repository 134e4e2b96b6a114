//! Workflows and schedules as the clients of these tests make them, and what has to become of them.

use serde_json::{Value, json};
use std::time::Duration;

/// Where all jobs of this test are.
pub(crate) const QUEUE: &str = "runs";

/// When a step is enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// When all steps before it have completed.
    Completed,
    /// When all steps before it are over.
    Over,
    /// When all steps before it are over, and one of them has failed.
    Failed,
}

/// One step of a workflow.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) when: When,
    /// The steps before it.
    pub(crate) after: Vec<usize>,
    /// What it is given as the results of others: numbers stand for the results of these steps.
    pub(crate) given: Value,
    /// How many of its attempts fail before one succeeds.
    pub(crate) failing: u32,
    /// Whether it fails for good, until it is redriven.
    pub(crate) doomed: bool,
}

/// The shape of a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Chain,
    GroupInChain,
    Batch,
    Graph,
}

/// A workflow.
#[derive(Clone, Debug)]
pub(crate) struct WorkflowPlan {
    pub(crate) shape: Shape,
    pub(crate) steps: Vec<Step>,
}

impl WorkflowPlan {
    pub(crate) fn random(random: &mut fastrand::Rng) -> Self {
        let shapes = [Shape::Chain, Shape::GroupInChain, Shape::Batch, Shape::Graph];
        let shape = shapes[random.usize(..shapes.len())];
        let mut steps = match shape {
            Shape::Chain => (0..random.usize(2..6)).map(|index| step((0..index).collect(), Value::Null)).collect(),
            Shape::GroupInChain => {
                let parts: Vec<usize> = (1..random.usize(3..6)).collect();
                let mut steps = vec![step(Vec::new(), Value::Null)];
                steps.extend(parts.iter().map(|_| step(vec![0], json!([0]))));
                let before = (0..=parts.len()).collect();
                steps.push(step(before, json!([0, parts])));
                steps
            }
            Shape::Batch => {
                let jobs: Vec<usize> = (0..random.usize(2..6)).collect();
                let callback = |when| Step { when, ..step(jobs.clone(), json!(jobs)) };
                let mut steps: Vec<Step> = jobs.iter().map(|_| step(Vec::new(), Value::Null)).collect();
                steps.extend([When::Over, When::Completed, When::Failed].map(callback));
                steps
            }
            Shape::Graph => [vec![], vec![0], vec![0], vec![2, 1], vec![1], vec![3, 4]]
                .map(|after| step(after, Value::Null))
                .to_vec(),
        };
        for step in &mut steps {
            if step.given.is_null() && !step.after.is_empty() {
                step.given = json!(step.after);
            }
            step.failing = if random.u8(..4) == 0 { random.u32(1..3) } else { 0 };
            // Callbacks succeed, so that a batch is over when they are.
            step.doomed = random.u8(..12) == 0 && (shape != Shape::Batch || step.after.is_empty());
        }
        Self { shape, steps }
    }

    /// The document with which it is created.
    pub(crate) fn document(&self, id: &str) -> Value {
        let jobs: Vec<Value> = (0..self.steps.len()).map(|index| job(&json!([id, index]))).collect();
        let last = jobs.len() - 1;
        match self.shape {
            Shape::Chain => json!({ "id": id, "type": "chain", "steps": jobs }),
            Shape::GroupInChain => {
                let group = json!({ "type": "group", "jobs": jobs[1..last] });
                json!({ "id": id, "type": "chain", "steps": [jobs[0], group, jobs[last]] })
            }
            Shape::Batch => {
                let callbacks =
                    json!({ "on_complete": jobs[last - 2], "on_success": jobs[last - 1], "on_failure": jobs[last] });
                json!({ "id": id, "type": "batch", "jobs": jobs[..last - 2], "callbacks": callbacks })
            }
            Shape::Graph => {
                let named = |(index, mut job): (usize, Value)| {
                    job["id"] = format!("step-{index}").into();
                    let after = self.steps[index].after.iter().map(|before| format!("step-{before}"));
                    job["depends_on"] = after.collect::<Vec<_>>().into();
                    job
                };
                json!({ "id": id, "steps": jobs.into_iter().enumerate().map(named).collect::<Vec<_>>() })
            }
        }
    }

    /// Whether a step is enqueued at all, if nobody cancels the workflow.
    pub(crate) fn is_enqueued(&self, index: usize) -> bool {
        let step = &self.steps[index];
        let completed = || step.after.iter().all(|before| self.completes(*before));
        match step.when {
            When::Completed => completed(),
            When::Over => true,
            When::Failed => !completed(),
        }
    }

    /// Whether a step completes.
    pub(crate) fn completes(&self, index: usize) -> bool {
        self.is_enqueued(index) && !self.steps[index].doomed
    }

    /// The state in which it ends, if nobody cancels it.
    pub(crate) fn end(&self) -> &'static str {
        let enqueued = |index: &usize| self.shape != Shape::Batch || self.is_enqueued(*index);
        let counts = |index: &usize| self.shape != Shape::Batch || !self.steps[*index].after.is_empty();
        let mut steps = (0..self.steps.len()).filter(enqueued).filter(counts);
        if steps.all(|index| self.completes(index)) { "completed" } else { "failed" }
    }

    /// What a step is given.
    pub(crate) fn given(&self, index: usize) -> Value {
        self.filled(&self.steps[index].given)
    }

    fn filled(&self, given: &Value) -> Value {
        match given {
            Value::Array(parts) => parts.iter().map(|part| self.filled(part)).collect(),
            Value::Number(number) => {
                let step = number.as_u64().and_then(|number| usize::try_from(number).ok()).expect("a step");
                if self.completes(step) { result(step) } else { Value::Null }
            }
            other => other.clone(),
        }
    }
}

fn step(after: Vec<usize>, given: Value) -> Step {
    Step { when: When::Completed, after, given, failing: 0, doomed: false }
}

/// What a step returns.
pub(crate) fn result(step: usize) -> Value {
    json!({ "step": step })
}

/// The error that no retry follows.
pub(crate) const FATAL: &str = "planned.fatal";

/// A job with so many attempts that lost leases do not use them up.
fn job(args: &Value) -> Value {
    json!({
        "type": "crash.step", "args": args,
        "options": { "queue": QUEUE, "retry": {
            "max_attempts": 100, "initial_interval": "PT0.01S", "max_interval": "PT0.1S",
            "non_retryable_errors": [FATAL], "on_exhaustion": "dead_letter",
        } },
    })
}

/// A schedule.
#[derive(Clone, Debug)]
pub(crate) struct SchedulePlan {
    pub(crate) name: String,
    pub(crate) expression: &'static str,
    pub(crate) period: Duration,
    /// Whether the job of a slot is enqueued only when the one before has ended.
    pub(crate) one_by_one: bool,
}

impl SchedulePlan {
    pub(crate) fn random(name: String, random: &mut fastrand::Rng) -> Self {
        let expressions = [("* * * * * *", 1), ("*/2 * * * * *", 2), ("@every 1s", 1)];
        let (expression, seconds) = expressions[random.usize(..expressions.len())];
        Self { name, expression, period: Duration::from_secs(seconds), one_by_one: random.bool() }
    }

    pub(crate) fn document(&self) -> Value {
        let mut document = job(&json!([self.name]));
        document["name"] = self.name.clone().into();
        document["cron"] = self.expression.into();
        document["overlap_policy"] = if self.one_by_one { "enqueue" } else { "allow" }.into();
        document
    }
}
