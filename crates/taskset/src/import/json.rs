//! The JSON that rt-app takes: comments, trailing commas, keys without a value, and keys that occur
//! several times, all in the order in which they stand, since that order is the program.
//!
//! A parser of our own because common ones keep neither duplicates nor order, and the tolerant ones
//! refuse keys without a value.

use crate::error::TasksetError;
use crate::place::Place;

/// Objects and lists inside each other: far more than any file has, and few enough for any stack.
const DEPTH_MAX: usize = 64;

/// A value and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) offset: usize,
    pub(crate) kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// `null`, or no value at all.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number as it stands.
    Number(String),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys with their values, in order, repeated ones too.
    Object(Vec<(String, Node)>),
}

/// Parses a whole text.
pub(crate) fn parse(text: &str) -> Result<Node, TasksetError> {
    let mut parser = Parser { text, at: 0 };
    let node = parser.value(0)?;
    parser.skip_blank()?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(parser.wrong("the end of the file")),
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    /// Steps over `expected` if it is next.
    fn take(&mut self, expected: &str) -> bool {
        let found = self.text[self.at..].starts_with(expected);
        if found {
            self.at += expected.len();
        }
        found
    }

    /// Steps over the characters that `wanted` holds for, and gives them.
    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &str {
        let rest = &self.text[self.at..];
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn problem(&self, offset: usize, problem: String) -> TasksetError {
        TasksetError::Syntax {
            place: Place::of(self.text, offset),
            format: "JSON",
            problem,
        }
    }

    /// That something else than `expected` is next.
    fn wrong(&self, expected: &str) -> TasksetError {
        let found = match self.peek() {
            None => "the file ends".to_string(),
            Some(character) => format!("there is {character:?}"),
        };
        self.problem(self.at, format!("{found} instead of {expected}"))
    }

    /// Steps over white space and comments.
    fn skip_blank(&mut self) -> Result<(), TasksetError> {
        loop {
            self.take_while(|c| c.is_whitespace() || c == '\u{feff}');
            let start = self.at;
            if self.take("//") || self.take("#") {
                self.take_while(|c| c != '\n');
            } else if self.take("/*") {
                match self.text[self.at..].find("*/") {
                    Some(length) => self.at += length + 2,
                    None => return Err(self.problem(start, "a comment never ends".to_string())),
                }
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, TasksetError> {
        self.skip_blank()?;
        let offset = self.at;
        if depth > DEPTH_MAX {
            let problem = format!("more than {DEPTH_MAX} objects and lists inside each other");
            return Err(self.problem(offset, problem));
        }
        let kind = match self.peek() {
            Some('{') => self.object(depth)?,
            Some('[') => self.list(depth)?,
            Some(quote @ ('"' | '\'')) => Kind::Text(self.quoted(quote)?),
            Some(c) if c.is_ascii_digit() || c == '-' || c == '+' || c == '.' => self.number()?,
            _ if self.take("true") => Kind::Boolean(true),
            _ if self.take("false") => Kind::Boolean(false),
            _ if self.take("null") => Kind::Null,
            _ => return Err(self.wrong("a value")),
        };
        Ok(Node { offset, kind })
    }

    fn number(&mut self) -> Result<Kind, TasksetError> {
        let offset = self.at;
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let text = self.take_while(part).to_string();
        // Rust also reads "inf" and "nan" as numbers, but those do not begin like one.
        let unsigned = text.trim_start_matches(['+', '-']);
        match unsigned.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok() {
            true => Ok(Kind::Number(text)),
            false => Err(self.problem(offset, format!("`{text}` is no number"))),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, TasksetError> {
        let start = self.at;
        self.at += quote.len_utf8();
        let mut text = String::new();
        loop {
            let plain = self.take_while(|c| c != quote && c != '\\' && c != '\n');
            text.push_str(plain);
            match self.peek() {
                Some('\\') => text.push(self.escape()?),
                Some(c) if c == quote => {
                    self.at += c.len_utf8();
                    return Ok(text);
                }
                _ => return Err(self.problem(start, "a text never ends".to_string())),
            }
        }
    }

    fn escape(&mut self) -> Result<char, TasksetError> {
        let offset = self.at;
        self.at += 1;
        let Some(letter) = self.peek() else {
            return Err(self.wrong("an escape"));
        };
        self.at += letter.len_utf8();
        Ok(match letter {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            '"' | '\'' | '\\' | '/' => letter,
            'u' => {
                let digits = self.text.get(self.at..self.at + 4);
                let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                let code = code.ok_or_else(|| self.problem(offset, "a broken escape".into()))?;
                self.at += 4;
                // Half of a surrogate pair names no character; nothing we read depends on it.
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => return Err(self.problem(offset, format!("there is no escape \\{letter}"))),
        })
    }

    fn list(&mut self, depth: usize) -> Result<Kind, TasksetError> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip_blank()?;
            if self.take("]") {
                return Ok(Kind::List(items));
            }
            items.push(self.value(depth + 1)?);
            self.skip_blank()?;
            if !self.take(",") && self.peek() != Some(']') {
                return Err(self.wrong("a comma or `]`"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Kind, TasksetError> {
        self.at += 1;
        let mut members = Vec::new();
        loop {
            self.skip_blank()?;
            if self.take("}") {
                return Ok(Kind::Object(members));
            }
            let offset = self.at;
            let key = self.key()?;
            self.skip_blank()?;
            let node = match self.take(":") {
                true => self.value(depth + 1)?,
                false => Node {
                    offset,
                    kind: Kind::Null,
                },
            };
            members.push((key, node));
            self.skip_blank()?;
            if !self.take(",") && self.peek() != Some('}') {
                return Err(self.wrong("`:`, a comma or `}`"));
            }
        }
    }

    /// A key, in quotation marks or not.
    fn key(&mut self) -> Result<String, TasksetError> {
        if let Some(quote @ ('"' | '\'')) = self.peek() {
            return self.quoted(quote);
        }
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        match self.take_while(word) {
            "" => Err(self.wrong("a key")),
            key => Ok(key.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<String> {
        match parse(text).unwrap().kind {
            Kind::Object(members) => members.into_iter().map(|(key, _)| key).collect(),
            other => panic!("{other:?} is no object"),
        }
    }

    #[test]
    fn keys_keep_their_order_and_may_repeat_or_lack_a_value() {
        let text = "/* c */ { \"run\": 1, // d\n \"suspend\", run: 2, 'sleep': [1, 2,], } # e";
        assert_eq!(keys(text), ["run", "suspend", "run", "sleep"]);
    }

    #[test]
    fn values_are_kept_as_they_stand() {
        let kind = |text| parse(text).unwrap().kind;
        assert_eq!(kind("-1.5e3"), Kind::Number("-1.5e3".into()));
        assert_eq!(kind("\"a\\u00b5\\n\\\"\""), Kind::Text("aµ\n\"".into()));
        assert_eq!(kind(" true"), Kind::Boolean(true));
        assert_eq!(kind("null"), Kind::Null);
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        for (text, message) in [
            (
                "",
                "line 1, column 1: this is no JSON: the file ends instead of a value",
            ),
            (
                "{\"a\": 1 \"b\": 2}",
                "line 1, column 9: this is no JSON: there is '\"' instead of `:`, a comma or `}`",
            ),
            (
                "{\n/* x",
                "line 2, column 1: this is no JSON: a comment never ends",
            ),
            (
                "{\"a\": \"x\n\"}",
                "line 1, column 7: this is no JSON: a text never ends",
            ),
            (
                "[1] 2",
                "line 1, column 5: this is no JSON: there is '2' instead of the end of the file",
            ),
            (
                "[1x]",
                "line 1, column 2: this is no JSON: `1x` is no number",
            ),
            (
                "[-inf]",
                "line 1, column 2: this is no JSON: `-inf` is no number",
            ),
            (
                "\"\\q\"",
                "line 1, column 2: this is no JSON: there is no escape \\q",
            ),
            (
                "\"\\u12µ\"",
                "line 1, column 2: this is no JSON: a broken escape",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn ten_megabytes_of_brackets_do_not_exhaust_the_stack() {
        for bracket in ["[", "{\"a\":"] {
            let error = parse(&bracket.repeat(10_000_000 / bracket.len())).unwrap_err();
            assert!(error.to_string().contains("more than 64"), "{error}");
        }
    }
}
