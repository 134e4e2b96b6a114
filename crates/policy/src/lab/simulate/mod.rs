//! A cohort of jobs meets an outage.
