//! Large jobs are read when they are claimed, and only then.

use crate::subject::{new_schema, open, plain_client, runtime};
use crate::work::{claim, job, now};
use redrive_store::{Claim, Job, JobId, NewJob, Spec, Store};
use std::sync::Arc;

fn sized(queue: &str, bytes: usize) -> NewJob {
    let plain = job(queue);
    let spec = Spec { body: vec![b' '; bytes].into(), ..(*plain.spec).clone() };
    NewJob { spec: Arc::new(spec), ..plain }
}

fn ids(jobs: &[Job]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id).collect()
}

#[test]
fn large_jobs_are_claimed_in_their_order_and_up_to_the_limit_in_bytes() {
    let schema = new_schema();
    let store = open(&schema);
    runtime().block_on(async {
        let kib = 1 << 10;
        let sizes = [20, 1, 40, 1, 300, 1, 20];
        let jobs: Vec<NewJob> = sizes.iter().map(|size| sized("a", size * kib)).collect();
        let first = sized("b", 50 * kib);
        store.enqueue([jobs.clone(), vec![first.clone()]].concat(), now()).await.unwrap().unwrap();
        let names: Vec<JobId> = jobs.iter().map(|new| new.id).collect();
        // Each job counts 1 KiB more than its body.
        let both = Claim { queues: vec!["b".into(), "a".into()], bytes: 73 * kib, ..claim("a", 9, 1) };
        let taken = store.claim(both, now()).await.unwrap().jobs;
        assert_eq!(ids(&taken), [first.id, names[0]], "the next one would be one byte too many");
        assert!(taken.iter().all(|job| job.spec.body.len() >= 20 * kib));
        let taken = store.claim(Claim { bytes: 43 * kib, ..claim("a", 9, 2) }, now()).await.unwrap().jobs;
        assert_eq!(ids(&taken), names[1..3]);
        let taken = store.claim(Claim { bytes: 0, ..claim("a", 9, 3) }, now()).await.unwrap().jobs;
        assert_eq!(ids(&taken), names[3..4], "the first one always fits");

        let client = plain_client().await;
        let damage = format!("UPDATE {schema}.live SET rest = '' WHERE id = '{}'", names[4]);
        client.batch_execute(&damage).await.unwrap();
        let taken = store.claim(claim("a", 9, 4), now()).await.unwrap().jobs;
        assert_eq!(ids(&taken), names[5..], "a large one that cannot be read is set aside");
        assert_eq!(taken[1].spec.body.len(), 20 * kib);
    });
}
