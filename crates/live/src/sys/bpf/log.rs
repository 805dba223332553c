//! What libbpf and the verifier say while programs are loaded, and which line of it says why.

use libbpf_rs::PrintLevel;

/// Set, it makes an error show what libbpf and the verifier wrote, line by line.
pub(super) const LOG_VARIABLE: &str = "SHIFTWORK_VERIFIER_LOG";

/// The line of a log that says why: what the verifier said last before it counted, or else what libbpf
/// said first. `None` if the log is empty.
pub(super) fn reason_line(log: &str) -> Option<&str> {
    let lines: Vec<&str> = log.lines().map(str::trim).collect();
    let is_said = |line: &&str| !line.is_empty() && !line.starts_with("--");
    let count = lines
        .iter()
        .rposition(|line| line.starts_with("processed "));
    let verdict = count.and_then(|count| lines[..count].iter().copied().rfind(is_said));
    let line = verdict.or_else(|| lines.iter().copied().find(is_said))?;
    Some(line.strip_prefix("libbpf: ").unwrap_or(line))
}

/// What libbpf prints while it exists.
pub(super) struct Log;

static LOG: std::sync::Mutex<String> = std::sync::Mutex::new(String::new());

/// So much of the end of the log is kept.
const LOG_MAX: usize = 4000;

pub(super) fn capture_log() -> Log {
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, line| {
        if let Ok(mut log) = LOG.lock() {
            log.push_str(&line);
            let excess = log.len().saturating_sub(LOG_MAX);
            let cut = (excess..log.len()).find(|&at| log.is_char_boundary(at));
            log.drain(..cut.unwrap_or(0));
        }
    })));
    Log
}

impl Log {
    pub(super) fn take(&self) -> String {
        LOG.lock()
            .map(|mut log| std::mem::take(&mut *log))
            .unwrap_or_default()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        libbpf_rs::set_print(None);
    }
}

#[cfg(test)]
mod tests {
    use super::reason_line;

    #[test]
    fn of_a_long_log_the_verdict_is_told() {
        let log = "libbpf: prog 'tick': BPF program load failed: -EINVAL\n\
                   libbpf: prog 'tick': -- BEGIN PROG LOAD LOG --\n\
                   0: R1=ctx() R10=fp0\n12: (85) call bpf_nothing#77\n\
                   calling kernel function bpf_nothing is not allowed\n\
                   processed 13 insns (limit 1000000) max_states_per_insn 0\n\
                   -- END PROG LOAD LOG --\nlibbpf: failed to load object 'bpf'\n";
        let verdict = "calling kernel function bpf_nothing is not allowed";
        assert_eq!(reason_line(log), Some(verdict));
    }

    #[test]
    fn without_a_verdict_what_was_said_first_is_told() {
        let log = "libbpf: kernel does not know struct sched_ext_ops\nlibbpf: failed to load\n";
        let first = "kernel does not know struct sched_ext_ops";
        assert_eq!(reason_line(log), Some(first));
        assert_eq!(reason_line("\n"), None);
    }
}
