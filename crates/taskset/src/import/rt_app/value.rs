//! A value of an rt-app file, with where it stands: what every reader of the file asks it.

use shiftwork_model::{CpuId, CpuSet, Span};

use super::super::json::{Kind, Node};
use crate::error::TasksetError;
use crate::place::Place;

/// A value, what it is called, and the text it stands in.
#[derive(Clone, Copy)]
pub(super) struct Json<'a> {
    pub(super) text: &'a str,
    pub(super) key: &'a str,
    pub(super) node: &'a Node,
}

impl<'a> Json<'a> {
    pub(super) fn place(self) -> Place {
        Place::of(self.text, self.node.offset)
    }

    /// What the value is, in a few words.
    pub(super) fn describe(self) -> String {
        match &self.node.kind {
            Kind::Null => "nothing".to_string(),
            Kind::Boolean(value) => value.to_string(),
            Kind::Number(number) => format!("the number {number}"),
            Kind::Text(text) => format!("the text \"{text}\""),
            Kind::List(_) => "a list".to_string(),
            Kind::Object(_) => "an object".to_string(),
        }
    }

    pub(super) fn wrong(self, accepted: &'static str) -> TasksetError {
        TasksetError::WrongKind {
            place: self.place(),
            key: self.key.to_string(),
            found: self.describe(),
            accepted,
        }
    }

    pub(super) fn out_of_range(self, found: &str, accepted: &str) -> TasksetError {
        TasksetError::OutOfRange {
            place: self.place(),
            key: self.key.to_string(),
            found: found.to_string(),
            accepted: accepted.to_string(),
        }
    }

    /// The keys and values of an object, in order.
    pub(super) fn members(self) -> Result<impl Iterator<Item = Json<'a>> + Clone, TasksetError> {
        let Kind::Object(members) = &self.node.kind else {
            return Err(self.wrong("an object { … }"));
        };
        let text = self.text;
        Ok(members
            .iter()
            .map(move |(key, node)| Json { text, key, node }))
    }

    /// The value of a key of an object; the last one counts.
    pub(super) fn get(self, key: &str) -> Result<Option<Json<'a>>, TasksetError> {
        Ok(self.members()?.filter(|member| member.key == key).last())
    }

    /// A whole number between the two.
    pub(super) fn integer(self, least: i64, most: i64) -> Result<i64, TasksetError> {
        let number: Option<i64> = match &self.node.kind {
            Kind::Number(number) => number.parse().ok(),
            _ => None,
        };
        number
            .filter(|found| (least..=most).contains(found))
            .ok_or_else(|| {
                let accepted = format!("a whole number from {least} to {most}");
                self.out_of_range(&self.describe(), &accepted)
            })
    }

    /// A number of microseconds.
    pub(super) fn microseconds(self) -> Result<Span, TasksetError> {
        let most = (Span::MAX.as_ns() / 1_000) as i64;
        let number = self.integer(0, most).map_err(|_| {
            let accepted = format!("a whole number of microseconds from 0 to {most}");
            self.out_of_range(&self.describe(), &accepted)
        })?;
        Ok(Span::from_us(number.unsigned_abs()))
    }

    pub(super) fn text_value(self, accepted: &'static str) -> Result<&'a str, TasksetError> {
        match &self.node.kind {
            Kind::Text(text) => Ok(text),
            _ => Err(self.wrong(accepted)),
        }
    }

    /// A name; empty where there is no value.
    pub(super) fn name(self) -> Result<&'a str, TasksetError> {
        match &self.node.kind {
            Kind::Text(text) => Ok(text),
            Kind::Null => Ok(""),
            _ => Err(self.wrong("a name in quotation marks")),
        }
    }

    /// `true` or `false`; numbers are so, too.
    pub(super) fn boolean(self) -> Result<bool, TasksetError> {
        match &self.node.kind {
            Kind::Boolean(value) => Ok(*value),
            Kind::Number(number) => Ok(number.parse() != Ok(0)),
            _ => Err(self.wrong("true or false")),
        }
    }

    /// CPUs: numbers in a list, one number, or a CPU list in quotation marks.
    pub(super) fn cpus(self) -> Result<CpuSet, TasksetError> {
        let set = match &self.node.kind {
            Kind::List(items) => items
                .iter()
                .map(|node| Json { node, ..self }.cpu())
                .collect::<Result<_, _>>()?,
            Kind::Text(list) => list.parse().map_err(|problem| TasksetError::NoCpuList {
                place: self.place(),
                key: self.key.to_string(),
                problem,
            })?,
            _ => CpuSet::single(self.cpu()?),
        };
        match set.is_empty() {
            false => Ok(set),
            true => Err(TasksetError::NoCpus {
                place: self.place(),
                key: self.key.to_string(),
            }),
        }
    }

    fn cpu(self) -> Result<CpuId, TasksetError> {
        let number = self.integer(0, shiftwork_model::CPUS_MAX as i64 - 1)?;
        Ok(CpuId::from_index(number.unsigned_abs() as usize))
    }
}
