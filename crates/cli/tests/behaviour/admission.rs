//! What `run` does with what is admitted and what is refused, and how both end where deadlines are missed.

use serde_json::Value;
use shiftwork_cli::json::LiveOutput;

use super::{GOOD, shiftwork, stdout};

/// A run says what a simulation says, and what was promised.
#[test]
fn a_run_on_the_simulated_machine_is_the_simulation() {
    let common = [GOOD, "--for", "1s", "--json"];
    let run = shiftwork(&[&["run", "--machine", "sim"], &common[..]].concat());
    let text = stdout(&run);
    let mut value: Value = serde_json::from_str(&text).unwrap();
    let known: LiveOutput = serde_json::from_str(&text).unwrap();
    assert!(matches!(known, LiveOutput::Ran(_)), "{text}");
    assert_eq!(serde_json::to_value(known).unwrap(), value);
    let object = value.as_object_mut().unwrap();
    assert_eq!(object.remove("machine").unwrap(), "sim");
    let admission = object.remove("admission").unwrap();
    assert_eq!(admission["verdict"], "admitted");
    let guarantee = object.remove("guarantee").unwrap();
    assert_eq!(guarantee["kept"], true);
    let simulated: Value =
        serde_json::from_str(&stdout(&shiftwork(&[&["simulate"], &common[..]].concat()))).unwrap();
    assert_eq!(value, simulated);
}

/// A task set that is not admitted replaces no scheduler: the machine is not even asked.
#[test]
fn what_is_not_admitted_is_not_run() {
    let crowded = "tests/command/files/crowded.toml";
    let output = shiftwork(&["run", crowded, "--machine", "kernel", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let known: LiveOutput = serde_json::from_str(&stdout(&output)).unwrap();
    assert!(matches!(known, LiveOutput::Refused(_)), "{known:?}");
}

/// Where nothing can be guaranteed, every verb refuses, in the same words.
#[test]
fn a_set_without_a_guarantee_is_refused_in_the_same_words_by_every_verb() {
    let starving = "../../examples/dubey-2021/starvation.toml";
    for (file, policy) in [
        (starving, "weak-fp"),
        ("../../examples/tang-2021/example-5.toml", "dl-linux"),
        ("../../examples/brandenburg-2008/medium.toml", "CQm"),
        ("tests/command/files/crowded.toml", "hpa-edf"),
    ] {
        let common = [file, "--policy", policy];
        let analyzed = stdout(&shiftwork(&[&["analyze"], &common[..]].concat()));
        let begins = format!("admission under {policy}: ");
        let words = analyzed.lines().find(|line| line.starts_with(&begins));
        let words = words.unwrap_or_else(|| panic!("{analyzed}"));
        assert!(words.starts_with(&format!("{begins}refused: ")), "{words}");

        let run = [
            &["run"],
            &common[..],
            &["--machine", "sim", "--for", "10ms"],
        ]
        .concat();
        let refused = shiftwork(&run);
        assert_eq!(refused.status.code(), Some(1));
        assert_eq!(stdout(&refused).lines().next(), Some(words));
        let forced = shiftwork(&[&run[..], &["--best-effort"]].concat());
        assert_eq!(stdout(&forced).lines().next(), Some(words));
        assert_eq!(
            stdout(&forced).lines().nth(1),
            Some("run all the same, as --best-effort asks")
        );

        let json = |arguments: &[&str]| -> Value {
            let output = shiftwork(&[arguments, &["--json"]].concat());
            serde_json::from_str(&stdout(&output)).unwrap()
        };
        let of_analyze = json(&[&["analyze"], &common[..]].concat())["admission"].clone();
        assert_eq!(of_analyze["verdict"], "refused");
        assert_eq!(of_analyze["guarantee"], "none");
        assert_eq!(json(&run)["admission"], of_analyze);
        let mut of_forced = json(&[&run[..], &["--best-effort"]].concat())["admission"].take();
        let best_effort = of_forced.as_object_mut().unwrap().remove("best_effort");
        assert_eq!(
            (best_effort, of_forced),
            (Some(Value::Bool(true)), of_analyze)
        );
    }
    // The same for what is admitted.
    let common = [GOOD, "--policy", "hpa-edf"];
    let analyzed = stdout(&shiftwork(&[&["analyze"], &common[..]].concat()));
    let run = shiftwork(
        &[
            &["run"],
            &common[..],
            &["--machine", "sim", "--for", "10ms"],
        ]
        .concat(),
    );
    let words = stdout(&run).lines().next().unwrap().to_owned();
    assert!(words.starts_with("admission under hpa-edf: admitted, guarantee hard: "));
    assert!(analyzed.lines().any(|line| line == words), "{analyzed}");
}

/// Two tasks of which one CPU can serve one.
const OVERLOADED: &str = r#"
[platform]
cpus = 1
[[task]]
name = "a"
cost = "8ms"
period = "10ms"
[[task]]
name = "b"
cost = "8ms"
period = "10ms"
"#;

#[test]
fn a_missed_deadline_is_a_no_under_strict_and_under_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("overloaded.toml");
    std::fs::write(&file, OVERLOADED).unwrap();
    let file = file.to_str().unwrap();
    let on = [file, "--policy", "g-edf", "--for", "100ms"];
    let status = |arguments: &[&str]| {
        let output = shiftwork(&[&arguments[..1], &on, &arguments[1..]].concat());
        (output.status.code(), stdout(&output))
    };
    assert_eq!(status(&["simulate"]).0, Some(0));
    assert_eq!(status(&["simulate", "--strict"]).0, Some(1));
    let run = ["run", "--machine", "sim", "--best-effort"];
    let (code, text) = status(&run);
    assert_eq!(code, Some(1));
    assert!(
        text.contains("deadlines missed, no guarantee was given"),
        "{text}"
    );
    let (code, text) = status(&[&run[..], &["--json"]].concat());
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, Some(1));
    assert_eq!(value["guarantee"]["promised"], "none");
    assert_eq!(value["guarantee"]["kept"], true);
    assert_eq!(value["guarantee"]["misses"], value["deadline_misses"]);
}
