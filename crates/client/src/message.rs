//! Messages as bytes: JSON ended by NUL.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message that calls a method of whichever interface.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Request {
    /// The full name of the method.
    pub method: String,
    /// An object of named values; absent if there are none.
    #[serde(default)]
    pub parameters: Option<Value>,
    /// The caller would take more than one reply. One is always right.
    #[serde(default)]
    pub more: Option<bool>,
    /// The caller wants no reply, not even an error.
    #[serde(default)]
    pub oneway: Option<bool>,
    /// The caller wants to speak something else than varlink afterwards.
    #[serde(default)]
    pub upgrade: Option<bool>,
}

/// A reply, as the caller reads it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Reply {
    /// The full name of an error; absent if the method did what it was asked.
    #[serde(default)]
    pub(crate) error: Option<String>,
    /// The answer, or what the error says.
    #[serde(default)]
    pub(crate) parameters: Option<Value>,
}

/// The message that makes this call, with the NUL that ends it.
pub fn request_bytes(call: &impl Serialize) -> Vec<u8> {
    bytes(call)
}

/// The reply with this answer, with the NUL that ends it.
pub fn answer_bytes(answer: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Success<'a, T> {
        parameters: &'a T,
    }
    bytes(&Success { parameters: answer })
}

/// The reply with this error ([`Error`](crate::Error) or [`ServiceError`](crate::ServiceError)), with
/// the NUL that ends it.
pub fn error_bytes(error: &impl Serialize) -> Vec<u8> {
    bytes(error)
}

fn bytes(message: &impl Serialize) -> Vec<u8> {
    // Control characters inside of texts are written as escapes, so that there is one NUL only.
    let mut bytes = serde_json::to_vec(message).expect("messages have texts as keys only");
    bytes.push(0);
    bytes
}
