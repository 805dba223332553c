//! Curves and histograms.

use crate::svg::{COLOURS, Svg, step};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 368.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 70.0;
const BOTTOM: f64 = 50.0;

/// What the axes mean, with units.
#[derive(Clone, Copy, Debug)]
pub struct Axes<'a> {
    /// Across.
    pub x: &'a str,
    /// Up.
    pub y: &'a str,
}

/// Points in the order of their x.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What it shows.
    pub name: String,
    /// Where it goes through.
    pub points: Vec<(u64, u64)>,
    /// Whether it is dashed, so that another one below it is seen.
    pub is_dashed: bool,
}

/// How high the bars of one kind are.
#[derive(Clone, Debug)]
pub struct Bars {
    /// What they show.
    pub name: String,
    /// One for each label; in tenths of a percent.
    pub permille: Vec<u64>,
}

/// Curves over one another, from (0, 0).
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
        let mut words = String::new();
        for &(x, y) in &curve.points {
            let command = if words.is_empty() { 'M' } else { 'L' };
            words += &format!("{command}{:.1} {:.1}", across(x), up(y, y_max));
        }
        let dash = if curve.is_dashed { " dash" } else { "" };
        plot.svg
            .path(&format!("curve s{}{dash}", index % COLOURS), &words);
    }
    plot.svg.finish(title, WIDTH, HEIGHT)
}

/// Bars side by side above each label.
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

/// How far down the level is.
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

    /// Lines across, with what they mean.
    fn levels(&mut self, highest: u64, text: impl Fn(u64) -> String) {
        for level in (0..=highest).step_by(step(highest, 4) as usize) {
            let y = up(level, highest);
            let class = if level == 0 { "axis" } else { "grid" };
            self.svg.line(class, (LEFT, y), (WIDTH - RIGHT, y));
            self.svg
                .text("small end", (LEFT - 6.0, y + 3.5), &text(level));
        }
    }
}
