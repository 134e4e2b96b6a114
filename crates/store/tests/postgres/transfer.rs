//! Copies of whole stores between folders and databases.

use crate::scratch::Scratch;
use crate::subject::{new_schema, open, options, plain_client, runtime};
use crate::work::{claim, job, now};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use redrive_store::conformance::Subject;
use redrive_store::conformance::model::{agree, steps};
use redrive_store::embedded::{self, Embedded, FolderSource, FolderTarget};
use redrive_store::postgres::{DatabaseSource, DatabaseTarget};
use redrive_store::transfer::{Copied, CopyError, CopyProgress, Phase, Source, Target, copy};
use redrive_store::{AttemptOutcome, LeaseRef, NewJob, Settlement, State, Store, Token};
use std::future::Future;
use std::ops::AddAssign;
use std::path::PathBuf;
use std::pin::Pin;

/// A folder in which a case runs.
struct InFolder(PathBuf);

impl Subject for InFolder {
    fn open(&self) -> Box<dyn Store> {
        self.reopen()
    }

    fn reopen(&self) -> Box<dyn Store> {
        Box::new(Embedded::open(&self.0, embedded::Options::default()).unwrap().0)
    }

    fn wait(&self, work: Pin<Box<dyn Future<Output = ()> + '_>>) {
        runtime().block_on(work);
    }
}

async fn moved(from: &mut dyn Source, to: impl Target + 'static) -> Copied {
    copy(from, Box::new(to), &mut |_| {}).await.unwrap()
}

/// Everything that a source has.
async fn all(source: &mut dyn Source) -> String {
    let mut text = format!("{:?}", source.queues().await.unwrap());
    let mut last = None;
    loop {
        let page = source.after(last).await.unwrap();
        let Some(newest) = page.last() else { break };
        last = Some(newest.job.id);
        text.push_str(&format!("{page:?}"));
    }
    let mut last = None;
    loop {
        let page = source.runs_after(last).await.unwrap();
        let Some(newest) = page.last() else { break };
        last = Some(newest.run.id);
        text.push_str(&format!("{page:?}"));
    }
    let mut last = None;
    loop {
        let page = source.groups_after(last).await.unwrap();
        let Some(newest) = page.last() else { return text };
        last = Some(newest.group.clone());
        text.push_str(&format!("{page:?}"));
    }
}

/// Totals of all cases, so that a test fails if it copied nothing of some kind.
#[derive(Default)]
struct Tally {
    jobs: [usize; 8],
    others: [usize; 8],
}

impl AddAssign<&Copied> for Tally {
    fn add_assign(&mut self, copied: &Copied) {
        self.jobs.iter_mut().zip(copied.jobs).for_each(|(sum, count)| *sum += count);
        let Copied { dead, failures, keys, queues, paused, runs, messages, limits, .. } = *copied;
        let others = [dead, failures, keys, queues, paused, runs, messages, limits];
        self.others.iter_mut().zip(others).for_each(|(sum, count)| *sum += count);
    }
}

#[test]
fn random_jobs_travel_from_folder_to_database_to_database_to_folder_unchanged() {
    let scratch = Scratch::new();
    let mut runner = TestRunner::deterministic();
    let histories = steps(80);
    let mut tally = Tally::default();
    for number in 0..24 {
        let (first, last) = (scratch.path().join(format!("{number}")), scratch.path().join(format!("{number} back")));
        let history = histories.new_tree(&mut runner).unwrap().current();
        agree(&InFolder(first.clone()), &history).unwrap();
        let schemas = [new_schema(), new_schema()];
        let copied = runtime().block_on(async {
            let mut folder = FolderSource::open(&first).unwrap();
            let before = all(&mut folder).await;
            let out = moved(&mut folder, DatabaseTarget::create(options(&schemas[0])).await.unwrap()).await;
            let mut database = DatabaseSource::open(options(&schemas[0])).await.unwrap();
            let across = moved(&mut database, DatabaseTarget::create(options(&schemas[1])).await.unwrap()).await;
            let mut database = DatabaseSource::open(options(&schemas[1])).await.unwrap();
            let back = moved(&mut database, FolderTarget::create(&last).unwrap()).await;
            assert_eq!((&out, &out), (&across, &back));
            assert_eq!(all(&mut FolderSource::open(&last).unwrap()).await, before, "history {number}");
            out
        });
        let findings = embedded::check(&last, &mut |_| {}).unwrap();
        assert!(findings.is_sound(), "history {number}: {findings:?}");
        tally += &copied;
    }
    assert!(tally.jobs.iter().chain(&tally.others).all(|count| *count > 0), "{:?} {:?}", tally.jobs, tally.others);
}

/// A folder with this many jobs, of which the first has a lease.
fn filled(dir: &std::path::Path, jobs: usize) -> redrive_store::Job {
    let (store, _) = Embedded::open(dir, embedded::Options::default()).unwrap();
    runtime().block_on(async {
        let new: Vec<NewJob> = (0..jobs).map(|_| job("q")).collect();
        store.enqueue(new, now()).await.unwrap().unwrap();
        store.claim(claim("q", 1, 7), now()).await.unwrap().jobs.remove(0)
    })
}

#[test]
fn an_old_token_settles_on_the_copy() {
    let scratch = Scratch::new();
    let held = filled(&scratch.path().join("from"), 3);
    let schema = new_schema();
    runtime().block_on(async {
        let mut from = FolderSource::open(scratch.path().join("from")).unwrap();
        moved(&mut from, DatabaseTarget::create(options(&schema)).await.unwrap()).await;
    });
    let store = open(&schema);
    runtime().block_on(async {
        let token = held.lease.as_ref().map(|lease| lease.token).unwrap();
        let lease_ref = LeaseRef { id: held.id, token: Token::Lease(token) };
        let settled =
            store.settle(vec![Settlement { lease_ref, report: AttemptOutcome::Done(None) }], now()).await.unwrap();
        assert_eq!(settled[0].as_ref().map(|settled| settled.job().state), Ok(State::Completed));
        assert_eq!(store.claim(claim("q", 9, 8), now()).await.unwrap().jobs.len(), 2);
    });
}

#[test]
fn a_store_that_a_node_has_is_not_copied_and_a_node_gets_none_that_is_being_copied() {
    let schema = new_schema();
    let node = open(&schema);
    runtime().block_on(async {
        node.enqueue(vec![job("q")], now()).await.unwrap().unwrap();
        let Err(CopyError::Failed(why)) = DatabaseSource::open(options(&schema)).await else { panic!("it is in use") };
        assert!(why.contains("in use by") && why.contains("stop the servers"), "{why}");
        drop(node);
        let source = DatabaseSource::open(options(&schema)).await.unwrap_or_else(|error| panic!("it is free: {error}"));
        let refused = redrive_store::Postgres::open(options(&schema)).await.unwrap_err();
        assert!(refused.to_string().contains("is being copied"), "{refused}");
        drop(source);
    });
}

#[test]
fn entries_in_the_inbox_keep_a_copy_from_starting_and_later_ones_are_counted() {
    let scratch = Scratch::new();
    let schema = new_schema();
    let node = open(&schema);
    runtime().block_on(async {
        node.enqueue(vec![job("q")], now()).await.unwrap().unwrap();
        drop(node);
        let app = plain_client().await;
        let enqueue = format!("SELECT {schema}.enqueue('a')");
        let mut source = DatabaseSource::open(options(&schema)).await.unwrap_or_else(|error| panic!("{error}"));
        app.query_one(&enqueue, &[]).await.unwrap();
        let copied = moved(&mut source, FolderTarget::create(scratch.path().join("to")).unwrap()).await;
        assert_eq!((copied.total(), copied.left_behind), (1, 1));
        drop(source);
        let Err(CopyError::Refused(why)) = DatabaseSource::open(options(&schema)).await else { panic!("not empty") };
        assert!(why.contains("found 1 jobs in the inbox"), "{why}");
    });
}

#[test]
fn a_target_that_is_not_empty_is_refused_and_says_what_was_found() {
    let scratch = Scratch::new();
    filled(&scratch.path().join("from"), 2);
    filled(&scratch.path().join("full"), 1);
    let schema = new_schema();
    runtime().block_on(async {
        let mut from = FolderSource::open(scratch.path().join("from")).unwrap();
        moved(&mut from, DatabaseTarget::create(options(&schema)).await.unwrap()).await;
        let Err(CopyError::Refused(why)) = DatabaseTarget::create(options(&schema)).await else { panic!("not empty") };
        assert!(why.contains("found 2 jobs, 1 queues") && why.contains("?schema="), "{why}");
        let Err(CopyError::Refused(why)) = FolderTarget::create(scratch.path().join("full")) else {
            panic!("not empty")
        };
        assert!(why.contains("found a store in"), "{why}");
        let missing = DatabaseSource::open(options(&new_schema())).await;
        assert!(matches!(missing, Err(CopyError::Failed(why)) if why.contains("there is no store")));
    });
}

/// Interrupts a copy.
#[test]
fn an_interrupted_copy_leaves_no_store_and_runs_again() {
    let scratch = Scratch::new();
    let (from, to) = (scratch.path().join("from"), scratch.path().join("to"));
    filled(&from, 1_200);
    let schema = new_schema();
    for interrupted in [Phase::Copying, Phase::Verifying] {
        runtime().block_on(async {
            let targets: [Box<dyn Target>; 2] = [
                Box::new(FolderTarget::create(&to).unwrap()),
                Box::new(DatabaseTarget::create(options(&schema)).await.unwrap()),
            ];
            for target in targets {
                let from = from.clone();
                let stopped = tokio::spawn(async move {
                    let mut source = FolderSource::open(from).unwrap();
                    let mut stop = |seen: CopyProgress| {
                        assert!(seen.phase != interrupted || seen.done < 500, "this is where it is stopped");
                    };
                    copy(&mut source, target, &mut stop).await
                });
                assert!(stopped.await.unwrap_err().is_panic());
            }
            assert!(!to.exists(), "there is no folder that looks like a store");
        });
    }
    runtime().block_on(async {
        let mut source = FolderSource::open(&from).unwrap();
        let copied = moved(&mut source, FolderTarget::create(&to).unwrap()).await;
        assert_eq!(copied.total(), 1_200);
        let copied = moved(&mut source, DatabaseTarget::create(options(&schema)).await.unwrap()).await;
        assert_eq!((copied.total(), copied.jobs[State::Active as usize]), (1_200, 1));
        assert!(!scratch.path().join("to.copying").exists());
    });
}
