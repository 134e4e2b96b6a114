//! If a role lacks a privilege, the error names the statements that grant it, and they suffice.

use crate::cluster::Cluster;
use crate::subject::{new_schema, runtime};
use redrive_store::StoreError;
use redrive_store::postgres::{Options, Postgres};
use tokio_postgres::{Client, NoTls};

/// A cluster of its own, its superuser, and a role that may log in and nothing else.
struct Database {
    cluster: Cluster,
    admin: Client,
    role: String,
}

impl Database {
    async fn new() -> Self {
        let (cluster, role) = (Cluster::start(), format!("node_{}", new_schema()));
        let (admin, connection) = tokio_postgres::connect(&cluster.address, NoTls).await.unwrap();
        tokio::spawn(connection);
        admin.batch_execute(&format!("CREATE ROLE {role} LOGIN")).await.unwrap();
        Self { cluster, admin, role }
    }

    async fn open(&self, user: &str, schema: &str) -> Result<Postgres, StoreError> {
        let address = self.cluster.address.replacen("postgres@", &format!("{user}@"), 1);
        Postgres::open(Options::read(&address).unwrap().in_schema(schema).unwrap()).await
    }

    /// The role is refused with this message, and accepted once the statements in it were run.
    async fn refused_then_accepted(&self, schema: &str, why: &str, grant: &str) {
        let message = self.open(&self.role, schema).await.expect_err("refused").to_string();
        assert!(message.contains(why) && message.contains(grant), "{message}");
        let statements = message.split_once("in the database postgres: ").expect("statements").1;
        let statements = statements.split_once("; where").map_or(statements, |(statements, _)| statements);
        self.admin.batch_execute(statements).await.unwrap_or_else(|error| panic!("{statements}: {error}"));
        self.open(&self.role, schema).await.unwrap_or_else(|error| panic!("after {statements}: {error}"));
    }
}

#[test]
fn a_missing_privilege_is_named_with_the_statements_that_grant_it() {
    runtime().block_on(async {
        let database = Database::new().await;
        let role = &database.role;

        let none = new_schema();
        let make = format!("CREATE SCHEMA {none} AUTHORIZATION {role};");
        database.refused_then_accepted(&none, "permission denied for database postgres", &make).await;

        let empty = new_schema();
        database.admin.batch_execute(&format!("CREATE SCHEMA {empty}")).await.unwrap();
        let grant = format!("GRANT USAGE, CREATE ON SCHEMA {empty} TO {role};");
        database.refused_then_accepted(&empty, &format!("permission denied for schema {empty}"), &grant).await;

        let others = new_schema();
        database.open("postgres", &others).await.unwrap();
        let grant = format!("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {others} TO {role};");
        database.refused_then_accepted(&others, &format!("permission denied for schema {others}"), &grant).await;
    });
}

/// The set-up of the guide, statement by statement: no privilege on the database is needed.
#[test]
fn the_setup_of_the_guide_works_on_an_empty_cluster() {
    const GUIDE: &str = include_str!("../../../../docs/guides/postgres.md");
    let blocks: Vec<&str> = GUIDE.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let block = |first: &str| blocks.iter().find(|block| block.starts_with(first)).expect("in the guide");
    runtime().block_on(async {
        let database = Database::new().await;
        for statement in block("CREATE ROLE redrive_node").split_inclusive(';') {
            database.admin.batch_execute(statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        let address =
            format!("{}/app", database.cluster.address.strip_suffix("/postgres").expect("the database of the cluster"));
        let (admin, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
        tokio::spawn(connection);
        admin.batch_execute(block("CREATE SCHEMA redrive")).await.unwrap();
        let node = Options::read(&address.replacen("postgres@", "redrive_node@", 1)).unwrap();
        Postgres::open(node).await.expect("the role has all that it needs");
        admin.batch_execute(block("GRANT USAGE ON SCHEMA redrive TO app_user;\nGRANT EXECUTE")).await.unwrap();
        let app = address.replacen("postgres@", "app_user@", 1);
        let (app, connection) = tokio_postgres::connect(&app, NoTls).await.unwrap();
        tokio::spawn(connection);
        app.query_one("SELECT redrive.enqueue('email.send')", &[]).await.expect("the application can enqueue");
        app.batch_execute("CREATE TABLE orders (id bigint)").await.expect("and has tables of its own");
        let own = "SELECT schemaname FROM pg_tables WHERE tablename = 'orders'";
        assert_eq!(app.query_one(own, &[]).await.unwrap().get::<_, String>(0), "public");
    });
}
