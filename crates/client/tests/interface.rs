//! The types agree with `org.shiftwork.Agent.varlink`: values generated from the interface must be decoded, refused and
//! encoded accordingly.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use shiftwork_client::{
    Admitted, Answer, Applied, Call, CallError, Changed, DESCRIPTION, Dismissed, Error, Explained,
    GotMisses, GotRecord, GotStatus, INTERFACE, ObservationEnded, Observing, SERVICE_DESCRIPTION,
    SERVICE_INTERFACE, ServiceError, answer_bytes, error_bytes,
};
use varlink_parser::{IDL, VStruct, VStructOrEnum, VType, VTypeExt};

/// The fields of a generated value.
#[derive(Clone, Copy, PartialEq)]
enum Fields {
    All,
    Required,
}

/// Generates values of the types of one interface.
struct Generator<'a>(&'a IDL<'a>);

impl Generator<'_> {
    fn record(&self, record: &VStruct, fields: Fields) -> Value {
        let mut made = Map::new();
        for field in &record.elts {
            if fields == Fields::All || !is_optional(&field.vtype) {
                let value = match field.name {
                    // Its text is base64.
                    "record" => json!("Zm9v"),
                    _ => self.value(&field.vtype, fields),
                };
                made.insert(field.name.into(), value);
            }
        }
        Value::Object(made)
    }

    fn value(&self, kind: &VTypeExt, fields: Fields) -> Value {
        match kind {
            VTypeExt::Array(item) => json!([self.value(item, fields), self.value(item, fields)]),
            VTypeExt::Option(some) => self.value(some, fields),
            VTypeExt::Plain(VType::Bool) => json!(true),
            VTypeExt::Plain(VType::Int) => json!(7),
            VTypeExt::Plain(VType::Float) => json!(0.5),
            VTypeExt::Plain(VType::String) => json!("a \"text\"\u{0}"),
            VTypeExt::Plain(VType::Typename(name)) => match &self.0.typedefs[name].elt {
                VStructOrEnum::VStruct(record) => self.record(record, fields),
                VStructOrEnum::VEnum(choice) => json!(choice.elts.last().unwrap()),
            },
            _ => panic!("the interface uses a type that this test does not support"),
        }
    }

    /// Values that are not of this type, each with the path of the error.
    fn wrong_values(&self, kind: &VTypeExt, place: &str) -> Vec<(Value, String)> {
        let here = |values: &[Value]| values.iter().map(|v| (v.clone(), place.into())).collect();
        match kind {
            VTypeExt::Option(some) => {
                let mut wrong = self.wrong_values(some, place);
                wrong.retain(|(value, _)| !value.is_null());
                wrong
            }
            VTypeExt::Array(item) => self
                .wrong_values(item, &format!("{place}.0"))
                .into_iter()
                .map(|(value, at)| (json!([value]), at))
                .chain([(json!({}), place.into()), (json!(7), place.into())])
                .collect(),
            VTypeExt::Plain(VType::Bool) => here(&[json!(1), json!("true"), json!(null)]),
            VTypeExt::Plain(VType::Int) => here(&[
                json!(0.5),
                json!("7"),
                json!(-1),
                json!(1e300),
                json!([7]),
                json!(null),
            ]),
            VTypeExt::Plain(VType::Float) => here(&[json!("0.5"), json!([0.5]), json!(null)]),
            VTypeExt::Plain(VType::String) => here(&[json!(7), json!(["a"]), json!(null)]),
            VTypeExt::Plain(VType::Typename(name)) => match &self.0.typedefs[name].elt {
                VStructOrEnum::VStruct(record) => self.broken_records(record, place),
                VStructOrEnum::VEnum(_) => here(&[json!("maybe"), json!(7), json!(null)]),
            },
            _ => panic!("the interface uses a type that this test does not support"),
        }
    }

    /// Complete records with one mistake each.
    fn broken_records(&self, record: &VStruct, place: &str) -> Vec<(Value, String)> {
        let whole = self.record(record, Fields::All);
        let mut broken = Vec::new();
        for field in &record.elts {
            let at = join(place, field.name);
            if !is_optional(&field.vtype) {
                let mut without = whole.clone();
                without.as_object_mut().unwrap().remove(field.name);
                broken.push((without, place.to_owned()));
            }
            for (value, at) in self.wrong_values(&field.vtype, &at) {
                let mut with = whole.clone();
                with[field.name] = value;
                broken.push((with, at));
            }
        }
        broken
    }

    /// The values of the enumeration of this name, as error messages list them.
    fn choices(&self, name: &str) -> String {
        let VStructOrEnum::VEnum(choice) = &self.0.typedefs[name].elt else {
            panic!("{name} is not an enumeration");
        };
        let quoted: Vec<_> = choice.elts.iter().map(|one| format!("`{one}`")).collect();
        match quoted.as_slice() {
            [one, other] => format!("expected {one} or {other}"),
            more => format!("expected one of {}", more.join(", ")),
        }
    }
}

fn is_optional(kind: &VTypeExt) -> bool {
    matches!(kind, VTypeExt::Option(_))
}

fn join(place: &str, name: &str) -> String {
    if place.is_empty() {
        return name.into();
    }
    format!("{place}.{name}")
}

/// The value of a message, without its NUL.
fn value_of(message: &[u8]) -> Value {
    let (nul, json) = message.split_last().unwrap();
    assert_eq!(*nul, 0, "a message ends by NUL");
    assert!(!json.contains(&0), "and has no other");
    serde_json::from_slice(json).unwrap()
}

/// Decodes the result of a method as the client does, and encodes it as the daemon does.
fn answer_again(call: &Call, parameters: Value) -> serde_json::Result<Value> {
    fn read<T: DeserializeOwned>(value: Value) -> serde_json::Result<T> {
        serde_json::from_value(value)
    }
    let answer = match call {
        Call::Admit(_) => Answer::Admit(read::<Admitted>(parameters)?),
        Call::Change(_) => Answer::Change(read::<Changed>(parameters)?),
        Call::Dismiss(_) => Answer::Dismiss(read::<Dismissed>(parameters)?),
        Call::Apply(_) => Answer::Apply(read::<Applied>(parameters)?),
        Call::GetStatus(_) => Answer::GetStatus(read::<GotStatus>(parameters)?),
        Call::Observe(_) => Answer::Observe(read::<Observing>(parameters)?),
        Call::EndObservation(_) => Answer::EndObservation(read::<ObservationEnded>(parameters)?),
        Call::GetRecord(_) => Answer::GetRecord(read::<GotRecord>(parameters)?),
        Call::Explain(_) => Answer::Explain(read::<Explained>(parameters)?),
        Call::GetMisses(_) => Answer::GetMisses(read::<GotMisses>(parameters)?),
    };
    Ok(value_of(&answer_bytes(&answer)))
}

#[test]
fn method_accepts_exactly_parameters_of_interface() {
    let interface = IDL::try_from(DESCRIPTION).unwrap();
    assert_eq!(interface.name, INTERFACE);
    let generator = Generator(&interface);
    for (name, method) in &interface.methods {
        for fields in [Fields::All, Fields::Required] {
            let parameters = generator.record(&method.input, fields);
            let call = Call::read(name, parameters.clone()).unwrap();
            let expected =
                json!({ "method": format!("{INTERFACE}.{name}"), "parameters": parameters });
            assert_eq!(serde_json::to_value(&call).unwrap(), expected);
        }
        for (parameters, place) in generator.broken_records(&method.input, "") {
            let place = if place.is_empty() {
                "parameters".into()
            } else {
                place
            };
            match Call::read(name, parameters.clone()) {
                Err(CallError::Parameters(Error::Invalid { parameter, reason })) => {
                    assert_eq!(parameter, place, "{name} of {parameters}: {reason}");
                }
                other => panic!("{name} of {parameters} must be refused: {other:?}"),
            }
        }
    }
}

#[test]
fn method_returns_result_of_interface() {
    let interface = IDL::try_from(DESCRIPTION).unwrap();
    let generator = Generator(&interface);
    for (name, method) in &interface.methods {
        let call = Call::read(name, generator.record(&method.input, Fields::All)).unwrap();
        for fields in [Fields::All, Fields::Required] {
            let answer = generator.record(&method.output, fields);
            let again = answer_again(&call, answer.clone()).unwrap();
            assert_eq!(again, json!({ "parameters": answer }), "{name}");
        }
        for (answer, place) in generator.broken_records(&method.output, "") {
            let read = answer_again(&call, answer.clone());
            assert!(
                read.is_err(),
                "{name} must not return {answer}, see {place}"
            );
        }
    }
}

#[test]
fn unknown_field_of_result_is_ignored() {
    let call = Call::read("Observe", json!({})).unwrap();
    let answer = answer_again(&call, json!({ "task": 7, "colour": "red" })).unwrap();
    assert_eq!(answer, json!({ "parameters": { "task": 7 } }));
}

#[test]
fn unknown_parameter_is_refused_by_name() {
    for (parameters, place) in [
        (json!({ "colour": "red" }), "colour"),
        (
            json!({ "name": "a", "reservation": { "cost": 1, "period": 2, "deadine": 2 } }),
            "reservation.deadine",
        ),
    ] {
        let method = if parameters.get("name").is_some() {
            "Admit"
        } else {
            "GetStatus"
        };
        let Err(CallError::Parameters(Error::Invalid { parameter, reason })) =
            Call::read(method, parameters.clone())
        else {
            panic!("{parameters} must be refused");
        };
        assert_eq!(parameter, place);
        assert_eq!(
            reason,
            "is unknown; GetInterfaceDescription returns the known ones"
        );
    }
    assert_eq!(Call::read("Admire", json!({})), Err(CallError::Method));
    assert_eq!(
        Call::read("GetStatus", json!([])),
        Err(CallError::Parameters(Error::Invalid {
            parameter: "parameters".into(),
            reason: "must be an object of named values".into()
        }))
    );
}

#[test]
fn enumerations_agree_with_interface() {
    let interface = IDL::try_from(DESCRIPTION).unwrap();
    let generator = Generator(&interface);
    fn compare<T: DeserializeOwned + Serialize>(generator: &Generator, name: &str) {
        let VStructOrEnum::VEnum(choice) = &generator.0.typedefs[name].elt else {
            panic!("{name} is not an enumeration");
        };
        for one in &choice.elts {
            let read: T = serde_json::from_value(json!(one)).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), json!(one));
        }
        let error = serde_json::from_value::<T>(json!("maybe")).err().unwrap();
        assert!(
            error.to_string().ends_with(&generator.choices(name)),
            "{error} must name {} and no more",
            generator.choices(name)
        );
    }
    compare::<shiftwork_client::OnOverrun>(&generator, "OnOverrun");
    compare::<shiftwork_client::State>(&generator, "State");
    compare::<shiftwork_client::Cause>(&generator, "Cause");
}

/// Compares the errors of an interface with the type that reads and writes them.
fn compare_errors<E: DeserializeOwned + Serialize + ToString>(description: &str, prefix: &str) {
    let interface = IDL::try_from(description).unwrap();
    assert_eq!(interface.name, prefix);
    let generator = Generator(&interface);
    let mut names = Vec::new();
    for name in &interface.error_keys {
        let parameters = generator.record(&interface.errors[name].parm, Fields::All);
        let reply = json!({ "error": format!("{prefix}.{name}"), "parameters": parameters });
        let error: E = serde_json::from_value(reply.clone()).unwrap();
        assert_eq!(value_of(&error_bytes(&error)), reply);
        assert!(
            error.to_string().contains("a \"text\""),
            "the message contains the parameters"
        );
        names.push(format!("`{prefix}.{name}`"));
    }
    let unknown = json!({ "error": "Bored", "parameters": {} });
    let error = serde_json::from_value::<E>(unknown).err().unwrap();
    let expected = format!("expected one of {}", names.join(", "));
    assert!(error.to_string().ends_with(&expected), "{error}");
}

#[test]
fn errors_agree_with_interfaces() {
    compare_errors::<Error>(DESCRIPTION, INTERFACE);
    compare_errors::<ServiceError>(SERVICE_DESCRIPTION, SERVICE_INTERFACE);
}
