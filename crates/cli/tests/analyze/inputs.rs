//! Bad input is refused; odd numbers and very many tasks have an answer.

use super::{analyze, file, json, tasks, three_of_two_thirds};

#[test]
fn bad_input_is_refused_with_a_reason() {
    let zero = tasks(1, "g-edf", &[("0ms", "3ms", "3ms", "0")]);
    let nowhere = tasks(1, "g-edf", &[("1ms", "3ms", "3ms", "")]);
    let endless = tasks(1, "g-edf", &[("1ms", "99999999999s", "99999999999s", "0")]);
    for (name, text) in [("zero", zero), ("nowhere", nowhere), ("endless", endless)] {
        let output = analyze(&file(&format!("bad-{name}"), &text), &[]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("line "), "{name}: {error}");
    }
    let path = file("bad-policy", &three_of_two_thirds("g-edf"));
    let output = analyze(&path, &["--policy", "fastest"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("there is no policy `fastest`") && error.contains("`shiftwork policies`"),
        "{error}"
    );
}

/// Whatever the numbers, there is an answer: more than a CPU, hyperperiods beyond 64 bits, deadlines far
/// beyond periods, long times.
#[test]
fn odd_numbers_are_answered() {
    let heavy = tasks(4, "strong-edf", &[("7ms", "3ms", "10ms", "0-3")]);
    let (value, status) = json(&file("odd-heavy", &heavy), &[]);
    assert_eq!(
        (status, value["feasible"]["verdict"].as_str()),
        (1, Some("no"))
    );
    let primes = [
        "1000000007ns",
        "1000000009ns",
        "1000000021ns",
        "1000000033ns",
        "1000000087ns",
    ];
    let lines: Vec<_> = primes
        .map(|period| ("300000001ns", period, period, "0-1"))
        .to_vec();
    let path = file("odd-primes", &tasks(2, "g-edf", &lines));
    let (value, status) = json(&path, &["--criterion", "soft"]);
    assert_eq!(status, 0, "{value}");
    assert!(value["utilization"].as_str().unwrap().contains('/'));
    let long = tasks(
        2,
        "g-edf",
        &[
            ("1ns", "3000000000s", "3000000000s", "0-1"),
            ("30000000s", "60000000s", "3000000000s", "0-1"),
        ],
    );
    assert_eq!(json(&file("odd-long", &long), &[]).1, 0);
    // A yes to a set without tasks would say nothing.
    let none = analyze(&file("odd-none", "[platform]\ncpus = 2\n"), &["--json"]);
    assert_eq!((none.status.code(), none.stdout.len()), (Some(2), 0));
}

/// Ten thousand tasks are answered within the steps.
#[test]
fn very_many_tasks_are_answered() {
    let mut text = String::from("[platform]\ncpus = 64\n[scheduler]\npolicy = \"strong-edf\"\n");
    for index in 0..10_000u64 {
        let period = 1_000_003 + 7_919 * index;
        let mask = match index % 3 {
            0 => format!("{}", index % 64),
            1 => format!("{}-{}", index % 8 * 8, index % 8 * 8 + 7),
            _ => "0-63".to_owned(),
        };
        text += &format!(
            "[[task]]\nname = \"t{index}\"\ncost = \"{}ns\"\nperiod = \"{period}ns\"\naffinity = \"{mask}\"\n",
            period / 250
        );
    }
    let options = ["--max-steps", "200000", "--criterion", "soft"];
    let (value, status) = json(&file("many", &text), &options);
    assert_eq!(status, 0);
    assert_eq!(value["affinity_kind"], "laminar");
    let utilization: f64 = value["utilization"].as_str().unwrap().parse().unwrap();
    assert!((39.9..40.0).contains(&utilization), "{utilization}");
}
