//! What many jobs have in common: the numbers of queues and of policies, cached.

use super::db_error::DbError;
use super::pool::Session;
use super::text;
use super::value::{Reader, Statement};
use redrive_policy::Policy;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many policies are shared between jobs. Further ones are stored with each job: policies that
/// differ for every job would fill the memory of all nodes.
const MOST_SHARED: i64 = 4_096;

/// Policies are never renumbered and never removed. Queues are never renumbered; one that is removed and created again
/// has another number, and the statement that stores new jobs detects it.
#[derive(Debug, Default)]
pub(super) struct Catalogue(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    queues: HashMap<Arc<str>, i32>,
    queue_names: HashMap<i32, Arc<str>>,
    policies: HashMap<i32, Arc<Policy>>,
    policy_numbers: HashMap<Box<[u8]>, i32>,
    /// By address; `policies` holds a reference to each of them.
    policy_places: HashMap<usize, i32>,
}

/// How a policy is stored.
#[derive(Clone, Debug)]
pub(super) enum StoredPolicy {
    Shared(i32),
    Own(Vec<u8>),
}

impl Catalogue {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a queue that is cached.
    pub(super) fn queue(&self, name: &str) -> Option<i32> {
        self.known().queues.get(name).copied()
    }

    /// The numbers of queues that are cached, for many jobs: the last answer is kept, because jobs of one queue mostly
    /// stand together.
    pub(super) fn queue_numbers(&self) -> impl Fn(&str) -> Option<i32> {
        let last: RefCell<(String, Option<i32>)> = RefCell::default();
        move |name| {
            let mut last = last.borrow_mut();
            if last.1.is_none() || last.0 != name {
                *last = (name.to_owned(), self.queue(name));
            }
            last.1
        }
    }

    pub(super) fn queue_name(&self, number: i32) -> Option<Arc<str>> {
        self.known().queue_names.get(&number).cloned()
    }

    pub(super) fn policy(&self, number: i32) -> Option<Arc<Policy>> {
        self.known().policies.get(&number).cloned()
    }

    /// Reads all queues, where one of these numbers is new.
    pub(super) async fn learn_queues(&self, session: &mut Session, numbers: &[i32]) -> Result<(), DbError> {
        if numbers.iter().all(|number| self.known().queue_names.contains_key(number)) {
            return Ok(());
        }
        let rows = session.query(&Statement::new("SELECT id, name FROM queue_names", Vec::new())).await?;
        for row in &rows {
            let mut row = Reader::new(row);
            let (number, name): (i32, &str) = (row.next()?, row.next()?);
            self.note_queue(number, &Arc::from(text::read(name)));
        }
        Ok(())
    }

    pub(super) fn note_queue(&self, number: i32, name: &Arc<str>) {
        let mut known = self.known();
        known.queues.insert(Arc::clone(name), number);
        known.queue_names.insert(number, Arc::clone(name));
    }

    /// Reads the policies among these that are new. Returns those that cannot be read, each with the reason.
    pub(super) async fn learn_policies(
        &self,
        session: &mut Session,
        numbers: &[i32],
    ) -> Result<HashMap<i32, String>, DbError> {
        let mut unreadable = HashMap::new();
        let mut new: Vec<i32> = numbers.to_vec();
        new.retain(|number| !self.known().policies.contains_key(number));
        if new.is_empty() {
            return Ok(unreadable);
        }
        let sql = "SELECT id, json FROM policies WHERE id = ANY ($1::integer[])";
        let rows = session.query(&Statement::new(sql, vec![Box::new(new)])).await?;
        for row in &rows {
            let mut row = Reader::new(row);
            let (number, json): (i32, &[u8]) = (row.next()?, row.next()?);
            match parsed(json) {
                Ok(policy) => self.note_policy(number, &Arc::new(policy), json),
                Err(why) => drop(unreadable.insert(number, why)),
            }
        }
        Ok(unreadable)
    }

    fn note_policy(&self, number: i32, policy: &Arc<Policy>, json: &[u8]) {
        let mut known = self.known();
        // The first one stays: addresses are only valid while their policy is referenced.
        if known.policies.contains_key(&number) {
            return;
        }
        known.policies.insert(number, Arc::clone(policy));
        known.policy_numbers.insert(json.into(), number);
        known.policy_places.insert(Arc::as_ptr(policy).addr(), number);
    }

    /// How a policy is stored; it gets a number where it has none and the limit is not reached.
    pub(super) async fn write(&self, session: &mut Session, policy: &Arc<Policy>) -> Result<StoredPolicy, DbError> {
        if let Some(number) = self.known().policy_places.get(&Arc::as_ptr(policy).addr()) {
            return Ok(StoredPolicy::Shared(*number));
        }
        let json = serde_json::to_vec(&**policy)
            .map_err(|error| DbError::Broken(format!("a policy cannot be written as JSON: {error}")))?;
        if let Some(number) = self.known().policy_numbers.get(&json[..]) {
            return Ok(StoredPolicy::Shared(*number));
        }
        Ok(match number_of(session, &json).await? {
            Some(number) => {
                self.note_policy(number, policy, &json);
                StoredPolicy::Shared(number)
            }
            None => StoredPolicy::Own(json),
        })
    }
}

/// The number of a policy in the database, a new one if necessary; none where the limit is reached.
async fn number_of(session: &mut Session, json: &[u8]) -> Result<Option<i32>, DbError> {
    const FIND: &str = "SELECT id FROM policies WHERE sha256(json) = sha256($1::bytea)";
    const ADD: &str = "INSERT INTO policies (json) SELECT $1::bytea \
         WHERE (SELECT count(*) FROM policies) < $2::bigint ON CONFLICT DO NOTHING";
    let find = Statement::new(FIND, vec![Box::new(json)]);
    let mut found = session.query(&find).await?;
    if found.is_empty() {
        session.write(&Statement::new(ADD, vec![Box::new(json), Box::new(MOST_SHARED)])).await?;
        found = session.query(&find).await?;
    }
    found.first().map(|row| Reader::new(row).next()).transpose()
}

/// A policy from its text, or why it is none.
pub(super) fn parsed(json: &[u8]) -> Result<Policy, String> {
    serde_json::from_slice(json).map_err(|error| format!("its policy cannot be read: {error}"))
}

impl StoredPolicy {
    /// The two columns of it.
    pub(super) fn into_columns(self) -> (Option<i32>, Option<Vec<u8>>) {
        match self {
            Self::Shared(number) => (Some(number), None),
            Self::Own(json) => (None, Some(json)),
        }
    }
}
