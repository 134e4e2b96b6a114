//! An SVG document in the making.

use super::escape::escape;
use super::style::STYLE;
use std::fmt::Write;

/// Where a text stands relative to its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// An SVG document. Every text is escaped here, and classes come from the code alone.
pub(super) struct Svg {
    text: String,
}

impl Svg {
    /// Starts a document with its title and description for those who do not see it. A part of a
    /// page shares the page's style and brings none.
    pub(super) fn new(width: f64, height: f64, title: &str, description: &str, part_of_page: bool) -> Self {
        let (title, description) = (escape(title), escape(description));
        let style = if part_of_page { String::new() } else { format!("<style>{STYLE}</style>") };
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"r-chart\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" \
             height=\"{h}\" role=\"img\">\n<title>{title}</title>\n<desc>{description}</desc>\n{style}\n",
            w = place(width),
            h = place(height),
        );
        let mut svg = Self { text };
        svg.rounded(0.5, 0.5, width - 1.0, height - 1.0, 10.0, "r-paper");
        svg
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    /// Opens a group with a tip that appears when the pointer rests on it.
    pub(super) fn group(&mut self, tip: &str) {
        self.put(format_args!("<g><title>{}</title>", escape(tip)));
    }

    pub(super) fn end_group(&mut self) {
        self.put(format_args!("</g>"));
    }

    pub(super) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str) {
        self.rounded(x, y, width, height, 0.0, class);
    }

    pub(super) fn rounded(&mut self, x: f64, y: f64, width: f64, height: f64, radius: f64, class: &str) {
        let (x, y, width, height) = (place(x), place(y), place(width.max(0.0)), place(height.max(0.0)));
        let corner = if radius > 0.0 { format!(" rx=\"{}\"", place(radius)) } else { String::new() };
        self.put(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{corner} class=\"{class}\"/>"
        ));
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let (x1, y1, x2, y2) = (place(from.0), place(from.1), place(to.0), place(to.1));
        self.put(format_args!("<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" class=\"{class}\"/>"));
    }

    pub(super) fn dot(&mut self, x: f64, y: f64, radius: f64, class: &str) {
        let (x, y, radius) = (place(x), place(y), place(radius));
        self.put(format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" class=\"{class}\"/>"));
    }

    /// A line through all points, or the area that it encloses where it is `closed`.
    pub(super) fn path(&mut self, points: &[(f64, f64)], closed: bool, class: &str) {
        let mut way = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let _ = write!(way, "{}{} {}", if index == 0 { 'M' } else { 'L' }, place(*x), place(*y));
        }
        if closed {
            way.push('Z');
        }
        self.put(format_args!("<path d=\"{way}\" class=\"{class}\"/>"));
    }

    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (x, y, text) = (place(x), place(y), escape(text));
        self.put(format_args!("<text x=\"{x}\" y=\"{y}\"{anchor} class=\"{class}\">{text}</text>"));
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "{element}");
    }
}

/// A coordinate to a hundredth: what is finer cannot be seen, and makes the file longer.
fn place(number: f64) -> f64 {
    let rounded = (number * 100.0).round() / 100.0;
    // Neither −0 nor what is no number at all can be drawn.
    if rounded.is_finite() { rounded + 0.0 } else { 0.0 }
}
