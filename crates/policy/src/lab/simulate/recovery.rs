//! After the outage, where jobs compete for a capacity: one attempt after the other, in the order
//! of time.

use super::job::{Job, Model};
use super::tally::{SECOND_US, Tally};
use crate::Moment;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The end of a list.
const END: u32 = u32::MAX;

/// An attempt of the current second: when, how often its job has run at this very moment already,
/// and which job. Jobs that come back without any delay so wait for the others of that moment.
type Turn = (Moment, u32, u32);

/// The jobs by the second in which they are due: a list of jobs for each second, linked through
/// the jobs themselves, so that the memory is that of the horizon and of the cohort.
struct Calendar {
    first_second: i64,
    heads: Vec<u32>,
    next: Vec<u32>,
}

impl Calendar {
    fn new(model: &Model<'_>, jobs: &[Job]) -> Self {
        let first_second = second_of(model.outage_end);
        let seconds = usize::try_from(second_of(model.horizon) - first_second + 1).unwrap_or(0);
        let mut calendar = Self { first_second, heads: vec![END; seconds], next: vec![END; jobs.len()] };
        for (number, job) in (0..).zip(jobs) {
            calendar.enter(number, job.due);
        }
        calendar
    }

    fn enter(&mut self, job: u32, due: Moment) {
        // No job is due before the outage ends or after the horizon.
        if let Some(head) = self.heads.get_mut((second_of(due) - self.first_second) as usize) {
            self.next[job as usize] = std::mem::replace(head, job);
        }
    }

    /// Takes the attempts of a second, in their order.
    fn take(&mut self, index: usize, jobs: &[Job], turns: &mut Vec<Turn>) {
        turns.clear();
        let mut job = std::mem::replace(&mut self.heads[index], END);
        while job != END {
            turns.push((jobs[job as usize].due, 0, job));
            job = self.next[job as usize];
        }
        turns.sort_unstable();
    }
}

/// Runs the competing jobs to their ends.
pub(super) fn run(model: &Model<'_>, mut jobs: Vec<Job>, tally: &mut Tally, progress: &dyn Fn(f64)) {
    let capacity = model.scenario.capacity_per_s.unwrap_or(u32::MAX);
    let mut calendar = Calendar::new(model, &jobs);
    let mut second = Second { number: 0, turns: Vec::new(), again: BinaryHeap::new(), left: jobs.len() };
    let all = jobs.len() as f64;
    for index in 0..calendar.heads.len() {
        if second.left == 0 {
            break;
        }
        second.number = calendar.first_second + index as i64;
        calendar.take(index, &jobs, &mut second.turns);
        if !second.turns.is_empty() {
            second.run(model, capacity, &mut jobs, &mut calendar, tally);
            progress(1.0 - second.left as f64 / all);
        }
    }
}

/// One second of the recovery.
struct Second {
    number: i64,
    turns: Vec<Turn>,
    /// The jobs that come back within this very second.
    again: BinaryHeap<Reverse<Turn>>,
    /// The jobs that are not at their end.
    left: usize,
}

impl Second {
    fn run(&mut self, model: &Model<'_>, capacity: u32, jobs: &mut [Job], calendar: &mut Calendar, tally: &mut Tally) {
        let mut served = 0;
        let turns = std::mem::take(&mut self.turns);
        let mut planned = turns.iter().copied().peekable();
        while let Some((at, round, number)) = self.next_turn(&mut planned) {
            let job = &mut jobs[number as usize];
            tally.attempt(at, job.is_fresh());
            let comes_back = if served < capacity {
                served += 1;
                job.serve(model, tally)
            } else {
                tally.overloaded += 1;
                job.fail(model, tally)
            };
            if !comes_back {
                self.left -= 1;
            } else if second_of(job.due) == self.number {
                let round = if job.due == at { round + 1 } else { 0 };
                self.again.push(Reverse((job.due, round, number)));
            } else {
                calendar.enter(number, job.due);
            }
        }
        self.turns = turns;
    }

    fn next_turn(&mut self, planned: &mut std::iter::Peekable<impl Iterator<Item = Turn>>) -> Option<Turn> {
        match (planned.peek(), self.again.peek()) {
            (Some(first), Some(Reverse(other))) if other < first => self.again.pop().map(|Reverse(turn)| turn),
            (None, Some(_)) => self.again.pop().map(|Reverse(turn)| turn),
            _ => planned.next(),
        }
    }
}

fn second_of(moment: Moment) -> i64 {
    moment.micros() / SECOND_US
}
