//! A workflow as a caller creates it, in either of its forms: a `type` with `steps` or `jobs`, each of which may be a
//! workflow itself; or `steps` with an `id` and `depends_on`.

use super::document::{document, with_defaults};
use super::state::{Callback, Kind, Node, Status, WorkflowState};
use crate::json::{Members, items, text};
use crate::{Invalid, Limits, submission};
use redrive_engine::Engine;
use redrive_policy::{Moment, Problem};
use redrive_store::RunId;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// How large a workflow may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkflowLimits {
    /// How many jobs it may have, callbacks included.
    pub jobs: usize,
    /// How many workflows may be around a job.
    pub depth: usize,
    /// The limits of each job.
    pub of_jobs: Limits,
}

impl WorkflowLimits {
    /// How many jobs a workflow may have where nobody has set another limit.
    pub const JOBS: usize = 1_000;
    /// How many workflows may be around a job.
    const DEPTH: usize = 8;

    /// At most so many jobs, each within these limits.
    #[must_use]
    pub const fn new(jobs: usize, of_jobs: Limits) -> Self {
        Self { jobs, depth: Self::DEPTH, of_jobs }
    }
}

/// A workflow to be started.
#[derive(Debug)]
pub struct WorkflowRequest {
    /// Its id; absent, one is made.
    pub id: Option<RunId>,
    /// What it is started with.
    pub state: WorkflowState,
}

const TYPES: [(&str, Kind, &str); 3] =
    [("chain", Kind::Chain, "steps"), ("group", Kind::Group, "jobs"), ("batch", Kind::Batch, "jobs")];
const GRAPH_MEMBERS: [&str; 4] = ["id", "name", "steps", "options"];

impl WorkflowRequest {
    /// Reads a workflow that is created at `now`.
    ///
    /// # Errors
    /// Everything that is wrong with it, and with each of its jobs.
    pub fn read(top: &Members<'_>, engine: &Engine, limits: WorkflowLimits, now: Moment) -> Result<Self, Invalid> {
        let mut reader = Reader { engine, limits, now, nodes: Vec::new(), jobs: 0, invalid: Invalid::default() };
        let problems = &mut reader.invalid.request;
        let name = top.text("name", problems).map(Cow::into_owned);
        const ID: &str = "a UUID of version 7 in lower case, with hyphens";
        let id = top.read("id", ID, problems, |value| text(value)?.parse().ok());
        if top.has("type") {
            reader.typed(top, "", 0, 1);
        } else {
            top.only(&GRAPH_MEMBERS, problems);
            reader.graph(top);
        }
        let Reader { nodes, invalid, .. } = reader;
        if invalid.is_empty() {
            Ok(Self { id, state: WorkflowState { name, nodes, cancelled_us: None } })
        } else {
            Err(invalid)
        }
    }
}

struct Reader<'e> {
    engine: &'e Engine,
    limits: WorkflowLimits,
    now: Moment,
    nodes: Vec<Node>,
    jobs: usize,
    invalid: Invalid,
}

impl Reader<'_> {
    /// A workflow with a `type`.
    fn typed(&mut self, members: &Members<'_>, path: &str, parent: u32, depth: usize) -> Option<u32> {
        let mut problems = Vec::new();
        let kind = members.read("type", "\"chain\", \"group\" or \"batch\"", &mut problems, |value| {
            let name = text(value)?;
            TYPES.iter().find(|(known, ..)| *known == name)
        });
        if let Some((_, kind, parts)) = kind {
            let mut known = vec!["type", "id", "name", parts];
            known.extend((*kind == Kind::Batch).then_some("callbacks"));
            members.only(&known, &mut problems);
        }
        self.add(path, problems);
        let (_, kind, parts) = kind?;
        if depth > self.limits.depth {
            self.problem(
                path,
                format!("{depth} workflows inside of each other; at most {} are allowed", self.limits.depth),
            );
            return None;
        }
        let index = self.push(*kind, parent);
        let list = self.list(members, parts, path)?;
        for (number, part) in list.into_iter().enumerate() {
            let path = format!("{path}/{parts}/{number}");
            let node = self.part(part, &path, index, depth);
            self.nodes[index as usize].parts.extend(node);
        }
        if *kind == Kind::Batch {
            self.callbacks(members, path, index);
        }
        Some(index)
    }

    /// A part of a workflow: a job, or a workflow.
    fn part(&mut self, value: &RawValue, path: &str, parent: u32, depth: usize) -> Option<u32> {
        let members = match Members::parse(value.get()) {
            Ok(members) => members,
            Err(error) => {
                self.problem(path, format!("not a job or a workflow: {error}"));
                return None;
            }
        };
        let named = members.get("type").and_then(text);
        let nested = named.and_then(|name| TYPES.iter().find(|(known, ..)| *known == name));
        match nested {
            Some((.., parts)) if members.has(parts) => self.typed(&members, path, parent, depth + 1),
            _ => self.job(&members, path, parent),
        }
    }

    /// A job, read as if it were enqueued now.
    fn job(&mut self, members: &Members<'_>, path: &str, parent: u32) -> Option<u32> {
        self.jobs += 1;
        if self.jobs == self.limits.jobs + 1 {
            self.problem(
                "",
                format!("more than {} jobs; make several workflows of it (limits.workflow)", self.limits.jobs),
            );
        }
        if self.jobs > self.limits.jobs {
            return None;
        }
        let document = document(members);
        let text = String::from_utf8(document).ok().and_then(|text| RawValue::from_string(text).ok())?;
        let own = Members::parse(text.get()).unwrap_or_default();
        let read = submission(self.engine, &own, None, &self.limits.of_jobs, self.now);
        match read {
            Ok(submission) => {
                let index = self.push(Kind::Job, parent);
                let node = &mut self.nodes[index as usize];
                node.job_type = submission.kind.to_string();
                node.id = members.get("id").and_then(self::text).map(Cow::into_owned);
                node.job = Some(text);
                Some(index)
            }
            Err(invalid) => {
                self.invalid.add(path, invalid);
                None
            }
        }
    }

    fn callbacks(&mut self, members: &Members<'_>, path: &str, batch: u32) {
        const ALLOWED: &str = "an object with on_complete, on_success or on_failure";
        let mut problems = Vec::new();
        let parse = |value: &'_ RawValue| Members::parse(value.get()).ok().map(|_| ());
        members.read("callbacks", ALLOWED, &mut problems, parse);
        let text = members.get("callbacks").map_or("{}", RawValue::get);
        let callbacks = Members::parse(text).unwrap_or_default();
        let known = Callback::ALL.map(Callback::name);
        callbacks.only(&known, &mut problems);
        if problems.is_empty() && !known.iter().any(|name| callbacks.has(name)) {
            problems.push(Problem::with_message(
                "/callbacks",
                format!("missing; {ALLOWED} is required: a batch without callbacks is a group"),
            ));
        }
        self.add(path, problems);
        for callback in Callback::ALL {
            let Some(value) = callbacks.get(callback.name()) else { continue };
            let path = format!("{path}/callbacks/{}", callback.name());
            let node = match Members::parse(value.get()) {
                Ok(members) => self.job(&members, &path, batch),
                Err(error) => {
                    self.problem(&path, format!("not a job: {error}"));
                    None
                }
            };
            if let Some(node) = node {
                self.nodes[node as usize].callback = Some(callback);
                self.nodes[batch as usize].parts.push(node);
            }
        }
    }

    /// Steps with `depends_on`. Steps named after callbacks are the callbacks of a batch: this is how client libraries
    /// without batches write them.
    fn graph(&mut self, top: &Members<'_>) {
        let defaults = top.get("options").map(|options| options.get().to_owned());
        let graph = self.push(Kind::Graph, 0);
        let Some(list) = self.list(top, "steps", "") else { return };
        let mut steps: Vec<(String, Vec<String>, Option<Callback>, u32)> = Vec::new();
        let mut ids = HashSet::new();
        for (number, value) in list.into_iter().enumerate() {
            let path = format!("/steps/{number}");
            let Ok(members) = Members::parse(value.get()) else {
                self.problem(&path, "not a step: allowed is an object with id, type, args and depends_on".to_owned());
                continue;
            };
            let mut problems = Vec::new();
            let id = members.text("id", &mut problems).map_or_else(|| number.to_string(), Cow::into_owned);
            let after = members.texts("depends_on", &mut problems).unwrap_or_default();
            if !ids.insert(id.clone()) {
                problems.push(Problem::new("/id", format!("\"{id}\""), "an id that no other step has"));
            }
            self.add(&path, problems);
            let merged = with_defaults(&members, defaults.as_deref());
            let job = match Members::parse(&merged) {
                Ok(members) => self.job(&members, &path, graph),
                Err(_) => None,
            };
            let Some(node) = job else { continue };
            let callback = Callback::ALL.into_iter().find(|callback| callback.name() == id.replace('-', "_"));
            self.nodes[node as usize].id = Some(id.clone());
            steps.push((id, after.into_iter().map(Cow::into_owned).collect(), callback, node));
        }
        self.link(graph, &steps);
    }

    fn link(&mut self, graph: u32, steps: &[(String, Vec<String>, Option<Callback>, u32)]) {
        let plain = steps.iter().filter(|(.., callback, _)| callback.is_none()).count();
        // A callback waits for all others, and for nothing else.
        let is_batch = plain > 0
            && plain < steps.len()
            && steps.iter().all(
                |(_, after, callback, _)| if callback.is_some() { after.len() == plain } else { after.is_empty() },
            );
        let by_id: HashMap<&str, u32> = steps.iter().rev().map(|(id, .., node)| (&**id, *node)).collect();
        for (number, (_, after, callback, node)) in steps.iter().enumerate() {
            let mut nodes = Vec::new();
            for (place, name) in after.iter().enumerate() {
                match by_id.get(&**name) {
                    Some(before) => nodes.push(*before),
                    None => self.problem(
                        &format!("/steps/{number}/depends_on/{place}"),
                        format!("found \"{name}\"; allowed is the id of a step of this workflow"),
                    ),
                }
            }
            self.nodes[graph as usize].parts.push(*node);
            match callback {
                Some(callback) if is_batch => self.nodes[*node as usize].callback = Some(*callback),
                _ => self.nodes[*node as usize].after = nodes,
            }
        }
        if is_batch {
            self.nodes[graph as usize].kind = Kind::Batch;
        } else if let Some(around) = circle(&self.nodes, graph) {
            let name = self.nodes[around as usize].id.clone().unwrap_or_default();
            self.problem(
                "/steps",
                format!("the step \"{name}\" depends on itself, by way of others; remove one depends_on of the circle"),
            );
        }
        self.name_kind(graph);
    }

    /// A graph that is a chain or a group is stored as such, so that clients that expect a type are answered one.
    fn name_kind(&mut self, graph: u32) {
        let parts = self.nodes[graph as usize].parts.clone();
        if self.nodes[graph as usize].kind != Kind::Graph || parts.is_empty() {
            return;
        }
        let after = |part: &u32| self.nodes[*part as usize].after.clone();
        let is_group = parts.iter().all(|part| after(part).is_empty());
        let is_chain = after(&parts[0]).is_empty() && parts.windows(2).all(|pair| after(&pair[1]) == [pair[0]]);
        let kind = if is_group && parts.len() > 1 {
            Kind::Group
        } else if is_chain {
            Kind::Chain
        } else {
            return;
        };
        self.nodes[graph as usize].kind = kind;
        parts.iter().for_each(|part| self.nodes[*part as usize].after.clear());
    }

    fn list<'a>(&mut self, members: &Members<'a>, key: &str, path: &str) -> Option<Vec<&'a RawValue>> {
        const ALLOWED: &str = "an array of at least one job";
        let mut problems = Vec::new();
        let list = members.read(key, ALLOWED, &mut problems, |value| items(value).filter(|items| !items.is_empty()));
        if list.is_none() && problems.is_empty() {
            members.wrong(key, ALLOWED, &mut problems);
        }
        self.add(path, problems);
        list
    }

    fn push(&mut self, kind: Kind, parent: u32) -> u32 {
        self.nodes.push(Node {
            kind,
            status: Status::Waiting,
            parent,
            parts: Vec::new(),
            after: Vec::new(),
            id: None,
            callback: None,
            job_type: String::new(),
            job: None,
            enqueued_us: None,
            result: None,
            forgotten: 0,
            error: None,
        });
        // Their number is limited to far less.
        (self.nodes.len() - 1) as u32
    }

    fn problem(&mut self, path: &str, message: String) {
        self.invalid.request.push(Problem::with_message(path, message));
    }

    fn add(&mut self, path: &str, problems: Vec<Problem>) {
        self.invalid.add(path, Invalid { request: problems, ..Invalid::default() });
    }
}

/// A node of a graph that depends on itself. Each dependency is looked at once, however they are written.
fn circle(nodes: &[Node], graph: u32) -> Option<u32> {
    let parts = &nodes[graph as usize].parts;
    let mut missing: HashMap<u32, usize> = HashMap::new();
    let mut behind: HashMap<u32, Vec<u32>> = HashMap::new();
    for part in parts {
        let after = &nodes[*part as usize].after;
        missing.insert(*part, after.len());
        after.iter().for_each(|before| behind.entry(*before).or_default().push(*part));
    }
    let mut ready: Vec<u32> = parts.iter().copied().filter(|part| missing.get(part) == Some(&0)).collect();
    while let Some(part) = ready.pop() {
        for next in behind.remove(&part).unwrap_or_default() {
            let Some(left) = missing.get_mut(&next) else { continue };
            *left -= 1;
            if *left == 0 {
                ready.push(next);
            }
        }
    }
    parts.iter().copied().find(|part| missing.get(part).is_some_and(|left| *left > 0))
}
