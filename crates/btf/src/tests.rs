//! Tests of the reader, on valid, malformed and corrupted descriptions.

use shiftwork_model::RandomStream;

use super::samples::{MALFORMED, SOUND, Sample};
use super::*;

#[test]
fn function_with_implicit_parameter_and_no_twin_is_malformed() {
    assert_eq!(
        malformed_kfuncs(&Sample::of(MALFORMED)).unwrap(),
        ["bpf_iter_scx_dsq_new", "scx_bpf_kick_cpu"]
    );
    let sound = kfuncs(&Sample::of(SOUND)).unwrap();
    assert_eq!(sound.malformed, [""; 0]);
    assert_eq!(
        sound.all,
        [
            "__scx_bpf_select_cpu_and",
            "bpf_iter_scx_dsq_next",
            "scx_bpf_kick_cpu",
            "scx_bpf_now",
        ]
    );
}

#[test]
fn kfuncs_are_equal_in_both_byte_orders() {
    for functions in [SOUND, MALFORMED] {
        assert_eq!(
            kfuncs(&Sample::in_order(functions, true)),
            kfuncs(&Sample::in_order(functions, false))
        );
    }
}

#[test]
fn kernel_without_sched_ext_has_no_kfuncs() {
    let found = kfuncs(&Sample::of(&[("schedule", &[])])).unwrap();
    assert_eq!(found, Kfuncs::default());
}

#[test]
fn invalid_type_information_is_refused_with_its_defect() {
    let message = |bytes: &[u8]| kfuncs(bytes).unwrap_err().to_string();
    let with = |at: usize, bytes: &[u8]| {
        let mut sample = Sample::of(SOUND);
        sample[at..at + bytes.len()].copy_from_slice(bytes);
        message(&sample)
    };
    assert_eq!(message(b""), "the type information is truncated");
    assert_eq!(
        message(b"\x7fELF"),
        "no type information: it begins with 7f 45 instead of 9f eb"
    );
    assert_eq!(with(2, &[9]), "type information of version 9; supported: 1");
    assert_eq!(
        with(4, &[23]),
        "the header of the type information claims 23 bytes; expected at least 24 and at most the \
         length of the whole"
    );
    let total = Sample::of(SOUND).len() - HEADER;
    assert_eq!(
        with(8, &[255; 4]),
        format!(
            "the types of the type information claim {} bytes from byte 4294967295 on, of {total}",
            number(&Sample::of(SOUND), 12, false).unwrap()
        )
    );
    assert_eq!(
        with(HEADER + total - 1, b"x"),
        "the last name of the type information is not terminated"
    );
    assert_eq!(
        with(HEADER + 4, &[0, 0, 0, 31]),
        "the type information has a type of an unknown kind, flags 0x1f000000, at byte 0 of its types"
    );
    // The first type becomes a function whose name lies outside the names.
    let word = 999_u32.to_le_bytes();
    let mut sample = Sample::of(SOUND);
    sample[HEADER + 16 + 7] = FUNCTION as u8;
    sample[HEADER + 16..HEADER + 20].copy_from_slice(&word);
    assert_eq!(
        message(&sample),
        "a name in the type information begins at byte 999, beyond the end of the names"
    );
}

#[test]
fn function_whose_type_is_not_a_prototype_is_refused() {
    for target in [0, 1, 4_000_000_000] {
        let mut sample = Sample::of(&[("scx_bpf_now", &[])]);
        let types = number(&sample, 12, false).unwrap();
        let at = HEADER + types - 4;
        sample[at..at + 4].copy_from_slice(&u32::to_le_bytes(target));
        assert_eq!(kfuncs(&sample), Err(BtfError::NoPrototype(target)));
    }
}

#[test]
fn every_truncated_description_is_refused() {
    let whole = Sample::of(MALFORMED);
    for length in 0..whole.len() {
        assert!(kfuncs(&whole[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn corrupted_description_never_panics_the_reader() {
    let mut refused = 0;
    let rounds = 20_000;
    for seed in 1..=rounds {
        let mut random = RandomStream::new(seed, 0, 0);
        let mut bytes = Sample::of(if seed % 2 == 0 { SOUND } else { MALFORMED });
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = match random.below(3) {
                0 => 0,
                1 => 0xff,
                _ => random.bits() as u8,
            };
        }
        match std::panic::catch_unwind(|| kfuncs(&bytes)) {
            Ok(Ok(found)) => assert!(
                found.malformed.iter().all(|name| found.all.contains(name)),
                "seed {seed}: {found:?}"
            ),
            Ok(Err(error)) => {
                assert!(!error.to_string().is_empty(), "seed {seed}");
                refused += 1;
            }
            Err(_) => panic!("seed {seed}: the reader panicked on {bytes:02x?}"),
        }
    }
    assert!(
        refused > rounds / 10 && refused < rounds,
        "{refused} refused"
    );
}

#[test]
fn description_of_running_kernel_is_read() {
    let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else {
        println!("SKIPPED: this kernel has no /sys/kernel/btf/vmlinux");
        return;
    };
    let found = kfuncs(&bytes).unwrap();
    let has_sched_ext = std::path::Path::new("/sys/kernel/sched_ext").exists();
    assert_eq!(!found.all.is_empty(), has_sched_ext, "{found:?}");
}
