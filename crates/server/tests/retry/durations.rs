//! RET-02 and RET-19: durations, the delays that they lead to, and invalid durations.

use crate::common::Harness;
use serde_json::json;

#[tokio::test]
async fn ret_02_durations_of_every_shape_are_the_delay() {
    for (interval, ms) in [
        ("PT0.5S", 500),
        ("PT0.001S", 1),
        ("PT1.25S", 1_250),
        ("PT90S", 90_000),
        ("PT2M", 120_000),
        ("PT1H", 3_600_000),
        ("PT1H2M3.5S", 3_723_500),
        ("P1D", 86_400_000),
        ("P1DT2H", 93_600_000),
        ("P1M", 2_592_000_000_u64),
        ("P1Y", 31_536_000_000),
    ] {
        let harness = Harness::new();
        let policy = json!({ "initial_interval": interval, "max_interval": "P2Y", "jitter": false });
        let id = harness.enqueue(policy).await;
        harness.fetch().await.unwrap();
        assert_eq!(harness.fail(&id).await["retry_delay_ms"], ms, "{interval}");
    }
}

#[tokio::test]
async fn ret_19_an_invalid_duration_is_refused_when_the_job_is_enqueued() {
    let harness = Harness::new();
    for field in ["initial_interval", "max_interval"] {
        for bad in [
            "",
            "P",
            "PT",
            "1s",
            "1",
            "PT-1S",
            "-PT1S",
            "+PT1S",
            "P1W",
            "PT1.5M",
            "PT.5S",
            "PT5.S",
            "pt1s",
            "PT1s",
            " PT1S",
            "PT1S ",
            "PT1S\n",
            "PT1S1M",
            "P1H",
            "PT1D",
            "PTS",
            "P1DT",
            "five minutes",
        ] {
            let options = json!({ "retry": { field: bad } });
            let body = json!({ "type": "a.b", "args": [], "options": options });
            let error = harness.post("/jobs", body).await.expect(422)["error"].clone();
            assert_eq!(error["type"], "validation_error");
            assert_eq!(error["details"]["problems"][0]["path"], format!("/options/retry/{field}"), "{bad:?}");
        }
    }
    assert_eq!(harness.fetch().await, None, "nothing was kept");
}
