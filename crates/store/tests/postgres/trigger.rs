//! Faults on demand: triggers that make the database refuse writes, with the error that the real cause has.

use tokio_postgres::Client;

/// When the database reports the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Writing,
    Committing,
}

/// Installs the triggers on all tables of the schema.
pub(crate) async fn arrange(client: &Client, schema: &str, when: When) {
    let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = $1 AND tablename <> 'migrations'";
    let tables = client.query(tables, &[&schema]).await.unwrap();
    assert!(!tables.is_empty(), "the tables are there before the fault");
    // A sequence is what a rollback does not set back.
    let mut sql = format!("CREATE SEQUENCE {schema}.fault MINVALUE -1000000;");
    for table in tables {
        let table: String = table.get(0);
        let trigger = match when {
            When::Writing => {
                format!("CREATE TRIGGER fault BEFORE INSERT OR UPDATE OR DELETE ON {schema}.{table} FOR EACH STATEMENT")
            }
            When::Committing => format!(
                "CREATE CONSTRAINT TRIGGER fault AFTER INSERT OR UPDATE OR DELETE ON {schema}.{table} \
                 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
            ),
        };
        sql.push_str(&format!("{trigger} EXECUTE FUNCTION {schema}.fault();"));
    }
    client.batch_execute(&format!("{}{sql}", function(schema, "00000"))).await.unwrap();
}

/// Lets the next `times` transactions that write fail with this SQLSTATE.
pub(crate) async fn arm(client: &Client, schema: &str, code: &str, times: u32) {
    let count = format!("SELECT setval('{schema}.fault', {})", -i64::from(times));
    client.batch_execute(&format!("{}{count}", function(schema, code))).await.unwrap();
}

/// Waits for the end of transactions that hold locks on jobs: a caller is answered with an error before its transaction
/// is rolled back, and claims pass over rows that are locked.
pub(crate) async fn wait_for_rollback(client: &Client, schema: &str) {
    let tables = ["live", "claims", "ended"].map(|table| format!("{schema}.{table}")).join(", ");
    client.batch_execute(&format!("BEGIN; LOCK TABLE {tables} IN EXCLUSIVE MODE; COMMIT")).await.unwrap();
}

/// Whether all faults that were requested have occurred.
pub(crate) async fn is_spent(client: &Client, schema: &str) -> bool {
    let sql = format!("SELECT last_value >= 0 FROM {schema}.fault");
    client.query_one(&sql, &[]).await.unwrap().get(0)
}

fn function(schema: &str, code: &str) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION {schema}.fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         IF nextval('{schema}.fault') <= 0 THEN \
         RAISE EXCEPTION 'injected fault' USING ERRCODE = '{code}'; END IF; RETURN NULL; END $$;"
    )
}
