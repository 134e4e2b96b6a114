//! Tables of newer versions.

use crate::subject::{new_schema, open, options, plain_client, runtime};
use crate::work::{job, now};
use redrive_store::{Postgres, Store, StoreError};

#[test]
fn a_node_works_on_newer_tables_that_allow_it_and_refuses_to_start_on_others() {
    let schema = new_schema();
    let running = open(&schema);
    runtime().block_on(async {
        let operator = plain_client().await;
        let migrated = |version: u32, needs: u32| {
            format!("INSERT INTO {schema}.migrations (version, needs) VALUES ({version}, {needs})")
        };
        operator.batch_execute(&migrated(998, 1)).await.unwrap();
        let started = Postgres::open(options(&schema)).await.expect("what came is only more");
        started.enqueue(vec![job("q")], now()).await.unwrap().unwrap();

        operator.batch_execute(&migrated(999, 999)).await.unwrap();
        let refused = Postgres::open(options(&schema)).await.expect_err("what came is something else");
        let StoreError::Broken(why) = refused else { panic!("{refused:?}") };
        assert!(why.contains("version 999") && why.contains("start a newer redrive"), "{why}");
        running.enqueue(vec![job("q")], now()).await.expect("a node that runs goes on").unwrap();
    });
}

#[test]
fn a_schema_may_have_the_name_of_an_sql_keyword() {
    let store = open("select");
    runtime().block_on(async {
        let kept = store.enqueue(vec![job("q")], now()).await.unwrap().unwrap();
        assert_eq!(kept.len(), 1);
        drop(store);
        plain_client().await.batch_execute("DROP SCHEMA \"select\" CASCADE").await.unwrap();
    });
}
