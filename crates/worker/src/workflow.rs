//! Workflows to be started.

use crate::transport::job_document;
use crate::{ClientError, NewJob};
use serde_json::{Map, Value};

/// A workflow to be started: jobs with an order.
///
/// ```
/// use redrive_worker::{NewJob, Workflow};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // One after the other; the two in the middle at the same time.
/// let import = Workflow::chain()
///     .then(NewJob::new("data.extract", "orders")?)
///     .then(Workflow::group().with(NewJob::new("part.csv", ())?).with(NewJob::new("part.json", ())?))
///     .then(NewJob::new("data.load", ())?.queue("warehouse"))
///     .name("nightly import");
///
/// // All at once, and then jobs that depend on how it went.
/// let mails = Workflow::batch()
///     .with(NewJob::new("email.send", "ada@example.com")?)
///     .with(NewJob::new("email.send", "bob@example.com")?)
///     .on_success(NewJob::new("report.sent", ())?)
///     .on_failure(NewJob::new("report.failed", ())?);
///
/// // A graph: each step starts when those that it depends on have completed.
/// let build = Workflow::graph()
///     .step("compile", NewJob::new("build.compile", ())?)
///     .step("lint", NewJob::new("build.lint", ())?)
///     .step_after("publish", NewJob::new("build.publish", ())?, ["compile", "lint"]);
/// # drop((import, mails, build));
/// # Ok(())
/// # }
/// ```
///
/// The jobs of a workflow get ids of their own, and have no idempotency keys: a job that has one of them is refused.
#[derive(Clone, Debug)]
#[must_use]
pub struct Workflow<K> {
    name: Option<String>,
    id: Option<String>,
    kind: K,
}

/// One step after the other. A step finds the results of all steps before it in `parent_results`. One that fails for
/// good ends the chain.
#[derive(Clone, Debug, Default)]
pub struct Chain(Vec<Step>);

/// All jobs at the same time. The others go on when one fails.
#[derive(Clone, Debug, Default)]
pub struct Group(Vec<Step>);

/// All jobs at the same time, and then callbacks, which find the results of all jobs in `parent_results`.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    jobs: Vec<Step>,
    callbacks: Vec<(&'static str, NewJob)>,
}

/// Steps with names, each of which starts when those that it depends on have completed.
#[derive(Clone, Debug, Default)]
pub struct Graph(Vec<(String, NewJob, Vec<String>)>);

/// A part of a workflow: a job, or a workflow other than a graph.
#[derive(Clone, Debug)]
pub struct Step(Part);

#[derive(Clone, Debug)]
enum Part {
    Job(Box<NewJob>),
    Workflow(Document),
}

/// The members of a workflow, or why there are none.
type Document = Result<Map<String, Value>, ClientError>;

impl<K> Workflow<K> {
    const fn of(kind: K) -> Self {
        Self { name: None, id: None, kind }
    }

    /// What people call it.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The id: a UUID of version 7 in lower case. By default one is generated. A second workflow with the same id is
    /// refused, so that a start whose answer was lost can be repeated.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }
}

impl Workflow<Chain> {
    /// One step after the other.
    pub fn chain() -> Self {
        Self::of(Chain::default())
    }

    /// One more step: a job, or a workflow.
    pub fn then(mut self, step: impl Into<Step>) -> Self {
        self.kind.0.push(step.into());
        self
    }
}

impl Workflow<Group> {
    /// All jobs at the same time.
    pub fn group() -> Self {
        Self::of(Group::default())
    }

    /// One more job, or a workflow.
    pub fn with(mut self, job: impl Into<Step>) -> Self {
        self.kind.0.push(job.into());
        self
    }
}

impl Workflow<Batch> {
    /// All jobs at the same time, and then at least one callback.
    pub fn batch() -> Self {
        Self::of(Batch::default())
    }

    /// One more job, or a workflow.
    pub fn with(mut self, job: impl Into<Step>) -> Self {
        self.kind.jobs.push(job.into());
        self
    }

    /// Enqueued when all have ended, in any case.
    pub fn on_complete(self, job: NewJob) -> Self {
        self.callback("on_complete", job)
    }

    /// Enqueued when all have completed.
    pub fn on_success(self, job: NewJob) -> Self {
        self.callback("on_success", job)
    }

    /// Enqueued when all have ended, and not all have completed.
    pub fn on_failure(self, job: NewJob) -> Self {
        self.callback("on_failure", job)
    }

    fn callback(mut self, when: &'static str, job: NewJob) -> Self {
        self.kind.callbacks.retain(|(other, _)| *other != when);
        self.kind.callbacks.push((when, job));
        self
    }
}

impl Workflow<Graph> {
    /// Steps that depend on others.
    pub fn graph() -> Self {
        Self::of(Graph::default())
    }

    /// A step that starts at once, with a name for others to depend on.
    pub fn step(self, name: impl Into<String>, job: NewJob) -> Self {
        self.step_after(name, job, std::iter::empty::<String>())
    }

    /// A step that starts when these have completed. It finds their results in `parent_results`.
    pub fn step_after(
        mut self,
        name: impl Into<String>,
        job: NewJob,
        after: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.kind.0.push((name.into(), job, after.into_iter().map(Into::into).collect()));
        self
    }
}

/// The kinds of workflows: [`Chain`], [`Group`], [`Batch`] and [`Graph`].
pub trait WorkflowKind: sealed::Members {}

impl<K: sealed::Members> WorkflowKind for K {}

pub(crate) mod sealed {
    use super::Document;

    /// What makes a kind of workflow.
    pub trait Members {
        /// The members of its document.
        fn members(&self) -> Document;
    }
}

use sealed::Members;

impl Members for Chain {
    fn members(&self) -> Document {
        typed("chain", "steps", &self.0)
    }
}

impl Members for Group {
    fn members(&self) -> Document {
        typed("group", "jobs", &self.0)
    }
}

impl Members for Batch {
    fn members(&self) -> Document {
        let mut members = typed("batch", "jobs", &self.jobs)?;
        let callback = |(when, job): &(&'static str, NewJob)| Ok(((*when).to_owned(), child(job)?.into()));
        let callbacks: Map<String, Value> = self.callbacks.iter().map(callback).collect::<Result<_, ClientError>>()?;
        members.insert("callbacks".to_owned(), callbacks.into());
        Ok(members)
    }
}

impl Members for Graph {
    fn members(&self) -> Document {
        let step = |(name, job, after): &(String, NewJob, Vec<String>)| {
            let mut members = child(job)?;
            members.insert("id".to_owned(), name.as_str().into());
            if !after.is_empty() {
                members.insert("depends_on".to_owned(), after.clone().into());
            }
            Ok(Value::Object(members))
        };
        let steps = self.0.iter().map(step).collect::<Result<Vec<Value>, ClientError>>()?;
        Ok(Map::from_iter([("steps".to_owned(), steps.into())]))
    }
}

fn typed(kind: &str, parts: &str, steps: &[Step]) -> Document {
    let steps = steps.iter().map(Step::document).collect::<Result<Vec<Value>, ClientError>>()?;
    Ok(Map::from_iter([("type".to_owned(), kind.into()), (parts.to_owned(), steps.into())]))
}

/// A job of a workflow. The workflow gives it its id, and enqueues it once.
fn child(job: &NewJob) -> Document {
    for (set, what) in [(job.id.is_some(), "id"), (job.idempotency_key.is_some(), "idempotency key")] {
        if set {
            let kind = &job.kind;
            let message = format!("the job {kind} of a workflow has an {what}; leave it out: a workflow makes its own");
            return Err(ClientError::Invalid(message));
        }
    }
    match serde_json::to_value(job_document(job)).map_err(ClientError::unwritable)? {
        Value::Object(members) => Ok(members),
        other => Err(ClientError::Invalid(format!("a job is an object, not {other}"))),
    }
}

impl Step {
    fn document(&self) -> Result<Value, ClientError> {
        match &self.0 {
            Part::Job(job) => child(job).map(Value::Object),
            Part::Workflow(document) => document.clone().map(Value::Object),
        }
    }
}

impl From<NewJob> for Step {
    fn from(job: NewJob) -> Self {
        Self(Part::Job(Box::new(job)))
    }
}

/// A chain, a group or a batch inside of another workflow. Graphs have steps that are jobs, and cannot be inside of
/// others.
macro_rules! nested {
    ($($kind:ty),*) => {$(
        impl From<Workflow<$kind>> for Step {
            fn from(workflow: Workflow<$kind>) -> Self {
                Self(Part::Workflow(workflow.members()))
            }
        }
    )*};
}
nested!(Chain, Group, Batch);

impl<K: Members> Workflow<K> {
    fn members(&self) -> Document {
        let mut members = self.kind.members()?;
        for (key, value) in [("name", &self.name), ("id", &self.id)] {
            members.extend(value.as_deref().map(|value| (key.to_owned(), value.into())));
        }
        Ok(members)
    }

    /// The workflow as a server takes it.
    pub(crate) fn document(&self) -> Result<Value, ClientError> {
        self.members().map(Value::Object)
    }
}

impl FromIterator<NewJob> for Workflow<Chain> {
    fn from_iter<I: IntoIterator<Item = NewJob>>(jobs: I) -> Self {
        jobs.into_iter().fold(Self::chain(), Self::then)
    }
}

impl FromIterator<NewJob> for Workflow<Group> {
    fn from_iter<I: IntoIterator<Item = NewJob>>(jobs: I) -> Self {
        jobs.into_iter().fold(Self::group(), Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(kind: &str) -> NewJob {
        NewJob::new(kind, ()).unwrap()
    }

    #[test]
    fn each_kind_is_written_as_a_server_takes_it() {
        let inner = Workflow::group().with(job("b")).with(Workflow::chain().then(job("c")));
        let chain = Workflow::chain().then(job("a").queue("q")).then(inner).name("n");
        let expected = json!({
            "type": "chain", "name": "n",
            "steps": [
                { "type": "a", "args": [], "options": { "queue": "q" } },
                { "type": "group", "jobs": [
                    { "type": "b", "args": [] },
                    { "type": "chain", "steps": [{ "type": "c", "args": [] }] },
                ] },
            ],
        });
        assert_eq!(chain.document().unwrap(), expected);
        let batch = Workflow::batch().with(job("a")).on_success(job("x")).on_success(job("b")).on_complete(job("c"));
        let callbacks =
            json!({ "on_success": { "type": "b", "args": [] }, "on_complete": { "type": "c", "args": [] } });
        assert_eq!(batch.document().unwrap()["callbacks"], callbacks, "the last of each kind counts");
        let graph = Workflow::graph().step("one", job("a")).step_after("two", job("b"), ["one"]);
        let steps = json!([
            { "id": "one", "type": "a", "args": [] },
            { "id": "two", "type": "b", "args": [], "depends_on": ["one"] },
        ]);
        assert_eq!(graph.document().unwrap(), json!({ "steps": steps }));
        let collected: Workflow<Group> = ["a", "b"].map(job).into_iter().collect();
        assert_eq!(collected.document().unwrap()["jobs"][1]["type"], "b");
    }

    #[test]
    fn jobs_of_workflows_have_no_ids_and_keys_of_their_own() {
        let keyed = Workflow::chain().then(Workflow::group().with(job("a.b").idempotency_key("k")));
        let error = keyed.document().unwrap_err().to_string();
        assert!(error.contains("the job a.b of a workflow has an idempotency key"), "{error}");
        let graph = Workflow::graph().step("s", job("a.b").id("01890f5e-6f00-7000-8000-000000000001"));
        assert!(graph.document().is_err());
    }
}
