//! Where the cases come from: arbitrary JSON, draws and counts, canonical policies.

use super::documents::documents;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use redrive_policy::dialect::Dialect;
use redrive_policy::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Delegation, Disposition, Draw, Jitter, Matcher, Parts, Pattern,
    Policy, Rounding, Rule, Span, Unmatched,
};
use serde_json::{Map, Value, json};

/// Every field name and every word of the five dialects, so that junk gets past the first check.
const WORDS: &str = "\
    max_attempts initial_interval backoff_coefficient max_interval jitter non_retryable_errors on_exhaustion \
    backoff_strategy backoff_type version stop wait retry max_delay strategy delay initial_delay multiplier \
    include_errors exclude_errors policy job base_delay max_retries backoff_factor exponent policies match \
    attempts backoff codes types retryable initial rate max type code elapsed_ms signal delay_ms \
    unrecoverable failures discard dead_letter linear exponential polynomial none fixed full equal \
    decorrelated EXPONENTIAL LINEAR_FULL_JITTER prune requeue_after PT1S P1Y2M3DT4H5M6.7S 1.5s -PT1S success";

pub(crate) fn dialects() -> impl Strategy<Value = Dialect> {
    select(&Dialect::ALL[..])
}

pub(crate) fn draws() -> impl Strategy<Value = Draw> {
    prop_oneof![
        1 => Just(Draw::LOWEST),
        1 => Just(Draw::SUPREMUM),
        6 => any::<u64>().prop_map(Draw::from_bits),
    ]
}

/// Counts of retries, small ones as often as huge ones.
pub(crate) fn counts() -> impl Strategy<Value = u32> {
    prop_oneof![1_u32..50, 1_u32..5_000, 1_u32..=u32::MAX, Just(u32::MAX)]
}

/// Names of errors that hit one another now and then.
pub(crate) const NAMES: [&str; 9] = ["error", "a", "a.b", "a.b.c", "a.*", "*", "ValueError", "auth.denied", "timeout"];

pub(crate) fn texts() -> impl Strategy<Value = String> {
    prop_oneof![3 => select(WORDS.split(' ').collect::<Vec<_>>()).prop_map(str::to_owned), 1 => ".{0,12}"]
}

fn scalars() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..10).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::num::f64::ANY.prop_map(|number| json!(number)),
        texts().prop_map(Value::from),
    ]
}

/// Any JSON at all, with the words of the dialects in it.
pub(crate) fn values() -> impl Strategy<Value = Value> {
    scalars().prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((texts(), inner), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn spans() -> impl Strategy<Value = Span> {
    prop_oneof![
        Just(Span::ZERO),
        Just(Span::MAX),
        (0.0..1e6).prop_map(Span::saturating_ms),
        (0.0..Span::MAX.ms()).prop_map(Span::saturating_ms),
    ]
}

/// Rates so close to 1 that a step is smaller than the rounding of a long product.
pub(crate) fn barely_growing() -> impl Strategy<Value = f64> {
    (0.0..16.0).prop_map(|digits: f64| 1.0 + 10_f64.powf(-digits))
}

fn curves() -> impl Strategy<Value = Curve> {
    let rate = prop_oneof![1.0..4.0, barely_growing(), Just(1.0), 1.0..1e308];
    let exponent = prop_oneof![1.0..5.0, Just(0.0), 0.0..1e308];
    prop_oneof![
        Just(Curve::Fixed),
        Just(Curve::Linear),
        rate.prop_map(|rate| Curve::Exponential { rate }),
        (exponent, 0_u32..3).prop_map(|(exponent, first)| Curve::Polynomial { exponent, first }),
    ]
}

fn jitters() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::None),
        Just(Jitter::FULL),
        Just(Jitter::EQUAL),
        Just(Jitter::OJS),
        (0.0..=1.0).prop_map(Jitter::plus_minus),
        (0.0..1e3, 0.0..1e300).prop_map(|(low, width)| Jitter::Scale { low, high: low + width }),
        Just(Jitter::Decorrelated),
        spans().prop_map(|step| Jitter::Added { step }),
    ]
}

fn backoffs() -> impl Strategy<Value = Backoff> {
    let place = select(&[CapPlace::BeforeJitter, CapPlace::AfterJitter, CapPlace::BeforeAndAfter][..]);
    let rounding = select(&[Rounding::Exact, Rounding::FloorMs][..]);
    (spans(), spans(), curves(), option::of((spans(), place)), jitters(), rounding).prop_map(
        |(initial, offset, curve, cap, jitter, rounding)| {
            let cap = cap.map(|(at, place)| match jitter {
                // The only place that this jitter can have.
                Jitter::Decorrelated => Cap { at, place: CapPlace::AfterJitter },
                _ => Cap { at, place },
            });
            Backoff { initial, offset, curve, cap, jitter, rounding }
        },
    )
}

fn patterns() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        Just(Pattern::Any),
        texts().prop_map(|text| Pattern::exact(&text)),
        select(&NAMES[..]).prop_map(Pattern::dotted_or_any),
    ]
}

fn matchers() -> impl Strategy<Value = Matcher> {
    let list = || vec(patterns(), 0..3);
    (option::of(list()), list(), option::of(list()), option::of(any::<bool>())).prop_map(
        |(include_types, exclude_types, codes, retryable)| Matcher { include_types, exclude_types, codes, retryable },
    )
}

/// Any policy that the canonical form can say.
pub(crate) fn policies() -> impl Strategy<Value = Policy> {
    let rule = (matchers(), option::of(1_u32..), backoffs());
    let rule = rule.prop_map(|(matcher, budget, backoff)| Rule { matcher, budget, backoff });
    let attempts = prop_oneof![
        Just(AttemptLimit::Disabled),
        Just(AttemptLimit::Unset),
        Just(AttemptLimit::Unlimited),
        (0_u32..30).prop_map(AttemptLimit::AtMost),
        any::<u32>().prop_map(AttemptLimit::AtMost),
    ];
    let on_stop = select(&[Disposition::Discard, Disposition::DeadLetter, Disposition::Fail][..]);
    let unmatched = select(&[Unmatched::NonRetryable, Unmatched::PassesThrough][..]);
    let delegated = option::of((option::of(any::<u32>()), attempts.clone()));
    let delegated = delegated.prop_map(|said| said.map(|(job_limit, cap)| Delegation { job_limit, cap }));
    (vec(rule, 1..4), attempts, option::of(spans()), on_stop, unmatched, delegated).prop_map(
        |(rules, attempts, max_elapsed, on_stop, unmatched, delegated)| {
            let parts = Parts { rules, attempts, max_elapsed, on_stop, unmatched, delegated };
            Policy::new(parts).expect("a policy that can be said")
        },
    )
}

/// Any policy, from a dialect or in the canonical form.
pub(crate) fn any_policy() -> impl Strategy<Value = Policy> {
    let read = |dialect: Dialect| documents(dialect).prop_map(move |d| dialect.read(&d).expect("valid").policy);
    prop_oneof![1 => dialects().prop_flat_map(read), 1 => policies()]
}

/// The JSON Pointers of all values in a document, the document itself first.
pub(crate) fn pointers(document: &Value) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut below = |key: &str, value: &Value| {
        let key = key.replace('~', "~0").replace('/', "~1");
        found.extend(pointers(value).into_iter().map(|rest| format!("/{key}{rest}")));
    };
    match document {
        Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| below(&index.to_string(), item)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| below(key, value)),
        _ => {}
    }
    found
}

/// An object with one more field than before, or with the field replaced.
pub(crate) fn with_field(object: &Value, key: &str, value: Value) -> Value {
    let mut fields: Map<String, Value> = object.as_object().cloned().unwrap_or_default();
    fields.insert(key.to_owned(), value);
    Value::Object(fields)
}
