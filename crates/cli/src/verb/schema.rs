//! `shiftwork schema`: JSON schemas of what the verbs print with `--json`.

use serde_json::{Map, Value, json};

use crate::args::SchemaArgs;
use crate::failure::{Answer, Failure};
use crate::json::{SCHEMA_VERSION, schemas};
use crate::output::Console;

/// Prints the schema of one verb's output, or all of them by verb.
pub fn run(args: &SchemaArgs, console: &mut Console) -> Result<Answer, Failure> {
    let schemas = schemas();
    let value = match &args.verb {
        None => {
            let by_verb: Map<String, Value> = schemas
                .into_iter()
                .map(|(verb, schema)| (verb.to_owned(), schema.to_value()))
                .collect();
            json!({ "schema_version": SCHEMA_VERSION, "schemas": by_verb })
        }
        Some(verb) => match schemas.iter().find(|(name, _)| name == verb) {
            Some((_, schema)) => schema.clone().to_value(),
            None => {
                let known: Vec<&str> = schemas.iter().map(|(name, _)| *name).collect();
                return Err(Failure::input(format_args!(
                    "`{verb}` prints no JSON with a schema; these do: {}",
                    known.join(" ")
                )));
            }
        },
    };
    let text = serde_json::to_string_pretty(&value).expect("a schema has string keys only");
    console.line(text)?;
    Ok(Answer::Yes)
}
