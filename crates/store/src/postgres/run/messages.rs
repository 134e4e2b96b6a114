//! Messages to runs, on their way into the database.

use super::rows::{number, uuid};
use super::sql;
use crate::codec::run as bytes;
use crate::postgres::listeners::Listening;
use crate::postgres::value::{Param, Statement};
use crate::run::events_of;
use crate::transfer::PortableRun;
use crate::{EventBody, JobId, Message, MessageBody, RunId, Transition};
use redrive_policy::Moment;

/// What runs have to learn, in order. Most often nothing: most jobs have no run.
#[derive(Debug, Default)]
pub(in crate::postgres) struct Messages(Vec<NewMessage>);

#[derive(Debug)]
struct NewMessage {
    /// The job that it is about, where it is about one.
    job: Option<JobId>,
    run: RunId,
    at: Moment,
    body: MessageBody,
}

impl Messages {
    /// What an event leaves, for the run of the job and for those that listen.
    pub(in crate::postgres) fn learn(&mut self, transition: &Transition, listening: &Listening) {
        if let Some((run, body)) = transition.message() {
            self.0.push(NewMessage { job: Some(transition.job.id), run, at: transition.at, body });
        }
        if !listening.is_empty() {
            for event in events_of(transition) {
                self.tell(Some(transition.job.id), &event, transition.at, listening);
            }
        }
    }

    /// An event, for those that listen.
    pub(in crate::postgres) fn tell(
        &mut self,
        job: Option<JobId>,
        event: &EventBody,
        at: Moment,
        listening: &Listening,
    ) {
        for (run, _) in listening.iter().filter(|(_, interest)| interest.fits(event)) {
            let body = MessageBody::Event { at, event: event.clone() };
            self.0.push(NewMessage { job, run: *run, at, body });
        }
    }

    pub(super) fn push(&mut self, run: RunId, at: Moment, body: MessageBody) {
        self.0.push(NewMessage { job: None, run, at, body });
    }

    pub(in crate::postgres) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The statement that writes them in an open transaction.
    pub(in crate::postgres) fn statement(&self) -> Option<Statement<'static>> {
        (!self.0.is_empty()).then(|| Statement::new(&sql::INSERT_MESSAGES, params(self.0.iter())))
    }

    /// The parameters of [`insert_of_claims`], where jobs of these claims leave any.
    pub(in crate::postgres) fn params_of_claims(
        &self,
        claim: impl Fn(JobId) -> Option<i64>,
    ) -> Option<Vec<Param<'static>>> {
        let of = |message: &NewMessage| message.job.and_then(&claim);
        let messages = || self.0.iter().filter(|message| of(message).is_some());
        messages().next()?;
        let mut params = params(messages());
        params.push(Box::new(self.0.iter().filter_map(of).collect::<Vec<_>>()));
        Some(params)
    }
}

fn params<'m>(messages: impl Iterator<Item = &'m NewMessage>) -> Vec<Param<'static>> {
    let (mut runs, mut times, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
    for NewMessage { run, at, body, .. } in messages {
        let mut out = Vec::new();
        // The number is not among the bytes.
        bytes::encode_message(&Message { number: 0, at: *at, body: body.clone() }, &mut out);
        runs.push(uuid(*run));
        times.push(at.micros());
        bodies.push(out);
    }
    vec![Box::new(runs), Box::new(times), Box::new(bodies)]
}

/// Inserts messages of jobs by four parameters from the number `from` on, those for which `which` holds of the number
/// of the claim `u.no`.
pub(in crate::postgres) fn insert_of_claims(from: usize, which: &str) -> String {
    format!(
        "INSERT INTO run_messages (run, at_us, body) SELECT u.run, u.at_us, u.body FROM unnest(${}::uuid[], \
           ${}::bigint[], ${}::bytea[], ${}::bigint[]) WITH ORDINALITY AS u (run, at_us, body, no, place) \
         WHERE {which} AND EXISTS (SELECT FROM run_states r WHERE r.id = u.run) ORDER BY u.place",
        from,
        from + 1,
        from + 2,
        from + 3
    )
}

/// The statement that stores the messages of a run of another store, with their numbers.
pub(in crate::postgres) fn messages_as_they_are(moved: &PortableRun) -> Statement<'static> {
    let (mut numbers, mut times, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
    for message in &moved.messages {
        let mut out = Vec::new();
        bytes::encode_message(message, &mut out);
        numbers.push(number(message.number));
        times.push(message.at.micros());
        bodies.push(out);
    }
    let runs = vec![uuid(moved.run.id); numbers.len()];
    let params: Vec<Param<'static>> = vec![Box::new(runs), Box::new(numbers), Box::new(times), Box::new(bodies)];
    Statement::new(&sql::INSERT_MESSAGES_AS_THEY_ARE, params)
}
