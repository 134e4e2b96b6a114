//! What can be wrong with a store, and which checks must see it.

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Every 50th batch that it says it keeps, it does not.
    LosesJobs,
    /// It keeps only the first job of a batch.
    TearsBatches,
    /// A key is worth nothing.
    IgnoresKeys,
    /// Every 20th success that it acknowledges, it does not write down.
    LosesSuccess,
    /// A job can be claimed again right after it was claimed.
    HandsOutTwice,
    /// What is due within five seconds is due.
    HandsOutEarly,
    /// A lease that has ten more seconds is over.
    EndsLeasesEarly,
    /// A standstill is no reason to wait for anybody.
    IgnoresStandstills,
    /// An extension is answered, and not made.
    IgnoresHeartbeats,
    /// Any token is good.
    TakesAnyToken,
    /// A run that goes silent does not count.
    ForgivesSilence,
    /// A job that has used up its attempts gets another one.
    IgnoresLimits,
    /// Waits are half as long as they should be.
    HalvesWaits,
    /// The wait is answered as decided, and not observed.
    SkipsWaits,
    /// The newest failure is not in the history.
    ForgetsFailures,
    /// What has ended comes back by itself.
    WakesTheDead,
    /// Dead letters are not marked as such.
    HidesDeadLetters,
    /// One job too many in a count.
    Miscounts,
    /// A queue that was closed stays open.
    IgnoresPauses,
    /// Jobs run after they expired.
    IgnoresExpiry,
    /// A job is gone after a restart.
    ForgetsOnRestart,
    /// A success that is reported again is answered as if it were the first time.
    RepeatsTransitions,
    /// A transition names the attempt before the one that it concerns.
    MisstatesAttempts,
    /// What was cancelled while it ran is said to have waited.
    MisstatesStates,
}

impl Flaw {
    pub(crate) const ALL: [Self; 24] = [
        Self::LosesJobs,
        Self::TearsBatches,
        Self::IgnoresKeys,
        Self::LosesSuccess,
        Self::HandsOutTwice,
        Self::HandsOutEarly,
        Self::EndsLeasesEarly,
        Self::IgnoresStandstills,
        Self::IgnoresHeartbeats,
        Self::TakesAnyToken,
        Self::ForgivesSilence,
        Self::IgnoresLimits,
        Self::HalvesWaits,
        Self::SkipsWaits,
        Self::ForgetsFailures,
        Self::WakesTheDead,
        Self::HidesDeadLetters,
        Self::Miscounts,
        Self::IgnoresPauses,
        Self::IgnoresExpiry,
        Self::ForgetsOnRestart,
        Self::RepeatsTransitions,
        Self::MisstatesAttempts,
        Self::MisstatesStates,
    ];

    /// The checks that may find it.
    pub(crate) const fn seen_by(self) -> &'static [&'static str] {
        match self {
            Self::LosesJobs | Self::ForgetsOnRestart | Self::TearsBatches => &["kept", "one lease"],
            Self::IgnoresKeys => &["once"],
            Self::LosesSuccess | Self::WakesTheDead => &["terminal", "state"],
            Self::HandsOutTwice | Self::EndsLeasesEarly | Self::IgnoresStandstills | Self::TakesAnyToken => {
                &["one lease"]
            }
            Self::IgnoresHeartbeats => &["one lease", "history", "early"],
            Self::HandsOutEarly | Self::SkipsWaits | Self::IgnoresPauses | Self::IgnoresExpiry => &["early"],
            Self::ForgivesSilence | Self::IgnoresLimits => &["attempts", "law"],
            Self::HalvesWaits => &["law"],
            Self::ForgetsFailures => &["history", "state"],
            Self::HidesDeadLetters => &["state"],
            Self::Miscounts => &["counts"],
            Self::RepeatsTransitions | Self::MisstatesAttempts | Self::MisstatesStates => &["transitions"],
        }
    }
}
