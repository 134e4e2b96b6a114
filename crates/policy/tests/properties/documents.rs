//! Where the cases come from: valid documents and failures in the words of each dialect.

use super::arbitrary::{NAMES, barely_growing, dialects, values};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use redrive_policy::dialect::Dialect;
use serde_json::{Value, json};

/// An object in which each of the fields is there or not.
fn object(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let (names, values): (Vec<_>, Vec<_>) = fields.into_iter().map(|(name, value)| (name, option::of(value))).unzip();
    values
        .prop_map(move |values| {
            let present = names.iter().zip(values).filter_map(|(name, value)| Some(((*name).to_owned(), value?)));
            Value::Object(present.collect())
        })
        .boxed()
}

fn number<T: Into<Value> + std::fmt::Debug + 'static>(
    range: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Value> {
    range.prop_map(Into::into).boxed()
}

fn word(words: &'static [&'static str]) -> BoxedStrategy<Value> {
    select(words).prop_map(Value::from).boxed()
}

fn flag() -> BoxedStrategy<Value> {
    any::<bool>().prop_map(Value::from).boxed()
}

fn rates() -> BoxedStrategy<Value> {
    prop_oneof![number(1.0..4.0), number(1_u32..20), number(1.0..1e300), number(barely_growing())].boxed()
}

fn seconds() -> BoxedStrategy<Value> {
    prop_oneof![number(0.0..10.0), number(0_u32..100_000), number(0.0..1e300)].boxed()
}

fn names(least: usize) -> BoxedStrategy<Value> {
    vec(select(&NAMES[..]), least..4).prop_map(|names| json!(names)).boxed()
}

fn iso(ms: u64) -> String {
    format!("PT{}.{:03}S", ms / 1000, ms % 1000)
}

fn ojs() -> BoxedStrategy<Value> {
    let rest = object(vec![
        ("max_attempts", number(prop_oneof![0_u32..40, any::<u32>()])),
        ("backoff_coefficient", rates()),
        ("jitter", flag()),
        ("non_retryable_errors", names(0)),
        ("on_exhaustion", word(&["discard", "dead_letter"])),
        ("backoff_strategy", word(&["none", "constant", "linear", "exponential", "polynomial"])),
    ]);
    // The longest interval is never below the first one, which is one second where it is absent.
    let intervals = (option::of(1_u64..300_000), option::of(prop_oneof![0_u64..100_000, 0_u64..u64::MAX / 2]));
    (rest, intervals)
        .prop_map(|(mut document, (initial, beyond))| {
            if let Some(initial) = initial {
                document["initial_interval"] = json!(iso(initial));
            }
            if let Some(beyond) = beyond {
                document["max_interval"] = json!(iso(initial.unwrap_or(1000) + beyond));
            }
            document
        })
        .boxed()
}

fn azolla() -> BoxedStrategy<Value> {
    let null = || Just(Value::Null).boxed();
    object(vec![
        ("version", Just(json!(1)).boxed()),
        (
            "stop",
            object(vec![
                ("max_attempts", prop_oneof![number(1_u32..40), number(1_u32..), null()].boxed()),
                ("max_delay", prop_oneof![seconds(), null()].boxed()),
            ]),
        ),
        (
            "wait",
            object(vec![
                ("strategy", word(&["fixed", "exponential", "exponential_jitter"])),
                ("delay", seconds()),
                ("initial_delay", seconds()),
                ("multiplier", rates()),
                ("max_delay", seconds()),
            ]),
        ),
        ("retry", object(vec![("include_errors", names(0)), ("exclude_errors", names(0))])),
        ("comment", values().boxed()),
    ])
}

fn taskharbor() -> BoxedStrategy<Value> {
    let go = || {
        let parts = (0_u32..100, 0_u32..100_000, select(&["ns", "us", "ms", "s", "m"][..]));
        parts.prop_map(|(hours, number, unit)| json!(format!("{hours}h{number}{unit}"))).boxed()
    };
    let limit = || number(prop_oneof![-2_i64..40, 0_i64..=i64::from(u32::MAX)]);
    let policy = object(vec![
        ("base_delay", go()),
        ("max_delay", go()),
        ("multiplier", rates()),
        ("jitter", number(0.0..=1.0)),
        ("max_attempts", limit()),
    ]);
    object(vec![
        ("policy", prop_oneof![9 => policy, 1 => Just(Value::Null)].boxed()),
        ("job", object(vec![("max_attempts", limit())])),
    ])
}

fn exosphere() -> BoxedStrategy<Value> {
    let ms = || prop_oneof![number(1_u32..100_000), number(1_u64..)].boxed();
    object(vec![
        ("max_retries", number(prop_oneof![0_u32..40, 0_u32..u32::MAX])),
        (
            "strategy",
            word(&[
                "EXPONENTIAL",
                "EXPONENTIAL_FULL_JITTER",
                "EXPONENTIAL_EQUAL_JITTER",
                "LINEAR",
                "LINEAR_FULL_JITTER",
                "LINEAR_EQUAL_JITTER",
                "FIXED",
                "FIXED_FULL_JITTER",
                "FIXED_EQUAL_JITTER",
            ]),
        ),
        ("backoff_factor", ms()),
        ("exponent", number(prop_oneof![1_u64..10, 1_u64..])),
        ("max_delay", prop_oneof![ms(), Just(Value::Null).boxed()].boxed()),
    ])
}

fn mwl() -> BoxedStrategy<Value> {
    let duration = || prop_oneof![0_u64..100_000, 0_u64..u64::MAX / 2].prop_map(|ms| json!(iso(ms))).boxed();
    let matcher = object(vec![("codes", names(1)), ("types", names(1)), ("retryable", flag())]);
    let matcher = matcher.prop_map(|m| if m == json!({}) { json!({"codes": ["*"]}) } else { m });
    let backoff = object(vec![
        ("rate", rates()),
        ("max", duration()),
        ("jitter", word(&["none", "full", "equal", "decorrelated"])),
    ]);
    let policy = (matcher, prop_oneof![1_u32..10, 1_u32..], option::of((backoff, duration())));
    let policy = policy.prop_map(|(matcher, attempts, backoff)| {
        let mut policy = json!({"match": matcher, "attempts": attempts});
        if let Some((mut backoff, initial)) = backoff {
            backoff["initial"] = initial;
            policy["backoff"] = backoff;
        }
        policy
    });
    vec(policy, 1..4).prop_map(|policies| json!({"policies": policies})).boxed()
}

/// A valid document of a dialect.
pub(crate) fn documents(dialect: Dialect) -> BoxedStrategy<Value> {
    match dialect {
        Dialect::Ojs => ojs(),
        Dialect::Azolla => azolla(),
        Dialect::TaskHarbor => taskharbor(),
        Dialect::Exosphere => exosphere(),
        Dialect::Mwl => mwl(),
    }
}

/// A valid failure in the words of a dialect.
pub(crate) fn failures(dialect: Dialect) -> BoxedStrategy<Value> {
    let name = || select(&NAMES[..]).prop_map(Value::from).boxed();
    let named = |key: &'static str, rest: BoxedStrategy<Value>| {
        (name(), rest)
            .prop_map(move |(name, mut failure)| {
                failure[key] = name;
                failure
            })
            .boxed()
    };
    let elapsed = || ("elapsed_ms", number(0.0..1e7));
    match dialect {
        Dialect::Ojs => {
            let codes = ["RETRY", "RETRY", "RETRY", "RETRY", "DISCARD", "DEAD_LETTER", "FAIL", "E42"];
            let code = select(codes.to_vec()).prop_map(Value::from).boxed();
            named("type", object(vec![("code", code)]))
        }
        Dialect::Azolla => named("type", object(vec![("retriable", flag()), elapsed()])),
        Dialect::TaskHarbor => object(vec![("type", name()), ("unrecoverable", flag())]),
        Dialect::Exosphere => prop_oneof![
            4 => Just(json!({})),
            1 => Just(json!({"signal": "prune"})),
            2 => (0_u32..10_000).prop_map(|ms| json!({"signal": "requeue_after", "delay_ms": ms})),
        ]
        .boxed(),
        Dialect::Mwl => {
            let delay = option::of(0_u64..100_000).prop_map(|ms| ms.map_or(Value::Null, |ms| json!(iso(ms)))).boxed();
            named(
                "code",
                object(vec![("type", word(&["error", "timeout", "a"])), ("retryable", flag()), ("delay", delay)]),
            )
        }
    }
}

/// A dialect, a valid document of it, and failures in its words.
pub(crate) fn scripts() -> impl Strategy<Value = (Dialect, Value, Vec<Value>)> {
    dialects().prop_flat_map(|dialect| (Just(dialect), documents(dialect), vec(failures(dialect), 1..30)))
}
