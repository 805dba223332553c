mod large;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use shiftwork_model::{
    Arrival, Chain, Invariant, JobId, Join, Order, Record, RecordKind, Span, Trigger,
};
use shiftwork_trace::check::PolicyContract;
use shiftwork_trace::explain::explain;

use super::*;
use crate::run::{Bound, Provenance};
use crate::run_script::{self, RunScript};

fn contract(policy: &str) -> PolicyContract {
    let (invariant, order) = match policy {
        "strong-fp" => (Invariant::Strong, Order::FixedPriority),
        "weak-fp" => (Invariant::Weak, Order::FixedPriority),
        _ => (Invariant::Weak, Order::Edf),
    };
    PolicyContract {
        invariant,
        order,
        packing: None,
        immediate: true,
    }
}

fn page(scripts: &[(&str, &RunScript)], horizon_ms: u64, limits: &Limits) -> String {
    let summaries: Vec<_> = scripts
        .iter()
        .map(|(_, script)| script.summary(horizon_ms))
        .collect();
    let runs: Vec<Run<'_>> = scripts
        .iter()
        .zip(&summaries)
        .map(|(&(policy, script), summary)| Run {
            set: &script.set,
            records: (&script.records).into(),
            summary,
            contract: Some(contract(policy)),
            bounds: Vec::new(),
            provenance: Provenance {
                version: "0.1.0".into(),
                policy: policy.into(),
                seed: Some(1),
                command: format!(
                    "shiftwork simulate script.toml --policy {policy} --for {horizon_ms}ms"
                ),
                input: "script.toml".into(),
                input_hash: "sha256:5d41402abc4b2a76b9719d911017c592".into(),
                machine: "sim".into(),
            },
        })
        .collect();
    html(&runs, &[], limits)
}

fn fig_1() -> String {
    let (weak, strong) = (run_script::fig_1_weak(), run_script::fig_1_strong());
    page(
        &[("weak-fp", &weak), ("strong-fp", &strong)],
        100,
        &Limits::default(),
    )
}

#[test]
fn page_has_bounds_beside_measured_response_times() {
    let script = run_script::fig_1_strong();
    let summary = script.summary(100);
    let bounds = script.set.tasks.iter().enumerate().map(|(index, task)| {
        (index > 0).then_some(Bound {
            response: task.deadline,
            by: "gel",
        })
    });
    let run = Run {
        set: &script.set,
        records: (&script.records).into(),
        summary: &summary,
        contract: Some(contract("strong-fp")),
        bounds: bounds.collect(),
        provenance: Provenance::default(),
    };
    let page = html(&[run], &[], &Limits::default());
    let known = script.set.tasks.len() - 1;
    assert_eq!(page.matches("title=\"by gel\"").count(), known);
    assert_eq!(page.matches("class=\"bound run0\"").count(), known);
    assert!(!fig_1().contains("class=\"bound"), "nothing is known there");
}

#[test]
fn page_has_the_triggers_and_the_chains_with_what_was_wanted() {
    let mut script = run_script::fig_1_strong();
    let ids: Vec<_> = script.set.iter().map(|(id, _)| id).collect();
    script.set.tasks[ids[2].index()].arrival = Arrival::Triggered(Trigger {
        sources: vec![ids[1]],
        join: Join::Any,
        queue: None,
    });
    script.set.chains.push(Chain {
        name: "a<b".into(),
        tasks: vec![ids[1], ids[2]],
        reaction: None,
        age: None,
        latency: Some(Span::from_ms(5)),
    });
    let by = JobId {
        task: ids[1],
        number: 1,
    };
    let last = script.records.last().unwrap().at;
    for is_lost in [false, true] {
        let task = ids[2];
        let kind = RecordKind::Triggered { by, task, is_lost };
        script.records.push(Record { at: last, kind });
    }
    let page = page(&[("strong-fp", &script)], 100, &Limits::default());
    let made = format!("\"triggers\":[{},1,1,2]", last.as_ns());
    assert!(page.contains(&made), "{made}");
    // The first job of the chain had not ended.
    assert!(page.contains("<tr class=\"bad\"><td>a&lt;b</td>"));
    assert!(page.contains("<td>latency</td><td class=\"n\">5 ms</td>"));
    let heading = "<b>strong-fp</b>: chain a&lt;b missed its latency of 5ms: ";
    assert_eq!(page.matches(heading).count(), 1);
    assert!(!fig_1().contains("id=\"chains\""));
}

#[test]
fn page_needs_no_other_file() {
    let page = fig_1();
    for outside in ["http:", "https:", "src=", "@import", "url(", "<link"] {
        assert!(!page.contains(outside), "{outside} in the page");
    }
    assert_eq!(page, fig_1(), "the same input gives the same bytes");
}

#[test]
fn explanations_of_misses_need_no_script() {
    let page = fig_1();
    for text in [
        "<b>T3 #1</b> finished 11 ms late",
        "It waited 30 ms while more urgent jobs had every CPU it may use.",
        "moving T1 #1 from CPU 0 to CPU 2 (then running the less urgent T4 #1)",
        "No deadline was missed by any of the 4 jobs.",
        "shiftwork simulate script.toml --policy weak-fp --for 100ms",
        "sha256:5d41402abc4b2a76b9719d911017c592",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn page_has_the_cause_of_explain() {
    let script = run_script::fig_1_weak();
    let job = JobId {
        task: script.id("T3"),
        number: 1,
    };
    let until = Instant::from_ns(100_000_000);
    let view = explain(
        &script.set,
        &contract("weak-fp"),
        &script.records,
        job,
        until,
    )
    .unwrap();
    let names: Vec<&str> = script.set.tasks.iter().map(|task| &*task.name).collect();
    let cause = format!("<b>Cause: {}.</b> Without ", view.cause_name(&names));
    assert_eq!(fig_1().matches(&cause).count(), 1, "{cause}");
    // The promises of an unknown policy are not known.
    let summary = script.summary(100);
    let run = Run {
        set: &script.set,
        records: (&script.records).into(),
        summary: &summary,
        contract: None,
        bounds: Vec::new(),
        provenance: Provenance::default(),
    };
    let page = html(&[run], &[], &Limits::default());
    assert!(page.contains("finished 11 ms late") && !page.contains("Cause: "));
}

#[test]
fn names_from_files_are_escaped() {
    let script = run_script::everything();
    let page = page(&[("<i>edf", &script)], 50, &Limits::default());
    assert!(!page.contains("<b>&\"log'"));
    assert!(!page.contains("<i>edf"));
    assert!(page.contains("&lt;b&gt;&amp;&quot;log&#39;"));
    assert!(page.contains("no partition has room &lt;for it&gt;"));
    let scripts = page.matches("</script>").count();
    assert_eq!(
        scripts, 2,
        "one of data and one of code; the name ends neither"
    );
}

#[test]
fn long_run_is_cut_with_a_remark() {
    let script = run_script::crowd(24, 4, 600);
    let limits = Limits {
        slices: 300,
        misses: 3,
        jobs: 10,
        ..Limits::default()
    };
    let short = page(&[("g-edf", &script)], 600, &limits);
    assert!(short.contains("The run is too long to fit this page: the chart shows the first"));
    assert!(short.contains("Data: the first 10 of"));
    let whole = page(&[("g-edf", &script)], 600, &Limits::default());
    assert!(!whole.contains("too long to fit"));
    assert!(short.len() < whole.len());
}

#[test]
fn records_of_another_task_set_are_counted_and_left_out() {
    let mut script = run_script::fig_1_weak();
    script.set.tasks.truncate(2);
    let page = page(&[("weak-fp", &script)], 100, &Limits::default());
    assert!(page.contains("name tasks, jobs or CPUs that the task set does not have"));
}

#[test]
fn page_names_the_policies_that_are_left_out() {
    let why = "pd2: task <b> is triggered".to_owned();
    let page = html(&[], &[why], &Limits::default());
    assert!(page.contains("<p class=\"remark\">Left out: pd2: task &lt;b&gt; is triggered</p>"));
    assert!(!fig_1().contains("Left out"));
}

#[test]
fn run_without_records_has_a_page() {
    let page = page(
        &[("g-edf", &RunScript::new(1, &[]))],
        10,
        &Limits::default(),
    );
    assert!(page.contains("No deadline was missed by any of the 0 jobs."));
    assert!(html(&[], &[], &Limits::default()).ends_with("</html>\n"));
}

/// Headless Chromium, if this machine has one.
fn browser() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok())
}

/// A folder of this test, under the build folder.
fn folder(name: &str) -> PathBuf {
    let binary = std::env::current_exe().unwrap();
    let folder = binary.parent().unwrap().join("report-pages").join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The document after its script has run, `None` (loudly) without a browser.
fn after_script(name: &str, page: &str) -> Option<String> {
    let Some(browser) = browser() else {
        eprintln!("SKIPPED: no Chromium on this machine, the script of the page was not run");
        return None;
    };
    let folder = folder(name);
    let file = folder.join("page.html");
    fs::write(&file, page).unwrap();
    let dump = folder.join("dump.html");
    let mut child = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
        ])
        .args([
            "--dump-dom",
            "--window-size=1280,1600",
            "--virtual-time-budget=4000",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .arg(format!("file://{}", file.display()))
        .stdout(fs::File::create(&dump).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..600 {
        if child.try_wait().unwrap().is_some() {
            return Some(fs::read_to_string(&dump).unwrap());
        }
        thread::sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("{browser} did not finish within a minute");
}

/// The value of the first attribute of this name.
fn attribute<'a>(document: &'a str, name: &str) -> &'a str {
    let start = format!(" {name}=\"");
    let (_, rest) = document
        .split_once(&start)
        .unwrap_or_else(|| panic!("no {name}"));
    rest.split_once('"').unwrap().0
}

#[test]
fn a_browser_draws_every_slice_of_both_runs() {
    let Some(document) = after_script("fig-1", &fig_1()) else {
        return;
    };
    assert_eq!(attribute(&document, "data-ready"), "true");
    assert_eq!(attribute(&document, "data-errors"), "0");
    assert_eq!(attribute(&document, "data-slices"), "4,6");
    assert_eq!(attribute(&document, "data-misses"), "1,0");
    assert_eq!(attribute(&document, "data-drawn"), "4");
    assert_eq!(attribute(&document, "data-view"), "0-100000000");
}

/// Simulates wheel, drag, keys and clicks, and notes the view after each.
const PERSON: &str = r#"<script>
// A page that is only dumped gets no animation frames.
requestAnimationFrame = (draw) => setTimeout(draw, 0);
addEventListener("load", () => {
  const canvas = document.getElementById("gantt0"), other = document.getElementById("gantt1");
  const box = canvas.getBoundingClientRect();
  const at = (share) => ({ clientX: box.left + left + share * (box.width - left - 10), clientY: box.top + 40, bubbles: true, cancelable: true });
  // The width of the labels, as the chart works it out.
  const left = 90;
  const steps = {
    unfocused: () => canvas.dispatchEvent(new WheelEvent("wheel", { ...at(0.5), deltaY: -300 })),
    wheel: () => { canvas.focus(); canvas.dispatchEvent(new WheelEvent("wheel", { ...at(0), deltaY: -385.35 })); },
    drag: () => {
      canvas.dispatchEvent(new PointerEvent("pointerdown", { ...at(0.5), pointerId: 1 }));
      canvas.dispatchEvent(new PointerEvent("pointermove", { ...at(0.3), pointerId: 1 }));
      canvas.dispatchEvent(new PointerEvent("pointerup", { ...at(0.3), pointerId: 1 }));
    },
    key: () => canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true })),
    fit: () => document.querySelector("[data-do=fit]").click(),
    miss: () => canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "n", bubbles: true })),
    show: () => { document.querySelector("[data-do=fit]").click(); document.querySelector(".show").click(); },
    dark: () => document.getElementById("theme").click(),
    hover: () => canvas.dispatchEvent(new PointerEvent("pointermove", { ...at(0.5), pointerId: 1 })),
  };
  const seen = [];
  const next = (names) => {
    if (!names.length) {
      document.body.setAttribute("data-tip", document.getElementById("tip").textContent.split("\n")[0]);
      document.body.setAttribute("data-seen", seen.join(" "));
      return;
    }
    steps[names[0]]();
    setTimeout(() => {
      const linked = canvas.dataset.view === other.dataset.view ? "" : "!";
      seen.push(`${names[0]}=${linked}${canvas.dataset.view}`);
      next(names.slice(1));
    }, 60);
  };
  next(Object.keys(steps));
});
</script></body>"#;

#[test]
fn both_charts_follow_wheel_drag_keys_and_buttons() {
    let page = fig_1().replace("</body>", PERSON);
    let Some(document) = after_script("person", &page) else {
        return;
    };
    assert_eq!(attribute(&document, "data-errors"), "0");
    let seen: Vec<(&str, &str)> = attribute(&document, "data-seen")
        .split(' ')
        .map(|step| step.split_once('=').unwrap())
        .collect();
    let ms = |step: &str| {
        let (_, view) = seen.iter().find(|(name, _)| *name == step).unwrap();
        assert!(
            !view.starts_with('!'),
            "{step}: the charts show different times"
        );
        let (from, to) = view.split_once('-').unwrap();
        [from, to].map(|ns| (ns.parse::<f64>().unwrap() / 1e6).round() as u64)
    };
    assert_eq!(
        ms("unfocused"),
        [0, 100],
        "scrolling the page is not zooming the chart"
    );
    assert_eq!(ms("wheel"), [0, 50], "zooms to half, around the pointer");
    assert_eq!(ms("drag"), [10, 60]);
    assert_eq!(ms("key"), [18, 68]);
    assert_eq!(ms("fit"), [0, 100]);
    assert_eq!(
        ms("miss"),
        [0, 92],
        "T3 from its release to its finish, and half as much around"
    );
    assert_eq!(ms("show"), ms("miss"));
    assert_eq!(attribute(&document, "data-theme"), "dark");
    assert!(
        attribute(&document, "data-tip").starts_with("T"),
        "says which job is under the pointer"
    );
}

/// The pages are kept after the test for inspection.
#[test]
fn pages_of_all_sizes_are_drawn_without_an_error() {
    let crowd = run_script::crowd(40, 8, 2_000);
    let busy = run_script::crowd(9, 4, 400);
    let everything = run_script::everything();
    let huge = run_script::crowd(300, 128, 100);
    let whole = Limits::default();
    let small = Limits {
        slices: 3_000,
        ..Limits::default()
    };
    for (name, script, horizon_ms, limits) in [
        ("everything", &everything, 50, &whole),
        ("busy", &busy, 400, &whole),
        ("crowd", &crowd, 2_000, &whole),
        ("crowd-cut", &crowd, 2_000, &small),
        ("huge", &huge, 100, &whole),
    ] {
        let page = page(&[("weak-edf", script)], horizon_ms, limits);
        let Some(document) = after_script(name, &page) else {
            return;
        };
        assert_eq!(attribute(&document, "data-ready"), "true", "{name}");
        assert_eq!(attribute(&document, "data-errors"), "0", "{name}");
        let drawn: usize = attribute(&document, "data-drawn").parse().unwrap();
        assert!(drawn > 0, "{name} draws nothing");
    }
}
