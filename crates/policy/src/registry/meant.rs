//! Which policies may be meant by a name that no policy has.

use alloc::string::String;
use alloc::vec::Vec;

use shiftwork_model::nearest_name;

/// What the literature and other tools call policies, in small letters and without separators, and the policies that this
/// may mean here. Names without a prefix are used for one processor, and for global scheduling too.
const LITERATURE: &[(&[&str], &[&str])] = &[
    (&["edf"], &["p-edf", "g-edf"]),
    (&["pedf", "partitionededf"], &["p-edf"]),
    (&["gedf", "globaledf"], &["g-edf"]),
    (&["cedf", "clusterededf"], &["c-edf"]),
    (
        &["npedf", "npgedf", "gnpedf", "edfnp", "gedfnp"],
        &["np-g-edf"],
    ),
    // Without `priority` tasks are ranked by deadline, which is by rate where deadlines are periods.
    (
        &["fp", "fps", "rm", "rms", "rma", "dm", "dms", "dma"],
        &["p-fp", "g-fp"],
    ),
    (&["ratemonotonic", "deadlinemonotonic"], &["p-fp", "g-fp"]),
    (&["pfp", "prm", "pdm", "partitionedfp"], &["p-fp"]),
    (&["gfp", "grm", "gdm", "globalfp", "globalrm"], &["g-fp"]),
    (&["cfp", "crm", "cdm"], &["c-fp"]),
    (&["npfp", "npgfp", "gnpfp", "fpnp", "gfpnp"], &["np-g-fp"]),
    (&["pfair", "pf", "pd"], &["pd2"]),
    (&["spd2", "staggeredpd2"], &["s-pd2"]),
    (&["lst", "lstf", "lsf", "mlf", "leastlaxity"], &["llf"]),
    (&["edfzl"], &["edzl"]),
    (&["fl", "gel"], &["g-fl"]),
    (&["apa", "sapa", "strong"], &["strong-edf", "strong-fp"]),
    (&["sapaedf", "apaedf"], &["strong-edf", "weak-edf"]),
    (&["sapafp", "apafp"], &["strong-fp", "weak-fp"]),
    (&["hpa", "hierarchical"], &["hpa-edf", "hpa-fp"]),
    (&["weak"], &["weak-edf", "weak-fp"]),
    (&["cbs", "dl", "deadline", "scheddeadline"], &["dl-linux"]),
    (&["partitioned"], &["p-edf", "p-fp"]),
    (&["global"], &["g-edf", "g-fp"]),
    (&["clustered"], &["c-edf", "c-fp"]),
];

/// The policies that `name` may mean, of those with these names: what the literature calls so, else the nearest name. Empty
/// if it resembles none.
pub(super) fn meant(name: &str, known: &[&'static str]) -> Vec<&'static str> {
    let is_part = |character: &char| character.is_ascii_alphanumeric();
    let plain: String = name.chars().filter(is_part).collect();
    let plain = plain.to_ascii_lowercase();
    let named = LITERATURE
        .iter()
        .find(|(names, _)| names.contains(&plain.as_str()));
    let of_literature = named.map_or(&[][..], |(_, policies)| policies);
    let found: Vec<&str> = of_literature
        .iter()
        .copied()
        .filter(|policy| known.contains(policy))
        .collect();
    match found.is_empty() {
        true => nearest_name(name, known.iter().copied())
            .into_iter()
            .collect(),
        false => found,
    }
}

#[cfg(test)]
mod tests {
    use super::super::POLICIES;
    use super::*;

    fn known() -> Vec<&'static str> {
        POLICIES.iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn names_of_the_literature_lead_to_policies_in_any_spelling() {
        let known = known();
        for (name, policies) in [
            ("EDF", &["p-edf", "g-edf"][..]),
            ("GEDF", &["g-edf"]),
            ("G_EDF", &["g-edf"]),
            ("rm", &["p-fp", "g-fp"]),
            ("DM", &["p-fp", "g-fp"]),
            ("FP", &["p-fp", "g-fp"]),
            ("NP-FP", &["np-g-fp"]),
            ("np-edf", &["np-g-edf"]),
            ("Pfair", &["pd2"]),
            ("PD^2", &["pd2"]),
            ("LSTF", &["llf"]),
            ("SCHED_DEADLINE", &["dl-linux"]),
            ("strong-efd", &["strong-edf"]),
            ("fastest", &[]),
            ("", &[]),
        ] {
            assert_eq!(meant(name, &known), policies, "{name}");
        }
        // A policy that cannot be used here is not proposed.
        assert_eq!(meant("EDF", &["g-edf", "pd2"]), ["g-edf"]);
    }

    #[test]
    fn each_name_of_the_literature_is_plain_unique_and_means_policies() {
        let known = known();
        let mut names: Vec<&str> = Vec::new();
        for (aliases, policies) in LITERATURE {
            for policy in *policies {
                assert!(known.contains(policy), "{policy}");
            }
            for alias in *aliases {
                let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
                assert!(alias.bytes().all(is_plain), "{alias}");
                assert!(!names.contains(alias), "{alias} is listed twice");
                assert!(!known.contains(alias), "{alias} is a policy");
                names.push(alias);
            }
        }
    }
}
