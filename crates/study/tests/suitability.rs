//! What a study file asks of policies that cannot answer is refused before anything is run.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;

use shiftwork_study::{Plan, StudyError, read};

/// A study of one family with this shape of affinities, and of one policy with these options.
fn study(shape: &str, policy: &str, options: &str) -> Result<Plan, StudyError> {
    let text = format!(
        "name = \"one\"\nsets = 1\n[tasks]\ncpus = 4\ncluster-size = 2\ncaps = [0.1]\nutilizations = \"randfixedsum\"\n\
         tasks = 1\naffinities = \"{shape}\"\n[[policy]]\nname = \"{policy}\"\n{options}\n"
    );
    Plan::new(read(&text).unwrap(), Path::new("one.toml"))
}

/// The shapes of affinities that a policy is not asked about.
fn refused(policy: &str) -> Vec<&'static str> {
    let shapes = [
        "global",
        "partitioned",
        "bi-level",
        "clustered",
        "three-level",
        "laminar",
        "arbitrary",
    ];
    let is_refused = |shape: &&str| match study(shape, policy, "") {
        Ok(_) => false,
        Err(StudyError::Unsuitable { .. }) => true,
        Err(other) => panic!("{policy}, {shape}: {other}"),
    };
    shapes.into_iter().filter(is_refused).collect()
}

/// Each set has one task only, so that most policies take many of the sets, and some of them all but few: what
/// counts is what can be drawn, not what is drawn first.
#[test]
fn policy_is_asked_only_about_shapes_of_affinities_that_it_takes() {
    let all_but_global = [
        "partitioned",
        "bi-level",
        "clustered",
        "three-level",
        "laminar",
        "arbitrary",
    ];
    assert_eq!(refused("g-edf"), all_but_global);
    assert_eq!(refused("hpa-edf"), ["arbitrary"]);
    assert_eq!(refused("strong-edf"), [""; 0]);
    assert_eq!(refused("weak-fp"), [""; 0]);
    assert_eq!(refused("p-edf"), [""; 0]);
}

#[test]
fn refusal_names_policy_family_reason_and_what_would_be_accepted() {
    let error = study("arbitrary", "g-edf", "label = \"G\"").unwrap_err();
    let text = error.to_string();
    for part in [
        "one.toml: policy `G`",
        "family `tasks`",
        "g-edf: task T1 may use only CPUs {0,1}",
        "`strong-edf` any",
        "`affinities = \"ignored\"`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(study("arbitrary", "g-edf", "affinities = \"ignored\"").is_ok());
}

/// CE1 keeps a CPU for interrupts.
#[test]
fn platform_on_which_a_policy_has_no_cpu_left_is_refused() {
    let plan = |cpus: usize| {
        let text = format!(
            "name = \"one\"\nsets = 1\n[tasks]\ncpus = [4, {cpus}]\ncaps = [0.5]\nutilizations = \"uniform-light\"\n\
             [[policy]]\nname = \"CE1\"\n"
        );
        Plan::new(read(&text).unwrap(), Path::new("one.toml"))
    };
    assert!(plan(2).is_ok());
    let error = plan(1).unwrap_err();
    assert!(matches!(error, StudyError::Unsuitable { .. }), "{error}");
}

#[test]
fn unknown_policies_and_tests_have_their_place_and_the_name_that_seems_meant() {
    let text = "name = \"x\"\nsets = 1\n[tasks]\ncpus = 2\ncaps = [1]\nutilizations = \"uniform-light\"\n[[policy]]\n\
                name = \"g-efd\"\n[[policy]]\nname = \"g-edf\"\ntests = [\"gfb\", \"bakk\", \"fp-rta\"]\n";
    let error = read(text).unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    let [policy, misspelt, other] = lines[..] else {
        panic!("{error}");
    };
    assert!(
        policy.starts_with("line 8, column 8: there is no policy `g-efd`; did you mean `g-edf`?"),
        "{policy}"
    );
    assert!(
        misspelt
            .starts_with("line 11, column 17: no test `bakk` speaks of it; did you mean `bak`?"),
        "{misspelt}"
    );
    assert!(
        other.starts_with("line 11, column 25: no test `fp-rta` speaks of it; there are "),
        "{other}"
    );
}
