//! What the slides conclude, and whether it follows here.

use super::derived::{Assumption, Derived};
use super::study::{FAMILIES, outcome};
use super::variants::Variant;
use crate::outcome::{Outcome, Series};
use shiftwork_analysis::verdicts::Criterion;

/// Both criteria.
pub const CRITERIA: [Criterion; 2] = [Criterion::Hard, Criterion::Soft];

/// What the study finds, by assumption.
pub struct Results(Vec<Outcome>);

impl Results {
    /// Runs the study under each assumption: of all families under the first, and of those of the pictures under the others.
    ///
    /// # Errors
    /// In words, if a set cannot be drawn.
    pub fn new(
        variants: &[Variant],
        derived: &Derived,
        assumed: &[Assumption],
    ) -> Result<Self, String> {
        let outcome = |(number, assumption): (usize, &Assumption)| {
            outcome(&derived.file(variants, assumption)?, number > 0)
        };
        let outcomes = assumed.iter().enumerate().map(outcome);
        Ok(Self(outcomes.collect::<Result<_, _>>()?))
    }

    /// All that was found under the first assumption.
    pub fn first(&self) -> &Outcome {
        &self.0[0]
    }

    /// What was found, cap by cap; nothing if it was not asked.
    pub fn series(&self, variant: &str, at: Question, assumption: usize) -> Series {
        let family = FAMILIES[at.family].study;
        let series = self.0[assumption].series(family, variant, at.criterion.name());
        series.unwrap_or_default()
    }

    /// The mean over all caps, in thousandths.
    pub fn mean(&self, variant: &str, at: Question, assumption: usize) -> u64 {
        self.series(variant, at, assumption).permille()
    }
}

/// A picture: the task sets, and what is asked of them.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The place in [`FAMILIES`].
    pub family: usize,
    /// What is asked.
    pub criterion: Criterion,
}

/// One variant that is said to do better than another, or no worse.
pub type Pair = (&'static str, &'static str);

/// What the slides say of the first of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It does better.
    Better,
    /// It does better, or no worse.
    NoWorse,
}

/// Something that the slides conclude about pairs of variants.
pub struct Finding {
    /// In their words.
    pub claim: &'static str,
    /// In one word.
    pub word: &'static str,
    /// What is said.
    pub said: Said,
    /// The family of their picture, by its place.
    pub family: usize,
    /// Better first.
    pub pairs: &'static [Pair],
}

/// Differences up to this, in thousandths of all sets, are none where the claim is that something is no worse.
const NONE: u64 = 10;

/// The findings about pairs, in the order of the slides.
pub const FINDINGS: [Finding; 5] = [
    Finding {
        claim: "dedicated interrupt handling was generally preferable (or no worse)",
        word: "interrupts",
        said: Said::NoWorse,
        family: 0,
        pairs: &[
            ("CE1", "CEm"),
            ("CQ1", "CQm"),
            ("S-CQ1", "S-CQm"),
            ("FE1", "FEm"),
        ],
    },
    Finding {
        claim: "staggered quanta were generally preferable (or no worse)",
        word: "staggering",
        said: Said::NoWorse,
        family: 1,
        pairs: &[("S-CQm", "CQm"), ("S-CQ1", "CQ1")],
    },
    Finding {
        claim: "event-driven scheduling was preferable in most cases",
        word: "events",
        said: Said::Better,
        family: 0,
        pairs: &[
            ("CEm", "CQm"),
            ("CEm", "S-CQm"),
            ("CE1", "CQ1"),
            ("CE1", "S-CQ1"),
        ],
    },
    Finding {
        claim: "the coarse-grained ready queue performed better than the hierarchical queue",
        word: "hierarchical",
        said: Said::Better,
        family: 0,
        pairs: &[("CEm", "HEm")],
    },
    Finding {
        claim: "the fine-grained ready queue performed marginally better than the coarse-grained queue if used together with \
                dedicated interrupt handling",
        word: "fine-grained",
        said: Said::Better,
        family: 2,
        pairs: &[("FE1", "CE1")],
    },
];

impl Finding {
    /// All that it compares, each once.
    pub fn compares(&self) -> Vec<&'static str> {
        let of_pairs = self.pairs.iter();
        let mut all: Vec<&'static str> = of_pairs
            .flat_map(|&(first, second)| [first, second])
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// In how many of its comparisons (pairs and both criteria) the first does better under this assumption, and in how
    /// many worse.
    pub fn compared(&self, results: &Results, assumption: usize) -> [usize; 2] {
        let slack = match self.said {
            Said::Better => 0,
            Said::NoWorse => NONE,
        };
        let mut counts = [0; 2];
        for &(first, second) in self.pairs {
            for criterion in CRITERIA {
                let at = Question {
                    family: self.family,
                    criterion,
                };
                let of = |name| results.mean(name, at, assumption);
                counts[0] += usize::from(of(first) > of(second) + slack);
                counts[1] += usize::from(of(second) > of(first) + slack);
            }
        }
        counts
    }

    /// Whether it holds under this assumption: better more often than worse, or worse in fewer than half of all
    /// comparisons.
    fn holds(&self, results: &Results, assumption: usize) -> bool {
        let [better, worse] = self.compared(results, assumption);
        match self.said {
            Said::Better => better > worse,
            Said::NoWorse => worse < self.pairs.len(),
        }
    }

    /// Whether it holds whatever is assumed.
    pub fn verdict(&self, results: &Results, assumptions: usize) -> &'static str {
        verdict((0..assumptions).map(|assumption| self.holds(results, assumption)))
    }
}

/// Of one answer for each assumption.
pub fn verdict(mut holds: impl Iterator<Item = bool> + Clone) -> &'static str {
    if holds.clone().all(|holds| holds) {
        "agrees"
    } else if holds.any(|holds| holds) {
        "not decidable from public data"
    } else {
        "differs"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_depends_on_assumptions_is_not_decided() {
        assert_eq!(verdict([true, true].into_iter()), "agrees");
        assert_eq!(verdict([false, false].into_iter()), "differs");
        let undecided = verdict([true, false].into_iter());
        assert_eq!(undecided, "not decidable from public data");
    }
}
