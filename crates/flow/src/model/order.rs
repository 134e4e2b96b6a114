//! Flows do not call themselves.

use super::flows::Edge;
use crate::problem::Findings;

/// Reports every call that is part of a circle.
pub(super) fn check(flows: usize, edges: &[Edge], findings: &mut Findings) {
    // What ends is taken away, and then what is not called by the rest: circles are left, and what is between them.
    let calls: Vec<(usize, usize)> = edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let without_end = left(flows, &calls);
    let within = calls.iter().filter(|(from, to)| without_end[*from] && without_end[*to]);
    let called = left(flows, &within.map(|(from, to)| (*to, *from)).collect::<Vec<_>>());
    for edge in edges.iter().filter(|edge| called[edge.from] && called[edge.to]) {
        let message =
            "the call leads back to the flow that makes it; flows must not call themselves, and Loop repeats a flow";
        findings.add(edge.at, edge.path.clone(), message);
    }
}

/// What is left when everything is taken away, again and again, from which no edge leads to what is left.
fn left(nodes: usize, edges: &[(usize, usize)]) -> Vec<bool> {
    let mut open = vec![0_usize; nodes];
    let mut sources = vec![Vec::new(); nodes];
    for (from, to) in edges {
        open[*from] += 1;
        sources[*to].push(*from);
    }
    let mut ends: Vec<usize> = (0..nodes).filter(|node| open[*node] == 0).collect();
    while let Some(node) = ends.pop() {
        for source in &sources[node] {
            open[*source] -= 1;
            if open[*source] == 0 {
                ends.push(*source);
            }
        }
    }
    open.into_iter().map(|open| open > 0).collect()
}
