//! Reading the values of options: lists of CPUs and numbers of bytes.

use shiftwork_model::CpuSet;

/// Reads the CPUs of a list like `0-3,7`, at least one.
pub fn cpu_list(text: &str) -> Result<CpuSet, String> {
    let cpus: CpuSet = text.parse().map_err(|error| format!("{error}"))?;
    if cpus.is_empty() {
        return Err(format!(
            "`{text}` names no CPU; write a list like `2-5` or `0,2,4`"
        ));
    }
    Ok(cpus)
}

/// Reads a number of bytes, like `64KiB`.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "KiB" => Some(10),
        "MiB" => Some(20),
        "GiB" => Some(30),
        "B" => Some(0),
        "" if digits == "0" => Some(0),
        _ => None,
    };
    let number = digits.parse::<u64>().ok();
    let bytes = number
        .zip(shift)
        .and_then(|(number, shift)| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| {
        format!(
            "`{text}` is no number of bytes; write it with its unit, like `4KiB` or `1MiB`, or `0`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_need_a_unit() {
        let sizes = ["0", "64KiB", "3MiB", "2GiB", "17B"].map(size);
        assert_eq!(sizes, [0, 64 << 10, 3 << 20, 2 << 30, 17].map(Ok));
        for text in [
            "",
            "64",
            "64k",
            "64KB",
            "KiB",
            "-1KiB",
            "99999999999GiB",
            "1.5MiB",
            "\u{b5}",
        ] {
            assert!(size(text).unwrap_err().contains("like `4KiB`"), "{text}");
        }
    }
}
