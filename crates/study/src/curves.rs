//! From results to figures: curves over the load, in pictures, in tables, and on one page.

use std::collections::BTreeSet;
use std::fmt::Write;

use shiftwork_report::plot::{Axes, Estimate, Scale, Series, estimates};
use shiftwork_report::{document, escape};

use crate::results::{Results, Row};
use crate::summary::{Summary, summaries};

/// A picture, with its data beside it.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The name of its files, without the extension: lower-case letters, digits and `-`.
    pub stem: String,
    /// What it shows.
    pub title: String,
    /// The picture, as SVG.
    pub svg: String,
    /// Its data, as CSV, one row for each point.
    pub csv: String,
    /// Its curves, in the order of the study.
    pub series: Vec<Series>,
}

/// Rows of one picture: the same family, CPUs and criterion.
struct Group<'a> {
    first: &'a Row,
    rows: Vec<&'a Row>,
}

/// All figures of a study: for each family, number of CPUs and criterion the shares over the load, and the bounds on
/// tardiness where there are some.
pub fn figures(results: &Results) -> Vec<Figure> {
    let mut stems = BTreeSet::new();
    let mut figures = Vec::new();
    for group in groups(&results.rows) {
        let cpus = several_cpus(results, group.first);
        let cpus = cpus.then(|| format!(" on {} CPUs", group.first.cpus));
        let place = format!("{}{}", group.first.family, cpus.unwrap_or_default());
        figures.push(shares(&group, &place, &mut stems));
        if group.rows.iter().any(|row| row.bounded > 0) {
            figures.push(tardiness(&group, &place, &mut stems));
        }
    }
    figures
}

/// One page with all figures and the data in short. Pictures are part of it; data lie beside it.
pub fn page(results: &Results, figures: &[Figure]) -> String {
    let mut body = String::new();
    let sets = results.rows.iter().map(|row| row.sets);
    let [least, most] = [sets.clone().min(), sets.max()].map(|sets| sets.unwrap_or(0));
    let sets = match least == most {
        true => format!("{most}"),
        false => format!("{least} to {most}"),
    };
    let _ = writeln!(
        body,
        "<p>{sets} task sets for each point; shaded: where the true share lies with a confidence of 95% (Wilson). \
         Study {}.</p>",
        escape(&results.digest)
    );
    for figure in figures {
        let title = escape(&figure.title);
        let _ = writeln!(
            body,
            "<section>\n<h2>{title}</h2>\n{}<p><a href=\"{stem}.csv\">data</a> · <a href=\"{stem}.svg\">picture</a></p>\n\
             </section>",
            figure.svg,
            stem = figure.stem
        );
    }
    let _ = writeln!(
        body,
        "<section>\n<h2>In short</h2>\n{}</section>",
        in_short(results)
    );
    document(&results.name, &body)
}

fn in_short(results: &Results) -> String {
    let mut text = String::from(
        "<table>\n<thead><tr><th>family<th>CPUs<th>contender<th>criterion<th>share over all loads<th>below 50% from\
         </tr></thead>\n<tbody>\n",
    );
    for Summary {
        family,
        cpus,
        label,
        criterion,
        share,
        half,
        ..
    } in summaries(results)
    {
        let share = share.map_or("-".to_owned(), |share| format!("{:.1}%", share * 100.0));
        let half = half.map_or("-".to_owned(), |half| format!("{half:.2}"));
        let [family, label] = [family, label].map(|name| escape(&name));
        let _ = writeln!(
            text,
            "<tr><td>{family}<td>{cpus}<td>{label}<td>{criterion}<td>{share}<td>{half}</tr>"
        );
    }
    text + "</tbody>\n</table>\n"
}

fn groups(rows: &[Row]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for row in rows {
        let key = |row: &Row| (row.family.clone(), row.cpus, row.criterion.clone());
        match groups.iter_mut().find(|group| key(group.first) == key(row)) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group {
                first: row,
                rows: vec![row],
            }),
        }
    }
    groups
}

/// Whether a family has several numbers of CPUs.
fn several_cpus(results: &Results, like: &Row) -> bool {
    let mut same = results.rows.iter().filter(|row| row.family == like.family);
    same.any(|row| row.cpus != like.cpus)
}

/// A curve for each contender, in the order of the study; points without a value are left out.
fn series(group: &Group<'_>, point: impl Fn(&Row) -> Option<(f64, [f64; 2])>) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for row in &group.rows {
        let points = match series.iter().position(|one| one.name == row.label) {
            Some(place) => &mut series[place].points,
            None => {
                series.push(Series {
                    name: row.label.clone(),
                    points: Vec::new(),
                });
                &mut series.last_mut().expect("one was just added").points
            }
        };
        points.extend(point(row).map(|(y, within)| Estimate {
            x: row.cap,
            y,
            within,
        }));
    }
    for one in &mut series {
        one.points.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    series
}

/// What the papers put below their pictures.
const LOAD: &str = "utilization cap, in CPUs";

fn shares(group: &Group<'_>, place: &str, stems: &mut BTreeSet<String>) -> Figure {
    let (what, up) = match group.first.criterion.as_str() {
        "hard" => ("all deadlines met", "share shown to meet all deadlines"),
        "soft" => ("bounded tardiness", "share shown to have bounded tardiness"),
        _ => ("no miss in a simulation", "share that missed no deadline"),
    };
    let series = series(group, |row| Some((row.ratio()?, row.interval()?)));
    let title = format!("{place}: {what}");
    let axes = Axes { x: LOAD, y: up };
    let mut csv = String::from("utilization,label,sets,met,ratio,low,high\n");
    for row in &group.rows {
        let [low, high] = row.interval().unwrap_or([f64::NAN; 2]);
        let ratio = row.ratio().unwrap_or(f64::NAN);
        let numbers = [ratio, low, high].map(number).join(",");
        let label = quoted(&row.label);
        let _ = writeln!(
            csv,
            "{},{label},{},{},{numbers}",
            row.cap, row.sets, row.met
        );
    }
    Figure {
        stem: stem(&format!("{place} {}", group.first.criterion), stems),
        svg: estimates(&title, axes, Scale::Shares, &series),
        title,
        csv,
        series,
    }
}

fn tardiness(group: &Group<'_>, place: &str, stems: &mut BTreeSet<String>) -> Figure {
    let in_ms = |ns: u64| ns as f64 / 1e6;
    let series = series(group, |row| {
        let mean = in_ms(row.tardiness_mean_ns?);
        Some((mean, [mean, mean]))
    });
    let title = format!("{place}: bounds on tardiness");
    let axes = Axes {
        x: LOAD,
        y: "bound on the tardiness of a task set, on average where there is one, in ms",
    };
    let mut csv = String::from("utilization,label,sets,bounded,mean_ms,max_ms\n");
    for row in &group.rows {
        let [mean, max] = [row.tardiness_mean_ns, row.tardiness_max_ns]
            .map(|ns| number(ns.map_or(f64::NAN, in_ms)));
        let label = quoted(&row.label);
        let _ = writeln!(
            csv,
            "{},{label},{},{},{mean},{max}",
            row.cap, row.sets, row.bounded
        );
    }
    Figure {
        stem: stem(
            &format!("{place} {} tardiness", group.first.criterion),
            stems,
        ),
        svg: estimates(&title, axes, Scale::Numbers, &series),
        title,
        csv,
        series,
    }
}

/// A number of a table; empty if it is none.
fn number(value: f64) -> String {
    match value.is_finite() {
        true => value.to_string(),
        false => String::new(),
    }
}

/// A field of a table, in quotes if it needs them.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// A name for files that no other figure has.
fn stem(words: &str, stems: &mut BTreeSet<String>) -> String {
    let letters = words
        .chars()
        .map(|letter| match letter.is_ascii_alphanumeric() {
            true => letter.to_ascii_lowercase(),
            false => ' ',
        });
    let letters: String = letters.collect();
    let stem = letters.split_whitespace().collect::<Vec<_>>().join("-");
    let mut free = stem.clone();
    for number in 2.. {
        if stems.insert(free.clone()) {
            break;
        }
        free = format!("{stem}-{number}");
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(family: &str, cpus: u64, cap: f64, label: &str, met: u64) -> Row {
        Row {
            family: family.to_owned(),
            cpus,
            cap,
            policy: "g-edf".to_owned(),
            label: label.to_owned(),
            criterion: "soft".to_owned(),
            overheads: None,
            sets: 10,
            met,
            refuted: 0,
            bounded: met,
            tardiness_mean_ns: (met > 0).then_some(1_500_000),
            tardiness_max_ns: (met > 0).then_some(2_000_000),
        }
    }

    fn results(rows: Vec<Row>) -> Results {
        Results {
            name: "a <study>".to_owned(),
            digest: "0123456789abcdef".to_owned(),
            rows,
        }
    }

    #[test]
    fn a_figure_shows_one_family_and_criterion() {
        let results = results(vec![
            row("light", 4, 1.0, "G", 10),
            row("light", 4, 1.0, "P, \"first\" fit", 5),
            row("light", 4, 0.5, "G", 0),
            row("heavy", 4, 1.0, "G", 0),
            row("heavy", 8, 1.0, "G", 0),
        ]);
        let figures = figures(&results);
        let stems: Vec<&str> = figures.iter().map(|figure| figure.stem.as_str()).collect();
        assert_eq!(
            stems,
            [
                "light-soft",
                "light-soft-tardiness",
                "heavy-on-4-cpus-soft",
                "heavy-on-8-cpus-soft"
            ]
        );
        assert_eq!(
            figures[0].csv,
            "utilization,label,sets,met,ratio,low,high\n\
             1,G,10,10,1,0.7224672001371107,1\n\
             1,\"P, \"\"first\"\" fit\",10,5,0.5,0.236593090512564,0.7634069094874361\n\
             0.5,G,10,0,0,0,0.2775327998628892\n"
        );
        assert_eq!(
            figures[1].csv.lines().nth(3),
            Some("0.5,G,10,0,,"),
            "{}",
            figures[1].csv
        );
        let xs: Vec<f64> = figures[0].series[0]
            .points
            .iter()
            .map(|point| point.x)
            .collect();
        assert_eq!(xs, [0.5, 1.0], "from left to right");
        let page = page(&results, &figures);
        assert!(page.contains("a &lt;study&gt;") && page.contains("href=\"light-soft.csv\""));
    }

    #[test]
    fn names_of_files_are_safe_and_differ() {
        let mut stems = BTreeSet::new();
        let names = ["../a b", "a/b", "A  b!", "a b 2"].map(|words| stem(words, &mut stems));
        assert_eq!(names, ["a-b", "a-b-2", "a-b-3", "a-b-2-2"]);
    }
}
