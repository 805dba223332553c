//! Messages to the daemon: however the stream is cut, no message causes a panic, each gets at most one reply, and replies
//! are JSON terminated by the only NUL.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shiftwork_client::{
    Answer, Call, Dismissed, Error, Explained, MessageBuffer, Observing, respond,
};

/// Maximum length of a message; inputs are not much longer.
const LENGTH_MAX: usize = 1_000;

/// Answers every call, some with parts of the call.
fn echo(call: Call) -> Result<Answer, Error> {
    match call {
        Call::Dismiss(_) => Ok(Answer::Dismiss(Dismissed {})),
        Call::Observe(observe) => Ok(Answer::Observe(Observing {
            task: observe.thread.unwrap_or(0),
        })),
        Call::Admit(admit) => Err(Error::Refused { reason: admit.name }),
        other => Ok(Answer::Explain(Explained {
            explanations: vec![format!("{other:?}")],
        })),
    }
}

/// The replies to a stream that is cut into pieces of this many bytes.
fn replies(stream: &[u8], piece: usize) -> Vec<u8> {
    let mut buffer = MessageBuffer::new(LENGTH_MAX);
    let mut replies = Vec::new();
    for piece in stream.chunks(piece) {
        buffer.push(piece);
        while let Ok(Some(message)) = buffer.next_message() {
            let response = respond(message, None, &mut echo);
            if let Some(reply) = response.reply {
                let (nul, json) = reply.split_last().expect("a reply is not empty");
                assert_eq!(*nul, 0);
                assert!(serde_json::from_slice::<serde_json::Value>(json).is_ok());
                replies.extend(reply);
            }
            if response.closes {
                return replies;
            }
        }
    }
    replies
}

fuzz_target!(|stream: &[u8]| {
    let piece = 1 + stream.first().map_or(0, |&byte| usize::from(byte));
    assert_eq!(replies(stream, piece), replies(stream, stream.len().max(1)));
});
