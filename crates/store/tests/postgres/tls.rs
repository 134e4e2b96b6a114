//! Encrypted connections, with generated certificates.

use crate::cluster::Cluster;
use crate::scratch::Scratch;
use crate::subject::runtime;
use crate::work::{claim, job, now};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use redrive_store::postgres::{Change, Options, Postgres};
use redrive_store::{AttemptOutcome, LeaseRef, Settlement, State, Store, StoreError, Token};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;

/// An authority, and a folder with what it has signed.
struct Certificates {
    folder: Scratch,
    issuer: Issuer<'static, KeyPair>,
}

impl Certificates {
    /// An authority whose certificate is `root.crt`.
    fn new(name: &str) -> Self {
        let (mut authority, key) = (CertificateParams::default(), KeyPair::generate().unwrap());
        authority.distinguished_name.push(DnType::CommonName, name);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let folder = Scratch::new();
        std::fs::write(folder.path().join("root.crt"), authority.self_signed(&key).unwrap().pem()).unwrap();
        Self { folder, issuer: Issuer::new(authority, key) }
    }

    /// Signs a certificate and writes it with its key.
    fn sign(&self, file: &str, common_name: &str, names: &[&str]) {
        let mut certified = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        certified.distinguished_name.push(DnType::CommonName, common_name);
        let key = KeyPair::generate().unwrap();
        let certificate = certified.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(&format!("{file}.crt")), certificate.pem()).unwrap();
        std::fs::write(self.path(&format!("{file}.key")), key.serialize_pem()).unwrap();
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// `name=path`, as an address has it.
    fn parameter(&self, name: &str, file: &str) -> String {
        format!("{name}={}", self.path(file).display().to_string().replace('/', "%2F"))
    }
}

/// A database that encrypts, with a certificate for `localhost`, and the authority that signed it.
fn encrypting() -> (Cluster, Certificates) {
    let certificates = Certificates::new("the authority of this test");
    certificates.sign("server", "the server", &["localhost"]);
    let cluster = Cluster::start_with(&[&format!("--tls={}", certificates.folder.path().display())]);
    (cluster, certificates)
}

async fn open(address: &str) -> Result<Postgres, StoreError> {
    Postgres::open(Options::read(address).unwrap()).await
}

/// The error for an address that does not work; it is never reported as temporary.
async fn refused(address: &str) -> String {
    match open(address).await {
        Err(StoreError::Broken(why)) => why,
        other => panic!("{address} is to be refused for good, not {:?}", other.map(drop)),
    }
}

/// A session of the superuser.
async fn admin(cluster: &Cluster) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(&cluster.address, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Of all connections by their names: how many are encrypted, and how many are not.
async fn connections(cluster: &Cluster, name: &str) -> (i64, i64) {
    let sql = "SELECT count(*) FILTER (WHERE ssl), count(*) FILTER (WHERE NOT ssl) \
               FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name LIKE $1";
    let row = admin(cluster).await.query_one(sql, &[&name]).await.unwrap();
    (row.get(0), row.get(1))
}

/// Enqueues a job, claims it and settles it.
async fn work(store: &Postgres) {
    store.enqueue(vec![job("q")], now()).await.unwrap().unwrap();
    let claimed = store.claim(claim("q", 1, 7), now()).await.unwrap().jobs.remove(0);
    let token = Token::Lease(claimed.lease.expect("a claimed job has a lease").token);
    let settlement = Settlement { lease_ref: LeaseRef { id: claimed.id, token }, report: AttemptOutcome::Done(None) };
    let settled = store.settle(vec![settlement], now()).await.unwrap().remove(0);
    assert_eq!(settled.map(|settled| settled.job().state), Ok(State::Completed));
}

#[test]
fn everything_works_over_connections_that_are_encrypted_and_verified() {
    let (cluster, certificates) = encrypting();
    let root = certificates.parameter("sslrootcert", "root.crt");
    runtime().block_on(async {
        for mode in ["sslmode=require&", "sslmode=verify-full&", "sslmode=verify-ca&", ""] {
            let address = cluster.address_with(&format!("{mode}{root}"));
            let (here, there) = (open(&address).await.unwrap(), open(&address).await.unwrap());
            let (sender, mut heard) = mpsc::unbounded_channel();
            there.listen(move |change| drop(sender.send(change)));
            assert_eq!(heard.recv().await, Some(Change::Anything), "the first word is that it listens");
            here.listen(drop);
            let notified = async { while !matches!(heard.recv().await, Some(Change::Available(..))) {} };
            let message = async {
                loop {
                    // Repeated until it is received: the test cannot see when the connection is up.
                    work(&here).await;
                    tokio::task::yield_now().await;
                }
            };
            let notified = tokio::time::timeout(Duration::from_secs(30), notified);
            tokio::select! {
                notified = notified => notified.expect("a notification"),
                () = message => unreachable!("it speaks for ever"),
            }
            let (encrypted, plain) = connections(&cluster, "redrive%").await;
            assert!(encrypted >= 4 && plain == 0, "{mode}: {encrypted} are encrypted, {plain} are not");
        }
    });
}

#[test]
fn without_sslmode_connections_are_encrypted_where_the_server_can() {
    let ((cluster, _certificates), plain) = (encrypting(), Cluster::start_with(&["--tcp"]));
    runtime().block_on(async {
        for (cluster, encrypts) in [(&cluster, true), (&plain, false)] {
            let store = open(&cluster.address).await.unwrap();
            work(&store).await;
            let (encrypted, plain) = connections(cluster, "redrive%").await;
            assert_eq!((encrypted > 0, plain > 0), (encrypts, !encrypts));
        }
        let store = open(&cluster.address_with("sslmode=disable&application_name=open")).await.unwrap();
        work(&store).await;
        assert_eq!(connections(&cluster, "open").await.0, 0);
    });
}

#[test]
fn a_server_whose_certificate_no_authority_has_signed_is_refused_with_the_way_out() {
    let (cluster, certificates) = encrypting();
    let stranger = Certificates::new("another authority");
    runtime().block_on(async {
        let root = stranger.parameter("sslrootcert", "root.crt");
        for mode in ["require", "verify-ca", "verify-full"] {
            let why = refused(&cluster.address_with(&format!("sslmode={mode}&{root}"))).await;
            let found = format!("found no authority in {} that has signed it", stranger.path("root.crt").display());
            assert!(why.contains(&found) && why.contains("sslrootcert=/path.pem"), "{why}");
        }
        // The same server by a name that its certificate does not have.
        let elsewhere = cluster.address_with(&certificates.parameter("sslrootcert", "root.crt"));
        let elsewhere = elsewhere.replace("@localhost:", "@127.0.0.1:");
        let why = refused(&format!("{elsewhere}&sslmode=verify-full")).await;
        assert!(why.contains("it is not for 127.0.0.1, but for") && why.contains("localhost"), "{why}");
        assert!(why.contains("sslmode=verify-ca"), "{why}");
        work(&open(&format!("{elsewhere}&sslmode=verify-ca")).await.unwrap()).await;
    });
}

#[test]
fn a_server_without_encryption_is_refused_where_it_is_demanded_or_a_password_would_be_seen() {
    let cluster = Cluster::start_with(&["--tcp"]);
    let certificates = Certificates::new("an authority without a server");
    runtime().block_on(async {
        let root = certificates.parameter("sslrootcert", "root.crt");
        let why = refused(&cluster.address_with(&format!("sslmode=require&{root}"))).await;
        assert!(why.contains("offers no encryption at localhost") && why.contains("sslmode=disable"), "{why}");

        // A name of this machine that is not known to be one.
        let elsewhere = cluster.address.replace("postgres@localhost", "postgres:hush@127.1");
        let why = refused(&elsewhere).await;
        assert!(why.contains("password") && why.contains("sslmode=disable") && !why.contains("hush"), "{why}");
        work(&open(&format!("{elsewhere}?sslmode=disable")).await.unwrap()).await;
    });
}

/// As managed databases are set up: plain connections are refused, and a password is required.
#[test]
fn a_password_is_bound_to_the_connection_that_it_is_for() {
    let (mut cluster, certificates) = encrypting();
    let rules =
        "local all all trust\\nhost all postgres 127.0.0.1/32 trust\\nhostssl all app 127.0.0.1/32 scram-sha-256";
    runtime().block_on(async {
        let admin = admin(&cluster).await;
        let file: String = admin.query_one("SHOW hba_file", &[]).await.unwrap().get(0);
        let written = format!("COPY (SELECT regexp_split_to_table(E'{rules}', E'\\n')) TO '{file}'");
        let role = "SET password_encryption = 'scram-sha-256'; CREATE ROLE app SUPERUSER LOGIN PASSWORD 'hush'";
        admin.batch_execute(role).await.unwrap();
        admin.batch_execute(&written).await.unwrap();
    });
    // The rules count from the next start.
    cluster.order("stop");
    cluster.order("start");
    runtime().block_on(async {
        let root = certificates.parameter("sslrootcert", "root.crt");
        let address = cluster.address_with(&root).replace("postgres@", "app:hush@");
        work(&open(&format!("{address}&channel_binding=require")).await.unwrap()).await;
        let why = refused(&address.replace(&root, "sslmode=disable")).await;
        assert!(why.contains("no pg_hba.conf entry") && !why.contains("hush"), "{why}");
        let why = refused(&address.replace("hush@", "wrong@")).await;
        assert!(why.contains("password authentication failed"), "{why}");
    });
}

#[test]
fn a_self_signed_certificate_is_trusted_for_its_server_unless_it_is_an_authority() {
    for (is_ca, taken) in [(IsCa::ExplicitNoCa, true), (IsCa::Ca(BasicConstraints::Unconstrained), false)] {
        let (mut params, key) =
            (CertificateParams::new(vec!["localhost".to_owned()]).unwrap(), KeyPair::generate().unwrap());
        params.is_ca = is_ca;
        let certificates = Certificates::new("replaced below");
        for file in ["server.crt", "root.crt"] {
            std::fs::write(certificates.path(file), params.self_signed(&key).unwrap().pem()).unwrap();
        }
        std::fs::write(certificates.path("server.key"), key.serialize_pem()).unwrap();
        let cluster = Cluster::start_with(&[&format!("--tls={}", certificates.folder.path().display())]);
        let address = cluster.address_with(&certificates.parameter("sslrootcert", "root.crt"));
        runtime().block_on(async {
            if taken {
                work(&open(&address).await.unwrap()).await;
            } else {
                let why = refused(&address).await;
                assert!(why.contains("CaUsedAsEndEntity"), "{why}");
            }
        });
    }
}

#[test]
fn a_client_shows_its_certificate() {
    let (cluster, certificates) = encrypting();
    certificates.sign("client", "ada", &[]);
    let shown = ["sslcert", "sslkey"]
        .map(|name| certificates.parameter(name, &name.replace("ssl", "client.").replace("cert", "crt")));
    let address =
        cluster.address_with(&format!("{}&{}", certificates.parameter("sslrootcert", "root.crt"), shown.join("&")));
    runtime().block_on(async {
        let store = open(&address).await.unwrap();
        work(&store).await;
        let row = admin(&cluster).await.query_one("SELECT max(client_dn) FROM pg_stat_ssl", &[]).await.unwrap();
        assert_eq!(row.get::<_, Option<&str>>(0), Some("/CN=ada"));
    });
}
