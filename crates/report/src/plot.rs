//! Curves and histograms.

mod estimates;

pub use crate::svg::COLOURS;
use crate::svg::{Svg, step};
pub use estimates::{Estimate, SERIES, Scale, Series, estimates};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 368.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 70.0;
const BOTTOM: f64 = 50.0;

/// The titles of the axes, with units.
#[derive(Clone, Copy, Debug)]
pub struct Axes<'a> {
    /// Horizontal axis.
    pub x: &'a str,
    /// Vertical axis.
    pub y: &'a str,
}

/// Points in the order of their x.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// The points.
    pub points: Vec<(u64, u64)>,
    /// Whether it is dashed, so that a curve below it stays visible.
    pub is_dashed: bool,
}

/// The heights of the bars of one series.
#[derive(Clone, Debug)]
pub struct Bars {
    /// Their name in the legend.
    pub name: String,
    /// One for each label; in tenths of a percent.
    pub permille: Vec<u64>,
}

/// A plot of several curves, from (0, 0).
pub fn curves(title: &str, axes: Axes<'_>, curves: &[Curve]) -> String {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let [x, y] = [points().map(|p| p.0).max(), points().map(|p| p.1).max()];
    let [x_max, y_max] = [x, y].map(|most| most.unwrap_or(0).max(1));
    let y_max = y_max.next_multiple_of(step(y_max, 4));
    let mut plot = Plot::new(title, axes, curves.iter().map(|curve| curve.name.as_str()));
    plot.levels(y_max, |level| level.to_string());
    let across = |x: u64| LEFT + x as f64 / x_max as f64 * (WIDTH - LEFT - RIGHT);
    for x in (0..=x_max).step_by(step(x_max, 8) as usize) {
        plot.svg.text(
            "small mid",
            (across(x), HEIGHT - BOTTOM + 16.0),
            &x.to_string(),
        );
    }
    for (index, curve) in curves.iter().enumerate() {
        let place = |&(x, y): &(u64, u64)| (across(x), up(y, y_max));
        let places: Vec<(f64, f64)> = curve.points.iter().map(place).collect();
        plot.curve(index, curve.is_dashed, &places);
    }
    plot.svg.finish(title, WIDTH, HEIGHT)
}

/// A plot of several curves on logarithmic axes, for values over many orders of magnitude. Points that are not
/// above zero are left out. The horizontal axis has a label for each x, the vertical axis for each power of
/// ten.
pub fn magnitudes(
    title: &str,
    axes: Axes<'_>,
    [x_label, y_label]: [fn(u64) -> String; 2],
    curves: &[Curve],
) -> String {
    let points = || {
        let all = curves.iter().flat_map(|curve| curve.points.iter().copied());
        all.filter(|&(x, y)| x > 0 && y > 0)
    };
    let mut plot = Plot::new(title, axes, curves.iter().map(|curve| curve.name.as_str()));
    let mut xs: Vec<u64> = points().map(|(x, _)| x).collect();
    xs.sort_unstable();
    xs.dedup();
    if let (Some(&x_min), Some(&x_max)) = (xs.first(), xs.last()) {
        let lowest = points().map(|(_, y)| y.ilog10()).min().unwrap_or(0);
        let highest = points().map(|(_, y)| (y - 1).checked_ilog10().map_or(0, |log| log + 1));
        let highest = highest.max().unwrap_or(0).max(lowest + 1);
        let share =
            |value: u64, from: f64, to: f64| ((value as f64).ln() - from) / (to - from).max(1e-9);
        let across = |x: u64| {
            let at = share(x, (x_min as f64).ln(), (x_max as f64).ln());
            LEFT + at * (WIDTH - LEFT - RIGHT - 20.0)
        };
        let power = |log: u32| 10_u64.saturating_pow(log);
        let [low, high] = [lowest, highest].map(|log| (power(log) as f64).ln());
        let up = |y: u64| HEIGHT - BOTTOM - share(y, low, high) * (HEIGHT - BOTTOM - TOP);
        for log in lowest..=highest {
            let class = if log == lowest { "axis" } else { "grid" };
            plot.level(class, up(power(log)), &y_label(power(log)));
        }
        for &x in &xs {
            let place = (across(x), HEIGHT - BOTTOM + 16.0);
            plot.svg.text("small mid", place, &x_label(x));
        }
        for (index, curve) in curves.iter().enumerate() {
            let shown = curve.points.iter().filter(|&&(x, y)| x > 0 && y > 0);
            let places: Vec<(f64, f64)> = shown.map(|&(x, y)| (across(x), up(y))).collect();
            plot.curve(index, curve.is_dashed, &places);
        }
    }
    plot.svg.finish(title, WIDTH, HEIGHT)
}

/// A bar chart with the bars of all series side by side above each label.
pub fn histogram(title: &str, axes: Axes<'_>, labels: &[String], kinds: &[Bars]) -> String {
    let highest = kinds.iter().flat_map(|bars| &bars.permille).max();
    let highest = highest.copied().unwrap_or(0).max(10);
    let highest = highest.next_multiple_of(10 * step(highest / 10, 4));
    let mut plot = Plot::new(title, axes, kinds.iter().map(|bars| bars.name.as_str()));
    plot.levels(highest, |level| format!("{}%", level / 10));
    let slot = (WIDTH - LEFT - RIGHT) / labels.len().max(1) as f64;
    let width = slot * 0.8 / kinds.len().max(1) as f64;
    for (at, label) in labels.iter().enumerate() {
        let left = LEFT + slot * (at as f64 + 0.1);
        for (index, bars) in kinds.iter().enumerate() {
            let top = up(bars.permille[at], highest);
            let corner = (left + width * index as f64, top);
            let size = (width, HEIGHT - BOTTOM - top);
            plot.svg
                .rectangle(&format!("f{}", index % COLOURS), corner, size);
        }
        let middle = LEFT + slot * (at as f64 + 0.5);
        plot.svg
            .text("small mid", (middle, HEIGHT - BOTTOM + 16.0), label);
    }
    plot.svg.finish(title, WIDTH, HEIGHT)
}

/// Vertical position of the level.
fn up(level: u64, highest: u64) -> f64 {
    HEIGHT - BOTTOM - level as f64 / highest as f64 * (HEIGHT - BOTTOM - TOP)
}

struct Plot {
    svg: Svg,
}

impl Plot {
    /// Title, legend and the names of the axes.
    fn new<'a>(title: &str, axes: Axes<'_>, names: impl Iterator<Item = &'a str>) -> Self {
        let mut svg = Svg::default();
        svg.text("title", (LEFT, 20.0), title);
        let mut x = LEFT;
        for (index, name) in names.enumerate() {
            let swatch = format!("f{0} s{0}", index % COLOURS);
            svg.rectangle(&swatch, (x, 30.5), (11.0, 11.0));
            svg.text("", (x + 17.0, 40.0), name);
            x += 17.0 + 6.8 * name.chars().count() as f64 + 14.0;
        }
        svg.text("small", (8.0, TOP - 12.0), axes.y);
        let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
        svg.text("small mid", (middle, HEIGHT - 12.0), axes.x);
        Self { svg }
    }

    /// Horizontal lines with labels.
    fn levels(&mut self, highest: u64, text: impl Fn(u64) -> String) {
        for level in (0..=highest).step_by(step(highest, 4) as usize) {
            let y = up(level, highest);
            let class = if level == 0 { "axis" } else { "grid" };
            self.level(class, y, &text(level));
        }
    }

    /// A horizontal line with a label.
    fn level(&mut self, class: &str, y: f64, text: &str) {
        self.svg.line(class, (LEFT, y), (WIDTH - RIGHT, y));
        self.svg.text("small end", (LEFT - 6.0, y + 3.5), text);
    }

    /// A curve through these points.
    fn curve(&mut self, index: usize, is_dashed: bool, places: &[(f64, f64)]) {
        let mut words = String::new();
        for (x, y) in places {
            let command = if words.is_empty() { 'M' } else { 'L' };
            words += &format!("{command}{x:.1} {y:.1}");
        }
        let dash = if is_dashed { " dash" } else { "" };
        let class = format!("curve s{}{dash}", index % COLOURS);
        self.svg.path(&class, &words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AXES: Axes<'_> = Axes { x: "x", y: "y" };

    fn curve(points: &[(u64, u64)]) -> Curve {
        Curve {
            name: String::from("one"),
            points: points.to_vec(),
            is_dashed: false,
        }
    }

    #[test]
    fn equal_factors_are_equally_far_apart() {
        let picture = magnitudes(
            "t",
            AXES,
            [|x| format!("{x} B"), |y| format!("{y} ns")],
            &[curve(&[(4, 100), (16, 1_000), (64, 10_000), (256, 0)])],
        );
        let middle = LEFT + (WIDTH - LEFT - RIGHT - 20.0) / 2.0;
        let half = f64::midpoint(TOP, HEIGHT - BOTTOM);
        assert!(
            picture.contains(&format!("L{middle:.1} {half:.1}")),
            "{picture}"
        );
        assert!(picture.contains(">16 B<") && picture.contains(">1000 ns<"));
        assert!(!picture.contains("256"), "points at zero are left out");
    }

    #[test]
    fn plots_of_nothing_and_of_one_point_are_pictures() {
        for points in [&[][..], &[(7, 0)], &[(1, 1)], &[(u64::MAX, u64::MAX)]] {
            let picture = magnitudes(
                "t",
                AXES,
                [|x| x.to_string(), |y| y.to_string()],
                &[curve(points)],
            );
            assert!(
                picture.ends_with("</svg>\n") && !picture.contains("NaN"),
                "{points:?}"
            );
        }
    }
}
