//! `shiftwork schema`: JSON schemas of what the verbs print with `--json`, and of the files that they read.

use serde_json::{Map, Value, json};
use shiftwork_taskset::{Kind, schema};
use shiftwork_trace::SCHEMA_VERSION;

use crate::args::SchemaArgs;
use crate::failure::{Answer, Failure};
use crate::json::schemas;
use crate::output::Console;

/// Prints the schema of one verb's output or of one kind of file, or all of them by name.
pub fn run(args: &SchemaArgs, console: &mut Console) -> Result<Answer, Failure> {
    let value = match &args.name {
        None => all(),
        Some(name) => find(name, args.input)?,
    };
    let text = serde_json::to_string_pretty(&value).expect("a schema has string keys only");
    console.line(text)?;
    Ok(Answer::Yes)
}

fn all() -> Value {
    let outputs: Map<String, Value> = schemas()
        .into_iter()
        .map(|(verb, schema)| (verb.to_owned(), schema.to_value()))
        .collect();
    let inputs: Map<String, Value> = Kind::ALL
        .into_iter()
        .map(|kind| (kind.name().to_owned(), schema(kind)))
        .collect();
    json!({ "schema_version": SCHEMA_VERSION, "schemas": outputs, "inputs": inputs })
}

/// The schema of what a verb prints or, if there is no such verb or files are asked for, of a kind of file.
fn find(name: &str, only_inputs: bool) -> Result<Value, Failure> {
    let outputs = schemas();
    let output = outputs.iter().find(|(verb, _)| *verb == name);
    if let Some((_, schema)) = output.filter(|_| !only_inputs) {
        return Ok(schema.clone().to_value());
    }
    if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == name) {
        return Ok(schema(kind));
    }
    let verbs: Vec<&str> = outputs.iter().map(|(verb, _)| *verb).collect();
    Err(Failure::input(format_args!(
        "`{name}` has no schema; the outputs of these verbs have: {}; and these files: {}",
        verbs.join(" "),
        Kind::ALL.map(Kind::name).join(" ")
    )))
}
