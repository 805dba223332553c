//! Curves of estimates, with confidence intervals.

use super::{Axes, HEIGHT, LEFT, TOP, WIDTH};
use crate::svg::Svg;

/// One value of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Horizontal position.
    pub x: f64,
    /// The estimate.
    pub y: f64,
    /// The confidence interval; both bounds are `y` if it is not known.
    pub within: [f64; 2],
}

impl Estimate {
    /// Whether it can be drawn.
    fn is_finite(&self) -> bool {
        let all = [self.x, self.y, self.within[0], self.within[1]];
        all.into_iter().all(f64::is_finite)
    }
}

/// Estimates in the order of their x; values that are not finite are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The estimates.
    pub points: Vec<Estimate>,
}

/// The kind of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Shares from 0 to 1, as percentages.
    Shares,
    /// Numbers from 0 on.
    Numbers,
}

/// Number of curves that differ in colour, and also in dashes and marks, so that they are distinguishable without
/// colours.
pub const SERIES: usize = 10;

/// The strokes and marks of this kind of picture; dashes repeat after five.
const STYLE: &str = "\
.c{fill:none;stroke-width:1.8}.b{stroke:none;opacity:.13}.m{stroke-width:1.5}.o{fill:#fff}\
.k0{stroke:#1f77b4}.k1{stroke:#c77700}.k2{stroke:#2a8a2a}.k3{stroke:#c0392b}.k4{stroke:#7d4cc0}\
.k5{stroke:#6b5b3e}.k6{stroke:#c2388b}.k7{stroke:#444}.k8{stroke:#0f8f8f}.k9{stroke:#8a8a00}\
.p0{fill:#1f77b4}.p1{fill:#c77700}.p2{fill:#2a8a2a}.p3{fill:#c0392b}.p4{fill:#7d4cc0}\
.p5{fill:#6b5b3e}.p6{fill:#c2388b}.p7{fill:#444}.p8{fill:#0f8f8f}.p9{fill:#8a8a00}\
@media(prefers-color-scheme:dark){.o{fill:#16181c}.b{opacity:.2}\
.k0{stroke:#6cb8e8}.k1{stroke:#f0b050}.k2{stroke:#7ed07a}.k3{stroke:#f08a80}.k4{stroke:#b99af0}\
.k5{stroke:#cfc0a0}.k6{stroke:#f090c8}.k7{stroke:#ccc}.k8{stroke:#60d0d0}.k9{stroke:#d8d860}\
.p0{fill:#6cb8e8}.p1{fill:#f0b050}.p2{fill:#7ed07a}.p3{fill:#f08a80}.p4{fill:#b99af0}\
.p5{fill:#cfc0a0}.p6{fill:#f090c8}.p7{fill:#ccc}.p8{fill:#60d0d0}.p9{fill:#d8d860}}";

const DASHES: [&str; 5] = ["", "7 3", "2 3", "9 3 2 3", "5 2 1 2 1 2"];

/// Right edge of the plot area; the legend follows.
const RIGHT: f64 = 700.0;

/// Lower edge of the plot area; there is more space for text above than in other plots.
const FLOOR: f64 = HEIGHT - 46.0;

/// A plot of several curves of estimates with shaded confidence intervals.
pub fn estimates(title: &str, axes: Axes<'_>, scale: Scale, series: &[Series]) -> String {
    let points = || series.iter().flat_map(|one| &one.points);
    let finite = || points().filter(|point| point.is_finite());
    let low = finite().map(|point| point.x).fold(f64::INFINITY, f64::min);
    let high = finite()
        .map(|point| point.x)
        .fold(f64::NEG_INFINITY, f64::max);
    let (low, high) = match low < high {
        true => (low, high),
        // A single x, or none: in the middle.
        false if low.is_finite() => (low - 0.5, low + 0.5),
        false => (0.0, 1.0),
    };
    let most = finite()
        .map(|point| point.within[1].max(point.y))
        .fold(0.0, f64::max);
    let top = match scale {
        Scale::Shares => 1.0,
        Scale::Numbers if most > 0.0 => (most / step(most, 4.0)).ceil() * step(most, 4.0),
        Scale::Numbers => 1.0,
    };
    let mut picture = Picture {
        svg: Svg::default(),
        x: (low, high),
        top,
    };
    picture.svg.style(STYLE);
    picture.svg.text("title", (LEFT, 20.0), title);
    picture.axes(axes, scale);
    let shown = |one: &Series| -> Vec<Estimate> {
        let points = one.points.iter().copied();
        points.filter(Estimate::is_finite).collect()
    };
    for (index, one) in series.iter().enumerate() {
        picture.band(index, &shown(one));
    }
    for (index, one) in series.iter().enumerate() {
        picture.curve(index, &shown(one));
        picture.legend(index, &one.name);
    }
    picture.svg.finish(title, WIDTH, HEIGHT)
}

struct Picture {
    svg: Svg,
    x: (f64, f64),
    top: f64,
}

impl Picture {
    fn place(&self, x: f64, y: f64) -> (f64, f64) {
        let (low, high) = self.x;
        let across = LEFT + (x - low) / (high - low) * (RIGHT - LEFT - 12.0);
        (
            across,
            FLOOR - (y / self.top).clamp(0.0, 1.0) * (FLOOR - TOP + 16.0),
        )
    }

    fn axes(&mut self, axes: Axes<'_>, scale: Scale) {
        let by = match scale {
            Scale::Shares => 0.2,
            Scale::Numbers => step(self.top, 4.0),
        };
        for number in 0..=((self.top / by).round() as u32) {
            let level = f64::from(number) * by;
            let (_, y) = self.place(self.x.0, level);
            let class = if number == 0 { "axis" } else { "grid" };
            self.svg.line(class, (LEFT, y), (RIGHT, y));
            let text = match scale {
                Scale::Shares => format!("{:.0}%", level * 100.0),
                Scale::Numbers => plain(level, by),
            };
            self.svg.text("small end", (LEFT - 6.0, y + 3.5), &text);
        }
        let (low, high) = self.x;
        let by = step(high - low, 6.0);
        let [first, last] = [(low / by).ceil() as i64, (high / by + 1e-9).floor() as i64];
        for number in first..=last {
            let value = number as f64 * by;
            let (x, _) = self.place(value, 0.0);
            self.svg.line("axis", (x, FLOOR), (x, FLOOR + 4.0));
            self.svg
                .text("small mid", (x, FLOOR + 16.0), &plain(value, by));
        }
        self.svg.text("small", (8.0, TOP - 28.0), axes.y);
        let middle = f64::midpoint(LEFT, RIGHT);
        self.svg.text("small mid", (middle, HEIGHT - 12.0), axes.x);
    }

    /// The confidence intervals of this curve.
    fn band(&mut self, index: usize, points: &[Estimate]) {
        let above = points
            .iter()
            .map(|point| self.place(point.x, point.within[1]));
        let below = points
            .iter()
            .rev()
            .map(|point| self.place(point.x, point.within[0]));
        let mut words = words(above.chain(below));
        words.push('Z');
        if points.len() > 1 && points.iter().any(|point| point.within[0] < point.within[1]) {
            self.svg.path(&format!("b p{}", index % SERIES), &words);
        }
    }

    fn curve(&mut self, index: usize, points: &[Estimate]) {
        let places: Vec<(f64, f64)> = points.iter().map(|one| self.place(one.x, one.y)).collect();
        self.line(index, &words(places.iter().copied()));
        // Marks must not touch; those of adjacent curves are at different x.
        let every = places.len().div_ceil(20).max(1);
        for &place in places.iter().skip(index % every).step_by(every) {
            self.mark(index, place);
        }
    }

    fn line(&mut self, index: usize, words: &str) {
        let class = format!("c k{}", index % SERIES);
        match DASHES[index % DASHES.len()] {
            "" => self.svg.path(&class, words),
            dashes => self.svg.dashed(&class, dashes, words),
        }
    }

    /// Filled for the first five curves, hollow for the others.
    fn mark(&mut self, index: usize, (x, y): (f64, f64)) {
        let fill = match index % SERIES {
            hollow @ 5.. => format!("m o k{hollow}"),
            full => format!("m p{full} k{full}"),
        };
        let polygon = |corners: &[(f64, f64)]| {
            let corners = corners.iter().map(|&(right, down)| (x + right, y + down));
            words(corners) + "Z"
        };
        let words = match index % 5 {
            0 => return self.svg.circle(&fill, (x, y)),
            1 => polygon(&[(-2.6, -2.6), (2.6, -2.6), (2.6, 2.6), (-2.6, 2.6)]),
            2 => polygon(&[(0.0, -3.4), (3.2, 2.4), (-3.2, 2.4)]),
            3 => polygon(&[(0.0, -3.6), (3.6, 0.0), (0.0, 3.6), (-3.6, 0.0)]),
            _ => polygon(&[(0.0, 3.4), (3.2, -2.4), (-3.2, -2.4)]),
        };
        self.svg.path(&fill, &words);
    }

    fn legend(&mut self, index: usize, name: &str) {
        let y = TOP - 12.0 + 19.0 * index as f64;
        let from = RIGHT + 14.0;
        self.line(index, &words([(from, y), (from + 32.0, y)].into_iter()));
        self.mark(index, (from + 16.0, y));
        self.svg.text("", (from + 40.0, y + 4.0), name);
    }
}

fn words(places: impl Iterator<Item = (f64, f64)>) -> String {
    let mut words = String::new();
    for (x, y) in places {
        let command = if words.is_empty() { 'M' } else { 'L' };
        words += &format!("{command}{x:.1} {y:.1}");
    }
    words
}

/// The largest of 1, 2, 5 times a power of ten that divides `length` into at least `parts`.
fn step(length: f64, parts: f64) -> f64 {
    let wanted = length / parts;
    let power = 10_f64.powi(wanted.log10().floor() as i32);
    let fitting = [5.0, 2.0, 1.0].into_iter().map(|factor| factor * power);
    fitting
        .into_iter()
        .find(|step| *step <= wanted * (1.0 + 1e-9))
        .unwrap_or(power)
}

/// A number with as many decimals as this step size needs.
fn plain(value: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const AXES: Axes<'_> = Axes {
        x: "load",
        y: "share",
    };

    fn series(points: &[(f64, f64)]) -> Series {
        let point = |&(x, y): &(f64, f64)| Estimate {
            x,
            y,
            within: [y - 0.1, y + 0.1],
        };
        Series {
            name: "one".to_owned(),
            points: points.iter().map(point).collect(),
        }
    }

    #[test]
    fn shares_go_from_the_floor_to_the_top() {
        let picture = estimates(
            "t",
            AXES,
            Scale::Shares,
            &[series(&[(1.0, 1.0), (2.5, 0.0)])],
        );
        let [top, right] = [TOP - 16.0, RIGHT - 12.0];
        assert!(
            picture.contains(&format!("M{LEFT:.1} {top:.1}L{right:.1} {FLOOR:.1}\"")),
            "{picture}"
        );
        for text in [">0%<", ">100%<", ">1.0<", ">2.4<"] {
            assert!(picture.contains(text), "{text}: {picture}");
        }
    }

    #[test]
    fn every_curve_looks_different_without_colours() {
        let all: Vec<Series> = (0..SERIES)
            .map(|_| series(&[(0.0, 0.5), (1.0, 0.5)]))
            .collect();
        let picture = estimates("t", AXES, Scale::Shares, &all);
        let mut looks: Vec<String> = (0..SERIES)
            .map(|index| {
                let own = |line: &&str| line.contains(&format!("k{index}\""));
                let lines: Vec<&str> = picture.lines().filter(own).collect();
                lines
                    .join("\n")
                    .replace(&format!("k{index}"), "")
                    .replace(&format!("p{index}"), "p")
            })
            .collect();
        // The legends differ in position; the curves are equal except for dashes and marks.
        for look in &mut looks {
            *look = look.lines().take(3).collect::<Vec<_>>().join("\n");
        }
        looks.sort_unstable();
        looks.dedup();
        assert_eq!(looks.len(), SERIES);
    }

    #[test]
    fn steps_are_round() {
        let steps = [(31.0, 8.0), (1.0, 8.0), (1.5, 8.0), (0.2, 4.0), (8.0, 4.0)];
        assert_eq!(
            steps.map(|(length, parts)| step(length, parts)),
            [2.0, 0.1, 0.1, 0.05, 2.0]
        );
        assert_eq!(
            [plain(2.0, 2.0), plain(0.3, 0.1), plain(0.25, 0.05)],
            ["2", "0.3", "0.25"]
        );
    }

    #[test]
    fn nothing_and_one_place_are_pictures() {
        for points in [
            &[][..],
            &[(3.0, 0.5)],
            &[(0.0, 0.0), (0.0, 1.0)],
            &[(f64::NAN, f64::NAN)],
        ] {
            for scale in [Scale::Shares, Scale::Numbers] {
                let picture = estimates("t", AXES, scale, &[series(points)]);
                assert!(picture.ends_with("</svg>\n"), "{points:?}");
                assert!(
                    !picture.contains("NaN") && !picture.contains("inf"),
                    "{points:?}"
                );
            }
        }
    }
}
