//! Time and interruptions: what is due, and how a scope is torn down.

use super::Machine;
use super::state::{Control, EntryRecord, Own, Owner, Record, Task, TaskId};
use crate::cel::time::shown_moment;
use crate::result::Failure;
use redrive_policy::Moment;
use serde_json::json;

/// Why a Timeout interrupts.
pub(super) fn exceeded(deadline: Moment) -> Failure {
    let deadline = shown_moment(deadline);
    let message = format!("there was no Result until {deadline}");
    Failure { kind: "timeout".to_owned(), ..Failure::error("Provider.Middleware.Timeout.Exceeded", message) }
        .with_details(json!({ "deadline": deadline }))
}

/// The cancellation that a Timeout imposes.
fn imposed(deadline: Moment) -> Failure {
    Failure::new("cancellation", "System.Cancelled").superseding(exceeded(deadline))
}

/// Something that happens at a time. The order is that in which they happen: a Result that arrives at the moment of a
/// deadline is in time, and of several deadlines the outermost counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: i64,
    is_deadline: bool,
    task: TaskId,
    /// The place of the Timeout in the stack.
    depth: usize,
}

impl Machine<'_> {
    /// What a task waits for, and the deadlines that it is under.
    fn due(id: TaskId, task: &Task) -> impl Iterator<Item = Due> {
        let wake = match task.control {
            Control::Until(at) => Some(Due { at: at.micros(), is_deadline: false, task: id, depth: 0 }),
            _ => None,
        };
        let mut deadlines = Vec::new();
        let unwinds = matches!(task.control, Control::Unwind { .. })
            || matches!(task.stack.last(), Some(Record::Gather(gather)) if gather.unwinding.is_some());
        for (depth, record) in task.stack.iter().enumerate().rev().take(if unwinds { 0 } else { usize::MAX }) {
            match record {
                // What is around a cleanup that is part of an unwinding is being torn down already.
                Record::Cleanup(cleanup) if cleanup.unwinding.is_some() => break,
                Record::Entry(EntryRecord { established: true, own: Own::Timeout { deadline: Some(at) }, .. }) => {
                    // A Result that has reached the entry is accepted.
                    let accepted = depth + 1 == task.stack.len() && matches!(task.control, Control::Rise(_));
                    if !accepted {
                        deadlines.push(Due { at: at.micros(), is_deadline: true, task: id, depth });
                    }
                }
                _ => {}
            }
        }
        wake.into_iter().chain(deadlines)
    }

    fn all_due(&self) -> impl Iterator<Item = Due> {
        self.state.tasks.iter().flat_map(|(id, task)| Self::due(*id, task))
    }

    /// When something happens next.
    pub(super) fn next_moment(&self) -> Option<Moment> {
        self.all_due().map(|due| due.at).min().map(Moment::from_micros)
    }

    /// Lets the first thing happen that is due. False where nothing is.
    pub(super) fn wake(&mut self) -> bool {
        let Some(due) = self.all_due().min().filter(|due| due.at <= self.now.micros()) else { return false };
        self.fire(due);
        true
    }

    /// Interrupts tasks that could go on, where their time is over.
    pub(super) fn fire_overdue(&mut self) {
        let now = self.now.micros();
        let ready: Vec<TaskId> = self.ready.iter().copied().collect();
        for id in ready {
            let Some(task) = self.state.tasks.get(&id) else { continue };
            // At the moment of the deadline itself, what is on its way is in time.
            let overdue = Self::due(id, task).filter(|due| due.is_deadline && due.at < now).min();
            if let Some(due) = overdue {
                self.fire(due);
            }
        }
    }

    fn fire(&mut self, due: Due) {
        if due.is_deadline {
            self.note_exceeded(due.task, due.depth);
            let failure = imposed(Moment::from_micros(due.at));
            self.interrupt(due.task, failure, Owner::Entry(due.depth));
            return;
        }
        let Some(mut task) = self.state.tasks.remove(&due.task) else { return };
        match task.stack.last() {
            Some(Record::Graph(_)) => {
                self.end_sleep(&mut task);
            }
            Some(Record::Call(_)) => {
                self.answer(&mut task);
            }
            // The gap of a Retry is over.
            _ => task.control = Control::Start,
        }
        self.put_back(due.task, task);
    }

    /// Tears a task down to the owner of the interruption.
    pub(super) fn interrupt(&mut self, id: TaskId, failure: Failure, owner: Owner) {
        let Some(task) = self.state.tasks.get_mut(&id) else { return };
        let in_cleanup = matches!(owner, Owner::Entry(_));
        if task.unwinds() && !in_cleanup {
            // It is torn down already. The interruption is not lost: it goes on where the first one ends.
            task.pending.get_or_insert(failure);
            return;
        }
        task.control = Control::Unwind { failure, owner };
        self.ready.insert(id);
    }

    pub(super) fn unwind(&mut self, task: &mut Task, failure: Failure, owner: Owner) -> Option<()> {
        let depth = task.stack.len().checked_sub(1)?;
        match task.stack.last_mut()? {
            Record::Gather(gather) => {
                let running = gather.close();
                if running.is_empty() {
                    task.stack.pop();
                    task.control = Control::Unwind { failure, owner };
                    return Some(());
                }
                gather.unwinding = Some((failure.clone(), owner));
                task.control = Control::Children;
                for child in running {
                    self.interrupt(child, failure.clone(), Owner::Outside);
                }
            }
            Record::Entry(entry) if owner == Owner::Entry(depth) => {
                // Where nothing has taken its place, the cancellation has done its work, and its reason is emitted.
                let deadline = match entry.own {
                    Own::Timeout { deadline } => deadline?,
                    _ => return None,
                };
                let emitted = if failure == imposed(deadline) { exceeded(deadline) } else { failure };
                return self.always(task, emitted.into(), None);
            }
            Record::Entry(entry) if entry.established => return self.always(task, failure.into(), Some(owner)),
            Record::Cleanup(_) => {
                // The onAlways of its entry has begun, and runs once.
                task.stack.pop();
                task.stack.pop();
                task.control = Control::Unwind { failure, owner };
            }
            Record::Frame(_) | Record::Graph(_) | Record::Call(_) | Record::Entry(_) => {
                self.note_unwound(task, &failure);
                if let Some(Record::Call(call)) = task.stack.pop() {
                    self.withdraw(&call);
                }
                task.control = Control::Unwind { failure, owner };
            }
        }
        Some(())
    }
}
