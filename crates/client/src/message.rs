//! The encoding of messages: JSON terminated by NUL.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message that calls a method of any interface.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Request {
    /// The full name of the method.
    pub method: String,
    /// An object of named values; optional.
    #[serde(default)]
    pub parameters: Option<Value>,
    /// The caller accepts several replies; one is always permitted.
    #[serde(default)]
    pub more: Option<bool>,
    /// The caller expects no reply, not even an error.
    #[serde(default)]
    pub oneway: Option<bool>,
    /// The caller wants to switch to another protocol after the reply.
    #[serde(default)]
    pub upgrade: Option<bool>,
}

/// A reply, as the client decodes it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Reply {
    /// The full name of an error; absent on success.
    #[serde(default)]
    pub(crate) error: Option<String>,
    /// The result, or the parameters of the error.
    #[serde(default)]
    pub(crate) parameters: Option<Value>,
}

/// The message of this call, with its NUL.
pub fn request_bytes(call: &impl Serialize) -> Vec<u8> {
    bytes(call)
}

/// The reply with this result, with its NUL.
pub fn answer_bytes(answer: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Success<'a, T> {
        parameters: &'a T,
    }
    bytes(&Success { parameters: answer })
}

/// The reply with this error ([`Error`](crate::Error) or [`ServiceError`](crate::ServiceError)), with its NUL.
pub fn error_bytes(error: &impl Serialize) -> Vec<u8> {
    bytes(error)
}

fn bytes(message: &impl Serialize) -> Vec<u8> {
    // Control characters within strings are escaped: the only NUL is the terminator.
    let mut bytes = serde_json::to_vec(message).expect("all keys of messages are strings");
    bytes.push(0);
    bytes
}
