//! What the XML importers share: attributes as exact durations, with the place of every mistake.

use roxmltree::{Document, Node};
use shiftwork_model::{Span, Task};

use crate::error::TasksetError;
use crate::place::Place;

/// Parses a text whose root element is `root`.
pub(crate) fn parse<'t>(text: &'t str, root: &str) -> Result<Document<'t>, TasksetError> {
    let document = Document::parse(text).map_err(|error| TasksetError::Syntax {
        place: Place {
            line: error.pos().row,
            column: error.pos().col,
        },
        format: "XML",
        problem: without_position(&error.to_string()),
    })?;
    let found = document.root_element();
    if !found.has_tag_name(root) {
        return Err(TasksetError::NotOneOf {
            place: place(text, found),
            key: "the outermost element".to_string(),
            found: found.tag_name().name().to_string(),
            accepted: vec![root.to_string()],
        });
    }
    Ok(document)
}

/// The message without the " at ROW:COLUMN", which the place in front says already.
fn without_position(message: &str) -> String {
    let position = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let at = message
        .match_indices(" at ")
        .find(|(at, _)| position(&message[at + 4..]));
    let Some((at, _)) = at else {
        return message.to_string();
    };
    let rest = message[at + 4..].trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
    format!("{}{rest}", &message[..at])
}

/// Where an element begins.
pub(crate) fn place(text: &str, node: Node<'_, '_>) -> Place {
    Place::of(text, node.range().start)
}

/// An element, to read its attributes.
#[derive(Clone, Copy)]
pub(crate) struct Element<'a, 't> {
    pub(crate) text: &'t str,
    pub(crate) node: Node<'a, 't>,
}

impl<'a> Element<'a, '_> {
    /// Where the attribute is, or the element if it lacks it.
    pub(crate) fn place(&self, name: &str) -> Place {
        let attribute = self.node.attribute_node(name);
        let offset = attribute.map_or(self.node.range().start, |found| found.range().start);
        Place::of(self.text, offset)
    }

    /// The text of an attribute.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.node.attribute(name).map(str::trim)
    }

    /// The text of an attribute that must be there.
    pub(crate) fn need(
        &self,
        name: &'static str,
        example: &'static str,
    ) -> Result<&'a str, TasksetError> {
        self.get(name).ok_or_else(|| TasksetError::MissingKey {
            place: self.place(name),
            key: name,
            within: format!("<{}>", self.node.tag_name().name()),
            example,
        })
    }

    /// An attribute that is a decimal number of `unit`s, as a whole number of nanoseconds.
    pub(crate) fn span(
        &self,
        name: &'static str,
        unit: Span,
    ) -> Result<Option<Span>, TasksetError> {
        let Some(found) = self.get(name) else {
            return Ok(None);
        };
        let span = decimal(found, unit.as_ns());
        let span = span
            .filter(|&ns| ns <= Span::MAX.as_ns())
            .map(Span::from_ns);
        span.map(Some).ok_or_else(|| TasksetError::OutOfRange {
            place: self.place(name),
            key: name.to_string(),
            found: format!("\"{found}\""),
            accepted: format!(
                "a number, 0 or more, that is a whole number of nanoseconds in units of {unit}"
            ),
        })
    }

    /// An attribute that must be there, a decimal number of `unit`s above zero.
    pub(crate) fn positive_span(
        &self,
        name: &'static str,
        example: &'static str,
        unit: Span,
    ) -> Result<Span, TasksetError> {
        self.need(name, example)?;
        match self.span(name, unit)? {
            Some(span) if !span.is_zero() => Ok(span),
            _ => Err(TasksetError::Zero {
                place: self.place(name),
                key: name.to_string(),
            }),
        }
    }

    /// That the task can meet its deadline on an idle machine.
    pub(crate) fn check_deadline(
        &self,
        cost_attribute: &str,
        task: &Task,
    ) -> Result<(), TasksetError> {
        if task.cost <= task.deadline {
            return Ok(());
        }
        let (place, name) = (self.place(cost_attribute), task.name.clone());
        Err(match task.cost > task.period {
            true => TasksetError::CostAbovePeriod {
                place,
                task: name,
                cost: task.cost,
                period: task.period,
                raise: "the period and the deadline",
            },
            false => TasksetError::CostAboveDeadline {
                place,
                task: name,
                cost: task.cost,
                deadline: task.deadline,
            },
        })
    }

    /// Names the attributes other than `known` in `left_out`, unless they are empty or zero.
    pub(crate) fn name_others(&self, owner: &str, known: &[&str], left_out: &mut Vec<String>) {
        for attribute in self.node.attributes() {
            let (name, value) = (attribute.name(), attribute.value().trim());
            let says_nothing = value.is_empty() || decimal(value, 1) == Some(0);
            if !known.contains(&name) && !says_nothing {
                left_out.push(format!("{owner}: {name}=\"{value}\""));
            }
        }
    }

    /// An attribute that is a whole number between the two.
    pub(crate) fn integer(
        &self,
        name: &'static str,
        least: u64,
        most: u64,
    ) -> Result<Option<u64>, TasksetError> {
        let Some(found) = self.get(name) else {
            return Ok(None);
        };
        let number = decimal(found, 1).filter(|number| (least..=most).contains(number));
        number.map(Some).ok_or_else(|| TasksetError::OutOfRange {
            place: self.place(name),
            key: name.to_string(),
            found: format!("\"{found}\""),
            accepted: format!("a whole number from {least} to {most}"),
        })
    }
}

/// `text` times `unit` if that is a whole number: plain decimals only, exactly.
pub(crate) fn decimal(text: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 18 {
        return None;
    }
    let scale = 10u128.pow(fraction.len() as u32);
    let whole: u128 = whole.parse::<u64>().ok()?.into();
    let fraction: u128 = match fraction {
        "" => 0,
        digits => digits.parse().ok()?,
    };
    let scaled = whole.checked_mul(scale)?.checked_add(fraction)?;
    let product = scaled.checked_mul(unit.into())?;
    match product % scale {
        0 => u64::try_from(product / scale).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_or_refused() {
        for (text, unit, expected) in [
            ("5", 1_000, Some(5_000)),
            ("0.5", 1_000, Some(500)),
            ("3.0", 1, Some(3)),
            ("0.0005", 1_000, None),
            ("1e3", 1, None),
            ("-1", 1, None),
            ("", 1, None),
            (".5", 1_000, None),
            ("99999999999999999999", 1, None),
            ("18446744073709551615", 2, None),
        ] {
            assert_eq!(decimal(text, unit), expected, "{text}");
        }
    }
}
