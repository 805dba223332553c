//! Reading a value as a duration, a whole number or a decimal fraction, exactly.

use shiftwork_model::{CPUS_MAX, CpuId, Instant, Priority, Share, Span};
use toml::de::DeValue;

use super::Value;
use crate::error::TasksetError;
use crate::span;

impl Value<'_> {
    /// A duration of a whole number of nanoseconds.
    pub(crate) fn span(&self) -> Result<Span, TasksetError> {
        let text = match self.value {
            DeValue::Integer(number) => return Err(self.no_unit(number.to_string())),
            DeValue::Float(number) => return Err(self.no_unit(number.to_string())),
            _ => self.text("a duration like \"500us\" or \"2ms\"")?,
        };
        let digits = text.trim();
        if !digits.is_empty()
            && digits
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
        {
            return Err(self.no_unit(digits.to_string()));
        }
        let parsed = humantime::parse_duration(text).map_err(|error| TasksetError::NoDuration {
            place: self.place(),
            key: self.key(),
            text: text.to_string(),
            problem: span::problem(text, &error),
        })?;
        u64::try_from(parsed.as_nanos())
            .ok()
            .map(Span::from_ns)
            .filter(|&span| span <= Span::MAX)
            .ok_or_else(|| TasksetError::TooLong {
                place: self.place(),
                key: self.key(),
                text: text.to_string(),
            })
    }

    fn no_unit(&self, number: String) -> TasksetError {
        TasksetError::NoUnit {
            place: self.place(),
            key: self.key(),
            number,
        }
    }

    /// A duration above zero.
    pub(crate) fn positive_span(&self) -> Result<Span, TasksetError> {
        match self.span()? {
            Span::ZERO => Err(TasksetError::Zero {
                place: self.place(),
                key: self.key(),
            }),
            span => Ok(span),
        }
    }

    /// A duration since the start of the run.
    pub(crate) fn instant(&self) -> Result<Instant, TasksetError> {
        Ok(Instant::ZERO + self.span()?)
    }

    /// A whole number between the two.
    pub(crate) fn integer(&self, least: u32, most: u32) -> Result<u32, TasksetError> {
        let number = match self.value {
            DeValue::Integer(number) => u32::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number
            .filter(|found| (least..=most).contains(found))
            .ok_or_else(|| {
                let accepted = format!("a whole number from {least} to {most}");
                self.out_of_range(self.describe(), accepted)
            })
    }

    /// A priority.
    pub(crate) fn priority(&self) -> Result<Priority, TasksetError> {
        let most = Priority::LEAST_URGENT.number();
        let number = self.integer(1, most)?;
        Ok(Priority::new(number).expect("the range was just checked"))
    }

    /// Number of one of the `cpus` CPUs of the platform.
    pub(crate) fn cpu(&self, cpus: usize) -> Result<CpuId, TasksetError> {
        let number = self.integer(0, cpus.clamp(1, CPUS_MAX) as u32 - 1)?;
        Ok(CpuId::from_index(number as usize))
    }

    /// An exact share, written as a decimal fraction.
    pub(crate) fn share(&self) -> Result<Share, TasksetError> {
        let text = match self.value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return Err(self.wrong("a share from 0 to 1, like 0.05")),
        };
        share_of(text).ok_or_else(|| {
            self.out_of_range(
                format!("the number {text}"),
                "a share from 0 to 1 with at most 9 decimals, like 0.05".to_string(),
            )
        })
    }

    /// A decimal fraction above zero, in thousandths.
    pub(crate) fn thousandths(&self) -> Result<u32, TasksetError> {
        let text = match self.value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return Err(self.wrong("a number above 0, like 2.5")),
        };
        thousandths_of(text)
            .filter(|&found| found > 0)
            .ok_or_else(|| {
                self.out_of_range(
                    format!("the number {text}"),
                    "a number above 0 and below a million with at most 3 decimals, like 2.5"
                        .to_string(),
                )
            })
    }

    /// A decimal fraction from zero to `most`, in millionths.
    pub(crate) fn millionths(&self, most: u32) -> Result<u64, TasksetError> {
        let text = match self.value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return Err(self.wrong("a number like 0.25")),
        };
        let number = decimal(text, 6);
        number
            .map(|(whole, rest)| u64::from(whole) * 1_000_000 + u64::from(rest))
            .filter(|&found| found <= u64::from(most) * 1_000_000)
            .ok_or_else(|| {
                self.out_of_range(
                    format!("the number {text}"),
                    format!("a number from 0 to {most} with at most 6 decimals, like 0.25"),
                )
            })
    }
}

/// The decimal fraction in billionths, exactly; `None` if it is not between 0 and 1, or too fine.
fn share_of(text: &str) -> Option<Share> {
    let (whole, billionths) = decimal(text, 9)?;
    let whole = Some(whole).filter(|&whole| whole <= 1)?;
    Share::from_billionths(whole * Share::WHOLE + billionths)
}

/// The decimal fraction in thousandths, exactly; `None` if it is a million or more, or too fine.
fn thousandths_of(text: &str) -> Option<u32> {
    let (whole, thousandths) = decimal(text, 3)?;
    let whole = Some(whole).filter(|&whole| whole < 1_000_000)?;
    Some(whole * 1_000 + thousandths)
}

/// A decimal fraction: what is before the point, and so many decimals; `None` if it has more, or is no such
/// thing.
fn decimal(text: &str, decimals: usize) -> Option<(u32, u32)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > decimals {
        return None;
    }
    Some((
        whole.parse().ok()?,
        format!("{fraction:0<decimals$}").parse().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_exactly() {
        let billionths = |text| share_of(text).map(Share::billionths);
        assert_eq!(billionths("0.05"), Some(50_000_000));
        assert_eq!(billionths("1"), Some(1_000_000_000));
        assert_eq!(billionths("1.0"), Some(1_000_000_000));
        assert_eq!(billionths("0.123456789"), Some(123_456_789));
        assert_eq!(billionths("0.5000000000000"), Some(500_000_000));
        for text in [
            "1.000000001",
            "-0.1",
            "0.1234567891",
            "5e-2",
            "inf",
            "2",
            "99999999999",
        ] {
            assert_eq!(billionths(text), None, "{text}");
        }
    }
}
