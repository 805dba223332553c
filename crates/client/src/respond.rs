//! Decodes a message, dispatches the call, and encodes the reply.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::call::{Answer, Call, CallError};
use crate::error::{Error, ServiceError};
use crate::message::{Request, answer_bytes, error_bytes};
use crate::{DESCRIPTION, INTERFACE, SERVICE_DESCRIPTION, SERVICE_INTERFACE};

/// The response to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The reply, with its NUL; `None` if the caller expects none.
    pub reply: Option<Vec<u8>>,
    /// Whether to close the connection, since the message is not varlink.
    pub closes: bool,
}

impl Response {
    /// The error for a message that is not a call, after which the connection is closed.
    pub fn invalid_message(reason: impl ToString) -> Self {
        let error = Error::Invalid {
            parameter: "message".into(),
            reason: reason.to_string(),
        };
        Self {
            reply: Some(error_bytes(&error)),
            closes: true,
        }
    }
}

/// Responds to this message, which is without its NUL, by passing a valid call to `handler`. If the message is `forbidden`,
/// the reply is that error.
///
/// As varlink defines: a call with `oneway` gets no reply, not even an error; one with `more` gets one reply; connections
/// cannot be upgraded.
pub fn respond(
    message: &[u8],
    forbidden: Option<Error>,
    handler: &mut dyn FnMut(Call) -> Result<Answer, Error>,
) -> Response {
    let request: Request = match serde_json::from_slice(message) {
        Ok(request) => request,
        Err(error) => return Response::invalid_message(format!("is not a varlink call: {error}")),
    };
    let flags = [request.more, request.oneway, request.upgrade];
    if flags.iter().filter(|&&flag| flag == Some(true)).count() > 1 {
        return Response::invalid_message("has more than one of `more`, `oneway` and `upgrade`");
    }
    let oneway = request.oneway == Some(true);
    let reply = match forbidden {
        Some(error) => error_bytes(&error),
        None => reply(request, handler),
    };
    Response {
        reply: (!oneway).then_some(reply),
        closes: false,
    }
}

fn reply(request: Request, handler: &mut dyn FnMut(Call) -> Result<Answer, Error>) -> Vec<u8> {
    let parameters = request
        .parameters
        .unwrap_or_else(|| Value::Object(Map::new()));
    let Some((interface, method)) = request.method.rsplit_once('.') else {
        // Names of interfaces contain dots: this is not a known one.
        return error_bytes(&ServiceError::InterfaceNotFound {
            interface: request.method,
        });
    };
    let missing = |method: &str| ServiceError::MethodNotFound {
        method: method.into(),
    };
    match (interface, method) {
        (INTERFACE | SERVICE_INTERFACE, _) if request.upgrade == Some(true) => {
            error_bytes(&ServiceError::MethodNotImplemented {
                method: request.method,
            })
        }
        (INTERFACE, _) => match Call::read(method, parameters) {
            Ok(call) => match handler(call) {
                Ok(answer) => answer_bytes(&answer),
                Err(error) => error_bytes(&error),
            },
            Err(CallError::Parameters(error)) => error_bytes(&error),
            Err(CallError::Method) => error_bytes(&missing(&request.method)),
        },
        (SERVICE_INTERFACE, "GetInfo") => answer_bytes(&INFORMATION),
        (SERVICE_INTERFACE, "GetInterfaceDescription") => description(&parameters),
        (SERVICE_INTERFACE, _) => error_bytes(&missing(&request.method)),
        _ => error_bytes(&ServiceError::InterfaceNotFound {
            interface: interface.into(),
        }),
    }
}

/// The result of `org.varlink.service.GetInfo`.
#[derive(Serialize)]
struct Information {
    vendor: &'static str,
    product: &'static str,
    version: &'static str,
    url: &'static str,
    interfaces: [&'static str; 2],
}

const INFORMATION: Information = Information {
    vendor: "shiftwork",
    product: "shiftwork daemon",
    version: env!("CARGO_PKG_VERSION"),
    url: env!("CARGO_PKG_REPOSITORY"),
    interfaces: [SERVICE_INTERFACE, INTERFACE],
};

fn description(parameters: &Value) -> Vec<u8> {
    #[derive(Serialize)]
    struct Description {
        description: &'static str,
    }
    let description = match parameters.get("interface").and_then(Value::as_str) {
        Some(INTERFACE) => DESCRIPTION,
        Some(SERVICE_INTERFACE) => SERVICE_DESCRIPTION,
        Some(interface) => {
            return error_bytes(&ServiceError::InterfaceNotFound {
                interface: interface.into(),
            });
        }
        None => {
            return error_bytes(&ServiceError::InvalidParameter {
                parameter: "interface".into(),
            });
        }
    };
    answer_bytes(&Description { description })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Dismissed, Observing};
    use serde_json::json;

    /// The response of a handler that dismisses only task 1, and the number of calls that reach the handler.
    fn respond_to(message: &[u8], forbidden: Option<Error>) -> (Response, usize) {
        let mut calls = 0;
        let mut handler = |call| {
            calls += 1;
            match call {
                Call::Dismiss(dismiss) if dismiss.task == 1 => Ok(Answer::Dismiss(Dismissed {})),
                Call::Observe(_) => Ok(Answer::Observe(Observing { task: 2 })),
                other => Err(Error::Missing {
                    what: format!("{other:?}"),
                }),
            }
        };
        (respond(message, forbidden, &mut handler), calls)
    }

    /// The reply to a message that gets one, and the number of calls that reach the handler.
    fn reply_to(message: &Value) -> (Value, usize) {
        let (response, calls) = respond_to(message.to_string().as_bytes(), None);
        assert!(!response.closes, "{message}");
        let reply = response.reply.unwrap();
        let (nul, json) = reply.split_last().unwrap();
        assert_eq!(*nul, 0);
        (serde_json::from_slice(json).unwrap(), calls)
    }

    #[test]
    fn call_reaches_handler_and_result_is_returned() {
        let dismiss = |task| json!({ "method": "org.shiftwork.Agent.Dismiss", "parameters": { "task": task } });
        assert_eq!(reply_to(&dismiss(1)), (json!({ "parameters": {} }), 1));
        let (reply, calls) = reply_to(&dismiss(2));
        assert_eq!(reply["error"], "org.shiftwork.Agent.Missing");
        assert_eq!(calls, 1);
        let (reply, calls) = reply_to(&dismiss(-1));
        assert_eq!(reply["error"], "org.shiftwork.Agent.Invalid");
        assert_eq!(reply["parameters"]["parameter"], "task");
        assert_eq!(calls, 0);
        let mut more = dismiss(1);
        more["more"] = json!(true);
        more["oneway"] = json!(false);
        assert_eq!(reply_to(&more), (json!({ "parameters": {} }), 1));
        let bare = json!({ "method": "org.shiftwork.Agent.Observe" });
        assert_eq!(reply_to(&bare), (json!({ "parameters": { "task": 2 } }), 1));
        let null = json!({ "method": "org.shiftwork.Agent.Observe", "parameters": null });
        assert_eq!(reply_to(&null), (json!({ "parameters": { "task": 2 } }), 1));
    }

    #[test]
    fn oneway_call_gets_no_reply() {
        for (task, forbidden) in [
            (1, None),
            (2, None),
            (
                1,
                Some(Error::Broken {
                    reason: String::new(),
                }),
            ),
        ] {
            let expected = usize::from(forbidden.is_none());
            let message = json!({
                "method": "org.shiftwork.Agent.Dismiss",
                "parameters": { "task": task },
                "oneway": true,
            });
            let (response, calls) = respond_to(message.to_string().as_bytes(), forbidden);
            assert_eq!(
                response,
                Response {
                    reply: None,
                    closes: false
                }
            );
            assert_eq!(calls, expected);
        }
    }

    #[test]
    fn forbidden_message_does_not_reach_handler() {
        let error = Error::Exhausted {
            limit: "seven".into(),
        };
        for method in [
            "org.shiftwork.Agent.Observe",
            "org.varlink.service.GetInfo",
            "x",
        ] {
            let message = json!({ "method": method }).to_string();
            let (response, calls) = respond_to(message.as_bytes(), Some(error.clone()));
            assert_eq!(response.reply, Some(error_bytes(&error)));
            assert_eq!((response.closes, calls), (false, 0));
        }
    }

    #[test]
    fn service_interface_describes_itself() {
        let (reply, _) = reply_to(&json!({ "method": "org.varlink.service.GetInfo" }));
        assert_eq!(
            reply["parameters"]["interfaces"],
            json!(["org.varlink.service", "org.shiftwork.Agent"])
        );
        let describe = |parameters: Value| {
            reply_to(&json!({
                "method": "org.varlink.service.GetInterfaceDescription",
                "parameters": parameters,
            }))
            .0
        };
        for (interface, text) in [
            (INTERFACE, DESCRIPTION),
            (SERVICE_INTERFACE, SERVICE_DESCRIPTION),
        ] {
            let reply = describe(json!({ "interface": interface }));
            assert_eq!(reply, json!({ "parameters": { "description": text } }));
        }
        let reply = describe(json!({ "interface": "org.example" }));
        assert_eq!(reply["error"], "org.varlink.service.InterfaceNotFound");
        for none in [json!({}), json!({ "interface": 7 }), json!([])] {
            let reply = describe(none);
            assert_eq!(reply["error"], "org.varlink.service.InvalidParameter");
        }
    }

    #[test]
    fn unknown_method_or_interface_has_standard_error() {
        for (method, error, name) in [
            ("org.shiftwork.Agent.Admire", "MethodNotFound", "method"),
            ("org.varlink.service.Admire", "MethodNotFound", "method"),
            ("org.example.Admit", "InterfaceNotFound", "interface"),
            ("Admit", "InterfaceNotFound", "interface"),
            ("", "InterfaceNotFound", "interface"),
        ] {
            let (reply, calls) = reply_to(&json!({ "method": method }));
            assert_eq!(reply["error"], format!("org.varlink.service.{error}"));
            let expected = if method == "org.example.Admit" {
                "org.example"
            } else {
                method
            };
            assert_eq!(reply["parameters"], json!({ name: expected }));
            assert_eq!(calls, 0);
        }
        let upgrade = json!({ "method": "org.shiftwork.Agent.Observe", "upgrade": true });
        let (reply, calls) = reply_to(&upgrade);
        assert_eq!(reply["error"], "org.varlink.service.MethodNotImplemented");
        assert_eq!(calls, 0);
    }

    #[test]
    fn invalid_message_gets_error_and_closes_connection() {
        let deep = [b"[".repeat(60_000), b"]".repeat(60_000)].concat();
        let messages: [&[u8]; 10] = [
            b"",
            b"GET / HTTP/1.1\r\n\r\n",
            b"{}",
            b"[]",
            b"{\"method\":7}",
            b"{\"method\":\"a.B\",\"parameters\":1e999}",
            b"{\"method\":\"a.B\",\"more\":1}",
            b"{\"method\":\"a.B\",\"more\":true,\"oneway\":true}",
            b"{\"method\":\"\xff\"}",
            &deep,
        ];
        for message in messages {
            let (response, calls) = respond_to(message, None);
            let text = String::from_utf8_lossy(&message[..message.len().min(60)]);
            assert!(response.closes, "{text}");
            let reply = String::from_utf8(response.reply.unwrap()).unwrap();
            let start =
                r#"{"error":"org.shiftwork.Agent.Invalid","parameters":{"parameter":"message","#;
            assert!(reply.starts_with(start), "{reply}");
            assert_eq!(calls, 0);
        }
    }
}
