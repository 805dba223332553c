//! What a study file says arrives.
#![allow(clippy::unwrap_used, reason = "a test")]

use shiftwork_model::Span;
use shiftwork_taskset::generate::{Deadlines, Distribution, Periods, Shape, Spread, Utilizations};
use shiftwork_taskset::study::{
    Affinities, Contender, Count, Criterion, Draw, Family, Load, Packing, StudyFile, read,
};

const EVERY_KEY: &str = include_str!("good/study.toml");

/// The expected content of the file with every key.
fn expected() -> StudyFile {
    let periods = Periods {
        shortest: Span::from_ms(3),
        longest: Span::from_ms(33),
        granularity: Span::from_us(100),
        spread: Spread::LogUniform,
    };
    let heavy = Family {
        name: "heavy".to_owned(),
        cpus: vec![4, 8],
        loads: vec![Load::Cap(500), Load::Cap(1_250), Load::Cap(2_000)],
        cluster: Some(2),
        draw: Draw::UntilCap(Distribution::BimodalHeavy),
        periods,
        deadlines: Deadlines::Constrained,
        shape: Shape::ThreeLevel(2),
        min_cost: Span::from_us(5),
        feasible: true,
        tardiness: true,
    };
    let few = Family {
        name: "few".to_owned(),
        cpus: vec![3],
        loads: vec![Load::Share(125), Load::Share(1_000)],
        cluster: Some(1),
        draw: Draw::RandFixedSum(Count::Tasks(7)),
        deadlines: Deadlines::Arbitrary,
        shape: Shape::Clustered(1),
        feasible: false,
        tardiness: false,
        ..heavy.clone()
    };
    let many = Family {
        name: "many".to_owned(),
        draw: Draw::UUniFastDiscard(Count::PerCpu(4)),
        ..heavy.clone()
    };
    let plain = Contender {
        policy: "p-edf".to_owned(),
        label: "p-edf".to_owned(),
        overheads: None,
        priced_as: None,
        criteria: vec![Criterion::Hard, Criterion::Soft],
        tests: Vec::new(),
        families: Vec::new(),
        affinities: Affinities::AsDrawn,
        packing: Packing::Either,
        simulate: None,
    };
    let global = Contender {
        policy: "g-edf".to_owned(),
        label: "G".to_owned(),
        overheads: Some(None),
        criteria: vec![Criterion::Soft],
        tests: vec!["devi-anderson".to_owned()],
        families: vec!["few".to_owned(), "heavy".to_owned()],
        affinities: Affinities::Ignored,
        packing: Packing::FirstFit,
        simulate: Some(Span::from_ms(500)),
        ..plain.clone()
    };
    let fair = Contender {
        policy: "c-pd2".to_owned(),
        label: "c-pd2".to_owned(),
        overheads: Some(Some("other.toml".to_owned())),
        priced_as: Some("s-pd2".to_owned()),
        packing: Packing::FirstFit,
        ..plain.clone()
    };
    StudyFile {
        name: "every key".to_owned(),
        seed: 3,
        sets: 250,
        steps: 5_000,
        quantum: Some(Span::from_ms(2)),
        overheads: Some("niagara.toml".to_owned()),
        families: vec![heavy, few, many],
        contenders: vec![global, fair, plain],
    }
}

#[test]
fn every_key_arrives() {
    assert_eq!(read(EVERY_KEY), Ok(expected()));
}

#[test]
fn what_is_not_said_is_as_documented() {
    let file = read(
        "name = \"least\"\nsets = 1\n[tasks]\ncpus = 2\ncaps = [1]\nutilizations = \"uniform-light\"\n\
         [[policy]]\nname = \"g-edf\"\n",
    )
    .unwrap();
    let said = (file.seed, file.steps, file.quantum, file.overheads);
    assert_eq!(said, (0, 200_000, None, None));
    let family = &file.families[0];
    assert_eq!((family.name.as_str(), family.cluster), ("tasks", None));
    assert_eq!(family.periods, Periods::default());
    assert_eq!(
        (family.deadlines, family.shape),
        (Deadlines::Implicit, Shape::Global)
    );
    assert_eq!(
        (family.min_cost, family.feasible, family.tardiness),
        (Span::from_ns(1), false, false)
    );
    assert_eq!(file.contenders[0].label, "g-edf");
}

#[test]
fn loads_are_shares_of_the_cpus_or_cpus() {
    let family = &expected().families[1];
    assert_eq!(
        family
            .loads
            .iter()
            .map(|load| load.cap(3))
            .collect::<Vec<_>>(),
        [375, 3_000]
    );
    let drawn = family.options(3, family.loads[0]).utilizations;
    assert_eq!(
        drawn,
        Utilizations::RandFixedSum {
            tasks: 7,
            total: 0.375
        }
    );
}
