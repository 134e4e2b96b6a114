//! Reports of runs, as the engine takes them.

use super::super::{Ending, ReportDefaults, RunReport, Settled, Token};
use super::duration;
use crate::failure::FailureAction;
use crate::run::Run;
use crate::{ClientError, Failure, Refused};
use redrive_engine::{EngineError, FailureReport};
use redrive_ojs::{AttemptError, Limits};
use redrive_policy::{Disposition, Signal};
use redrive_store::{LeaseRef, Transition};
use std::sync::Arc;

/// The lease of a run; `None` for a run of another transport.
pub(super) fn lease_ref(run: &Run) -> Option<LeaseRef> {
    match run.lease.token {
        Token::Lease(id, token) => Some(LeaseRef { id, token: redrive_store::Token::Lease(token) }),
        #[cfg(feature = "http")]
        Token::Wire(_) => None,
    }
}

pub(super) fn ending(
    report: &RunReport,
    report_defaults: &ReportDefaults,
) -> Option<(LeaseRef, redrive_engine::Ending)> {
    let ending = match &report.ending {
        Ending::Done(result) => {
            redrive_engine::Ending::Done(result.as_ref().map(|result| Arc::from(result.get().as_bytes())))
        }
        Ending::Released(delay) | Ending::Declined { wait: delay, .. } => {
            redrive_engine::Ending::Released((*delay).into())
        }
        Ending::Failed(failure) => redrive_engine::Ending::Failed(failed(failure, report_defaults)),
    };
    Some((lease_ref(&report.run)?, ending))
}

fn failed(failure: &Failure, report_defaults: &ReportDefaults) -> FailureReport {
    let code = failure.code().unwrap_or_default();
    let retryable = failure.is_final().then_some(false);
    let details = failure.details_object();
    let error = AttemptError {
        type_name: &failure.type_name,
        code,
        message: &failure.message,
        retryable,
        details: details.as_deref(),
        retry: report_defaults.retry.as_ref().map(|retry| &*retry.text),
        ..AttemptError::default()
    };
    FailureReport {
        error: Arc::from(error.stored(Limits::default().error_bytes)),
        types: vec![failure.type_name.clone().into_owned()],
        code: code.to_owned(),
        retryable,
        signal: match failure.action {
            FailureAction::DeadLetter => Signal::Stop(Disposition::DeadLetter),
            FailureAction::Discard => Signal::Stop(Disposition::Discard),
            FailureAction::Policy | FailureAction::After(_) => Signal::None,
        },
        delay: match failure.action {
            FailureAction::After(delay) => Some(delay.into()),
            _ => None,
        },
        worker_policy: report_defaults.retry.as_ref().map(|retry| Arc::clone(&retry.policy)),
        hold: None,
    }
}

/// What became of a job whose run ended.
pub(super) fn settled(answer: Result<redrive_store::Settled, EngineError>) -> Settled {
    match answer {
        Ok(settled) => Settled::Accepted {
            state: settled.job().state.name().into(),
            retry_after: settled.transition().and_then(Transition::delay).map(duration),
            dead: settled.job().dead,
        },
        Err(error) => Settled::Refused(match super::refusal(error) {
            ClientError::Refused(refused) => refused,
            other => Refused { status: 503, code: "unavailable".to_owned(), message: other.to_string() },
        }),
    }
}
