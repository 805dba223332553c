//! As much of JSON Schema as our schemas use. A keyword that is not known here is a failure, so that nothing
//! passes because it was not looked at.
//!
//! The crates that validate everything bring fifty others with them, for formats and references over networks.

use serde_json::{Map, Value};

/// What is wrong with a value, each with where it is; empty if it is valid.
pub fn errors(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, value, "", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let keywords = match schema {
        Value::Bool(true) => return,
        Value::Object(keywords) => keywords,
        other => panic!("{other} is no schema"),
    };
    for (keyword, wanted) in keywords {
        let holds = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" | "format" => true,
            "$ref" => {
                let name = wanted
                    .as_str()
                    .and_then(|path| path.strip_prefix("#/$defs/"));
                let part = &root["$defs"][name.unwrap_or_else(|| panic!("{wanted} is elsewhere"))];
                assert!(!part.is_null(), "{wanted} is not defined");
                check(root, part, value, at, found);
                true
            }
            "type" => is_of_type(wanted, value),
            "enum" => items(wanted).contains(value),
            "const" => wanted == value,
            "minimum" => value
                .as_f64()
                .is_none_or(|found| found >= wanted.as_f64().unwrap()),
            "maximum" => value
                .as_f64()
                .is_none_or(|found| found <= wanted.as_f64().unwrap()),
            "minLength" => value
                .as_str()
                .is_none_or(|text| text.chars().count() as u64 >= size(wanted)),
            "minItems" => value
                .as_array()
                .is_none_or(|items| items.len() as u64 >= size(wanted)),
            "maxItems" => value
                .as_array()
                .is_none_or(|items| items.len() as u64 <= size(wanted)),
            // The only pattern is that of durations: numbers with units.
            "pattern" => value.as_str().is_none_or(|text| {
                assert!(wanted.as_str().unwrap().contains("[A-Za-zµ]+"), "{wanted}");
                is_duration(text)
            }),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, wanted, item, &format!("{at}/{index}"), found);
                }
                true
            }
            "anyOf" | "oneOf" => {
                let valid = |part: &&Value| {
                    let mut inside = Vec::new();
                    check(root, part, value, at, &mut inside);
                    inside.is_empty()
                };
                let count = items(wanted).iter().filter(valid).count();
                if keyword == "anyOf" {
                    count > 0
                } else {
                    count == 1
                }
            }
            "required" => value.as_object().is_none_or(|object| {
                items(wanted)
                    .iter()
                    .all(|key| object.contains_key(key.as_str().unwrap()))
            }),
            "properties" | "additionalProperties" | "unevaluatedProperties" => {
                check_properties(root, keywords, keyword, (value, at), found);
                true
            }
            other => panic!("the keyword `{other}` is not known to this test"),
        };
        if !holds {
            found.push(format!("{at}: {value} is not as {keyword}: {wanted}"));
        }
    }
}

fn check_properties(
    root: &Value,
    keywords: &Map<String, Value>,
    keyword: &str,
    (value, at): (&Value, &str),
    found: &mut Vec<String>,
) {
    let Some(object) = value.as_object() else {
        return;
    };
    let nothing = Map::new();
    let known = keywords
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&nothing);
    for (key, value) in object {
        let at = format!("{at}/{key}");
        match (keyword, known.get(key)) {
            ("properties", Some(schema)) => check(root, schema, value, &at, found),
            ("properties", None) | (_, Some(_)) => {}
            (_, None) => match &keywords[keyword] {
                Value::Bool(false) => found.push(format!("{at}: there is no such key")),
                schema => check(root, schema, value, &at, found),
            },
        }
    }
}

fn items(value: &Value) -> &[Value] {
    value
        .as_array()
        .unwrap_or_else(|| panic!("{value} is no list"))
}

fn size(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no size"))
}

fn is_of_type(wanted: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        other => panic!("there is no type `{other}`"),
    };
    match wanted {
        Value::Array(names) => names.iter().any(is),
        name => is(name),
    }
}

/// One or more numbers, each with a unit.
fn is_duration(text: &str) -> bool {
    let mut rest = text.trim_matches(' ');
    while !rest.is_empty() {
        let number = rest.len()
            - rest
                .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
                .len();
        let after = rest[number..].trim_start_matches(' ');
        let letters = |c: char| c.is_ascii_alphabetic() || c == 'µ';
        let unit = after.len() - after.trim_start_matches(letters).len();
        if number == 0 || unit == 0 {
            return false;
        }
        rest = after[unit..].trim_start_matches(' ');
    }
    !text.trim_matches(' ').is_empty()
}

#[test]
fn validator_finds_what_is_wrong_and_where() {
    let schema = serde_json::json!({
        "type": "object",
        "properties": { "a": { "$ref": "#/$defs/n" }, "b": { "type": ["string", "null"], "minLength": 1 } },
        "required": ["a"],
        "additionalProperties": false,
        "$defs": { "n": { "type": "integer", "minimum": 0 } },
    });
    for (value, expected) in [
        (r#"{"a": 1}"#, 0),
        (r#"{"a": 1, "b": null}"#, 0),
        (r#"{"a": -1}"#, 1),
        (r#"{"a": 1.5, "b": ""}"#, 2),
        (r#"{"c": 1}"#, 2),
        ("[]", 1),
    ] {
        let value = serde_json::from_str(value).unwrap();
        let found = errors(&schema, &value);
        assert_eq!(found.len(), expected, "{value}: {found:?}");
    }
    for (text, expected) in [
        ("1s 500ms", true),
        ("0.5 us", true),
        ("5", false),
        ("", false),
        ("ms", false),
    ] {
        assert_eq!(is_duration(text), expected, "{text}");
    }
}
