//! A server on a store in a folder: its health and its backups.

use crate::common::{Harness, Parts};
use axum::body::Body;
use axum::http::Request;
use redrive_server::{ApiKeys, LocalStore};
use redrive_store::Embedded;
use redrive_store::embedded::Options;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("redrive-http-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server on a store in a folder, without keys unless one is given.
fn harness(dir: &Path, keys: ApiKeys) -> (Harness, Arc<Embedded>) {
    with_backups(dir, keys, None)
}

fn with_backups(dir: &Path, keys: ApiKeys, backups: Option<PathBuf>) -> (Harness, Arc<Embedded>) {
    let (store, _) = Embedded::open(dir, Options::default()).unwrap();
    let store = Arc::new(store);
    let local = Some(LocalStore::new(Arc::clone(&store), backups));
    (Harness::with(Parts { store: Arc::clone(&store) as _, local, keys, ..Parts::default() }), store)
}

#[tokio::test]
async fn health_says_why_the_log_cannot_be_compacted() {
    let folder = Folder::new();
    let (harness, store) = harness(&folder.0, ApiKeys::default());
    let health = harness.get("/health").await.expect(200);
    assert_eq!(health["store"]["compaction"], "not needed yet");
    assert_eq!(health["store"]["warnings"], json!([]));
    // The snapshot is written to a file of this name, which a folder has now.
    let in_the_way = folder.0.join("00000002.draft");
    std::fs::create_dir(&in_the_way).unwrap();
    assert!(store.compact().is_err());
    let health = harness.get("/health").await.expect(200);
    assert_eq!((&health["status"], &health["store"]["compaction"]), (&json!("ok"), &json!("failing")));
    let warning = health["store"]["warnings"][0].as_str().unwrap();
    assert!(warning.contains("00000002.draft") && warning.contains("the log grows"), "{warning}");
    std::fs::remove_dir(&in_the_way).unwrap();
    store.compact().unwrap();
    let health = harness.get("/health").await.expect(200);
    assert_eq!((&health["store"]["compaction"], &health["store"]["warnings"]), (&json!("ok"), &json!([])));
    assert!(health["store"]["snapshot_bytes"].as_u64() > Some(0) && health["store"]["log_bytes"].is_number());
}

#[tokio::test]
async fn health_names_no_place_of_the_machine_to_callers_without_a_key() {
    let folder = Folder::new();
    let key = "0123456789abcdef0123456789abcdef";
    let (harness, store) = harness(&folder.0, ApiKeys::read(key).unwrap());
    std::fs::create_dir(folder.0.join("00000002.draft")).unwrap();
    assert!(store.compact().is_err());
    let health = harness.get("/health").await.expect(200);
    assert_eq!(health["store"]["compaction"], "failing");
    assert!(!health.to_string().contains("draft"), "{health}");
    let request = Request::get("/ojs/v1/health").header("Authorization", format!("Bearer {key}"));
    let health = harness.send(request.body(Body::empty()).unwrap()).await.expect(200);
    assert!(health["store"]["warnings"][0].as_str().unwrap().contains("00000002.draft"), "{health}");
}

#[tokio::test]
async fn a_backup_by_the_server_has_every_job_and_can_be_opened() {
    let folder = Folder::new();
    let backups = folder.0.join("backups");
    std::fs::create_dir_all(&backups).unwrap();
    let (harness, _) = with_backups(&folder.0.join("data"), ApiKeys::default(), Some(backups.clone()));
    for _ in 0..20 {
        harness.enqueue(json!({})).await;
    }
    let made = harness.post("/admin/backup", json!({ "name": "nightly-1" })).await.expect(200);
    let to = backups.join("nightly-1");
    assert_eq!((&made["backup"]["jobs"], &made["backup"]["verified"]), (&json!(20), &json!(true)), "{made}");
    assert_eq!((&made["backup"]["name"], &made["backup"]["path"]), (&json!("nightly-1"), &json!(to)));
    assert!(made["backup"]["bytes"].as_u64() > Some(0), "{made}");
    let (copy, opened) = Embedded::open(&to, Options::default()).unwrap();
    assert_eq!((copy.status().jobs, opened.confirmed), (20, true));
    let error = harness.post("/admin/backup", json!({ "name": "nightly-1" })).await.expect(409)["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("another name"), "{error}");
    // Without a name, and without a body, it has that of the moment.
    let made = harness.call_text("POST", "/ojs/v1/admin/backup", "").await.expect(200);
    assert_eq!(made["backup"]["name"], "redrive-20260213T100000Z");
    assert!(harness.log.lock().unwrap().iter().any(|line| line.contains("redrive-20260213T100000Z: 20 jobs")));
}

#[tokio::test]
async fn a_backup_goes_nowhere_but_below_the_folder_for_backups() {
    let folder = Folder::new();
    let backups = folder.0.join("backups");
    std::fs::create_dir_all(&backups).unwrap();
    let (harness, _) = with_backups(&folder.0.join("data"), ApiKeys::default(), Some(backups.clone()));
    let long = "x".repeat(101);
    for name in ["scheduled-1", "", ".", "..", "../x", "a/b", "/tmp/x", ".hidden", "a b", "a\0b", "\u{fc}", &long] {
        let error = harness.post("/admin/backup", json!({ "name": name })).await.expect(400)["error"].clone();
        assert_eq!(error["details"]["problems"][0]["path"], "/name", "{name:?}: {error}");
    }
    let error = harness.post("/admin/backup", json!({ "nmae": "x" })).await.expect(400)["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("name"), "{error}");
    assert_eq!(std::fs::read_dir(&backups).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 2);
    std::fs::remove_dir(&backups).unwrap();
    let error = harness.post("/admin/backup", json!({ "name": "x" })).await.expect(409)["error"].clone();
    assert_eq!(error["code"], "not_configured", "{error}");
    assert!(!backups.exists(), "a folder that is missing is not made");
}

#[tokio::test]
async fn a_server_without_a_folder_for_backups_says_how_to_get_one() {
    let folder = Folder::new();
    let (harness, _) = harness(&folder.0, ApiKeys::default());
    let error = harness.post("/admin/backup", json!({})).await.expect(409)["error"].clone();
    assert_eq!(error["code"], "not_configured");
    assert!(error["message"].as_str().unwrap().contains("REDRIVE_BACKUPS"), "{error}");
    let error = Harness::new().post("/admin/backup", json!({})).await.expect(409)["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("pg_dump"), "{error}");
}
