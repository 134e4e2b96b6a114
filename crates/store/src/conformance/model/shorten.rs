//! Shorter histories with the same result.

use super::step::Step;

/// Leaves out steps, up to three at a time, for as long as what remains is still `wrong`.
///
/// proptest shrinks a step that it cannot leave out, and does not try again to leave it out afterwards. It also gets
/// stuck if steps belong together, such as a clock that steps back and the wait after it, or a job that is enqueued,
/// claimed and settled. Reports name leases by how long ago they were claimed: where claims before them are left out,
/// that is nearer.
pub fn shortened(mut steps: Vec<Step>, wrong: impl Fn(&[Step]) -> bool) -> Vec<Step> {
    while let Some(shorter) = shorter(&steps, &wrong) {
        steps = shorter;
    }
    steps
}

fn shorter(steps: &[Step], wrong: &impl Fn(&[Step]) -> bool) -> Option<Vec<Step>> {
    let left_out = groups(steps.len()).map(|left_out| without(steps, left_out)).find(|steps| wrong(steps));
    left_out.or_else(|| {
        let nearer = (0..steps.len()).filter_map(|place| nearer(steps, place));
        let mut fewer = nearer.flat_map(|steps| pairs(steps.len()).map(move |left_out| without(&steps, left_out)));
        fewer.find(|steps| wrong(steps))
    })
}

/// The same steps, with the reports of one of them about the leases that were claimed last.
fn nearer(steps: &[Step], place: usize) -> Option<Vec<Step>> {
    let mut steps = steps.to_vec();
    let Some(Step::Settle(reports)) = steps.get_mut(place) else { return None };
    for (back, (lease, _)) in (0_u8..).zip(reports.iter_mut()) {
        lease.back = lease.back.min(back);
    }
    Some(steps)
}

/// Every index, then every pair of indices.
fn pairs(count: usize) -> impl Iterator<Item = [usize; 3]> {
    let pairs = (0..count).flat_map(move |first| (first + 1..count).map(move |second| [first, second, second]));
    (0..count).map(|place| [place; 3]).chain(pairs)
}

/// Every index, then every pair of indices, then every three.
fn groups(count: usize) -> impl Iterator<Item = [usize; 3]> {
    pairs(count).chain((0..count).flat_map(move |first| {
        (first + 1..count).flat_map(move |second| (second + 1..count).map(move |third| [first, second, third]))
    }))
}

fn without(steps: &[Step], left_out: [usize; 3]) -> Vec<Step> {
    let rest = steps.iter().enumerate().filter(|(place, _)| !left_out.contains(place));
    rest.map(|(_, step)| step.clone()).collect()
}
