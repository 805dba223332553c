//! The live tests: what holds on a real kernel, in the emulator.
//!
//! Every test is a function in a file of this folder and a line in [`TESTS`]. On this machine the
//! runner boots the emulator with itself inside; there it runs the tests one by one, each in a process
//! of its own. Where the emulator cannot be had the tests say so and pass.
//!
//! Start reading at [`TESTS`], then at [`inside`].

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agreement;
mod backlog;
mod budgets;
mod calibration;
mod churn;
mod command;
#[path = "../common/mod.rs"]
mod common;
mod deadline;
mod doctor;
mod dubey;
mod emulator;
mod faults;
mod host;
mod hostile;
mod inside;
mod kernel;
mod kernels;
mod latency;
mod outputs;
mod overheads;
mod package;
mod policies;
mod privileges;
mod programs;
mod progress;
mod record;
mod running;
mod service;
mod standing;
mod storms;
mod tang;
mod verifier;

use std::process::ExitCode;
use std::time::Duration;

use shiftwork_emulator::guest;

/// All live tests, a line for each. Names are sentences and unlike any other.
const TESTS: &[Test] = &[
    Test::new(
        "the_kernel_offers_sched_ext",
        Group::Function,
        kernel::offers_sched_ext,
    ),
    Test::new(
        "the_doctor_examines_the_guest",
        Group::Function,
        doctor::examines_the_guest,
    ),
    Test::new(
        "a_run_with_budgets_keeps_its_rules",
        Group::Kernels,
        kernels::run_with_budgets,
    ),
    Test::new(
        "the_clock_counts_instructions",
        Group::Latency,
        kernel::clock_counts_instructions,
    ),
    Test::new(
        "no_cpu_is_executed_for_long_where_locks_are_tested",
        Group::Locks,
        kernel::no_cpu_is_executed_for_long,
    ),
    Test::new(
        "a_run_of_nested_affinities_agrees_with_its_simulation",
        Group::Latency,
        agreement::of_nested_affinities,
    )
    .within(120),
    Test::new(
        "a_run_of_arbitrary_affinities_agrees_with_its_simulation",
        Group::Latency,
        agreement::of_arbitrary_affinities,
    )
    .within(120),
    Test::new(
        "a_run_under_fixed_priorities_agrees_with_its_simulation",
        Group::Latency,
        agreement::under_fixed_priorities,
    ),
    Test::new(
        "quanta_are_given_as_simulated_under_an_agent",
        Group::Latency,
        agreement::of_quanta,
    ),
    Test::new(
        "a_run_by_an_agent_agrees_with_its_simulation",
        Group::Latency,
        agreement::of_an_agent,
    )
    .within(120),
    Test::new(
        "a_calibration_predicts_what_an_agent_does",
        Group::Latency,
        calibration::predicts_an_agent,
    )
    .within(120),
    Test::new(
        "table_1_of_dubey_et_al_holds_live",
        Group::Latency,
        dubey::t3_starts_at_once_and_t4_waits,
    ),
    Test::new(
        "sched_deadline_in_clusters_switches_as_its_model",
        Group::Clusters,
        deadline::clusters_switch_as_their_model,
    )
    .within(120),
    Test::new(
        "sched_deadline_with_affinities_switches_as_its_model",
        Group::Deadline,
        deadline::affinities_switch_as_their_model,
    )
    .within(240),
    Test::new(
        "random_sets_leave_sched_deadline_nothing_open",
        Group::Host,
        deadline::random_sets_leave_nothing_open,
    ),
    Test::new(
        "a_trace_of_switches_is_read",
        Group::Host,
        deadline::ftrace::is_read,
    ),
    Test::new(
        "sched_deadline_is_late_where_strong_edf_is_not",
        Group::Latency,
        tang::linux_is_late_where_ours_is_not,
    ),
    Test::new(
        "every_policy_that_runs_live_keeps_what_it_promises",
        Group::Latency,
        policies::keep_what_they_promise,
    )
    .within(120),
    Test::new(
        "policies_that_pack_keep_what_they_promise_under_an_agent",
        Group::Latency,
        policies::packed_ones_under_an_agent,
    )
    .within(120),
    Test::new(
        "global_policies_keep_what_they_promise_under_an_agent",
        Group::Latency,
        policies::global_ones_under_an_agent,
    )
    .within(120),
    Test::new(
        "strong_policies_keep_what_they_promise_under_an_agent",
        Group::Latency,
        policies::strong_ones_under_an_agent,
    )
    .within(120),
    Test::new(
        "policies_of_nested_affinities_keep_what_they_promise_under_an_agent",
        Group::Latency,
        policies::nested_ones_under_an_agent,
    )
    .within(120),
    Test::new(
        "the_policies_of_linux_keep_what_they_promise_under_an_agent",
        Group::Latency,
        policies::linux_under_an_agent,
    )
    .within(120),
    Test::new(
        "policies_in_quanta_keep_what_they_promise_under_an_agent",
        Group::Latency,
        policies::quanta_under_an_agent,
    )
    .within(120),
    Test::new(
        "implementations_of_global_edf_keep_what_they_promise_under_an_agent",
        Group::Latency,
        policies::implementations_under_an_agent,
    )
    .within(120),
    Test::new(
        "runs_with_something_of_everything_keep_their_rules",
        Group::Function,
        policies::keep_their_rules,
    ),
    Test::new(
        "a_live_run_writes_what_a_simulation_writes",
        Group::Function,
        outputs::of_a_run_are_those_of_a_simulation,
    ),
    Test::new(
        "a_job_that_waited_follows_at_once_under_an_agent",
        Group::Latency,
        backlog::follows_at_once_under_an_agent,
    ),
    Test::new(
        "a_job_that_waited_follows_at_once_in_the_kernel",
        Group::Latency,
        backlog::follows_at_once_in_the_kernel,
    ),
    Test::new(
        "task_reassigned_before_it_runs_does_not_wait",
        Group::Latency,
        backlog::reassigned_task_runs_at_once,
    )
    .within(120),
    Test::new(
        "coinciding_wakeups_leave_no_assignment_waiting",
        Group::Locks,
        standing::coinciding::nothing_stands_still,
    )
    .within(1_800),
    Test::new(
        "run_reacts_in_microseconds_under_edf",
        Group::Latency,
        latency::reacts_in_microseconds_under_edf,
    ),
    Test::new(
        "run_reacts_in_microseconds_under_fp",
        Group::Latency,
        latency::reacts_in_microseconds_under_fp,
    ),
    Test::new(
        "an_agent_reacts_in_microseconds",
        Group::Latency,
        latency::an_agent_reacts_in_microseconds,
    )
    .within(120),
    Test::new(
        "overheads_under_an_agent_are_those_of_its_policy",
        Group::Latency,
        overheads::are_those_of_the_policy,
    )
    .within(900),
    Test::new(
        "a_shift_takes_microseconds",
        Group::Latency,
        latency::a_shift_takes_microseconds,
    ),
    Test::new(
        "budgets_are_enforced_under_edf",
        Group::Latency,
        budgets::are_enforced_under_edf,
    ),
    Test::new(
        "budgets_are_enforced_under_fp",
        Group::Latency,
        budgets::are_enforced_under_fp,
    ),
    Test::new(
        "a_user_is_told_to_be_root",
        Group::Function,
        privileges::a_user_is_told_to_be_root,
    ),
    Test::new(
        "a_kernel_without_sched_ext_is_named",
        Group::Function,
        privileges::a_kernel_without_sched_ext_is_named,
    ),
    Test::new(
        "malformed_types_are_told",
        Group::Function,
        privileges::malformed_types_are_told,
    ),
    Test::new(
        "the_verifier_has_little_to_do",
        Group::Function,
        verifier::has_little_to_do,
    ),
    Test::new(
        "a_killed_command_takes_its_scheduler_and_tasks_with_it",
        Group::Function,
        faults::loader::killed,
    ),
    Test::new(
        "a_pinned_scheduler_outlives_the_command",
        Group::Function,
        faults::loader::killed_while_pinned,
    ),
    Test::new(
        "tasks_are_scheduled_while_the_command_is_stopped",
        Group::Function,
        faults::loader::stopped,
    ),
    Test::new(
        "what_finds_no_room_in_the_trace_is_counted",
        Group::Function,
        faults::loader::not_listening_enough,
    ),
    Test::new(
        "an_interrupted_run_shows_what_was_measured",
        Group::Function,
        faults::loader::interrupted,
    ),
    Test::new(
        "a_program_that_ends_within_a_job_leaves",
        Group::Function,
        faults::tasks::one_quits,
    ),
    Test::new(
        "a_program_that_is_killed_within_a_job_leaves",
        Group::Function,
        faults::tasks::one_is_killed,
    ),
    Test::new(
        "a_program_is_warned_of_its_overrun",
        Group::Function,
        faults::tasks::one_is_warned,
    ),
    Test::new(
        "who_is_only_warned_is_not_throttled_after_a_change",
        Group::Function,
        faults::tasks::a_warned_one_is_changed,
    ),
    Test::new(
        "children_of_a_program_are_ordinary_work",
        Group::Function,
        faults::tasks::one_has_children,
    ),
    Test::new(
        "a_second_scheduler_is_refused",
        Group::Function,
        faults::company::second_scheduler,
    ),
    Test::new(
        "five_hundred_tasks_run",
        Group::Function,
        faults::company::five_hundred,
    )
    .within(120),
    Test::new(
        "a_cpu_may_be_taken_away_from_outside",
        Group::Function,
        faults::cpus::taken_from_outside,
    ),
    Test::new(
        "a_cpu_goes_and_comes_back",
        Group::Latency,
        faults::cpus::offline_for_a_while,
    ),
    Test::new(
        "a_fifo_task_takes_a_cpu_for_a_while",
        Group::Latency,
        faults::cpus::kept_by_fifo,
    ),
    Test::new(
        "a_deadline_task_takes_cpus_for_a_while",
        Group::Latency,
        faults::cpus::kept_by_deadline,
    ),
    Test::new(
        "an_overrun_harms_nobody_else",
        Group::Latency,
        faults::others::of_overruns,
    ),
    Test::new(
        "a_restless_task_harms_nobody_else",
        Group::Latency,
        faults::others::of_the_restless,
    ),
    Test::new(
        "restless_ordinary_work_harms_nobody",
        Group::Latency,
        faults::others::of_wanderers,
    ),
    Test::new(
        "pinned_ordinary_work_is_served_after_a_second",
        Group::Latency,
        faults::others::of_waiting,
    ),
    Test::new(
        "a_killed_agent_leaves_everybody_to_the_kernel",
        Group::Latency,
        faults::agent::killed,
    ),
    Test::new(
        "a_stopped_agent_loses_everybody_to_the_kernel",
        Group::Latency,
        faults::agent::stopped,
    ),
    Test::new(
        "a_failing_agent_ends_the_run",
        Group::Latency,
        faults::agent::failing,
    ),
    Test::new(
        "an_agent_that_misses_reports_finds_out",
        Group::Latency,
        faults::agent::misses_reports,
    ),
    Test::new(
        "changes_of_affinity_harm_nobody_under_an_agent",
        Group::Latency,
        faults::agent::of_those_who_change,
    ),
    Test::new(
        "programs_have_what_they_are_to_have_under_an_agent",
        Group::Latency,
        faults::agent::programs,
    ),
    Test::new(
        "a_cpu_goes_and_comes_back_under_an_agent",
        Group::Latency,
        faults::agent::of_an_absent_cpu,
    ),
    Test::new(
        "those_above_take_a_cpu_for_a_while_under_an_agent",
        Group::Latency,
        faults::agent::of_those_above,
    ),
    Test::new(
        "a_standing_machine_tells_what_its_threads_do",
        Group::Function,
        standing::tells_what_threads_do,
    )
    .within(120),
    Test::new(
        "a_standing_machine_wakes_whoever_has_to_act",
        Group::Function,
        standing::wakes_whoever_has_to_act,
    ),
    Test::new(
        "the_number_of_a_standing_task_is_used_again",
        Group::Function,
        standing::numbers_are_used_again,
    )
    .within(120),
    Test::new(
        "who_asks_a_standing_machine_for_other_cpus_may_have_them",
        Group::Function,
        standing::who_asks_may_have_them,
    )
    .within(120),
    Test::new(
        "a_standing_machine_loses_and_regains_a_cpu",
        Group::Function,
        standing::loses_and_regains_a_cpu,
    ),
    Test::new(
        "who_computes_when_admitted_has_its_budget_at_once",
        Group::Function,
        standing::who_computes_is_taken_in,
    ),
    Test::new(
        "an_overdrawn_budget_holds_nobody_for_too_long",
        Group::Function,
        standing::holds_nobody_for_too_long,
    ),
    Test::new(
        "a_cpu_goes_that_threads_wait_for",
        Group::Function,
        standing::lets_a_cpu_go_that_is_waited_for,
    ),
    Test::new(
        "thread_that_returns_from_a_higher_class_keeps_its_part",
        Group::Function,
        standing::keeps_its_part_in_a_higher_class,
    ),
    Test::new(
        "threads_outlive_who_holds_a_standing_machine",
        Group::Function,
        standing::holder::threads_outlive_the_holder,
    )
    .within(120),
    Test::new(
        "threads_come_to_a_standing_machine_and_go_two_hundred_times",
        Group::Function,
        standing::come_and_go,
    )
    .within(120),
    Test::new(
        "a_standing_machine_observes_ordinary_work",
        Group::Function,
        standing::observed::observes_ordinary_work,
    ),
    Test::new(
        "fifo_stands_in_for_sched_ext",
        Group::Fifo,
        privileges::fifo_stands_in_for_sched_ext,
    ),
    Test::new(
        "user_without_privileges_sees_what_fifo_needs",
        Group::Fifo,
        privileges::user_without_privileges_sees_what_fifo_needs,
    ),
    Test::new(
        "a_policy_of_each_kind_keeps_what_it_promises_under_fifo",
        Group::Fifo,
        policies::keep_what_they_promise_under_fifo,
    ),
    Test::new(
        "a_run_under_fifo_agrees_with_its_simulation",
        Group::Fifo,
        agreement::under_fifo,
    ),
    Test::new(
        "a_calibration_predicts_what_fifo_does",
        Group::Fifo,
        calibration::predicts_fifo,
    )
    .within(120),
    Test::new(
        "table_1_of_dubey_et_al_holds_under_fifo",
        Group::Fifo,
        dubey::as_simulated_under_fifo,
    ),
    Test::new(
        "a_killed_command_leaves_nobody_at_fifo",
        Group::Fifo,
        faults::fifo::killed,
    ),
    Test::new(
        "a_failing_agent_leaves_nobody_at_fifo",
        Group::Fifo,
        faults::fifo::failing,
    ),
    Test::new(
        "the_package_installs_and_leaves_nothing_in_a_fresh_debian",
        Group::Debian,
        package::installs_and_leaves_nothing,
    )
    .within(400),
    Test::new(
        "programs_are_admitted_up_to_capacity",
        Group::Function,
        service::programs_are_admitted_up_to_capacity,
    ),
    Test::new(
        "reservations_survive_restart_of_daemon",
        Group::Function,
        service::reservations_survive_restart_of_daemon,
    ),
    Test::new(
        "waiting_task_is_removed_when_thread_ends",
        Group::Function,
        service::waiting_task_is_removed_when_thread_ends,
    ),
    Test::new(
        "requested_affinity_is_limited_to_cpus_of_daemon",
        Group::Function,
        service::requested_affinity_is_limited_to_cpus_of_daemon,
    ),
    Test::new(
        "only_group_may_connect_and_only_reserve_for_own_threads",
        Group::Function,
        service::only_group_may_connect_and_only_reserve_for_own_threads,
    ),
    Test::new(
        "program_with_measured_reservation_misses_no_deadline",
        Group::Latency,
        service::program_with_measured_reservation_misses_no_deadline,
    ),
    Test::new(
        "each_wait_of_a_program_ends_one_job",
        Group::Latency,
        programs::each_wait_ends_one_job,
    ),
    Test::new(
        "a_record_names_what_led_to_a_miss",
        Group::Latency,
        record::names_what_led_to_a_miss,
    )
    .within(120),
    Test::new(
        "a_record_tells_when_the_agent_was_away",
        Group::Latency,
        record::tells_when_the_agent_was_away,
    )
    .within(120),
    Test::new(
        "daemon_answers_on_busy_machine",
        Group::Function,
        service::daemon_answers_on_busy_machine,
    )
    .within(120),
    Test::new(
        "reload_keeps_all_reservations",
        Group::Function,
        service::reload_keeps_all_reservations,
    ),
    Test::new(
        "hostile_clients_do_not_disturb_others",
        Group::Function,
        hostile::do_not_disturb_others,
    )
    .within(1_800),
    Test::new(
        "storms_of_hotplug_lose_no_reservation",
        Group::Function,
        storms::lose_no_reservation,
    )
    .within(7_200),
    Test::new(
        "daemon_loses_no_task_under_random_events",
        Group::Function,
        churn::loses_no_task,
    )
    .within(1_800),
    Test::new(
        "a_failing_program_brings_its_exit_status",
        Group::Host,
        emulator::brings_the_exit_status,
    ),
    Test::new(
        "files_of_the_guest_come_home",
        Group::Host,
        emulator::brings_files_home,
    ),
    Test::new(
        "a_kernel_panic_shows_the_console",
        Group::Host,
        emulator::shows_the_console,
    ),
    Test::new(
        "ten_minutes_of_sleep_take_none_where_instructions_are_counted",
        Group::Host,
        emulator::sleeps_in_no_time,
    ),
    Test::new(
        "a_hanging_program_is_ended",
        Group::Host,
        emulator::ends_what_hangs,
    ),
];

/// What a test needs, and so in which boots it takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// This machine; the test boots for itself.
    Host,
    /// A kernel with 4 CPUs, as quick as it goes. With `SHIFTWORK_LONG` every other kernel as well.
    Function,
    /// A clock that counts instructions: only here may a test assert times.
    Latency,
    /// As `Latency`, where no CPU is executed for longer than [`host::TURN`] before the next one is: what waits for a lock of another
    /// CPU waits about as long as on a real machine. It takes more of the host's time.
    Locks,
    /// A kernel that is too old for sched_ext, with a clock that counts instructions; with `SHIFTWORK_LONG` an older one
    /// as well.
    Fifo,
    /// As `Latency`, and with `SHIFTWORK_LONG` on older kernels as well, with or without sched_ext.
    Deadline,
    /// The same in a boot of its own: kernels go on counting SCHED_DEADLINE threads that are gone, and then refuse
    /// another limit.
    Clusters,
    /// A fresh Debian system with systemd, which has the package at [`package::PACKAGE`], and no command of ours
    /// but what is installed from there.
    Debian,
    /// The other kernels: one with `PREEMPT_RT`, and two older ones. Only with `SHIFTWORK_LONG`.
    Kernels,
}

/// A live test.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    name: &'static str,
    group: Group,
    limit: Duration,
    run: fn() -> Result<(), String>,
}

impl Test {
    /// A test that is over within a minute of its machine's time. It fails if it panics, or returns
    /// why.
    const fn new(name: &'static str, group: Group, run: fn() -> Result<(), String>) -> Self {
        Self {
            name,
            group,
            limit: Duration::from_secs(60),
            run,
        }
    }

    /// The same with another limit.
    const fn within(self, seconds: u64) -> Self {
        Self {
            limit: Duration::from_secs(seconds),
            ..self
        }
    }
}

/// How much is asked for: little, or with `SHIFTWORK_LONG` much.
pub fn long() -> bool {
    std::env::var_os("SHIFTWORK_LONG").is_some()
}

fn main() -> ExitCode {
    guest::serve_if_first();
    if let Some(code) = faults::play_if_asked() {
        return code;
    }
    if std::env::var_os(guest::GUEST_VARIABLE).is_some() {
        return inside::run(TESTS);
    }
    host::run(TESTS)
}
