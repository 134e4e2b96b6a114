//! Flows do not call themselves.

use super::flows::Edge;
use crate::problem::Findings;

/// Reports every call that is part of a circle.
pub(super) fn check(flows: usize, edges: &[Edge], findings: &mut Findings) {
    // Flows that call only flows which end are taken away until none is left, or only circles and what leads to them.
    let mut open = vec![0_usize; flows];
    let mut callers = vec![Vec::new(); flows];
    for edge in edges {
        open[edge.from] += 1;
        callers[edge.to].push(edge.from);
    }
    let mut ends: Vec<usize> = (0..flows).filter(|flow| open[*flow] == 0).collect();
    while let Some(flow) = ends.pop() {
        for caller in &callers[flow] {
            open[*caller] -= 1;
            if open[*caller] == 0 {
                ends.push(*caller);
            }
        }
    }
    for edge in edges.iter().filter(|edge| open[edge.from] > 0 && open[edge.to] > 0) {
        let message =
            "the call leads back to the flow that makes it; flows must not call themselves, and Loop repeats a flow";
        findings.add(edge.at, edge.path.clone(), message);
    }
}
