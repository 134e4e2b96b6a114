//! Measuring short operations so that the figures of one run can be compared.

use std::time::Instant;

/// One thing to measure: a name, and a function that does it `operations` times.
pub struct Contender<'a> {
    /// Who does it.
    pub name: &'static str,
    /// True for code of this project, and for what it is compared with in itself.
    pub ours: bool,
    /// How many operations one slice holds.
    pub operations: u32,
    /// One slice.
    pub slice: Box<dyn FnMut() + 'a>,
}

/// What was measured of one contender.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Who did it.
    pub name: &'static str,
    /// True for code of this project, and for what it is compared with in itself.
    pub ours: bool,
    /// Nanoseconds for one operation: the median over all slices.
    pub median_ns: f64,
    /// The same of the fastest slice.
    pub least_ns: f64,
}

/// Measures contenders in turns, slice by slice, so that whatever slows the machine down for a
/// while slows all of them down, and drops out of the medians.
#[must_use]
pub fn measure(slices: usize, mut contenders: Vec<Contender<'_>>) -> Vec<Figure> {
    let mut times_ns = vec![Vec::with_capacity(slices); contenders.len()];
    for _ in 0..slices {
        for (contender, times) in contenders.iter_mut().zip(&mut times_ns) {
            let start = Instant::now();
            (contender.slice)();
            times.push(start.elapsed().as_nanos() as f64 / f64::from(contender.operations));
        }
    }
    let figures = contenders.iter().zip(&mut times_ns).map(|(contender, times)| {
        times.sort_by(f64::total_cmp);
        let (name, ours) = (contender.name, contender.ours);
        Figure { name, ours, median_ns: times[times.len() / 2], least_ns: times[0] }
    });
    figures.collect()
}

/// What the figures of a comparison are measured against.
#[derive(Clone, Copy, Debug)]
pub enum Against {
    /// The fastest peer.
    FastestPeer,
    /// The fastest peer, after the cost of the first figure is taken off: what is added to it.
    FastestPeerAddedToFirst,
    /// The first figure.
    First,
}

/// The figures of one question, side by side.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// A word for programs.
    pub name: &'static str,
    /// The question, for people.
    pub title: &'static str,
    /// All figures.
    pub figures: Vec<Figure>,
    /// What they are measured against.
    pub against: Against,
}

impl Comparison {
    /// What one operation costs, in nanoseconds, apart from what it would cost anyway.
    #[must_use]
    pub fn cost_ns(&self, figure: &Figure) -> f64 {
        match self.against {
            Against::FastestPeerAddedToFirst => figure.median_ns - self.figures[0].median_ns,
            Against::FastestPeer | Against::First => figure.median_ns,
        }
    }

    /// The cost in terms of what it is measured against.
    #[must_use]
    pub fn ratio(&self, figure: &Figure) -> f64 {
        let peers = self.figures.iter().filter(|figure| !figure.ours).map(|figure| self.cost_ns(figure));
        let reference = match self.against {
            Against::First => self.figures[0].median_ns,
            _ => peers.fold(f64::INFINITY, f64::min),
        };
        self.cost_ns(figure) / reference
    }

    /// The worst ratio among the figures that are ours and have this start of a name.
    #[must_use]
    pub fn worst(&self, prefix: &str) -> f64 {
        let chosen = self.figures.iter().filter(|figure| figure.ours && figure.name.starts_with(prefix));
        chosen.map(|figure| self.ratio(figure)).fold(0.0, f64::max)
    }
}
