//! Messages of libbpf and the verifier while programs are loaded, and the line that gives the reason of a failure.

use libbpf_rs::PrintLevel;

/// If this variable is set, errors contain the messages of libbpf and the verifier.
pub(super) const LOG_VARIABLE: &str = "SHIFTWORK_VERIFIER_LOG";

/// The line of a log that gives the reason: the verifier's last message before its statistics, otherwise libbpf's
/// first message. `None` if the log is empty.
pub(super) fn reason_line(log: &str) -> Option<&str> {
    let lines: Vec<&str> = log.lines().map(str::trim).collect();
    let is_message = |line: &&str| !line.is_empty() && !line.starts_with("--");
    let count = lines
        .iter()
        .rposition(|line| line.starts_with("processed "));
    let verdict = count.and_then(|count| lines[..count].iter().copied().rfind(is_message));
    let line = verdict.or_else(|| lines.iter().copied().find(is_message))?;
    Some(line.strip_prefix("libbpf: ").unwrap_or(line))
}

/// Captures the messages of libbpf while it exists.
pub(super) struct Log;

static LOG: std::sync::Mutex<String> = std::sync::Mutex::new(String::new());

/// How many bytes of the end of the log are kept.
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
    fn reason_of_verifier_log_is_its_verdict() {
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
    fn reason_without_verdict_is_the_first_message() {
        let log = "libbpf: kernel does not know struct sched_ext_ops\nlibbpf: failed to load\n";
        let first = "kernel does not know struct sched_ext_ops";
        assert_eq!(reason_line(log), Some(first));
        assert_eq!(reason_line("\n"), None);
    }
}
