//! The real daemon on a machine that users share, some of them adversaries, by seed: members of the group reserve, change, overrun,
//! hold locks and busy the kernel, in delegated control groups and user namespaces, too. Programs that keep to their reservations
//! miss no deadline, root's system calls take no longer than is promised, no user gets more than its quotas, whatever is killed ends,
//! and the kernel complains of nothing.
//!
//! Steps are [drawn](draw) from the seed and [executed](execute) by processes that are [ordered](orders) to; after each one the state
//! is [judged](judge). Start reading at [`members_cannot_harm_others`].

mod draw;
mod execute;
mod judge;
pub mod orders;
mod process;
pub mod victim;
mod work;

use std::time::{Duration, Instant};

use shiftwork_model::RandomStream;

use self::execute::World;
use crate::kernel::is_realtime;
use crate::long;
use crate::standing::excess::timed;

/// The group that may connect.
const GROUP: u32 = 6_000;
/// The user of the programs that must not be harmed.
const VICTIM: u32 = 1_001;
/// Adversaries. The second may request signals and long periods, the last is not of the group.
const ANNA: u32 = 2_001;
const BERT: u32 = 2_002;
const OUTSIDER: u32 = 2_003;
/// The first of ten IDs that belong to [`ANNA`], in a user namespace.
const NAMESPACE: u32 = 200_000;
/// Where adversaries rename files, and root does.
const FOLDERS: [&str; 2] = ["/tmp/members/one", "/tmp/members/other"];
/// A program that has root's user ID when it is executed.
const SET_USER_ID: &str = "/tmp/members/set-user-id";

/// The processes of adversaries: their users, the users that are charged for them, and whether they are in a namespace.
const MEMBERS: [(u32, u32, bool); 5] = [
    (ANNA, ANNA, false),
    (ANNA, ANNA, false),
    (BERT, BERT, false),
    (ANNA, ANNA, true),
    (OUTSIDER, OUTSIDER, false),
];

/// What each user may have, in millionths of a CPU, and what may still count of ended and changed reservations.
const SHARE_PPM: u64 = 500_000;
const ENDED_PPM: u64 = 250_000;

/// So many steps are shown of a run that fails.
const SHOWN: usize = 12;

/// A seed of six seconds; in the long selection half an hour, seed after seed.
///
/// With `PREEMPT_RT` one seed: others ask for so much that a status takes ten seconds there, when clients give up.
#[allow(clippy::disallowed_methods, reason = "the duration is in real time")]
pub fn members_cannot_harm_others() -> Result<(), String> {
    let (seeds, span) = match (long(), is_realtime()?) {
        (true, false) => (1..=30, Duration::from_secs(60)),
        (true, true) => (1..=1, Duration::from_secs(15)),
        (false, _) => (1..=1, Duration::from_secs(6)),
    };
    for seed in seeds {
        let world = World::new(seed).map_err(|why| format!("seed {seed}, the begin: {why}"))?;
        let began = Instant::now();
        run(seed, world, || began.elapsed() < span)?;
    }
    crate::storms::has_no_complaint()
}

fn run(seed: u64, mut world: World, goes_on: impl Fn() -> bool) -> Result<(), String> {
    let mut random = RandomStream::new(seed, 0, 0);
    let mut done: Vec<String> = Vec::new();
    let mut step = 0;
    while goes_on() || step < 20 {
        step += 1;
        let (member, what) = draw::step(&mut random);
        let (executed, took) = timed(|| world.execute(member, &what));
        let said = executed.as_ref().map_or("failed", String::as_str);
        done.push(format!(
            "{step}: member {member}: {what:?}: {said}, after {took:?}"
        ));
        std::thread::sleep(Duration::from_micros(random.below(40_000)));
        let judged = executed.clone().and_then(|_| world.judge());
        judged.map_err(|why| {
            let last = done[done.len().saturating_sub(SHOWN)..].join("\n");
            format!("seed {seed}, step {step}: {why}\n{last}\n{}", world.log())
        })?;
    }
    let shown = world
        .end()
        .map_err(|why| format!("seed {seed}, the end after {step} steps: {why}"))?;
    println!("seed {seed}: {step} steps: {shown}");
    Ok(())
}
