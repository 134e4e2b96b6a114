//! Shorter histories with the same result.

use super::step::Step;

/// Leaves out steps, up to three at a time, for as long as what remains is still `wrong`.
///
/// proptest shrinks a step that it cannot leave out, and does not try again to leave it out afterwards. It also gets
/// stuck if steps belong together, such as a clock that steps back and the wait after it, or a job that is enqueued,
/// claimed and settled.
pub fn shortened(mut steps: Vec<Step>, wrong: impl Fn(&[Step]) -> bool) -> Vec<Step> {
    while let Some(shorter) = groups(steps.len()).map(|left_out| without(&steps, left_out)).find(|steps| wrong(steps)) {
        steps = shorter;
    }
    steps
}

/// Every index, then every pair of indices, then every three.
fn groups(count: usize) -> impl Iterator<Item = [usize; 3]> {
    let single = (0..count).map(|place| [place; 3]);
    let pairs = (0..count).flat_map(move |first| (first + 1..count).map(move |second| [first, second, second]));
    let threes = (0..count).flat_map(move |first| {
        (first + 1..count).flat_map(move |second| (second + 1..count).map(move |third| [first, second, third]))
    });
    single.chain(pairs).chain(threes)
}

fn without(steps: &[Step], left_out: [usize; 3]) -> Vec<Step> {
    let rest = steps.iter().enumerate().filter(|(place, _)| !left_out.contains(place));
    rest.map(|(_, step)| step.clone()).collect()
}
