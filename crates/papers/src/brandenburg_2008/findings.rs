//! What the slides of 2008 conclude, as predicates over the curves of the study.
//!
//! A curve counts by its *share*: the part of all task sets of a family that were shown to be schedulable, each
//! load counting as much as any other, which is the area under the curve. *Most* of the six families are four at least.

use std::collections::BTreeMap;

/// The policies of the slides, in their order.
pub const MEASURED: [&str; 6] = ["PD2", "S-PD2", "G-EDF", "NP-G-EDF", "C-EDF", "P-EDF"];

/// The families of the slides, those first of which the talk shows pictures.
pub const FAMILIES: [&str; 6] = [
    "bimodal-light",
    "bimodal-medium",
    "bimodal-heavy",
    "uniform-light",
    "uniform-medium",
    "uniform-heavy",
];

/// Most of the six families.
const MOST: usize = 4;

/// The shares of all curves, from 0 to 1.
#[derive(Clone, Debug, Default)]
pub struct Shares(BTreeMap<(String, String, &'static str), f64>);

impl Shares {
    /// Notes the share of a family under a policy; `criterion` is `hard` or `soft`.
    pub fn note(&mut self, family: &str, policy: &str, criterion: &'static str, share: f64) {
        let key = (family.to_owned(), policy.to_owned(), criterion);
        self.0.insert(key, share);
    }

    /// The share; 0 if it was not noted.
    fn of(&self, family: &str, policy: &str, criterion: &'static str) -> f64 {
        let key = (family.to_owned(), policy.to_owned(), criterion);
        self.0.get(&key).copied().unwrap_or(0.0)
    }

    /// How many others of the six have a share that is not smaller than this one's.
    fn above(&self, family: &str, policy: &str, criterion: &'static str) -> usize {
        let own = self.of(family, policy, criterion);
        let others = MEASURED.iter().filter(|&&other| other != policy);
        others
            .filter(|other| self.of(family, other, criterion) >= own)
            .count()
    }

    /// The largest share of the six.
    fn best(&self, family: &str, criterion: &'static str) -> f64 {
        let of = |policy: &&str| self.of(family, policy, criterion);
        MEASURED.iter().map(of).fold(0.0, f64::max)
    }

    /// The families in which the policy comes among the first `places` of the six.
    fn among(&self, places: usize, policy: &str, criterion: &'static str) -> Vec<&'static str> {
        self.families(|family| self.above(family, policy, criterion) < places)
    }

    /// The families of which this is so.
    fn families(&self, is_so: impl Fn(&str) -> bool) -> Vec<&'static str> {
        FAMILIES
            .into_iter()
            .filter(|family| is_so(family))
            .collect()
    }

    /// The shares of these policies in every family, in words.
    fn listed(&self, policies: &[&str], criterion: &'static str) -> String {
        let of_family = |family: &&str| {
            let shares = policies.iter().map(|policy| {
                let share = self.of(family, policy, criterion);
                format!("{policy} {:.1}", share * 100.0)
            });
            let shares: Vec<String> = shares.collect();
            format!("{family}: {}", shares.join(", "))
        };
        let all: Vec<String> = FAMILIES.iter().map(of_family).collect();
        all.join("; ")
    }
}

/// Whether something follows here, and from what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// Whether it does.
    pub holds: bool,
    /// The numbers that decide.
    pub figures: String,
}

/// Something that the slides conclude.
pub struct Finding {
    /// In their words.
    pub claim: &'static str,
    /// What is taken to be meant.
    pub meaning: &'static str,
    /// Whether it follows.
    pub decide: fn(&Shares) -> Decided,
    /// Why it does not, if that is so.
    pub why: &'static str,
}

/// What is said of hard deadlines and of bounded tardiness, in the order of the slides.
pub const FINDINGS: [Finding; 10] = [
    Finding {
        claim: "HRT: PEDF usually wins",
        meaning: "P-EDF has the largest share of the six in most families",
        decide: |shares| most(shares.among(1, "P-EDF", "hard"), shares, &MEASURED, "hard"),
        why: "",
    },
    Finding {
        claim: "HRT: exception: lots of heavy tasks (makes bin-packing hard)",
        meaning: "of all six families P-EDF has its smallest share where all tasks are heavy, and does not win there (another of the six has \
                  as large a one)",
        decide: |shares| {
            let own = |family: &str| shares.of(family, "P-EDF", "hard");
            let is_least = FAMILIES
                .iter()
                .all(|family| own("uniform-heavy") <= own(family));
            Decided {
                holds: is_least && shares.above("uniform-heavy", "P-EDF", "hard") > 0,
                figures: shares.listed(&["P-EDF", "C-EDF"], "hard"),
            }
        },
        why: "",
    },
    Finding {
        claim: "HRT: S-PD2 usually does well",
        meaning: "it is among the best two of the six in most families",
        decide: |shares| most(shares.among(2, "S-PD2", "hard"), shares, &["S-PD2"], "hard"),
        why: "it is, without heavy tasks. Each quantum of 1 ms pays for a tick, a decision, a switch and a refill, some 170 µs with 40 tasks; so a \
              task that uses more than about 0.82 of a CPU does not fit, and one is enough. The slides do not say how the paper charges quanta",
    },
    Finding {
        claim: "HRT: staggering has an impact",
        meaning: "S-PD2 has a larger share than PD2 in every family",
        decide: |shares| {
            let larger = |family: &str| {
                shares.of(family, "S-PD2", "hard") > shares.of(family, "PD2", "hard")
            };
            let families = shares.families(larger);
            Decided {
                holds: families.len() == FAMILIES.len(),
                figures: shares.listed(&["S-PD2", "PD2"], "hard"),
            }
        },
        why: "",
    },
    Finding {
        claim: "HRT: PD2 and GEDF are quite poor",
        meaning: "in most families both have less than half of the best share of the six",
        decide: |shares| {
            let half = |family: &str| {
                let half = shares.best(family, "hard") / 2.0;
                let mut both = ["PD2", "G-EDF"].iter();
                both.all(|policy| shares.of(family, policy, "hard") < half)
            };
            most(shares.families(half), shares, &["PD2", "G-EDF"], "hard")
        },
        why: "",
    },
    Finding {
        claim: "SRT: PEDF is not as effective as before, but still OK in light-mostly cases",
        meaning: "P-EDF wins in fewer families than under hard deadlines, and has half of the best share at least where tasks are light \
                  (bimodal-light, uniform-light, uniform-medium)",
        decide: |shares| {
            let [hard, soft] = ["hard", "soft"].map(|one| shares.among(1, "P-EDF", one).len());
            let light = ["bimodal-light", "uniform-light", "uniform-medium"];
            let half = |family: &&str| shares.best(family, "soft") / 2.0;
            let mut light = light
                .iter()
                .map(|family| shares.of(family, "P-EDF", "soft") >= half(family));
            Decided {
                holds: soft < hard && light.all(|is_half| is_half),
                figures: format!(
                    "wins {hard} families hard, {soft} soft; {}",
                    shares.listed(&["P-EDF"], "soft")
                ),
            }
        },
        why: "",
    },
    Finding {
        claim: "SRT: CEDF performs the best in most cases",
        meaning: "C-EDF has the largest share of the six in most families",
        decide: |shares| most(shares.among(1, "C-EDF", "soft"), shares, &MEASURED, "soft"),
        why: "it is where most of the demand is heavy, or second to NP-G-EDF; elsewhere it is some percent behind P-EDF, which packs by first fit with \
              room for overheads (the slides do not say how it packed). Under C-EDF a release costs four times as much, and each job is charged for bursts \
              of all releases in its cluster",
    },
    Finding {
        claim: "SRT: S-PD2 still performs generally well",
        meaning: "it has three quarters of the best share of the six at least in most families",
        decide: |shares| {
            let well = |family: &str| {
                shares.of(family, "S-PD2", "soft") >= 0.75 * shares.best(family, "soft")
            };
            most(shares.families(well), shares, &["S-PD2"], "soft")
        },
        why: "",
    },
    Finding {
        claim: "SRT: GEDF is still negatively impacted by higher scheduling costs",
        meaning: "though without overheads it loses nothing, G-EDF has a smaller share than C-EDF in most families",
        decide: |shares| {
            let less = |family: &str| {
                shares.of(family, "G-EDF", "soft") < shares.of(family, "C-EDF", "soft")
            };
            most(shares.families(less), shares, &["G-EDF", "C-EDF"], "soft")
        },
        why: "",
    },
    Finding {
        claim: "SRT: NP-GEDF and GEDF are about the same",
        meaning: "their shares are at most ten percent of all sets apart in every family",
        decide: |shares| {
            let apart = |family: &str| {
                let of = |policy| shares.of(family, policy, "soft");
                (of("NP-G-EDF") - of("G-EDF")).abs()
            };
            let close = shares.families(|family| apart(family) <= 0.1);
            Decided {
                holds: close.len() == FAMILIES.len(),
                figures: shares.listed(&["G-EDF", "NP-G-EDF"], "soft"),
            }
        },
        why: "NP-G-EDF is ahead: its jobs are never preempted, so that they are charged half of the decisions, half of the bursts of interrupts, and no refills",
    },
];

/// Whether these are most families.
fn most(
    families: Vec<&'static str>,
    shares: &Shares,
    policies: &[&str],
    criterion: &'static str,
) -> Decided {
    let named = match families.is_empty() {
        true => "none".to_owned(),
        false => families.join(", "),
    };
    Decided {
        holds: families.len() >= MOST,
        figures: format!(
            "so in {} of 6 ({named}); {}",
            families.len(),
            shares.listed(policies, criterion)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the slides have it: hard, then soft, in the order of [`MEASURED`] and everywhere but where tasks are heavy.
    const LIGHT: [[f64; 6]; 2] = [
        [0.1, 0.5, 0.2, 0.1, 0.4, 0.7],
        [0.5, 0.8, 0.6, 0.65, 0.9, 0.7],
    ];
    const HEAVY: [[f64; 6]; 2] = [
        [0.1, 0.5, 0.2, 0.1, 0.4, 0.3],
        [0.5, 0.8, 0.6, 0.65, 0.9, 0.3],
    ];

    fn slides() -> Shares {
        let mut shares = Shares::default();
        for family in FAMILIES {
            let all = match family.ends_with("heavy") {
                true => HEAVY,
                false => LIGHT,
            };
            for (criterion, all) in ["hard", "soft"].into_iter().zip(all) {
                for (policy, share) in MEASURED.into_iter().zip(all) {
                    shares.note(family, policy, criterion, share);
                }
            }
        }
        shares
    }

    fn holding(shares: &Shares) -> Vec<bool> {
        let holds = |finding: &Finding| (finding.decide)(shares).holds;
        FINDINGS.iter().map(holds).collect()
    }

    #[test]
    fn all_holds_of_what_the_slides_say() {
        assert_eq!(holding(&slides()), [true; FINDINGS.len()]);
    }

    #[test]
    fn each_fails_where_what_it_speaks_of_is_otherwise() {
        // By finding: the policy and criterion with a changed share in all families, and that
        // share.
        let changes = [
            ("C-EDF", "hard", 0.75),
            ("P-EDF", "hard", 0.6),
            ("S-PD2", "hard", 0.15),
            ("PD2", "hard", 0.5),
            ("G-EDF", "hard", 0.45),
            ("P-EDF", "soft", 0.1),
            ("S-PD2", "soft", 0.95),
            ("S-PD2", "soft", 0.6),
            ("G-EDF", "soft", 0.95),
            ("NP-G-EDF", "soft", 0.75),
        ];
        for (place, (policy, criterion, share)) in changes.into_iter().enumerate() {
            let mut shares = slides();
            for family in FAMILIES {
                shares.note(family, policy, criterion, share);
            }
            let claim = FINDINGS[place].claim;
            assert!(!holding(&shares)[place], "{claim} still holds");
        }
    }

    #[test]
    fn nothing_is_found_of_nothing() {
        let alike = holding(&Shares::default());
        // That one does not win, that one has half of nothing, and that two are about the same, is true of nothing.
        let wins = [0, 2, 3, 4, 5, 6, 8];
        assert!(wins.iter().all(|&place| !alike[place]), "{alike:?}");
    }

    #[test]
    fn figures_are_those_that_decide() {
        let decided = (FINDINGS[0].decide)(&slides());
        let begin = "so in 4 of 6 (bimodal-light, bimodal-medium, uniform-light, uniform-medium); bimodal-light: PD2 10.0, S-PD2 50.0";
        assert!(decided.figures.starts_with(begin), "{}", decided.figures);
    }
}
