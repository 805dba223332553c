//! The catalogue of all live tests, and what each needs.

use std::time::Duration;

use crate::{
    agreement, apply, backlog, budgets, calibration, churn, deadline, doctor, dubey, emulator,
    faults, ftrace, guides, hostile, init, kernel, kernels, latency, members, mutexes, outputs,
    overheads, package, policies, privileges, programs, record, rt_app, service, soak, standing,
    storms, tang, triggers, verifier,
};

/// What a test needs, and so in which boots it takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The newest kernel, and with `SHIFTWORK_LONG` every other kernel as well: no test asserts times.
    Function,
    /// As `Function`, and always on the oldest kernel with sched_ext that can be had.
    Everywhere,
    /// The newest kernel alone: only here and in the next groups may a test assert times.
    Latency,
    /// As `Latency`, and with `SHIFTWORK_LONG` on the kernel with `PREEMPT_RT` as well, where threads may be preempted with locks of the
    /// kernel: what users can do to each other.
    Realtime,
    /// As `Latency`, where a CPU is executed for longer before the next one is, so that fewer reactions are interrupted by a turn: only
    /// here may a test assert how long the code of a decision takes.
    Reactions,
    /// As `Latency`, where no CPU is executed for longer than [`TURN`](crate::host::machines::TURN) before the next one is: what
    /// waits for a lock of another CPU waits about as long as on a real machine. It takes more of the host's time.
    Locks,
    /// As `Latency`, on a kernel that is too old for sched_ext; with `SHIFTWORK_LONG` on an older one as well.
    Fifo,
    /// As `Latency`, and with `SHIFTWORK_LONG` on older kernels as well, with or without sched_ext.
    Deadline,
    /// The same in a boot of its own: kernels go on counting SCHED_DEADLINE threads that are gone, and then refuse
    /// another limit.
    Clusters,
    /// As `Latency`, where rt-app is at [`rt_app::PLACE`].
    RtApp,
    /// A fresh Debian system with systemd, which has the package at [`package::PACKAGE`], and no command of ours
    /// but what is installed from there.
    Debian,
    /// The other kernels: one with `PREEMPT_RT`, and two older ones. Only with `SHIFTWORK_LONG`.
    Kernels,
    /// This machine; the test boots for itself.
    Host,
}

/// A live test: a function that fails if it panics, or returns why.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    path: &'static str,
    /// What it needs.
    pub group: Group,
    /// How long it may take, in the time of its machine.
    pub limit: Duration,
    /// The test.
    pub run: fn() -> Result<(), String>,
}

impl Test {
    /// The name of its function, unlike that of any other.
    pub fn name(&self) -> &'static str {
        self.path.rsplit(':').next().unwrap_or(self.path)
    }
}

/// A test is over within a minute of its machine's time, or `within` so many seconds.
const LIMIT_S: u64 = 60;

/// Groups, and in each the paths of its tests.
macro_rules! tests {
    ($($group:ident { $($($part:ident)::+ $(within $seconds:literal)?,)+ })+) => {
        /// All live tests.
        pub const TESTS: &[Test] = &[$($(Test {
            path: concat!($("::", stringify!($part)),+),
            group: Group::$group,
            limit: Duration::from_secs([LIMIT_S $(, $seconds)?][[LIMIT_S $(, $seconds)?].len() - 1]),
            run: $($part)::+,
        },)+)+];
    };
}

tests! {
    Function {
        kernel::kernel_offers_sched_ext,
        doctor::doctor_examines_the_guest,
        outputs::live_run_writes_what_a_simulation_writes,
        privileges::user_without_privileges_sees_that_root_is_needed,
        privileges::kernel_without_sched_ext_is_named,
        privileges::malformed_kernel_types_are_reported,
        verifier::verifier_has_little_to_do,
        verifier::kernel_tells_which_softirqs_wait,
        faults::loader::killed_command_takes_its_scheduler_and_tasks_with_it,
        faults::loader::pinned_scheduler_outlives_the_command,
        faults::loader::tasks_are_scheduled_while_the_command_is_stopped,
        faults::loader::events_without_room_in_the_trace_are_counted,
        faults::loader::interrupted_run_shows_what_was_measured,
        faults::tasks::program_that_ends_within_a_job_leaves,
        faults::tasks::program_that_is_killed_within_a_job_leaves,
        faults::tasks::program_is_warned_of_its_overrun,
        faults::tasks::task_that_is_only_warned_is_not_throttled_after_a_change,
        faults::tasks::children_of_a_program_are_ordinary_work,
        faults::company::second_scheduler_is_refused,
        faults::company::five_hundred_tasks_run within 120,
        faults::cpus::cpu_may_be_taken_away_from_outside,
        standing::standing_scheduler_reports_what_its_threads_do within 120,
        standing::standing_scheduler_wakes_the_reader_of_its_events,
        standing::number_of_a_departed_task_is_used_again within 120,
        standing::records_of_a_backlog_say_what_was_reserved_then,
        standing::cpus::change_to_other_cpus_is_granted within 120,
        standing::cpus::standing_scheduler_loses_and_regains_a_cpu,
        standing::overdrawn_budget_throttles_for_a_bounded_time,
        standing::excess::overrun_is_ordinary_work_or_waits,
        standing::excess::throttled_threads_hold_no_lock_of_the_kernel,
        standing::excess::throttled_process_can_be_killed,
        standing::ordinary::nice_values_share_a_cpu,
        standing::ordinary::bound_threads_share_with_others_alike,
        standing::cpus::cpu_goes_that_threads_wait_for,
        standing::thread_that_returns_from_a_higher_class_keeps_its_part,
        standing::inheritance::random::loans_survive_random_events within 400,
        standing::holder::threads_outlive_the_holder_of_a_standing_scheduler within 120,
        standing::threads_enter_and_leave_two_hundred_times within 120,
        standing::observed::standing_scheduler_observes_ordinary_work,
        service::programs_are_admitted_up_to_capacity,
        service::reservations_survive_restart_of_daemon,
        service::waiting_task_is_removed_when_thread_ends,
        service::requested_affinity_is_limited_to_cpus_of_daemon,
        service::only_group_may_connect_and_only_reserve_for_own_threads,
        service::daemon_answers_on_busy_machine within 120,
        service::reload_keeps_all_reservations,
        init::measurement_that_ends_early_keeps_what_was_measured,
        hostile::hostile_clients_do_not_disturb_others within 1_800,
        storms::storms_of_hotplug_lose_no_reservation within 7_200,
        churn::daemon_loses_no_task_under_random_events within 1_800,
    }
    Everywhere {
        policies::runs_with_something_of_everything_keep_their_rules,
        standing::thread_admitted_while_it_runs_has_its_budget_at_once,
    }
    Latency {
        agreement::run_of_nested_affinities_agrees_with_its_simulation within 900,
        agreement::run_of_arbitrary_affinities_agrees_with_its_simulation within 900,
        agreement::run_under_fixed_priorities_agrees_with_its_simulation within 400,
        agreement::quanta_are_given_as_simulated_under_an_agent,
        agreement::run_by_an_agent_agrees_with_its_simulation within 900,
        triggers::triggers_do_in_the_kernel_what_they_do_in_simulations,
        mutexes::mutexes_do_in_the_kernel_what_they_do_in_simulations within 120,
        mutexes::mutexes_do_by_deadlines_what_they_do_in_simulations within 120,
        triggers::triggers_do_under_an_agent_what_they_do_in_simulations,
        mutexes::mutexes_do_under_an_agent_what_they_do_in_simulations within 120,
        calibration::calibration_predicts_what_an_agent_does within 120,
        dubey::table_1_of_dubey_et_al_holds_live,
        guides::run_of_the_tutorial_keeps_its_guarantee,
        tang::sched_deadline_is_late_where_strong_edf_is_not,
        policies::every_policy_that_runs_live_keeps_what_it_promises within 120,
        policies::policies_that_pack_keep_what_they_promise_under_an_agent within 120,
        policies::global_policies_keep_what_they_promise_under_an_agent within 120,
        policies::strong_policies_keep_what_they_promise_under_an_agent within 120,
        policies::policies_of_nested_affinities_keep_what_they_promise_under_an_agent within 120,
        policies::policies_of_linux_keep_what_they_promise_under_an_agent within 120,
        policies::policies_in_quanta_keep_what_they_promise_under_an_agent within 120,
        policies::implementations_of_global_edf_keep_what_they_promise_under_an_agent within 120,
        backlog::job_that_waited_follows_at_once_under_an_agent within 300,
        backlog::job_that_waited_follows_at_once_in_the_kernel within 300,
        backlog::memory_of_a_run_is_locked_in_small_pages,
        backlog::task_reassigned_before_it_runs_does_not_wait within 120,
        overheads::overheads_under_an_agent_are_those_of_its_policy within 900,
        budgets::budgets_are_enforced_under_edf,
        budgets::budgets_are_enforced_under_fp,
        faults::cpus::cpu_goes_and_comes_back,
        faults::cpus::fifo_task_takes_a_cpu_for_a_while,
        faults::cpus::deadline_task_takes_cpus_for_a_while,
        faults::others::overrun_delays_no_other_task,
        faults::others::restless_task_delays_no_other_task,
        faults::others::restless_ordinary_work_delays_no_task,
        faults::others::pinned_ordinary_work_is_served_after_a_second,
        faults::agent::killed_agent_leaves_all_threads_to_the_kernel,
        faults::agent::stopped_agent_loses_all_threads_to_the_kernel,
        faults::agent::failing_agent_ends_the_run,
        faults::agent::agent_that_misses_reports_finds_out,
        faults::agent::changes_of_affinity_delay_no_task_under_an_agent,
        faults::agent::programs_get_what_they_ask_for_under_an_agent,
        faults::agent::cpu_goes_and_comes_back_under_an_agent,
        faults::agent::higher_classes_take_a_cpu_for_a_while_under_an_agent,
        service::program_with_measured_reservation_misses_no_deadline,
        apply::measured_program_gets_its_reservations_from_its_file,
        init::program_is_measured_and_its_task_set_is_admitted,
        init::launched_program_is_measured_with_what_it_starts,
        init::measurement_without_privileges_names_what_helps,
        programs::each_wait_of_a_program_ends_one_job,
        record::record_names_what_led_to_a_miss within 120,
        record::record_names_the_time_without_agent within 120,
        standing::excess::regained_reservation_has_no_new_budget,
        standing::ordinary::thread_that_sleeps_runs_when_it_wakes_up,
    }
    Realtime {
        members::members_cannot_harm_others within 7_200,
        standing::ordinary::five_hundred_pinned_threads_are_served within 120,
        standing::groups::control_groups_share_a_cpu_by_their_weights,
        standing::groups::limits_of_control_groups_are_kept,
        standing::inheritance::asleep::holder_that_sleeps_wakes_up_as_its_own_task,
        standing::inheritance::reservations_serve_the_holder_of_a_lock,
        standing::groups::threads_of_a_group_at_its_limit_are_served within 120,
    }
    Reactions {
        latency::run_reacts_in_microseconds_under_edf,
        latency::run_reacts_in_microseconds_under_fp,
        latency::agent_reacts_in_microseconds within 120,
        latency::shift_takes_microseconds,
    }
    Locks {
        kernel::no_cpu_is_executed_for_long_where_locks_are_tested,
        standing::beside_kernel::ordinary_work_is_nearly_as_quick_as_without,
        standing::coinciding::coinciding_wakeups_leave_no_assignment_waiting within 1_800,
        soak::soak_of_fixed_seeds_keeps_all_rules within 3_600,
    }
    Fifo {
        privileges::fifo_stands_in_for_sched_ext,
        privileges::user_without_privileges_sees_what_fifo_needs,
        policies::policy_of_each_kind_keeps_what_it_promises_under_fifo,
        agreement::run_under_fifo_agrees_with_its_simulation,
        triggers::triggers_do_under_fifo_what_they_do_in_simulations,
        mutexes::mutexes_do_under_fifo_what_they_do_in_simulations within 120,
        calibration::calibration_predicts_what_fifo_does within 120,
        dubey::table_1_of_dubey_et_al_holds_under_fifo,
        faults::fifo::killed_command_leaves_no_thread_at_fifo,
        faults::fifo::failing_agent_leaves_no_thread_at_fifo,
    }
    Deadline {
        deadline::sched_deadline_with_affinities_switches_as_its_model within 240,
        mutexes::inversion::priority_inversion_is_bounded_as_under_sched_fifo within 120,
    }
    Clusters {
        deadline::sched_deadline_in_clusters_switches_as_its_model within 120,
    }
    RtApp {
        rt_app::threads_of_rt_app_do_what_their_task_set_does within 120,
    }
    Debian {
        package::package_installs_and_leaves_nothing_in_a_fresh_debian within 400,
    }
    Kernels {
        kernels::run_with_budgets_keeps_its_rules,
    }
    Host {
        deadline::random_sets_leave_sched_deadline_nothing_open,
        ftrace::trace_of_switches_is_read,
        soak::selection::definition_selects_known_sets,
        soak::tests::plan_of_a_seed_is_always_the_same,
        soak::tests::parts_of_a_plan_can_be_left_out,
        soak::tests::judge_finds_each_broken_rule,
        emulator::failing_program_brings_its_exit_status,
        emulator::files_of_the_guest_come_home,
        emulator::kernel_panic_shows_the_console,
        emulator::ten_minutes_of_sleep_take_none_where_instructions_are_counted,
        emulator::boots_where_instructions_are_counted_repeat_exactly,
        emulator::hanging_program_is_ended,
    }
}
