//! What is set for groups, and how they stand.

use super::super::core::{BEGIN, Core};
use super::super::counts;
use super::super::db_error::DbError;
use super::super::limits::{self, read_lane};
use super::super::pool::Session;
use super::super::queues;
use super::super::value::{Reader, Statement};
use crate::limit::GroupRow;
use crate::{Bounds, Group, Setting, Standing, State};
use redrive_policy::Moment;
use std::collections::{BTreeMap, BTreeSet};

const ALL: &str = "SELECT name, body FROM limit_groups";
const SET: &str = "SELECT name, body FROM limit_groups WHERE is_set";
const WAITING: &str = "SELECT lane, count(*) FROM live WHERE state = 2 AND lane IS NOT NULL GROUP BY lane";

/// Changes what is stored of a group, while no claim looks at limits.
pub(in crate::postgres) async fn change(
    core: &Core,
    group: &Group,
    change: impl Fn(&mut GroupRow),
    now: Moment,
) -> Result<(), DbError> {
    let mut session = core.session().await?;
    session.begin(BEGIN, &Statement::new(limits::LOCK, Vec::new())).await?;
    let mut row = limits::read(&mut session, &[group.clone()].into()).await?.remove(group).unwrap_or_default();
    change(&mut row);
    let mut statements = vec![limits::write([(group, &row)].into_iter())];
    if let (Group::Queue(name), true) = (group, row.setting.is_some()) {
        queues::number(&mut session, name, now).await?;
        statements.extend(row.holds_runs().then(|| queues::limited([name])));
    }
    session.commit(&statements).await?;
    // Whoever waits looks again.
    core.notifier.pauses();
    Ok(())
}

pub(in crate::postgres) async fn settings(core: &Core) -> Result<Vec<(Group, Setting)>, DbError> {
    let rows = limits::rows(&core.session().await?.query(&Statement::new(SET, Vec::new())).await?)?;
    let set = rows.into_iter().filter_map(|(group, row)| Some((group, row.setting?)));
    let mut set: Vec<(Group, Setting)> = set.collect();
    set.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(set)
}

/// How many jobs of a group wait and are active, and which bounds they bring.
#[derive(Default)]
struct Counts {
    waiting: usize,
    active: usize,
    own: Option<Bounds>,
}

pub(in crate::postgres) async fn standings(
    core: &Core,
    wanted: Option<&Group>,
    now: Moment,
) -> Result<Vec<Standing>, DbError> {
    let mut session = core.session().await?;
    let rows = match wanted {
        Some(group) => limits::read(&mut session, &[group.clone()].into()).await?,
        None => limits::rows(&session.query(&Statement::new(ALL, Vec::new())).await?)?,
    };
    let mut counts: BTreeMap<Group, Counts> = BTreeMap::new();
    count(&mut session, limits::ACTIVE, &mut counts, |counts| &mut counts.active).await?;
    count(&mut session, WAITING, &mut counts, |counts| &mut counts.waiting).await?;
    for count in counts::all(&mut session).await? {
        let group = Group::Queue(count.queue);
        if rows.contains_key(&group) {
            let counts = counts.entry(group).or_default();
            match State::ALL.get(count.state) {
                Some(State::Available) => counts.waiting += count.jobs,
                Some(State::Active) => counts.active += count.jobs,
                _ => {}
            }
        }
    }
    let known: BTreeSet<&Group> = rows.keys().chain(counts.keys()).collect();
    let known = known.into_iter().filter(|group| wanted.is_none_or(|wanted| wanted == *group));
    let (none, empty) = (Counts::default(), GroupRow::EMPTY);
    let standing = |group: &Group| {
        let Counts { waiting, active, own } = counts.get(group).unwrap_or(&none);
        let row = rows.get(group).unwrap_or(&empty);
        Standing::new(group.clone(), row, own.unwrap_or_default(), *active, *waiting, now)
    };
    Ok(known.map(standing).collect())
}

/// Adds what a statement counts by lane.
async fn count(
    session: &mut Session,
    sql: &'static str,
    counts: &mut BTreeMap<Group, Counts>,
    of: fn(&mut Counts) -> &mut usize,
) -> Result<(), DbError> {
    for row in &session.query(&Statement::new(sql, Vec::new())).await? {
        let mut row = Reader::new(row);
        let (lane, jobs): (&[u8], i64) = (row.next()?, row.next()?);
        // Limits of a newer version are left to nodes that can read them.
        for (group, own) in read_lane(lane).iter().flat_map(|lane| lane.groups()) {
            let counts = counts.entry(group).or_default();
            *of(counts) += usize::try_from(jobs).unwrap_or(0);
            counts.own = Some(own);
        }
    }
    Ok(())
}
