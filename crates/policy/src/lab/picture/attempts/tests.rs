use super::*;

fn attempt(number: u64, from_ms: f64, to_ms: Option<f64>, end: End, says: &str) -> Attempt {
    Attempt { number, from_ms, to_ms, end, says: vec![says.to_owned()] }
}

fn chart(retries: Vec<Retry>) -> Attempts {
    Attempts { title: "a & b".to_owned(), subtitle: "it runs".to_owned(), now_ms: 7_000.0, retries, omitted: 0 }
}

fn retry() -> Retry {
    let attempts = vec![
        attempt(1, 0.0, Some(1_000.0), End::Failure, "failed: A.B"),
        attempt(2, 3_000.0, Some(4_000.0), End::Failure, "failed: A.C"),
    ];
    let next = Some((8_000.0, "attempt 3 in 1 s".to_owned()));
    Retry { name: "step <charge>".to_owned(), state: "waits".to_owned(), attempts, omitted: 0, next }
}

#[test]
fn attempts_are_printed_on_one_line_of_time() {
    let done = Retry {
        name: "step other".to_owned(),
        state: "has succeeded".to_owned(),
        attempts: vec![
            attempt(51, 4_000.0, Some(4_000.0), End::Interrupted, "interrupted"),
            attempt(52, 6_000.0, None, End::Runs, "runs"),
        ],
        omitted: 50,
        next: None,
    };
    let expected = "\
a & b
it runs

step <charge>: waits
█████✗─────────█████✗───────────────────▶
0                                     8 s
  attempt 1   failed: A.B
  attempt 2   failed: A.C
  next        attempt 3 in 1 s

step other: has succeeded
                    ■─────────██████
0                                     8 s
  50 earlier attempts
  attempt 51  interrupted
  attempt 52  runs
";
    assert_eq!(attempts_text(&chart(vec![retry(), done]), 41), expected);
}

#[test]
fn every_text_is_escaped_and_every_attempt_has_a_bar() {
    let mut one = retry();
    one.attempts[0].says.push("<script>".to_owned());
    let picture = attempts_svg(&chart(vec![one]));
    assert!(picture.contains("step &lt;charge&gt;") && picture.contains("&lt;script&gt;"), "{picture}");
    assert!(!picture.contains("<script") && picture.contains("a &amp; b"));
    assert_eq!(picture.matches("r-step-failed\"").count(), 3, "two attempts, and the legend");
    assert_eq!(picture.matches("r-step-retrying\"").count(), 2, "what is next, and the legend");
    assert_eq!(picture.matches("<g>").count(), picture.matches("</g>").count());
}

#[test]
fn what_is_long_is_bounded_and_counted() {
    let says = "x".repeat(10_000);
    let attempts = (0..50).map(|n| attempt(n, n as f64, Some(f64::NAN), End::Failure, &says)).collect();
    let many = Retry { attempts, omitted: 7, ..retry() };
    let all = Attempts { omitted: 3, ..chart(vec![many; 100]) };
    let picture = attempts_svg(&all);
    assert!(picture.contains("83 earlier retries are not drawn") && picture.contains("37 earlier attempts"));
    assert!(picture.len() < 12_000_000, "{}", picture.len());
    assert!(attempts_text(&all, 1_000).contains("83 earlier retries are not shown"));
    let nothing = chart(vec![]);
    assert!(attempts_svg(&nothing).ends_with("</svg>\n") && attempts_text(&nothing, 0).ends_with("it runs\n"));
}
