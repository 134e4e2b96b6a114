//! The tests of fit. Every critical value is that of a false alarm in a thousand; with fixed seeds
//! a test that passes once passes always.

const ALPHA: f64 = 0.001;
/// The two-sided and the one-sided quantile of the normal law at [`ALPHA`].
const TWO_SIDED: f64 = 3.2905;
const ONE_SIDED: f64 = 3.0902;

/// The law of a delay in milliseconds: a continuous one, cut off at a cap where there is one.
pub(super) struct Distribution {
    cdf: Box<dyn Fn(f64) -> f64>,
    cap: Option<f64>,
}

impl Distribution {
    pub(super) fn new(cdf: impl Fn(f64) -> f64 + 'static) -> Self {
        Self { cdf: Box::new(cdf), cap: None }
    }

    pub(super) fn uniform(low: f64, high: f64) -> Self {
        Self::new(move |x| ((x - low) / (high - low)).clamp(0.0, 1.0))
    }

    /// What lies above the cap piles up at it.
    pub(super) fn capped(self, cap: f64) -> Self {
        Self { cap: Some(cap), ..self }
    }

    /// The law of a delay that is too long by this factor, under the same cap.
    fn stretched(&self, factor: f64) -> impl Fn(f64) -> f64 {
        move |x| (self.cdf)(x / factor)
    }

    pub(super) fn fits(&self, sample: &[f64]) -> Result<(), String> {
        fits(sample, &self.cdf, self.cap)
    }

    /// Accepts the sample, and refuses it against the laws that are off by 2.5 %.
    pub(super) fn assert_fits(&self, name: &str, sample: &[f64]) {
        if let Err(why) = self.fits(sample) {
            panic!("{name}: {why}");
        }
        for factor in [1.025, 0.975] {
            let biased = fits(sample, self.stretched(factor), self.cap);
            assert!(biased.is_err(), "{name}: a bias of factor {factor} goes unnoticed");
        }
    }
}

/// The atom at the cap by its binomial law, the rest by Kolmogorov–Smirnov.
fn fits(sample: &[f64], cdf: impl Fn(f64) -> f64, cap: Option<f64>) -> Result<(), String> {
    let below_cap = cap.map_or(1.0, &cdf);
    let mut rest: Vec<f64> = sample.iter().copied().filter(|x| Some(*x) != cap).collect();
    let at_cap = sample.len() - rest.len();
    frequency(at_cap, sample.len(), 1.0 - below_cap).map_err(|why| format!("at the cap: {why}"))?;
    if rest.is_empty() {
        return Ok(());
    }
    let distance = ks_distance(&mut rest, |x| cdf(x) / below_cap);
    let critical = (-(ALPHA / 2.0).ln() / 2.0 / rest.len() as f64).sqrt();
    if distance <= critical { Ok(()) } else { Err(format!("distance {distance}, critical is {critical}")) }
}

/// Whether `hits` of `trials` agree with a probability.
fn frequency(hits: usize, trials: usize, probability: f64) -> Result<(), String> {
    let expected = trials as f64 * probability;
    let tolerance = TWO_SIDED * (expected * (1.0 - probability)).max(0.0).sqrt();
    let off = (hits as f64 - expected).abs();
    // One part in a million for the rounding of a probability that is 0 or 1.
    if off <= tolerance + 1e-6 { Ok(()) } else { Err(format!("{hits} of {trials}, expected are {expected}")) }
}

/// The largest distance between the sample's own distribution function and a continuous one.
fn ks_distance(sample: &mut [f64], cdf: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = |(index, x): (usize, &f64)| {
        let f = cdf(*x);
        (f - index as f64 / n).abs().max(((index + 1) as f64 / n - f).abs())
    };
    sample.iter().enumerate().map(distance).fold(0.0, f64::max)
}

/// Pearson's test of a sample of whole numbers against the probability of each.
pub(super) fn fits_whole(sample: &[f64], distribution: &[(f64, f64)]) -> Result<(), String> {
    if let Some(stray) = sample.iter().find(|x| !distribution.iter().any(|(value, _)| value == *x)) {
        return Err(format!("{stray} is no value of the law"));
    }
    let term = |(value, probability): &(f64, f64)| {
        let observed = sample.iter().filter(|x| *x == value).count() as f64;
        let expected = probability * sample.len() as f64;
        (observed - expected).powi(2) / expected
    };
    let chi_square: f64 = distribution.iter().map(term).sum();
    let critical = chi_square_critical(distribution.len() - 1);
    if chi_square <= critical { Ok(()) } else { Err(format!("chi-square {chi_square}, critical is {critical}")) }
}

/// Wilson and Hilferty's approximation of the quantile, within 2 % from three degrees of freedom up.
fn chi_square_critical(degrees: usize) -> f64 {
    let k = degrees as f64;
    k * (1.0 - 2.0 / (9.0 * k) + ONE_SIDED * (2.0 / (9.0 * k)).sqrt()).powi(3)
}

/// Whether two series of the same length are uncorrelated.
pub(super) fn uncorrelated(a: &[f64], b: &[f64]) -> Result<(), String> {
    let mean = |series: &[f64]| series.iter().sum::<f64>() / series.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let product = |x: &[f64], y: &[f64], mean_x: f64, mean_y: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum()
    };
    let spread = (product(a, a, mean_a, mean_a) * product(b, b, mean_b, mean_b)).sqrt();
    let r = product(a, b, mean_a, mean_b) / spread;
    let critical = TWO_SIDED / (a.len() as f64).sqrt();
    if r.abs() <= critical { Ok(()) } else { Err(format!("correlation {r}, critical is {critical}")) }
}

#[test]
fn the_quantiles_agree_with_the_printed_tables() {
    for (degrees, printed) in [(3, 16.266), (4, 18.467), (6, 22.458), (9, 27.877), (39, 72.055)] {
        let quantile = chi_square_critical(degrees);
        assert!((quantile / printed - 1.0).abs() < 0.02, "{degrees}: {quantile}, printed is {printed}");
    }
}
