//! One simulation from its seed to the proof.

use super::actors::{Behaviour, Worker, operator, producer, sweeper};
use super::checker::{self, FinalState};
use super::common::Seeded;
use super::conditions::{Climate, Conditions};
use super::faults::Faults;
use super::ledger::{Pause, Violation};
use super::scheduler::Scheduler;
use super::server_policies::ServerPolicies;
use super::store_kind::StoreKind;
use super::tally::Tally;
use super::world::{Response, World};
use redrive_policy::{Moment, Span};
use redrive_store::{Filter, Job, Missing, Page, Queue, Store};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

/// The first second of 2026.
const START: Moment = Moment::from_micros(1_767_225_600_000_000);
/// How many rounds there are before a simulation counts as one that never ends.
const MOST_ROUNDS: usize = 5_000;

/// What became of a simulation.
pub(crate) struct Outcome {
    /// How many times an actor went on.
    pub(crate) steps: u64,
    /// How many requests, answers and steps of the clock there were.
    pub(crate) events: u64,
    pub(crate) tally: Tally,
    pub(crate) violations: Vec<Violation>,
    /// The stories of the jobs that the breaches are about.
    pub(crate) stories: Vec<String>,
    /// A number that changes with everything that is there in the end.
    pub(crate) fingerprint: u64,
}

/// Runs the simulation of a seed.
pub(crate) fn simulate(seed: u64, store_kind: &mut dyn StoreKind) -> Outcome {
    // Claims can wait, for which they want the timer of a runtime; nothing here drives it, and a claim
    // that waits ends because a job comes or its worker hangs up.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    // A store that does its work on a runtime brings its own, which is driven: no simulation takes as long as a claim
    // waits.
    let driven = store_kind.runtime().cloned();
    let _inside = driven.as_ref().unwrap_or(runtime.handle()).enter();
    Simulation::new(seed, store_kind).run()
}

struct Simulation<'a> {
    world: Rc<World>,
    scheduler: Scheduler,
    conditions: Conditions,
    store_kind: &'a mut dyn StoreKind,
    /// The store itself, without the faults around it.
    store: Option<Arc<dyn Store>>,
    rng: Seeded,
    steps: u64,
    restarts: usize,
}

impl<'a> Simulation<'a> {
    fn new(seed: u64, store_kind: &'a mut dyn StoreKind) -> Self {
        let rng = Seeded::new(seed);
        let climate = Climate::random(&rng);
        let faults = Arc::new(Faults::new(rng.child(), climate.faults_permille, climate.slowness));
        let policies = ServerPolicies::random(&rng);
        let most_jobs = rng.between(3, 30) as usize;
        let world = Rc::new(World::new(START, policies, faults, most_jobs, rng.child()));
        let (scheduler, conditions) = (Scheduler::new(rng.child()), Conditions::new(climate, rng.child()));
        let mut simulation = Self { world, scheduler, conditions, store_kind, store: None, rng, steps: 0, restarts: 0 };
        let store = simulation.store_kind.open();
        simulation.start_on(store);
        simulation
    }

    fn start_on(&mut self, store: Arc<dyn Store>) {
        self.world.start(Arc::clone(&store));
        self.store = Some(store);
    }

    fn store(&self) -> &dyn Store {
        self.store.as_deref().expect("the server is up")
    }

    fn run(mut self) -> Outcome {
        self.open();
        for _ in 0..self.rng.between(300, 3_000) {
            self.step();
            self.conditions.change(&self.world, self.store.as_deref().expect("the server is up"));
            if self.conditions.kills() {
                self.restart();
            }
            if self.rng.permille(3) {
                self.calm();
            }
            if self.rng.permille(20) {
                self.scheduler.wake_all();
            }
        }
        self.close();
        let final_state = self.final_state();
        self.world.end();
        self.outcome(&final_state)
    }

    fn open(&mut self) {
        for _ in 0..self.rng.between(1, 3) {
            self.scheduler.spawn(producer(Rc::clone(&self.world), self.rng.child()));
        }
        for _ in 0..self.rng.between(1, 4) {
            let worker = Worker::new(Rc::clone(&self.world), self.rng.child(), Behaviour::Faulty);
            self.scheduler.spawn(worker.work());
        }
        for _ in 0..self.rng.between(1, 2) {
            self.scheduler.spawn(operator(Rc::clone(&self.world), self.rng.child()));
            self.scheduler.spawn(sweeper(Rc::clone(&self.world), self.rng.child()));
        }
    }

    fn step(&mut self) -> bool {
        self.world.turn();
        self.steps += 1;
        self.scheduler.step()
    }

    /// The server dies and comes back on what its store kept.
    fn restart(&mut self) {
        self.restarts += 1;
        self.world.die();
        self.store_kind.cut();
        self.scheduler.wake_all();
        while self.world.in_flight() > 0 {
            self.step();
        }
        if let Some(store) = self.store.take() {
            assert_eq!(Arc::strong_count(&store), 1, "a task still holds the store of the server that died");
        }
        let store = self.store_kind.reopen();
        self.start_on(store);
        // A server that starts reads its pauses until it gets an answer, and no outage lasts for ever.
        self.conditions.clear(&self.world);
        let world = Rc::clone(&self.world);
        self.alone(async move {
            while matches!(
                world.ask(None, |engine| async move { engine.recall_pauses().await }).await.1,
                Response::Lost
            ) {}
        });
    }

    /// A task that runs to its end while nobody else does anything.
    fn alone<T: 'static>(&mut self, task: impl Future<Output = T> + 'static) -> T {
        let answer = Rc::new(std::cell::Cell::new(None));
        let mut scheduler = Scheduler::new(self.rng.child());
        let slot = Rc::clone(&answer);
        scheduler.spawn(async move { slot.set(Some(task.await)) });
        while !scheduler.is_empty() {
            self.world.turn();
            self.steps += 1;
            if !scheduler.step() {
                scheduler.wake_all();
            }
        }
        answer.take().expect("the task came to its end")
    }

    /// No actor begins anything, all that is under way ends, and what is true at rest is checked.
    fn calm(&mut self) {
        self.world.set_calm(true);
        self.conditions.clear(&self.world);
        // What a sweep makes ready may wake a worker, whose run may end and be due at once.
        loop {
            while self.step() {}
            let world = Rc::clone(&self.world);
            self.alone(async move { while !sweep(&world).await {} });
            if !self.step() {
                break;
            }
        }
        checker::at_rest(&self.world, self.store());
        self.world.set_calm(false);
    }

    /// Every actor leaves, and an honest worker brings every job to its end.
    fn close(&mut self) {
        self.world.close();
        self.world.faults.end();
        while !self.scheduler.is_empty() {
            if !self.step() {
                self.scheduler.wake_all();
            }
        }
        let (world, rng) = (Rc::clone(&self.world), self.rng.child());
        self.alone(finish(world, rng));
        checker::at_rest(&self.world, self.store());
    }

    fn final_state(&mut self) -> FinalState {
        let world = Rc::clone(&self.world);
        self.alone(async move {
            let mut jobs: Vec<Rc<Job>> = Vec::new();
            loop {
                let page = Page::new(jobs.len(), 7);
                let (_, response) =
                    world.ask(None, |engine| async move { engine.list(Filter::default(), page).await }).await;
                let Response::Answer(listed) = response else { panic!("the store works") };
                if listed.jobs.is_empty() {
                    break;
                }
                jobs.extend(listed.jobs.into_iter().map(Rc::new));
            }
            let queues = queues(&world).await;
            FinalState { jobs, queues }
        })
    }

    fn outcome(self, final_state: &FinalState) -> Outcome {
        let mut ledger = self.world.ledger.borrow_mut();
        checker::verify(&mut ledger, final_state);
        let mut tally = Tally::of(&ledger);
        tally.add("restarts", self.restarts);
        let violations = std::mem::take(&mut ledger.violations);
        let mut about: Vec<usize> = violations.iter().filter_map(|violation| violation.account).collect();
        about.dedup();
        about.truncate(3);
        let mut fingerprint = DefaultHasher::new();
        format!("{:?} {:?}", final_state.jobs, final_state.queues).hash(&mut fingerprint);
        Outcome {
            steps: self.steps,
            events: ledger.mark(),
            tally,
            stories: about.into_iter().map(|account| ledger.story(account)).collect(),
            violations,
            fingerprint: fingerprint.finish(),
        }
    }
}

async fn queues(world: &World) -> Vec<Queue> {
    match world.ask(None, |engine| async move { engine.queues().await }).await.1 {
        Response::Answer(queues) => queues,
        Response::Refused(_) | Response::Lost => panic!("the store works"),
    }
}

/// A sweep; whether it got to its end.
async fn sweep(world: &World) -> bool {
    let (when, response) = world.ask(None, |engine| async move { engine.sweep().await }).await;
    world.ledger.borrow_mut().sweeps.push(when);
    matches!(response, Response::Answer(_))
}

/// Opens what is closed, and lets time go by until every job has ended.
async fn finish(world: Rc<World>, rng: Seeded) {
    for queue in queues(&world).await.into_iter().filter(|queue| queue.paused) {
        let name = Arc::clone(&queue.name);
        let (when, _) = world.ask(None, |engine| async move { engine.pause(name, false, Missing::Refuse).await }).await;
        let known = super::server_policies::QUEUES.into_iter().find(|known| **known == *queue.name);
        let queue = known.expect("one of the queues");
        world.ledger.borrow_mut().pauses.push(Pause { queue, paused: false, when, surely: true });
    }
    let mut worker = Worker::new(Rc::clone(&world), rng, Behaviour::Honest);
    for _ in 0..MOST_ROUNDS {
        sweep(&world).await;
        if worker.work_once().await > 0 {
            continue;
        }
        match world.ask(None, |engine| async move { engine.next_sweep().await }).await.1 {
            Response::Answer(Some(next)) if next > world.now() => world.set_clock(next),
            Response::Answer(Some(_)) => world.advance(Span::from_secs(1)),
            Response::Answer(None) => return,
            Response::Refused(_) | Response::Lost => panic!("the store works"),
        }
    }
    let message = format!("not at its end after {MOST_ROUNDS} rounds");
    world.ledger.borrow_mut().violation("at rest", None, message);
}
