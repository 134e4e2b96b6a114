//! Making metrics and registering them.

use prometheus::core::Collector;
use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

/// A collector that is registered. It fails only if a name or a label is wrong or stands twice: they are constants, and
/// every test that starts a server makes all of them.
fn registered<C: Collector + Clone + 'static>(registry: &Registry, made: prometheus::Result<C>) -> C {
    let registered = made.and_then(|made| registry.register(Box::new(made.clone())).map(|()| made));
    registered.unwrap_or_else(|error| unreachable!("a metric is described wrongly: {error}"))
}

pub(super) fn counters(registry: &Registry, name: &str, help: &str, by: &[&str]) -> IntCounterVec {
    registered(registry, IntCounterVec::new(Opts::new(name, help), by))
}

pub(super) fn gauge(registry: &Registry, name: &str, help: &str) -> IntGauge {
    registered(registry, IntGauge::new(name, help))
}

pub(super) fn gauges(registry: &Registry, name: &str, help: &str, by: &[&str]) -> IntGaugeVec {
    registered(registry, IntGaugeVec::new(Opts::new(name, help), by))
}

/// A gauge of seconds.
pub(super) fn seconds(registry: &Registry, name: &str, help: &str) -> Gauge {
    registered(registry, Gauge::new(name, help))
}

pub(super) fn seconds_by(registry: &Registry, name: &str, help: &str, by: &[&str]) -> GaugeVec {
    registered(registry, GaugeVec::new(Opts::new(name, help), by))
}

pub(super) fn histogram(registry: &Registry, name: &str, help: &str, buckets: &[f64]) -> Histogram {
    registered(registry, Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets.to_vec())))
}

pub(super) fn histograms(registry: &Registry, name: &str, help: &str, by: &[&str], buckets: &[f64]) -> HistogramVec {
    registered(registry, HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), by))
}
