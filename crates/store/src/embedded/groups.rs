//! What is stored of limited groups besides their jobs: what is set for them, and when runs started.

use super::record;
use crate::Group;
use crate::limit::GroupRow;
use redrive_policy::Moment;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

/// All groups of which something is stored.
#[derive(Debug, Default)]
pub(super) struct Groups {
    rows: BTreeMap<Group, GroupRow>,
    /// When nothing of them matters any more.
    over: BTreeSet<(Moment, Group)>,
}

impl Groups {
    pub(super) fn get(&self, group: &Group) -> Option<&GroupRow> {
        self.rows.get(group)
    }

    /// Whether limits are set for a queue.
    pub(super) fn limits_queue(&self, name: &Arc<str>) -> bool {
        let row = |name| self.rows.get(&Group::Queue(Arc::clone(name)));
        !self.rows.is_empty() && row(name).is_some_and(GroupRow::holds_runs)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Group, &GroupRow)> {
        self.rows.iter()
    }

    /// Stores a row; an empty one is removed.
    pub(super) fn put(&mut self, group: Group, row: GroupRow) {
        if let Some(over) = self.rows.get(&group).and_then(GroupRow::over) {
            self.over.remove(&(over, group.clone()));
        }
        if row == GroupRow::default() {
            self.rows.remove(&group);
            return;
        }
        self.over.extend(row.over().map(|over| (over, group.clone())));
        self.rows.insert(group, row);
    }

    /// Those of which nothing matters at `now`.
    pub(super) fn over(&self, now: Moment) -> Vec<Group> {
        let over = self.over.iter().take_while(|(over, _)| *over <= now);
        over.map(|(_, group)| group.clone()).collect()
    }

    /// Those behind a group, in their order.
    pub(super) fn behind(&self, last: Option<&Group>) -> impl Iterator<Item = (&Group, &GroupRow)> {
        self.rows.range((last.map_or(Unbounded, Excluded), Unbounded))
    }

    /// Writes those behind a group, about `most`; answers the last where there are more.
    pub(super) fn write(&self, behind: Option<Group>, most: usize, out: &mut Vec<u8>) -> Option<Group> {
        let mut rows = self.behind(behind.as_ref()).peekable();
        let mut last = None;
        for (group, row) in rows.by_ref().take(most.max(1)) {
            record::group(out, group, row);
            last = Some(group.clone());
        }
        rows.peek().and(last)
    }
}
