//! What is packed in both ways is met in one of them, and refuted only in both.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;

use shiftwork_study::Plan;
use shiftwork_taskset::study;

#[test]
fn either_way_is_what_both_ways_together_say() {
    let mut text =
        "name = \"ways\"\nsets = 60\n[tasks]\ncpus = 4\ncluster-size = 2\ncaps = [3, 3.75]\n\
                    utilizations = \"uniform-heavy\"\n"
            .to_owned();
    for way in ["first-fit", "worst-fit", "either"] {
        text += &format!(
            "[[policy]]\nname = \"c-edf\"\nlabel = \"{way}\"\npacking = \"{way}\"\ncriteria = [\"hard\"]\n"
        );
    }
    let plan = Plan::new(study::read(&text).unwrap(), Path::new("ways.toml")).unwrap();
    let mut differ = 0;
    for cell in &plan.cells {
        for index in 0..plan.file.sets {
            let [full, even, either] = plan.trial(cell, index).unwrap().try_into().unwrap();
            let place = format!("cell {}, set {index}", cell.number);
            assert_eq!(either.is_met, full.is_met || even.is_met, "{place}");
            let refuted = full.is_refuted && even.is_refuted;
            assert_eq!(either.is_refuted, refuted, "{place}");
            differ += usize::from(full != even);
        }
    }
    assert!(differ > 0, "both ways are the same in all sets");
}
