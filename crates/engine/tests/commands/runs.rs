//! Signals to runs on one of several nodes.

use super::common::{Around, Passing, Seeded, Verb, Wrapped};
use super::harness::START;
use redrive_engine::{
    Context, Engine, Input, Layers, ManualClock, Program, ProgramStep, RunLimits, RunRequest, Settings, Submission,
    advance_runs,
};
use redrive_policy::Moment;
use redrive_store::{Blob, Memory, MessageBody, RunId, RunStep, Signal, Store};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Counts its signals.
struct Counts;

impl Program for Counts {
    fn kind(&self) -> &'static str {
        "counts"
    }

    fn version(&self) -> u32 {
        1
    }

    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String> {
        let signalled = matches!(input, Input::Message(MessageBody::Signal(_)));
        let state = context.state.iter().map(|count| count + u8::from(signalled)).collect();
        Ok(ProgramStep { state, effects: Vec::new() })
    }

    fn submission(&self, _: &Engine, _: &[u8], _: Moment) -> Result<Submission, String> {
        Err("it has no jobs".to_owned())
    }
}

fn engine(store: Arc<dyn Store>) -> Engine {
    let settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
    let engine = Engine::new(store, Arc::new(ManualClock::at(START)), Arc::new(Seeded::new(1)), settings);
    engine.with_programs([Arc::new(Counts) as Arc<dyn Program>], RunLimits::default())
}

async fn start(engine: &Engine) -> RunId {
    let request = RunRequest { id: None, program: "counts", state: Blob::from(&[0_u8][..]), key: None };
    engine.start_run(request).await.expect("started").id
}

fn signal() -> Signal {
    Signal { name: "a".into(), body: Blob::default() }
}

/// Another node, which writes steps that it computed before the signal came.
struct OtherNode {
    memory: Memory,
    run: Mutex<Option<RunId>>,
    steps: AtomicUsize,
}

impl Around for OtherNode {
    fn before(&self, verb: Verb) -> Passing {
        let run = *self.run.lock().expect("no panic");
        let (memory, steps) = (self.memory.clone(), &self.steps);
        let races = verb == Verb::Advance && run.is_some() && steps.load(Ordering::SeqCst) > 0;
        let run = run.filter(|_| races);
        if races {
            steps.fetch_sub(1, Ordering::SeqCst);
        }
        Box::pin(async move {
            if let Some(run) = run {
                let stored = memory.run(run).await?.expect("it is stored");
                memory.advance(vec![RunStep::of(&stored)], START).await?.remove(0).expect("the first to write");
            }
            Ok(())
        })
    }

    fn after(&self, _: Verb) -> Passing {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn the_answer_to_a_signal_is_the_run_that_has_read_it_whatever_other_nodes_write() {
    let memory = Memory::new();
    let other = Arc::new(OtherNode { memory: memory.clone(), run: Mutex::new(None), steps: AtomicUsize::new(0) });
    let engine = engine(Arc::new(Wrapped::new(Arc::new(memory), Arc::clone(&other))));
    let run = start(&engine).await;
    *other.run.lock().expect("no panic") = Some(run);
    for (before, races) in [(0, 0), (1, 1), (2, 7)] {
        other.steps.store(races, Ordering::SeqCst);
        let answered = engine.signal_run(run, signal()).await.expect("signalled");
        assert_eq!((answered.state[0], other.steps.load(Ordering::SeqCst)), (before + 1, 0), "after {races} races");
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_node_leaves_is_found_soon_after_its_notification() {
    let memory = Memory::new();
    let engine = Arc::new(engine(Arc::new(memory.clone())));
    let run = start(&engine).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let advancer = tokio::spawn(advance_runs(Arc::clone(&engine), async { drop(stopped.await) }, |_| {}));
    let read = async || memory.run(run).await.expect("an answer").expect("it is stored").state[0];
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    memory.signal(run, signal(), START).await.expect("an answer").expect("signalled");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(read().await, 0, "nobody has looked yet");
    engine.notified_runs();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(read().await, 0, "the node that has written it is the first to read it");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(read().await, 1);
    drop(stop);
    advancer.await.expect("it stops");
}
