//! JSON schemas of our TOML files, for editors that check and complete while one writes.
//!
//! They are made of the tables of keys by which the readers go, so that they know the same keys. A schema
//! accepts more than a reader: it does not compare values with each other.

use serde_json::{Map, Value, json};

use crate::keys::{Key, Need, Takes};
use crate::kind::Kind;
use crate::{daemon, file, overheads, scenario, study};

/// The schema of a kind of file, as of JSON Schema's draft 7, which editors for TOML understand.
pub fn schema(kind: Kind) -> Value {
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": kind.name(),
    });
    if let (Value::Object(schema), Value::Object(table)) = (&mut schema, table(keys_of(kind))) {
        schema.extend(table);
    }
    schema
}

/// The keys at the top of such a file.
const fn keys_of(kind: Kind) -> &'static [Key] {
    match kind {
        Kind::TaskSet => &file::KEYS,
        Kind::Scenario => &scenario::KEYS,
        Kind::Study => &study::KEYS,
        Kind::Overheads => &overheads::FILE_KEYS,
        Kind::Daemon => &daemon::KEYS,
    }
}

fn table(keys: &[Key]) -> Value {
    let properties: Map<String, Value> = keys
        .iter()
        .map(|key| {
            let mut value = value(&key.takes);
            value["description"] = json!(key.says);
            (key.name.to_owned(), value)
        })
        .collect();
    let mut table = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    let with = |need| keys.iter().filter(move |key| key.need == need);
    let required: Vec<&str> = with(Need::Must).map(|key| key.name).collect();
    if !required.is_empty() {
        table["required"] = json!(required);
    }
    let choices: Vec<Value> = with(Need::Choice)
        .map(|key| json!({ "required": [key.name] }))
        .collect();
    if !choices.is_empty() {
        table["oneOf"] = json!(choices);
    }
    table
}

fn value(takes: &Takes) -> Value {
    match takes {
        Takes::Text | Takes::Cpus => json!({ "type": "string" }),
        Takes::Name => json!({ "type": "string", "minLength": 1 }),
        Takes::Boolean => json!({ "type": "boolean" }),
        Takes::Duration => json!({
            "type": "string",
            // One or more numbers, each with a unit; which units there are the reader says.
            "pattern": "^ *([0-9]+(\\.[0-9]+)? *[A-Za-zµ]+ *)+$",
        }),
        Takes::Whole(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Takes::Number(least, most) => {
            json!({ "type": "number", "minimum": least, "maximum": most })
        }
        Takes::Words(words) => json!({ "type": "string", "enum": words() }),
        Takes::List(items, least) => {
            json!({ "type": "array", "items": value(items), "minItems": least })
        }
        Takes::Either(kinds) => {
            let kinds: Vec<Value> = kinds.iter().map(value).collect();
            json!({ "anyOf": kinds })
        }
        Takes::Table(keys) => table(keys),
        Takes::Named(each) => json!({ "type": "object", "additionalProperties": value(each) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::names;

    #[test]
    fn distinctive_keys_belong_to_one_kind_only() {
        for kind in Kind::ALL {
            for key in kind.distinctive_keys() {
                let knows = Kind::ALL
                    .into_iter()
                    .filter(|one| names(keys_of(*one)).contains(key));
                assert_eq!(knows.collect::<Vec<_>>(), [kind], "{key}");
            }
        }
    }
}
