//! What the jobs of a workflow are given of those before them.

use super::machine::Machine;
use super::state::{Kind, NodeError};
use crate::json::{Members, member, push_key};
use std::fmt::Write as _;

/// How many bytes of results a job is given at most.
const MOST: usize = 1 << 20;
/// How many bytes of results a step of a chain is given beside that of the step right before it: those of the latest
/// steps that fit. Without it, the bytes that a chain writes would grow with the square of its length.
const EARLIER: usize = 256 << 10;

/// The nodes whose results a node is given.
struct Parents {
    nodes: Vec<u32>,
    /// The chain whose steps they are. Of these, only the last one is due to the node.
    chain: Option<u32>,
}

impl Machine<'_> {
    /// The job of a node as it is enqueued: as the caller wrote it, with the results that it is given.
    ///
    /// # Errors
    /// It would be given too much.
    pub(super) fn document(&mut self, index: u32) -> Result<Vec<u8>, NodeError> {
        let text = self.state.node(index).job.as_ref().map_or("{}", |job| job.get());
        let mut out = vec![b'{'];
        // It was read when the workflow was created.
        let members = Members::parse(text).unwrap_or_default();
        let own = ["workflow_id", "parent_results", "parent_results_omitted", "parent_errors", "depends_on", "id"];
        for (key, value) in members.iter().filter(|(key, _)| !own.contains(&&***key)) {
            push_key(&mut out, key);
            out.extend_from_slice(value.get().as_bytes());
        }
        member(&mut out, "workflow_id");
        out.extend_from_slice(format!("\"{}\"", self.context.id).as_bytes());
        if let Some(parents) = self.parents(index) {
            let omitted = self.omitted(&parents)?;
            let given = parents.nodes[omitted..].iter().map(|node| self.result(*node));
            let results: Vec<String> = std::iter::repeat_n("null".to_owned(), omitted).chain(given).collect();
            member(&mut out, "parent_results");
            out.extend_from_slice(format!("[{}]", results.join(",")).as_bytes());
            if omitted > 0 {
                member(&mut out, "parent_results_omitted");
                out.extend_from_slice(omitted.to_string().as_bytes());
            }
            let failed: Vec<u32> =
                parents.nodes.iter().copied().filter(|parent| self.state.node(*parent).error.is_some()).collect();
            if !failed.is_empty() {
                member(&mut out, "parent_errors");
                out.extend_from_slice(self.errors(&failed).as_bytes());
            }
            self.forget(&parents, omitted);
        }
        out.push(b'}');
        Ok(out)
    }

    /// How many of the results, from the first, a node is not given: those of a chain that are too far back.
    fn omitted(&self, parents: &Parents) -> Result<usize, NodeError> {
        let forgotten = parents.chain.map_or(0, |chain| self.state.node(chain).forgotten as usize);
        let sizes: Vec<usize> = parents.nodes[forgotten..].iter().map(|node| self.size(*node)).collect();
        // Of a chain the last one is given in any case, of all else everything.
        let first_needed = if parents.chain.is_some() { sizes.len().saturating_sub(1) } else { 0 };
        let needed: usize = sizes[first_needed..].iter().sum();
        if needed > MOST {
            let message = format!(
                "the results of the jobs before this one have {needed} bytes; at most {MOST} are passed on: return \
                 references to what is large, such as the name of a file"
            );
            return Err(NodeError { attempt: None, code: "result_too_large".to_owned(), message });
        }
        let mut left = EARLIER.min(MOST - needed);
        let fits = |size: &&usize| {
            let rest = left.checked_sub(**size);
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        Ok(forgotten + first_needed - sizes[..first_needed].iter().rev().take_while(fits).count())
    }

    /// Forgets the results of a chain that are too far back to be given to any step, so that the state stays small.
    /// They stay with the jobs.
    fn forget(&mut self, parents: &Parents, omitted: usize) {
        let Some(chain) = parents.chain.filter(|_| omitted > 0) else { return };
        if self.needs_result(chain) {
            return;
        }
        let forgotten = self.state.node(chain).forgotten as usize;
        let mut nodes = parents.nodes.get(forgotten..omitted).unwrap_or_default().to_vec();
        while let Some(index) = nodes.pop() {
            let node = self.state.node_mut(index);
            node.result = None;
            nodes.extend_from_slice(&node.parts);
        }
        self.state.node_mut(chain).forgotten = omitted.max(forgotten) as u32;
    }

    /// The nodes whose results a node is given: in a chain all before it, in a graph those that it depends on, and in a
    /// batch, for a callback, all jobs. A node within another is given what that one is given, unless it has its own.
    fn parents(&self, index: u32) -> Option<Parents> {
        let node = self.state.node(index);
        if index == 0 {
            return None;
        }
        let around = self.state.node(node.parent);
        let nodes: Vec<u32> = match around.kind {
            Kind::Chain => around.parts.iter().copied().take_while(|part| *part != index).collect(),
            Kind::Graph => node.after.clone(),
            Kind::Batch if node.callback.is_some() => self.state.jobs_of_batch(node.parent),
            Kind::Batch | Kind::Group | Kind::Job => Vec::new(),
        };
        if nodes.is_empty() {
            return self.parents(node.parent);
        }
        Some(Parents { nodes, chain: Some(node.parent).filter(|_| around.kind == Kind::Chain) })
    }

    /// Whether the result of a node is given to another: what is not is left to the job, so that the state stays small.
    pub(super) fn needs_result(&mut self, index: u32) -> bool {
        if index == 0 {
            return false;
        }
        let node = self.state.node(index);
        let (parent, is_callback) = (node.parent, node.callback.is_some());
        let around = self.state.node(parent);
        let needed = match around.kind {
            Kind::Chain => around.parts.last() != Some(&index),
            Kind::Graph => !self.links().after[index as usize].is_empty(),
            Kind::Batch => !is_callback,
            Kind::Group | Kind::Job => false,
        };
        needed || self.needs_result(parent)
    }

    fn results(&self, nodes: &[u32]) -> String {
        let each: Vec<String> = nodes.iter().map(|node| self.result(*node)).collect();
        format!("[{}]", each.join(","))
    }

    /// The result of a node as JSON text: of a job what it returned, of others those of their parts.
    fn result(&self, index: u32) -> String {
        let node = self.state.node(index);
        match node.kind {
            Kind::Job => node.result.as_ref().map_or_else(|| "null".to_owned(), |result| result.get().to_owned()),
            // Only a batch has callbacks; of the others, this is all of their parts.
            Kind::Chain | Kind::Group | Kind::Graph | Kind::Batch => self.results(&self.state.jobs_of_batch(index)),
        }
    }

    /// How long that text is.
    fn size(&self, index: u32) -> usize {
        let node = self.state.node(index);
        match node.kind {
            Kind::Job => node.result.as_ref().map_or(4, |result| result.get().len()),
            Kind::Chain | Kind::Group | Kind::Graph | Kind::Batch => {
                self.state.jobs_of_batch(index).into_iter().map(|part| self.size(part) + 1).sum::<usize>() + 1
            }
        }
    }

    fn errors(&self, nodes: &[u32]) -> String {
        let mut out = String::from("[");
        for (index, node) in nodes.iter().enumerate() {
            let error = self.state.node(*node).error.as_ref();
            let text = error.and_then(|error| serde_json::to_string(error).ok()).unwrap_or_else(|| "null".to_owned());
            let _ = write!(out, "{}{text}", if index > 0 { "," } else { "" });
        }
        out.push(']');
        out
    }
}
