//! A page about a calibration: figures, distributions, decisions by the number of tasks, delays by working set.

use std::collections::BTreeMap;

use shiftwork_report::plot::{Axes, Curve, curves, magnitudes};
use shiftwork_report::{document, escape, signed_span as signed, span};

use crate::quantity::{Kind, QUEUE, Quantity, bytes};
use crate::session::Calibration;
use crate::statistics::{Batches, Summary};

/// A curve of a distribution has no more steps.
const STEPS: usize = 200;

/// The kinds with distributions that are shown, by the heading of their picture.
const DISTRIBUTIONS: [(&str, &[Kind]); 3] = [
    ("Interrupts", &[Kind::Release, Kind::Tick]),
    (
        "Switches and wake-ups",
        &[
            Kind::SwitchThreads,
            Kind::SwitchProcesses,
            Kind::IpiIdle,
            Kind::IpiBusy,
        ],
    ),
    (
        "Live runs",
        &[
            Kind::LiveReport,
            Kind::LiveDecide,
            Kind::LiveKick,
            Kind::LiveSwitch,
            Kind::LiveExcess,
        ],
    ),
];

/// The page, one file that needs no other. The same calibration gives the same bytes.
pub fn page(title: &str, done: &Calibration) -> String {
    let mut body = String::from("<section>\n<h2>Figures</h2>\n");
    body += &table(done);
    body += "</section>\n<section>\n<h2>Distributions</h2>\n";
    for (title, kinds) in DISTRIBUTIONS {
        body += &distributions(title, kinds, done);
    }
    body += "</section>\n<section>\n<h2>Decisions</h2>\n";
    body += &decisions(done);
    body += "</section>\n<section>\n<h2>Ready queues</h2>\n";
    for call in QUEUE {
        body += &queues(call, done);
    }
    body += "</section>\n<section>\n<h2>Preemption and migration delays</h2>\n";
    body += &delays(done);
    body += "</section>\n";
    if !done.notes.is_empty() {
        let items: String = done
            .notes
            .iter()
            .map(|note| format!("<li>{}</li>\n", escape(note)))
            .collect();
        body += &format!("<section>\n<h2>Notes</h2>\n<ul>\n{items}</ul>\n</section>\n");
    }
    document(title, &body)
}

fn table(done: &Calibration) -> String {
    let mut rows = String::new();
    // Quantities by the number of tasks are in the plots: there are too many for a table.
    let is_shown = |(quantity, _): &(&Quantity, &Batches)| !quantity.kind.is_by_tasks();
    for (quantity, batches) in done.measured.iter().filter(is_shown) {
        let Some(it) = batches.summary() else {
            continue;
        };
        rows += &format!(
            "<tr><th scope=\"row\" title=\"{}\">{}</th>",
            escape(quantity.kind.meaning()),
            escape(&quantity.to_string())
        );
        let cells = [
            it.samples.to_string(),
            signed(it.mean.value),
            format!("{} .. {}", signed(it.mean.low), signed(it.mean.high)),
            signed(it.median.value),
            signed(it.p99.value),
            signed(it.worst),
            signed(it.max),
        ];
        rows += &cells
            .map(|cell| format!("<td>{}</td>", escape(&cell)))
            .concat();
        rows += "</tr>\n";
    }
    let heads = [
        "",
        "samples",
        "mean",
        "95% of the mean",
        "median",
        "p99",
        "worst",
        "max",
    ];
    let heads = heads
        .map(|head| format!("<th scope=\"col\">{head}</th>"))
        .concat();
    format!(
        "<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n<p>mean and worst are without \
         the top 1%, the others of all samples</p>\n"
    )
}

fn distributions(title: &str, kinds: &[Kind], done: &Calibration) -> String {
    let found = kinds.iter().filter_map(|&kind| {
        let batches = done.measured.get(&Quantity::of(kind))?;
        Some(distribution(kind.name(), batches, &batches.summary()?))
    });
    let found: Vec<Curve> = found.collect();
    let axes = Axes {
        x: "ns",
        y: "% of the samples",
    };
    figure(&found, |found| curves(title, axes, found))
}

/// How many of 100 samples do not exceed a span, up to the worst.
fn distribution(name: &str, batches: &Batches, summary: &Summary) -> Curve {
    let sorted = batches.sorted();
    let kept = sorted.partition_point(|&ns| ns <= summary.worst);
    let mut points = vec![(u64::try_from(summary.min).unwrap_or(0), 0)];
    for step in 1..=STEPS {
        let rank = (kept * step).div_ceil(STEPS).max(1);
        let ns = u64::try_from(sorted[rank - 1]).unwrap_or(0);
        points.push((ns, (rank * 100 / sorted.len()) as u64));
    }
    points.dedup();
    Curve {
        name: name.to_owned(),
        points,
        is_dashed: false,
    }
}

fn decisions(done: &Calibration) -> String {
    let by_policy = means(done, Kind::Decide, |quantity| quantity.variant.to_owned());
    let axes = Axes {
        x: "tasks",
        y: "mean of a decision (ns)",
    };
    // Not more in one picture than there are colours.
    let pictures = by_policy
        .chunks(6)
        .map(|some| figure(some, |some| curves("Deciding", axes, some)));
    pictures.collect()
}

/// A call, of each queue. Both axes by magnitude, since these costs grow with logarithms.
fn queues(call: Kind, done: &Calibration) -> String {
    let by_queue = means(done, call, |quantity| quantity.variant.to_owned());
    let axes = Axes {
        x: "tasks",
        y: "mean",
    };
    figure(&by_queue, |found| {
        magnitudes(call.name(), axes, [|tasks| tasks.to_string(), span], found)
    })
}

fn delays(done: &Calibration) -> String {
    let mut found = means(done, Kind::Preemption, |_| String::from("preemption"));
    found.extend(means(done, Kind::Migration, |quantity| {
        format!("migration, {}", quantity.variant)
    }));
    let axes = Axes {
        x: "working set",
        y: "mean delay",
    };
    figure(&found, |found| {
        magnitudes("Delays by working set", axes, [bytes, span], found)
    })
}

/// The means of a kind, a curve for each name, by what they are at.
fn means(done: &Calibration, kind: Kind, name: impl Fn(&Quantity) -> String) -> Vec<Curve> {
    let mut found: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    for (quantity, batches) in done
        .measured
        .iter()
        .filter(|(quantity, _)| quantity.kind == kind)
    {
        if let Some(summary) = batches.summary() {
            let mean = u64::try_from(summary.mean.value).unwrap_or(0);
            found
                .entry(name(quantity))
                .or_default()
                .push((quantity.at, mean));
        }
    }
    let curve = |(name, points)| Curve {
        name,
        points,
        is_dashed: false,
    };
    found.into_iter().map(curve).collect()
}

fn figure(found: &[Curve], picture: impl FnOnce(&[Curve]) -> String) -> String {
    match found.is_empty() {
        true => String::from("<p>nothing was measured</p>\n"),
        false => format!("<figure>\n{}</figure>\n", picture(found)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_what_was_measured_and_what_was_not() {
        let mut done = Calibration::default();
        for (quantity, samples) in [
            (Quantity::of(Kind::Release), vec![900, 1_100, 1_000]),
            (
                Quantity {
                    kind: Kind::Preemption,
                    variant: "",
                    at: 4_096,
                },
                vec![-7, 300],
            ),
            (
                Quantity {
                    kind: Kind::Preemption,
                    variant: "",
                    at: 16_384,
                },
                vec![1_700],
            ),
            (
                Quantity {
                    kind: Kind::QueueTake,
                    variant: "fine",
                    at: 30,
                },
                vec![210],
            ),
        ] {
            done.measured.entry(quantity).or_default().push(samples);
        }
        done.notes.push(String::from("tick: <none>"));
        let page = page("A & B", &done);
        for part in [
            "<h1>A &amp; B</h1>",
            "tick: &lt;none&gt;",
            "preemption 4 KiB",
            ">16 KiB<",
            "<td>1.7 us</td>",
            "-7 ns",
            "<title>Interrupts</title>",
            "<title>queue-take</title>",
            ">30<",
            "nothing was measured",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
    }
}
