//! Pages of many tasks.

use super::*;

fn crowd() -> RunScript {
    run_script::crowd(1_000, 16, 40)
}

/// Fewer, for what takes a browser long.
fn group() -> RunScript {
    run_script::crowd(200, 16, 40)
}

/// The part of a page from the section with this id to the next one.
fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let from = page.find(&format!("<section id=\"{id}\">")).unwrap();
    let length = page[from..].find("</section>").unwrap();
    &page[from..from + length]
}

/// What is there before anything is opened.
fn unfolded(section: &str) -> &str {
    section.split("<details class=\"others\">").next().unwrap()
}

#[test]
fn page_of_a_thousand_tasks_is_small_and_shows_first_what_matters() {
    let page = page(&[("g-edf", &crowd())], 40, &Limits::default());
    assert!(page.len() < 4_000_000, "{} bytes", page.len());
    assert!(page.contains("<input id=\"filter\" type=\"search\""));
    assert!(page.contains("Lanes of 24 of the 1\u{202f}000 tasks"));
    for (id, element, rows) in [
        ("responses", "<figure>", 24),
        ("tasks", "<tr><th scope=\"row\">", 24),
    ] {
        let all = section(&page, id);
        let first = unfolded(all).replace(" class=\"bad\"", "");
        assert_eq!(first.matches(element).count(), rows, "{id}");
        let all = all.replace(" class=\"bad\"", "");
        assert!(all.matches(element).count() >= 1_000, "{id}");
    }
    let first = unfolded(section(&page, "tasks"));
    let counts: Vec<u64> = first
        .split("<td class=\"n\">! ")
        .skip(1)
        .map(|rest| rest.split('<').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(counts.len(), 24, "all of them missed deadlines");
    assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
}

#[test]
fn misses_of_many_tasks_are_grouped_by_cause() {
    let page = page(&[("g-edf", &crowd())], 40, &Limits::default());
    let why = section(&page, "why");
    let groups = unfolded(why).matches("<td class=\"n\">! ").count();
    assert!((1..=12).contains(&groups), "{groups}");
    assert!(why.contains(" missed deadlines, by what each miss lost most to:"));
    assert!(why.contains("The same by task: "));
    assert_eq!(why.matches("<details class=\"miss\"").count(), 25);
    let causes = why.matches("<h4>").count();
    let open = why.matches("\" open>").count();
    assert!(causes < 25 && open == causes.min(5), "{causes} {open}");
}

/// The windows of the charts of a page.
fn windows(page: &str) -> Vec<Vec<[u64; 2]>> {
    let data = page.split("class=\"run\">").skip(1);
    let data = data.map(|rest| rest.split("</script>").next().unwrap());
    data.map(|text| {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        serde_json::from_value(value["windows"].clone()).unwrap()
    })
    .collect()
}

#[test]
fn charts_side_by_side_show_the_same_time() {
    let (many, few) = (run_script::crowd(24, 4, 600), run_script::crowd(24, 8, 600));
    let limits = Limits {
        slices: 80,
        ..Limits::default()
    };
    let alone = [&many, &few].map(|run| windows(&page(&[("g-edf", run)], 600, &limits)).remove(0));
    let both = windows(&page(&[("g-edf", &many), ("fp", &few)], 600, &limits));
    assert_eq!(both[0], both[1]);
    assert_ne!(alone[0], alone[1], "each would show another time");
    assert_eq!(both[0][0][0], 0);
    assert!(both[0].len() > 1, "windows around misses: {both:?}");
    // A run that ends earlier shows no more than there is.
    let short = windows(&html_of(&[(&many, 600), (&few, 100)], &limits));
    assert_eq!(short[1], [[0, short[0][0][1].min(100_000_000)]]);
}

fn html_of(scripts: &[(&RunScript, u64)], limits: &Limits) -> String {
    let summaries: Vec<_> = scripts
        .iter()
        .map(|(script, horizon_ms)| script.summary(*horizon_ms))
        .collect();
    let runs: Vec<Run<'_>> = scripts
        .iter()
        .zip(&summaries)
        .map(|((script, _), summary)| Run {
            set: &script.set,
            records: (&script.records).into(),
            summary,
            contract: Some(contract("g-edf")),
            bounds: Vec::new(),
            provenance: Provenance::default(),
        })
        .collect();
    html(&runs, &[], limits)
}

/// Types into the search box, and notes how many rows, pictures and lanes there are.
const TYPIST: &str = r##"<script>
addEventListener("load", () => setTimeout(() => {
  const box = document.getElementById("filter"), canvas = document.getElementById("gantt0");
  const shown = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility()).length;
  const seen = [];
  const note = (step) => seen.push([step, shown("#tasks tbody tr"), shown("#responses figure"), parseInt(canvas.style.height),
    document.getElementById("found").textContent.replace(/\s+/g, "_")].join(","));
  note("all");
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true, cancelable: true }));
  seen.push(document.activeElement === box ? "focused" : "unfocused");
  box.value = "worker-77 ER-123";
  box.dispatchEvent(new Event("input"));
  note("some");
  box.value = "nothing";
  box.dispatchEvent(new Event("input"));
  note("none");
  box.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true }));
  note("again");
  document.body.setAttribute("data-seen", seen.join(" "));
}, 50));
</script></body>"##;

#[test]
fn search_box_shows_the_tasks_with_these_names_and_their_lanes() {
    let page = page(&[("g-edf", &group())], 40, &Limits::default());
    let Some(document) = after_script("typist", &page.replace("</body>", TYPIST)) else {
        return;
    };
    assert_eq!(attribute(&document, "data-errors"), "0");
    let seen: Vec<&str> = attribute(&document, "data-seen").split(' ').collect();
    // worker-77 and worker-123.
    let numbers = |text: &str| -> Vec<u64> {
        let fields = text.split(',').skip(1).take(3);
        fields.map(|field| field.parse().unwrap()).collect()
    };
    let all = numbers(seen[0]);
    assert_eq!(all[..2], [24, 24]);
    assert_eq!(seen[1], "focused");
    let some = numbers(seen[2]);
    assert_eq!(some[..2], [2, 2]);
    assert!(seen[2].ends_with(",2_of_200_tasks"), "{}", seen[2]);
    assert!(some[2] < all[2], "fewer lanes make a lower chart");
    assert_eq!(numbers(seen[3])[..2], [0, 0]);
    assert!(seen[3].ends_with(",no_task_has_such_a_name"), "{}", seen[3]);
    assert_eq!(numbers(seen[4]), all, "as it was");
}

/// Loads the page in frames of these widths, and notes where it is wider than its frame.
const FRAMES: &str = r#"<script>
addEventListener("load", () => setTimeout(() => {
  const widths = [...document.querySelectorAll("iframe")].map((frame) => {
    const root = frame.contentDocument.documentElement;
    return `${frame.clientWidth}:${root.scrollWidth <= root.clientWidth}:${root.scrollHeight}`;
  });
  document.body.setAttribute("data-widths", widths.join(" "));
}, 500));
</script>"#;

#[test]
fn pages_fit_into_windows_of_all_widths() {
    let large = page(&[("g-edf", &group())], 40, &Limits::default());
    for (name, page) in [("large", large), ("small", fig_1())] {
        let source = page.replace('&', "&amp;").replace('"', "&quot;");
        let frames = [1400, 800, 390].map(|width| {
            format!("<iframe style=\"width:{width}px;height:900px\" srcdoc=\"{source}\"></iframe>")
        });
        let frames = format!("<!DOCTYPE html><body>{}{FRAMES}</body>", frames.concat());
        let Some(document) = after_script(&format!("frames-{name}"), &frames) else {
            return;
        };
        let widths: Vec<&str> = attribute(&document, "data-widths").split(' ').collect();
        assert_eq!(widths.len(), 3);
        for width in widths {
            assert!(width.contains(":true:"), "{name}: {width}");
            let height: u64 = width.rsplit(':').next().unwrap().parse().unwrap();
            assert!(height < 20_000, "{name}: {width}");
        }
    }
}
