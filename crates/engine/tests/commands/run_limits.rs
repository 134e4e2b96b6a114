//! The limits of runs, at their bounds: what is allowed works, and one more ends the run with a result that names the
//! limit.

use super::common::Seeded;
use super::harness::START;
use redrive_engine::{
    Child, Context, Effect, Engine, EngineError, Input, Layers, ManualClock, Program, ProgramStep, RunLimits,
    RunRequest, Settings, Submission,
};
use redrive_policy::Moment;
use redrive_store::{Blob, Memory, MessageBody, Run, RunFilter, Signal};
use std::sync::Arc;

const LIMITS: RunLimits = RunLimits { state_bytes: 100, children: 5, depth: 2, children_of_step: 3, messages: 2 };

/// Does what its state says: `grow 7`, `jobs 3`, `runs 3`, or `deep`. With each signal it enqueues a job.
struct Greedy;

impl Program for Greedy {
    fn kind(&self) -> &'static str {
        "greedy"
    }

    fn version(&self) -> u32 {
        1
    }

    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String> {
        let text = std::str::from_utf8(context.state).map_err(|error| error.to_string())?;
        let (word, number) = text.split_once(' ').unwrap_or((text, "0"));
        let number: u64 = number.trim().parse().map_err(|_| format!("{text} is nothing to do"))?;
        let job = |number| Effect::Enqueue { child: Child::of(context, number), document: b"{}".to_vec() };
        let run = |number, state: &str| {
            let (child, state) = (Child::of(context, number), state.as_bytes().to_vec());
            Effect::StartRun { child, program: "greedy", state }
        };
        let mut state = text.to_owned();
        let effects = match (input, word) {
            (Input::Started, "grow") => {
                state = format!("{word} {number:>0$}", number as usize - word.len() - 1);
                Vec::new()
            }
            (Input::Started, "jobs") => (0..number).map(job).collect(),
            (Input::Started, "runs") => (0..number).map(|number| run(number, "wait 0")).collect(),
            (Input::Started, "deep") => vec![run(0, "deep 0")],
            (Input::Message(MessageBody::Signal(_)), _) => {
                state = format!("{word} {}", number + 1);
                vec![job(1_000 + number)]
            }
            _ => Vec::new(),
        };
        Ok(ProgramStep { state: state.into_bytes(), effects })
    }

    fn submission(&self, _: &Engine, document: &[u8], _: Moment) -> Result<Submission, String> {
        Ok(Submission::new("greedy", "greedy", Blob::from(document)))
    }
}

fn engine() -> Engine {
    let settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
    let clock = Arc::new(ManualClock::at(START));
    let engine = Engine::new(Arc::new(Memory::new()), clock, Arc::new(Seeded::new(1)), settings);
    engine.with_programs([Arc::new(Greedy) as Arc<dyn Program>], LIMITS)
}

async fn start(engine: &Engine, state: &str) -> Result<Run, EngineError> {
    let state = Blob::from(state.as_bytes());
    engine.start_run(RunRequest { id: None, program: "greedy", state, key: None }).await
}

/// Why a run failed; nothing where it goes on.
fn failure(run: &Run) -> String {
    run.end.as_ref().map_or_else(String::new, |end| String::from_utf8_lossy(&end.result).into_owned())
}

async fn fails(state: &str) -> String {
    failure(&start(&engine(), state).await.expect("started"))
}

#[tokio::test]
async fn a_state_may_have_as_many_bytes_as_allowed() {
    assert_eq!(fails("grow 100").await, "");
    assert!(fails("grow 101").await.contains("the state has 101 bytes; at most 100 are allowed (runs.state_bytes)"));
    let long = format!("wait {:>95}", 1);
    assert_eq!(failure(&start(&engine(), &long).await.expect("started")), "");
    let refused = start(&engine(), &format!("{long} ")).await.expect_err("too long");
    assert!(matches!(refused, EngineError::RunTooLarge { found: 101, most: 100 }), "{refused}");
}

#[tokio::test]
async fn a_step_may_start_as_many_jobs_and_runs_as_allowed() {
    for kind in ["jobs", "runs"] {
        assert_eq!(fails(&format!("{kind} 3")).await, "", "{kind}");
        let failure = fails(&format!("{kind} 4")).await;
        assert!(failure.contains("one step starts 4 jobs and runs; at most 3 are allowed"), "{failure}");
    }
}

#[tokio::test]
async fn a_run_may_start_as_many_children_as_allowed_and_reads_its_messages_in_parts() {
    let engine = engine();
    let run = start(&engine, "jobs 3").await.expect("started");
    let signal = || Signal { name: "a".into(), body: Blob::default() };
    for _ in 0..2 {
        let run = engine.signal_run(run.id, signal()).await.expect("signalled");
        assert_eq!(failure(&run), "");
    }
    let run = engine.signal_run(run.id, signal()).await.expect("signalled");
    assert!(failure(&run).contains("the run has 6 jobs and runs; at most 5 are allowed (runs.children)"), "{run:?}");
}

#[tokio::test]
async fn runs_may_be_as_deep_as_allowed() {
    let engine = engine();
    start(&engine, "deep 0").await.expect("started");
    engine.advance().await.expect("advanced");
    let mut runs = engine.list_runs(RunFilter::default(), 10).await.expect("an answer");
    runs.sort_by_key(|run| run.depth);
    let failures: Vec<(u32, String)> = runs.iter().map(|run| (run.depth, failure(run))).collect();
    assert_eq!(failures.iter().map(|(depth, _)| *depth).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!((failures[0].1.as_str(), failures[1].1.as_str()), ("", ""));
    assert!(failures[2].1.contains("the run is 3 levels deep; at most 2 are allowed (runs.depth)"), "{failures:?}");
}
