//! Shapes shared by all figures, with colours for light and dark pages.

use std::fmt::Write;

/// The light style, then the one for viewers that prefer dark.
const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#222}\
.title{font-weight:600;font-size:13px}.small{font-size:10px}.end{text-anchor:end}.mid{text-anchor:middle}\
.page{fill:#fff}.grid{stroke:#e2e2e2}.axis{stroke:#666}.late{fill:#d33}\
.mark{stroke:#444;fill:none}.head{fill:#444}.done{fill:#fff;stroke:#444}\
.curve{fill:none;stroke-width:2}.dash{stroke-dasharray:6 4}\
.f0{fill:#8ecae6}.f1{fill:#ffcf70}.f2{fill:#a7d8a0}.f3{fill:#f4a6a6}.f4{fill:#cdb4f0}.f5{fill:#d9d2c0}\
.s0{stroke:#1f77b4}.s1{stroke:#c77700}.s2{stroke:#2a8a2a}.s3{stroke:#c0392b}.s4{stroke:#7d4cc0}.s5{stroke:#6b5b3e}\
@media(prefers-color-scheme:dark){text{fill:#ddd}.page{fill:#16181c}.grid{stroke:#33363c}.axis{stroke:#999}\
.late{fill:#f55}.mark{stroke:#bbb}.head{fill:#bbb}.done{fill:#16181c;stroke:#bbb}\
.f0{fill:#2b6a8a}.f1{fill:#8a6414}.f2{fill:#3c7a3a}.f3{fill:#8f3f3f}.f4{fill:#654a94}.f5{fill:#6b6453}\
.s0{stroke:#6cb8e8}.s1{stroke:#f0b050}.s2{stroke:#7ed07a}.s3{stroke:#f08a80}.s4{stroke:#b99af0}.s5{stroke:#cfc0a0}}";

/// Number of fills (`f0`...) and strokes (`s0`...).
pub const COLOURS: usize = 6;

/// An SVG picture under construction. Lengths are in CSS pixels; the classes of shapes are those of the style
/// above.
#[derive(Debug, Default)]
pub struct Svg(String);

impl Svg {
    /// A line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x, y) = to;
        self.path(
            class,
            &format!("M{:.1} {:.1}L{x:.1} {y:.1}", from.0, from.1),
        );
    }

    /// A path, with SVG path data.
    pub fn path(&mut self, class: &str, words: &str) {
        self.push(format_args!("<path class=\"{class}\" d=\"{words}\"/>\n"));
    }

    /// A dashed path: lengths of dashes and gaps alternate.
    pub fn dashed(&mut self, class: &str, dashes: &str, words: &str) {
        self.push(format_args!(
            "<path class=\"{class}\" stroke-dasharray=\"{dashes}\" d=\"{words}\"/>\n"
        ));
    }

    /// Additional style rules of this picture.
    pub fn style(&mut self, rules: &str) {
        self.push(format_args!("<style>{rules}</style>\n"));
    }

    /// A rectangle from its upper left corner.
    pub fn rectangle(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) {
        let ((x, y), (width, height)) = (at, size);
        self.push(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>\n"
        ));
    }

    /// A small circle around a point.
    pub fn circle(&mut self, class: &str, at: (f64, f64)) {
        let (x, y) = at;
        self.push(format_args!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\"/>\n"
        ));
    }

    /// Any text; its base line begins at the point, unless the class says otherwise.
    pub fn text(&mut self, class: &str, at: (f64, f64), text: &str) {
        let ((x, y), text) = (at, escape(text));
        self.push(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>\n"
        ));
    }

    /// The complete picture of this size, in pixels, with a title for screen readers.
    pub fn finish(self, title: &str, width: f64, height: f64) -> String {
        let (title, body) = (escape(title), self.0);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
             <rect class=\"page\" width=\"100%\" height=\"100%\"/>\n{body}</svg>\n"
        )
    }

    fn push(&mut self, shape: std::fmt::Arguments<'_>) {
        self.0.write_fmt(shape).expect("a string takes everything");
    }
}

/// Text with all markup characters escaped.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            other => safe.push(other),
        }
    }
    safe
}

/// The largest of 1, 2, 5, 10, 20, ... that divides `length` into at least `parts`; never below 1.
pub fn step(length: u64, parts: u64) -> u64 {
    let mut best = 1;
    let mut power = 1;
    while power <= length {
        for candidate in [power, 2 * power, 5 * power] {
            if candidate.saturating_mul(parts) <= length {
                best = candidate;
            }
        }
        power *= 10;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_numbers() {
        let steps = [(24, 12), (24, 10), (200, 10), (600, 8), (7, 10)].map(|(l, p)| step(l, p));
        assert_eq!(steps, [2, 2, 20, 50, 1]);
    }

    #[test]
    fn text_is_escaped() {
        let mut svg = Svg::default();
        svg.text("", (0.0, 0.0), "<a> & b");
        assert!(
            svg.finish("", 1.0, 1.0)
                .contains(">&lt;a&gt; &amp; b</text>")
        );
    }
}
