//! Shorter histories with the same result.

use super::step::Step;

/// Leaves out steps, one or two at a time, for as long as what remains is still `wrong`.
///
/// proptest shrinks a step that it cannot leave out, and does not try again to leave it out afterwards. It also gets
/// stuck if two steps belong together, such as a clock that steps back and the wait after it.
pub fn shortened(mut steps: Vec<Step>, wrong: impl Fn(&[Step]) -> bool) -> Vec<Step> {
    while let Some(shorter) = pairs(steps.len()).map(|left_out| without(&steps, left_out)).find(|steps| wrong(steps)) {
        steps = shorter;
    }
    steps
}

/// Every index, and every pair of indices.
fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    let single = (0..count).map(|place| (place, place));
    single.chain((0..count).flat_map(move |first| (first + 1..count).map(move |second| (first, second))))
}

fn without(steps: &[Step], (first, second): (usize, usize)) -> Vec<Step> {
    let rest = steps.iter().enumerate().filter(|(place, _)| *place != first && *place != second);
    rest.map(|(_, step)| step.clone()).collect()
}
