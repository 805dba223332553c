//! The commands of the programs: calls with a few words, in which the answers come back.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use libbpf_rs::libbpf_sys;

/// Which command is called: `enum sw_command_number` of `bpf/shared.h`, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Configure,
    SetCache,
    Admit,
    Settle,
    FirstJob,
    NextJob,
    Affect,
    SetTriggers,
    Lock,
    SetMutex,
    Dismiss,
    Approve,
    SetPriority,
    SetServer,
    Tick,
    Assign,
    Heartbeat,
    SetSleeping,
    ProbeRecords,
    TaskSnapshot,
    Observe,
    StopObserving,
}

/// Words of `struct sw_command`: the arguments, and the number of the command.
const CALL_WORDS: usize = 8;

/// A program that has commands. Any thread may call them.
#[derive(Clone, Debug)]
pub(crate) struct Commands {
    program: Arc<OwnedFd>,
}

impl Commands {
    /// The commands of this program.
    ///
    /// # Errors
    /// If there are no file descriptors left.
    pub(super) fn new(program: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Self {
            program: Arc::new(program.try_clone_to_owned()?),
        })
    }

    /// Runs the command on `words`, which it may change.
    ///
    /// # Errors
    /// The error of the kernel, or of the command.
    pub(crate) fn call<const N: usize>(
        &self,
        command: Command,
        words: &mut [u64; N],
    ) -> io::Result<()> {
        const { assert!(N < CALL_WORDS, "the last word is the number") };
        let mut call = [0_u64; CALL_WORDS];
        call[..N].copy_from_slice(words);
        call[CALL_WORDS - 1] = command as u64;
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
            ctx_in: call.as_mut_ptr().cast::<c_void>(),
            ctx_size_in: size_of_val(&call) as u32,
            ..Default::default()
        };
        let program = self.program.as_raw_fd();
        #[expect(unsafe_code, reason = "calls libbpf")]
        // SAFETY: the context is `call`, as long as it says, which nothing else uses meanwhile; the descriptor is open as
        // long as `self` is.
        let error = unsafe { libbpf_sys::bpf_prog_test_run_opts(program, &raw mut options) };
        words.copy_from_slice(&call[..N]);
        if error != 0 {
            return Err(io::Error::from_raw_os_error(-error));
        }
        match options.retval as i32 {
            0 => Ok(()),
            refused => Err(io::Error::from_raw_os_error(-refused)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_commands_are_those_of_the_header() {
        let header = include_str!("../../../bpf/shared.h");
        let names = header.lines().filter_map(|line| {
            let name = line.strip_prefix("\tSW_COMMAND_")?.strip_suffix(',')?;
            Some(name.to_lowercase().replace('_', ""))
        });
        let names: Vec<String> = names.collect();
        let all = [
            Command::Configure,
            Command::SetCache,
            Command::Admit,
            Command::Settle,
            Command::FirstJob,
            Command::NextJob,
            Command::Affect,
            Command::SetTriggers,
            Command::Lock,
            Command::SetMutex,
            Command::Dismiss,
            Command::Approve,
            Command::SetPriority,
            Command::SetServer,
            Command::Tick,
            Command::Assign,
            Command::Heartbeat,
            Command::SetSleeping,
            Command::ProbeRecords,
            Command::TaskSnapshot,
            Command::Observe,
            Command::StopObserving,
        ];
        for (number, command) in all.into_iter().enumerate() {
            assert_eq!(command as usize, number);
            assert_eq!(format!("{command:?}").to_lowercase(), names[number]);
        }
        assert_eq!(all.len(), names.len());
    }
}
