//! The list of all cases. A case that is missing here is dead code, which the compiler reports.

/// Passes the names of all cases, grouped by file, to another macro.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_conformance_case {
    ($($then:tt)+) => {
        $($then)+! {
            enqueue {
                enqueue_returns_the_job_as_it_is_stored,
                enqueue_of_nothing_stores_nothing,
                enqueue_scheduled_waits_for_its_time,
                enqueue_scheduled_for_now_or_earlier_is_available_at_once,
                enqueue_pending_waits_for_activation,
                enqueue_refuses_a_taken_id_and_stores_nothing_of_the_batch,
                enqueue_refuses_an_id_twice_in_one_batch,
                enqueue_stores_a_batch_in_the_order_given,
                enqueue_returns_the_job_of_a_known_key_unchanged,
                enqueue_knows_a_key_for_as_long_as_its_job_is_stored,
                enqueue_knows_a_key_within_one_batch,
                enqueue_checks_the_key_before_the_id,
                enqueue_accepts_a_key_again_once_its_job_is_removed,
                enqueue_accepts_an_expired_job_that_is_never_claimed,
            }
            depth {
                depth_refuses_what_would_pass_the_bound,
                depth_counts_the_jobs_that_wait,
                depth_refuses_a_batch_as_a_whole,
                depth_is_what_each_job_allows,
                depth_never_refuses_what_comes_back,
                depth_is_not_asked_for_jobs_of_runs,
                depth_is_checked_after_ids_and_keys,
                depth_counts_what_a_job_replaces,
                depth_survives_a_restart,
                race_of_many_producers_fills_a_queue_exactly,
            }
            unique {
                unique_refuses_a_duplicate_and_its_whole_batch,
                unique_holds_in_each_state_that_has_not_ended,
                unique_looks_at_the_states_that_the_new_job_names,
                unique_counts_the_period_from_the_creation_of_the_stored_job,
                unique_ignores_a_duplicate,
                unique_conflicts_within_one_batch,
                unique_checks_idempotency_keys_and_ids_first,
                unique_keys_are_free_once_their_job_is_removed,
                unique_is_not_checked_again_when_a_job_becomes_available,
                unique_refuses_a_redrive_while_another_job_has_the_key,
                unique_follows_the_key_that_a_redrive_brings,
                unique_survives_a_restart,
            }
            unique_replace {
                unique_replaces_a_job_in_any_state_that_has_not_ended,
                unique_does_not_replace_what_has_ended,
                unique_counts_what_an_earlier_job_of_the_batch_has_replaced,
                unique_replaces_all_of_which_it_is_a_duplicate,
                unique_keeps_the_schedule_of_the_job_that_it_replaces,
                unique_tells_the_run_of_a_job_that_is_replaced,
                unique_refuses_the_step_of_a_run_with_a_duplicate,
                unique_jobs_of_runs_replace_others,
                race_of_one_unique_key_stores_one_job,
                race_of_replacements_leaves_one_job,
                race_of_a_redrive_and_a_new_job_has_one_winner,
            }
            claim {
                claim_takes_queues_in_the_order_given,
                claim_takes_higher_priorities_first,
                claim_takes_first_what_became_available_first,
                claim_takes_equal_times_by_id,
                claim_returns_at_most_what_is_asked_and_each_job_once,
                claim_ends_before_it_has_too_many_bytes,
                claim_of_an_unknown_queue_returns_nothing_and_creates_none,
                claim_passes_over_paused_queues,
                claim_passes_over_what_has_expired,
                claim_takes_a_job_until_just_before_it_expires,
                claim_counts_the_run_and_writes_the_lease,
                claim_numbers_the_leases_of_a_job,
                claim_goes_by_the_lease_and_timeout_of_the_job_before_its_own,
            }
            limits {
                limit_of_concurrency_holds_until_a_run_ends,
                limit_of_concurrency_makes_room_however_a_run_ends,
                limit_of_zero_holds_the_group,
                limit_of_a_rate_counts_starts_of_any_period,
                limit_of_a_throttle_spaces_starts_evenly,
                limit_requires_all_bounds_together,
                limit_delays_no_job_of_other_groups,
                limit_keeps_the_order_among_all_lanes,
                limit_of_a_key_spans_queues,
                limit_is_the_one_that_each_job_brings,
                limit_counts_again_what_is_retried_and_redriven,
                limit_leaves_no_room_for_what_has_expired,
                limit_survives_a_restart,
                limit_ends_with_the_bytes_of_a_claim,
            }
            limit_settings {
                limit_of_a_queue_holds_all_its_jobs,
                limit_of_a_queue_leaves_other_queues,
                limit_of_a_type_holds_jobs_that_were_enqueued_under_it,
                limit_that_is_set_replaces_what_jobs_bring,
                limit_of_every_group_must_be_satisfied,
                limit_group_that_is_held_opens_at_its_time,
                limit_settings_survive_a_restart,
                limit_that_is_set_keeps_its_queue,
                limit_standings_count_what_waits_and_what_runs,
            }
            lease {
                ret_13_a_heartbeat_extends_the_lease,
                extend_with_a_span_of_its_own_counts_for_one_heartbeat,
                extend_never_shortens_the_lease_that_a_job_asked_for,
                extend_leaves_the_deadline,
                extend_renews_a_lease_that_ran_out_but_was_not_ended,
                extend_does_not_restore_a_lease_that_was_ended,
                extend_answers_each_lease_separately,
                lease_with_a_stale_token_is_refused_as_stale,
                lease_with_a_wrong_token_is_refused_as_wrong,
                lease_with_a_token_of_the_future_meets_the_wrong_state,
                lease_of_another_worker_is_refused,
                lease_that_was_taken_without_a_worker_accepts_any,
                lease_without_a_token_is_the_present_one,
                lease_of_an_unknown_job_is_refused,
                lease_of_a_job_that_is_not_active_meets_the_wrong_state,
                lease_ends_when_the_job_is_cancelled,
                lease_past_its_end_may_settle_while_nothing_ended_it,
            }
            settle {
                settle_done_completes_the_job_and_keeps_the_result,
                settle_done_may_return_nothing,
                settle_done_again_with_the_same_token_changes_nothing,
                settle_done_again_in_one_batch_gets_the_same_answer,
                settle_again_in_any_other_way_is_refused,
                settle_done_again_after_a_redrive_is_stale,
                settle_failed_again_with_the_same_token_is_stale,
                settle_answers_each_report_separately_and_in_order,
            }
            failure {
                ret_01_no_more_runs_than_the_policy_allows,
                ret_01_a_release_spends_no_run,
                ret_11_a_retry_is_not_available_before_its_time,
                ret_12_a_lease_that_runs_out_is_a_failed_run,
                ret_14_attempt_errors_and_next_retry_are_tracked,
                ret_15_the_latest_failures_are_kept,
                ret_17_both_dispositions_of_exhausted_jobs,
                fail_asks_for_a_decision_on_the_stored_job,
                fail_continues_from_the_history_of_the_policy,
                fail_with_a_stop_signal_stops_whatever_the_policy_says,
                fail_takes_the_due_time_of_the_decision,
                fail_with_no_delay_waits_for_the_next_promotion,
                fail_that_asks_for_a_requeue_is_not_a_failure,
                fail_by_a_deadline_and_by_a_report_are_decided_alike,
            }
            release {
                release_without_a_delay_puts_the_job_at_the_end_of_the_queue,
                release_with_a_delay_waits_until_it_is_due,
                release_too_often_is_refused_and_the_run_goes_on,
                releases_are_counted_from_zero_after_a_failure,
                release_leaves_the_history_of_the_policy,
            }
            reclaim {
                reclaim_ends_a_run_at_the_end_of_its_lease_and_not_before,
                reclaim_says_why_a_run_is_overdue,
                reclaim_counts_a_run_as_stalled_before_its_deadline,
                reclaim_takes_the_longest_overdue_first_and_at_most_the_limit,
                reclaim_goes_by_the_deadline_whatever_the_heartbeats,
                reclaim_after_a_standstill_grants_every_run_one_lease_period,
                reclaim_after_a_standstill_goes_by_heartbeats_received_since,
                reclaim_after_a_short_standstill_grants_no_more_than_it_took,
                reclaim_after_a_standstill_starts_when_next_wake_says,
                reclaim_after_a_standstill_takes_first_what_was_overdue_first,
            }
            promote {
                promote_goes_by_due_time_and_stops_at_the_limit,
                promote_makes_the_job_available_from_now,
                promote_is_not_stopped_by_a_paused_queue,
                promote_discards_what_has_expired_in_every_waiting_state,
                promote_ends_what_failed_and_expired_as_its_policy_says,
                promote_discards_first_and_counts_both_against_the_limit,
                promote_discards_what_is_both_due_and_expired,
            }
            queues {
                held_jobs_delay_no_other_and_are_not_counted,
                held_jobs_are_held_in_every_waiting_state,
                held_jobs_go_out_in_order_once_their_queue_is_free,
                held_jobs_expire,
                held_jobs_do_not_wake,
                held_queues_wake_for_leases_and_expiries,
                held_queues_are_passed_over_by_a_claim,
                held_queues_return_no_job_whatever_made_it_available,
                a_held_queue_is_not_paused_and_holding_does_not_end_a_pause,
                paused_queues_are_listed_by_name,
                queues_take_turns_when_they_are_promoted,
                an_empty_queue_is_removed_on_request_and_created_again,
                old_queues_without_jobs_are_pruned,
                a_job_enqueued_while_its_queue_is_removed_is_not_lost,
            }
            redrive {
                cancel_ends_whatever_has_not_ended,
                cancel_of_what_has_ended_is_refused,
                activate_makes_a_pending_job_available,
                activate_of_anything_else_is_refused,
                redrive_starts_a_new_generation_in_every_ended_state,
                redrive_keeps_the_failures_and_counts_generations,
                redrive_resets_the_count_of_releases,
                redrive_may_replace_the_spec_of_the_job,
                redrive_clears_the_time_at_which_the_job_expires,
                redrive_stores_the_body_that_it_replaces_and_by_whom,
                redrive_of_what_has_not_ended_is_refused,
                remove_deletes_a_job_that_has_ended,
                remove_of_what_has_not_ended_is_refused,
                remove_frees_the_id,
                prune_goes_by_the_time_of_the_end,
                prune_takes_first_what_ended_first_and_at_most_the_limit,
                prune_leaves_what_has_not_ended,
            }
            transitions {
                transition_of_success_names_the_run_and_its_result,
                transition_of_success_is_returned_once,
                transition_of_a_failure_has_its_record,
                transition_of_a_failure_names_the_policy_that_the_worker_brought,
                transition_of_a_release_names_the_run_that_was_released,
                transition_of_a_requeue_has_a_verdict_and_no_failure,
                transition_of_an_overdue_run_says_why,
                transition_of_a_promotion_tells_due_from_expired,
                transition_of_a_cancellation_names_the_state_before,
                transition_of_an_activation_and_of_a_redrive,
            }
            view {
                get_of_an_unknown_job_returns_nothing,
                get_many_answers_jobs_of_all_states_in_the_order_asked_for,
                list_is_newest_first_and_in_pages,
                list_continues_after_an_entry_whatever_was_added_or_removed,
                list_of_dead_letters_begins_with_what_died_last,
                list_ends_a_page_before_it_has_too_many_bytes,
                list_without_payloads_has_everything_else,
                list_shows_what_fits_the_filter,
                queues_count_their_jobs_by_state,
                loads_of_queues_tell_what_is_due_and_what_comes_next,
                queues_stay_when_their_jobs_are_gone,
                pause_returns_the_queue_and_creates_it_if_missing,
                pause_refuses_an_unknown_queue_unless_it_may_create_it,
                pause_does_not_stop_running_jobs,
                next_wake_is_the_earliest_of_all_times,
                next_wake_forgets_what_has_ended,
                next_wake_may_lie_in_the_past,
            }
            race {
                race_of_two_workers_for_one_job,
                race_of_many_workers_claims_every_job_once,
                race_of_success_and_failure_has_one_winner,
                race_of_repeated_success_gets_one_answer,
                race_of_one_key_stores_one_job,
            }
            restart {
                restart_of_an_empty_store_is_empty,
                restart_keeps_a_job_in_every_state,
                restart_keeps_the_whole_spec_of_a_job,
                restart_keeps_leases_and_their_numbers,
                restart_keeps_the_history_and_the_failures,
                restart_keeps_idempotency_keys,
                restart_keeps_taken_ids,
                restart_keeps_pauses_and_counts,
                restart_keeps_the_order_of_the_queue,
                restart_keeps_what_is_due_and_what_expires,
                restart_keeps_the_result_and_the_lease_of_a_completed_job,
                restart_does_not_restore_what_was_removed,
                restart_keeps_the_generation,
            }
            run_start {
                run_is_returned_as_it_is_stored,
                run_start_of_nothing_starts_nothing,
                run_start_with_a_taken_id_starts_none_of_the_batch,
                run_start_with_a_taken_key_names_the_run_that_has_it,
                run_key_is_free_once_the_run_has_ended,
            }
            run_pending {
                run_is_pending_until_its_first_step,
                run_is_pending_while_it_has_messages,
                run_that_is_named_is_pending_with_messages_that_another_clock_has_from_later,
                run_is_pending_from_the_time_of_its_timer_on,
                run_that_is_pending_longest_comes_first,
                run_messages_are_read_in_order_and_up_to_a_limit,
                run_of_another_program_or_a_newer_version_is_left_alone,
                run_is_pending_by_name,
            }
            run_step {
                run_step_writes_the_run,
                run_step_with_an_old_revision_changes_nothing,
                run_steps_are_answered_separately_and_in_order,
                run_step_after_another_in_one_batch_sees_what_that_did,
                run_step_consumes_its_own_messages_only,
                run_end_is_stored_and_clears_the_timer,
                run_that_has_ended_goes_on,
                run_end_is_told_to_the_run_that_started_it,
            }
            run_effects {
                run_step_enqueues_jobs_of_the_run,
                run_step_with_the_id_of_another_job_is_refused,
                run_step_with_a_job_that_is_there_leaves_it,
                run_step_cancels_jobs_of_the_run_only,
                run_step_withdraws_jobs_that_no_worker_has,
                run_step_starts_runs,
                run_step_with_the_id_of_another_run_is_refused,
                run_step_sends_signals,
            }
            run_events {
                run_that_listens_learns_of_what_every_verb_does,
                run_that_listens_learns_of_the_other_ends,
                run_learns_of_what_it_wants_only,
                run_learns_of_pauses_that_change_something,
                run_learns_of_the_steps_of_others,
                run_learns_nothing_of_reserved_queues,
                run_listens_until_it_is_told_otherwise,
                run_learns_once_of_a_job_that_is_enqueued_again,
            }
            run_messages {
                run_learns_of_success_and_its_result,
                run_learns_of_a_failure_that_stops_the_job,
                run_learns_nothing_of_what_does_not_end_the_job,
                run_learns_of_an_overdue_job_that_is_stopped,
                run_learns_of_a_job_that_expires,
                run_learns_of_a_cancellation,
                run_learns_of_a_redrive_and_of_the_next_end,
                run_learns_of_many_ends_in_one_batch,
                run_learns_of_jobs_enqueued_for_it,
                run_learns_nothing_when_jobs_are_removed,
                run_with_a_full_inbox_takes_no_signals_from_outside,
            }
            run_view {
                runs_are_listed_newest_first_by_what_fits,
                runs_are_listed_by_their_keys,
                runs_that_have_ended_are_pruned,
                restart_keeps_runs_and_their_messages,
                restart_keeps_when_runs_are_pending,
                race_of_two_steps_of_one_run_has_one_winner,
                race_of_steps_in_opposite_order_ends,
                race_of_ends_of_many_jobs_of_one_run_loses_no_message,
                race_of_one_key_starts_one_run,
            }
        }
    };
}

/// Makes one test of each case of the suite, for a subject: an expression that is evaluated again in
/// every test. Needs the feature `conformance`.
///
/// ```ignore
/// redrive_store::conformance_tests!(MySubject::new());
/// ```
#[macro_export]
macro_rules! conformance_tests {
    ($subject:expr) => {
        /// The subject of every test.
        fn conformance_subject() -> impl $crate::conformance::Subject {
            $subject
        }
        $crate::for_each_conformance_case!($crate::conformance_test_functions);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_test_functions {
    ($($file:ident { $($name:ident,)* })*) => {
        $($(
            #[test]
            fn $name() {
                if let Err(failed) = $crate::conformance::check(stringify!($name), &conformance_subject()) {
                    panic!("{failed}");
                }
            }
        )*)*
    };
}
