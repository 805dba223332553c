//! The thread that asks the daemon: however long an answer takes, keys are handled meanwhile.

use std::io;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::Builder;

use shiftwork_client::{Client, Error, Failure, socket_path};

use super::state::{Answer, Misses, Question};

/// How many misses of a thread are shown.
const MISSES_MAX: u32 = 20;

/// The thread, from the side of the screen.
pub struct Poller {
    questions: Sender<Question>,
    answers: Receiver<Answer>,
}

impl Poller {
    /// Begins with this connection.
    ///
    /// # Errors
    /// If there can be no further thread.
    pub fn begin(client: Client) -> io::Result<Self> {
        let (questions, asked) = channel::<Question>();
        let (answered, answers) = channel();
        let work = move || {
            let mut client = Some(client);
            while let Ok(question) = asked.recv() {
                if answered.send(answer(&mut client, question)).is_err() {
                    break;
                }
            }
        };
        // It is not waited for: a daemon that does not answer must not delay the end.
        Builder::new().name("poller".to_owned()).spawn(work)?;
        Ok(Self { questions, answers })
    }

    /// Asks. The answer comes by [`answer`](Self::answer).
    pub fn ask(&self, question: Question) {
        // If the thread has ended, `answer` says so.
        let _ = self.questions.send(question);
    }

    /// The next answer, if there is one.
    ///
    /// # Errors
    /// If the thread has ended, by a panic.
    pub fn answer(&self) -> Result<Option<Answer>, PollerEnded> {
        match self.answers.try_recv() {
            Ok(answer) => Ok(Some(answer)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(PollerEnded),
        }
    }
}

/// There will be no more answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollerEnded;

/// Asks the daemon, by a new connection if there is none.
fn answer(client: &mut Option<Client>, question: Question) -> Answer {
    let asked = connected(client).and_then(|client| ask(client, question));
    asked.unwrap_or_else(|failure| {
        *client = None;
        Answer::Failed(failure.to_string())
    })
}

fn connected(client: &mut Option<Client>) -> Result<&mut Client, Failure> {
    match client {
        Some(client) => Ok(client),
        None => Ok(client.insert(Client::connect(socket_path())?)),
    }
}

fn ask(client: &mut Client, question: Question) -> Result<Answer, Failure> {
    let status = Box::new(client.status()?);
    let misses = match question.misses_of {
        None => None,
        Some(task) => Some((task, misses(client, task)?)),
    };
    Ok(Answer::Answered { status, misses })
}

/// That the daemon has no such task any more, or is of a version without misses, is an answer, too.
fn misses(client: &mut Client, task: u32) -> Result<Misses, Failure> {
    match client.misses(task, Some(MISSES_MAX)) {
        Ok(misses) => Ok(Ok(misses)),
        Err(Failure::Agent(error @ (Error::Missing { .. } | Error::Forbidden { .. }))) => {
            Ok(Err(error.to_string()))
        }
        Err(Failure::Service(error)) => Ok(Err(error.to_string())),
        Err(failure) => Err(failure),
    }
}
