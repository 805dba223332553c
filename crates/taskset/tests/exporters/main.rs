//! Exporters: what other programs read is the task set again, and what is lost is named.
#![allow(clippy::unwrap_used, reason = "a test")]

mod rt_app_again;

use std::process::Command;

use shiftwork_model::{
    Affinities, Affinity, Budgets, Chain, Invariant, Machines, OnOverrun, Order, Placement,
    PolicyTraits, Preemption, Priority, RandomStream, Role, Span, Task, TaskSet,
};
use shiftwork_taskset::export::{Exported, PolicyUse, chrt, rt_app, systemd};

const CPUS: usize = 3;

const G_FP: PolicyTraits = PolicyTraits {
    order: Order::FixedPriority,
    placement: Placement::Global,
    preemption: Preemption::AtEvents,
    invariant: Invariant::Strong,
    affinities: Affinities::Any,
    budgets: Budgets::OfJobs,
    machines: Machines::KernelOrAgent,
    structure: None,
    role: Role::Reference,
};

const G_EDF: PolicyTraits = PolicyTraits {
    order: Order::Edf,
    ..G_FP
};

fn policy(traits: &PolicyTraits) -> Option<PolicyUse<'_>> {
    Some(PolicyUse {
        name: "the policy",
        traits,
    })
}

fn affinity(list: &str) -> Affinity {
    Affinity::new(list.parse().unwrap()).unwrap()
}

fn task(name: &str, affinity_list: &str, command: &[&str]) -> Task {
    let (cost, period) = (Span::from_ms(1), Span::from_ms(10));
    Task {
        on_overrun: OnOverrun::Continue,
        command: command.iter().map(|word| (*word).to_string()).collect(),
        ..Task::periodic(name, cost, period, affinity(affinity_list))
    }
}

fn set(tasks: Vec<Task>) -> TaskSet {
    TaskSet::new("drone", CPUS, tasks)
}

fn only_text(exported: &Exported) -> &str {
    assert_eq!(exported.files.len(), 1);
    &exported.files[0].text
}

fn pick<T: Clone>(random: &mut RandomStream, values: &[T]) -> T {
    values[random.below(values.len() as u64) as usize].clone()
}

/// A word of characters that mean something to shells, to systemd or to JSON.
fn any_word(random: &mut RandomStream) -> String {
    let characters: Vec<char> = "ab0 '\"\\$%`;&|<>(){}*?[]~#!=-@:+\n\t\r\u{1}\u{7f}é🚁\u{85}"
        .chars()
        .collect();
    (0..random.below(7))
        .map(|_| pick(random, &characters))
        .collect()
}

/// What the words of a program are after a shell has read the script. `taskset` and `chrt` are functions that
/// run their command, so that it needs no privileges.
fn run_by_a_shell(script: &str, skipped: usize) -> Vec<u8> {
    let chrt = format!("taskset() {{ shift 2; \"$@\"; }}\nchrt() {{ shift {skipped}; \"$@\"; }}\n");
    let output = Command::new("sh")
        .arg("-c")
        .arg(chrt + script)
        .output()
        .unwrap();
    assert!(
        output.stderr.is_empty(),
        "{}\n{script}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

#[test]
fn shell_reads_every_word_of_a_command_back() {
    for seed in 1..=150 {
        let mut random = RandomStream::new(seed, 1, 0);
        let words: Vec<String> = (0..1 + random.below(4))
            .map(|_| any_word(&mut random))
            .collect();
        let mut command = vec!["printf", "%s\\0"];
        command.extend(words.iter().map(String::as_str));
        let name = any_word(&mut random);
        let (traits, skipped) = match seed % 2 {
            0 => (G_FP, 2),
            _ => (G_EDF, 8),
        };
        let mut set = set(vec![task(&name, "0-2", &command), task(&name, "0", &[])]);
        set.name = any_word(&mut random);
        let script = chrt(&set, policy(&traits));
        let expected: String = words.iter().map(|word| format!("{word}\0")).collect();
        let found = run_by_a_shell(only_text(&script), skipped);
        assert_eq!(
            String::from_utf8(found),
            Ok(expected),
            "seed {seed}\n{}",
            only_text(&script)
        );
    }
}

#[test]
fn chrt_starts_each_program_with_its_cpus_and_class() {
    let mut imu = task("imu", "0,2", &["./imu", "it's"]);
    imu.deadline = Span::from_ms(5);
    let tasks = vec![task("log", "0-2", &["log"]), imu, task("idle", "1", &[])];
    let exported = chrt(&set(tasks.clone()), None);
    let lines: Vec<&str> = only_text(&exported)
        .lines()
        .filter(|line| line.ends_with('&'))
        .collect();
    assert_eq!(
        lines,
        [
            "taskset -c 0-2 chrt --fifo 98 'log' &",
            "taskset -c 0,2 chrt --fifo 99 './imu' 'it'\\''s' &",
        ]
    );
    assert_eq!(exported.left_out, ["task `idle`: it has no `command`"]);
    let exported = chrt(&set(tasks), policy(&G_EDF));
    let lines: Vec<&str> = only_text(&exported)
        .lines()
        .filter(|line| line.ends_with('&'))
        .collect();
    assert_eq!(
        lines,
        [
            "chrt --deadline --sched-runtime 1000000 --sched-deadline 10000000 --sched-period 10000000 0 'log' &"
        ]
    );
    assert_eq!(
        exported.left_out,
        [
            "task `log`: `on-overrun`: SCHED_DEADLINE throttles the task at the end of its budget",
            "task `imu`: Linux refuses SCHED_DEADLINE to a task bound to CPUs 0,2, unless they are a cpuset partition or its \
             admission control is off (kernel.sched_rt_runtime_us=-1)",
            "task `idle`: it has no `command`",
        ]
    );
}

#[test]
fn fifo_priorities_keep_the_order_of_the_task_set() {
    for seed in 1..=300 {
        let mut random = RandomStream::new(seed, 2, 0);
        let mut tasks = Vec::new();
        for number in 0..1 + random.below(130) {
            let mut task = task(&number.to_string(), "0-2", &["true"]);
            let most = pick(&mut random, &[99, 200, u64::from(u32::MAX / 2)]);
            task.priority = Priority::new(1 + random.below(most) as u32);
            tasks.push(task);
        }
        let set = set(tasks);
        let exported = chrt(&set, None);
        let levels: Vec<u32> = only_text(&exported)
            .lines()
            .filter_map(|line| {
                line.strip_prefix("taskset -c 0-2 chrt --fifo ")?
                    .split(' ')
                    .next()?
                    .parse()
                    .ok()
            })
            .collect();
        assert_eq!(levels.len(), set.tasks.len(), "seed {seed}");
        assert!(
            levels.iter().all(|level| (1..=99).contains(level)),
            "seed {seed}: {levels:?}"
        );
        let own = set.priorities();
        let is_merged = exported
            .left_out
            .iter()
            .any(|lost| lost.starts_with("the order of"));
        let mut merged = false;
        for (i, j) in (0..own.len()).flat_map(|i| (0..own.len()).map(move |j| (i, j))) {
            let (ours, theirs) = (own[i].cmp(&own[j]), levels[j].cmp(&levels[i]));
            let shares_last = levels[i] == 1 && levels[j] == 1;
            merged |= ours != theirs;
            assert!(
                ours == theirs || (is_merged && shares_last),
                "seed {seed}: {i} and {j}"
            );
        }
        assert_eq!(merged, is_merged, "seed {seed}: {:?}", exported.left_out);
    }
}

/// The words of an `ExecStart=` line, by the rules of systemd.service(5) and systemd.syntax(7) for words in double
/// quotes: escapes of C, then `%%`, then, but in the program, `$$`.
fn words_of_systemd(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.chars();
    while let Some(quote) = rest.next() {
        assert_eq!(quote, '"', "{line}");
        let mut word = String::new();
        loop {
            match rest.next().unwrap() {
                '"' => break,
                '\\' => word.push(match rest.next().unwrap() {
                    'n' => '\n',
                    'x' => {
                        let digits: String = rest.by_ref().take(2).collect();
                        char::from(u8::from_str_radix(&digits, 16).unwrap())
                    }
                    c @ ('"' | '\\') => c,
                    c => panic!("escape {c:?} in {line}"),
                }),
                c => word.push(c),
            }
        }
        assert!(matches!(rest.next(), None | Some(' ')), "{line}");
        assert_eq!(word.replace("%%", "").matches('%').count(), 0, "{line}");
        let word = word.replace("%%", "%");
        let is_argument = !words.is_empty();
        words.push(match is_argument {
            true => {
                assert_eq!(word.replace("$$", "").matches('$').count(), 0, "{line}");
                word.replace("$$", "$")
            }
            false => word,
        });
    }
    words
}

#[test]
fn systemd_reads_every_word_of_a_command_back() {
    let mut written = 0;
    for seed in 1..=2_000 {
        let mut random = RandomStream::new(seed, 3, 0);
        let program = match random.below(2) {
            0 => format!("/opt/{}", any_word(&mut random)),
            _ => any_word(&mut random),
        };
        let mut command = vec![program];
        command.extend((0..random.below(4)).map(|_| any_word(&mut random)));
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let mut set = set(vec![task(&any_word(&mut random), "0,2", &words)]);
        set.name = any_word(&mut random);
        let exported = systemd(&set, None);
        assert_eq!(
            exported.files.len() + exported.left_out.len(),
            1,
            "seed {seed}"
        );
        let Some(unit) = exported.files.first() else {
            continue;
        };
        written += 1;
        let name = unit.name.as_ref().unwrap();
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:\\".contains(c);
        assert!(
            name.chars().all(is_allowed) && !name.starts_with('.'),
            "seed {seed}: {name}"
        );
        let value = |key: &str| {
            let lines: Vec<&str> = unit
                .text
                .lines()
                .filter_map(|line| line.strip_prefix(key))
                .collect();
            assert_eq!(lines.len(), 1, "seed {seed}: {key}\n{}", unit.text);
            lines[0].to_string()
        };
        assert_eq!(
            words_of_systemd(&value("ExecStart=")),
            command,
            "seed {seed}\n{}",
            unit.text
        );
        assert_eq!(value("CPUAffinity="), "0,2");
        assert_eq!(value("CPUSchedulingPriority="), "99");
        assert!(
            unit.text.lines().all(|line| !line.ends_with('\\')),
            "seed {seed}\n{}",
            unit.text
        );
    }
    assert!(written > 500, "{written}");
}

#[test]
fn units_have_different_names_and_bad_programs_none() {
    let tasks = vec![
        task("a/b", "0", &["/bin/a"]),
        task("a-b", "0", &["/bin/a"]),
        task("relative", "0", &["bin/a"]),
        task("flag", "0", &["-a"]),
        task("null", "0", &["a", "\0"]),
        task(&"long".repeat(70), "0", &["a"]),
    ];
    let exported = systemd(&set(tasks), policy(&G_EDF));
    let names: Vec<&str> = exported
        .files
        .iter()
        .filter_map(|file| file.name.as_deref())
        .collect();
    assert_eq!(names, ["drone-a\\x2fb.service", "drone-a-b.service"]);
    assert_eq!(exported.left_out.len(), 5, "{:#?}", exported.left_out);
    assert!(exported.left_out[0].contains("no SCHED_DEADLINE"));
}

#[test]
fn what_no_class_of_linux_does_is_named() {
    let lost = |traits: &PolicyTraits, set: &TaskSet| chrt(set, policy(traits)).left_out;
    let mut throttled = set(vec![task("a", "0", &["a"]), task("b", "0-2", &["b"])]);
    let strong = PolicyTraits {
        placement: Placement::Strong,
        ..G_FP
    };
    assert_eq!(
        lost(&strong, &throttled),
        [
            "the policy: shifting; Linux moves no running task to another CPU to make room for a third"
        ]
    );
    assert!(lost(&G_FP, &throttled).is_empty());
    let llf = PolicyTraits {
        order: Order::LeastLaxity,
        ..G_FP
    };
    assert!(lost(&llf, &throttled)[0].contains("ranks by latest start"));
    let quiet = PolicyTraits {
        preemption: Preemption::Never,
        ..G_FP
    };
    assert!(lost(&quiet, &throttled)[0].contains("never preempts"));
    let packed = PolicyTraits {
        placement: Placement::Partitioned,
        ..G_FP
    };
    assert!(lost(&packed, &throttled)[0].contains("assigns each task"));
    throttled.tasks[0].on_overrun = OnOverrun::Throttle;
    throttled.tasks[1].offset = Span::from_ms(1);
    throttled.tasks[1].jitter = Span::from_ms(1);
    assert_eq!(
        lost(&G_FP, &throttled),
        [
            "task `a`: the budget is not enforced: SCHED_FIFO has none",
            "task `b`: `offset`; its program starts at once",
            "task `b`: `jitter`; its program decides when it runs"
        ]
    );
}

#[test]
fn what_no_format_says_of_a_set_is_named() {
    let mut set = set(vec![task("a", "0-2", &["a"]), task("b", "0-2", &["b"])]);
    set.chains.push(Chain {
        name: "perception".into(),
        tasks: set.iter().map(|(id, _)| id).collect(),
        reaction: None,
        age: None,
        latency: None,
    });
    let exporters = [chrt, systemd, rt_app];
    for export in exporters {
        let left_out = export(&set, policy(&G_FP)).left_out;
        let expected = "1 cause-effect chains ([[chain]])".to_string();
        assert!(left_out.contains(&expected), "{left_out:?}");
    }
}
