//! Everything that `analyze` finds out, and the answer.

use shiftwork_analysis::Steps;
use shiftwork_analysis::affinity::{AffinityLoss, affinity_loss};
use shiftwork_analysis::verdicts::{
    Account, Analysis, Answer as Known, Best, Criterion, Factor, PolicyAnalysis, analyse_under,
    largest_factor,
};
use shiftwork_model::{Span, TaskSet};
use shiftwork_policy::registry::Entry;
use shiftwork_taskset::overheads::OverheadFile;

use super::as_written::{self, AsWritten};
use super::candidate::{self, candidate};
use super::counterexample;
use super::error::QuestionError;
use super::price::price;
use super::proposal::{Proposal, proposal};
use super::remedy::{Remedies, Search};
use crate::admission::Admission;

/// What is asked about a task set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The policies to look at, in any case; empty: all of which tests speak, and the task set's own is the
    /// one that counts.
    pub policies: Vec<String>,
    /// What is asked of them.
    pub criterion: Criterion,
    /// For which releases.
    pub releases: Releases,
    /// How many steps each test may take for each policy before it gives up.
    pub max_steps: u64,
    /// Whether to find the largest factor on all costs under which it stays so.
    pub scale: bool,
    /// Whether to propose affinities.
    pub assign: bool,
    /// Whether to search for what would make the answer yes, where it is not.
    pub remedies: bool,
}

/// The releases for which a criterion is to be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Releases {
    /// Any releases of each task that are a period or more apart.
    Sporadic,
    /// Every period from the offset on, as the file says.
    AsWritten,
}

impl Releases {
    /// The name in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sporadic => "sporadic",
            Self::AsWritten => "as-written",
        }
    }
}

/// By how much costs may grow under one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The policy.
    pub policy: String,
    /// What is to stay so.
    pub criterion: Criterion,
    /// `None` if it is not so with any factor.
    pub factor: Option<Factor>,
    /// Whether the policy does not take the task set.
    pub is_refused: bool,
}

/// What is known of how late jobs may be after their deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tardiness {
    /// By so much at most, and of which task, by its place in the set; `None` if no number is known for some task, or if
    /// there are no tasks.
    Bounded(Option<(usize, Span)>),
    /// By ever more.
    Unbounded,
    /// No test decides.
    Unknown,
}

/// What is being worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Tests are asked.
    Tests,
    /// Schedules are simulated.
    Simulations,
    /// Factors on costs are searched under this policy.
    Factors(&'static str),
    /// Affinities are proposed.
    Affinities,
    /// What would make the answer yes is searched.
    Remedies,
}

/// Everything that is known.
pub struct Findings {
    /// Verdicts and bounds, policy by policy.
    pub analysis: Analysis,
    /// Under which overheads, in the same order.
    pub accounts: Vec<Account>,
    /// The overhead file, if there is one, with its path.
    pub overheads: Option<(String, OverheadFile)>,
    /// The policies that the user asks about, in lower case; the first names the admission. Empty if
    /// neither the command line nor the file names one.
    pub chosen: Vec<String>,
    /// Under the first of them, otherwise under `strong-edf`, which takes any affinities.
    pub admission: Admission,
    /// What is asked.
    pub criterion: Criterion,
    /// For which releases.
    pub releases: Releases,
    /// Of the releases in the file, whether all deadlines are met, in the order of `analysis`.
    pub as_written: Vec<AsWritten>,
    /// What would make the answer yes; `None` if it is, or if that is not asked.
    pub remedies: Option<Remedies>,
    /// If asked for, of the policies in the order of `analysis`.
    pub scales: Option<Vec<Scale>>,
    /// By policy, missed deadlines that a simulation shows where no test decides.
    pub examples: Vec<(String, String)>,
    /// If asked for, under the policy of the admission.
    pub proposal: Option<Proposal>,
    /// If affinities are asked for: what those of the file take, beside the reserve and whatever the policy; `None` also
    /// where no factor on all costs means anything, as without tasks.
    pub loss: Option<AffinityLoss>,
}

fn is_among(one: &Entry, entries: &[&Entry]) -> bool {
    entries.iter().any(|entry| entry.name == one.name)
}

/// Where no policy is named.
const TAKES_ANY: &str = "strong-edf";

impl Findings {
    /// Asks the analysis, with the overheads of this file for those policies for which it has some. `begins` is given each
    /// stage as it begins.
    ///
    /// # Errors
    /// If a policy is named that does not exist.
    pub fn of(
        question: &Question,
        set: &TaskSet,
        overheads: Option<(String, OverheadFile)>,
        begins: &mut dyn FnMut(Stage),
    ) -> Result<Self, QuestionError> {
        let of_file = set.scheduler.policy.iter();
        let names: Vec<&String> = match question.policies.is_empty() {
            true => of_file.collect(),
            false => question.policies.iter().collect(),
        };
        let mut chosen: Vec<&'static Entry> = Vec::new();
        for name in names {
            let named = candidate::named(name)?;
            if !is_among(named, &chosen) {
                chosen.push(named);
            }
        }
        let mut looked_at = match question.policies.is_empty() {
            true => candidate::all(),
            false => Vec::new(),
        };
        for named in &chosen {
            if !is_among(named, &looked_at) {
                looked_at.push(named);
            }
        }
        let file = overheads.as_ref().map(|(_, file)| file);
        let candidates: Vec<_> = looked_at
            .iter()
            .map(|named| (candidate(named, set), price(named, set, file)))
            .collect();
        let criterion = question.criterion;
        begins(Stage::Tests);
        let (mut analysis, accounts) = analyse_under(set, &candidates, question.max_steps);
        begins(Stage::Simulations);
        let mut examples = counterexample::search(set, &mut analysis);
        let as_written = as_written::decide(set, &mut analysis, &accounts, &mut examples);
        let scales = question
            .scale
            .then(|| scales(question, set, &looked_at, begins));
        let first = match chosen.first() {
            Some(named) => named,
            None => candidate::named(TAKES_ANY)?,
        };
        let proposal = match question.assign {
            true => {
                begins(Stage::Affinities);
                Some(proposal(first, set, criterion, question.max_steps)?)
            }
            false => None,
        };
        let (reserve, mut steps) = (set.scheduler.reserve, Steps::at_most(question.max_steps));
        let loss = question
            .assign
            .then(|| affinity_loss(set, reserve, &mut steps));
        let admission = admission(first, set);
        let names = chosen.iter().map(|named| named.name.to_owned()).collect();
        let mut findings = Self {
            analysis,
            accounts,
            overheads,
            examples,
            proposal,
            loss: loss.flatten(),
            admission,
            chosen: names,
            criterion,
            releases: question.releases,
            as_written,
            scales,
            remedies: None,
        };
        if chosen.is_empty() {
            chosen.push(first);
        }
        begins(Stage::Remedies);
        findings.remedies = findings.search_remedies(question, set, chosen);
        Ok(findings)
    }

    /// If asked for and the answer is not yes: what would make it so for those of these policies for which it is not.
    fn search_remedies(
        &self,
        question: &Question,
        set: &TaskSet,
        mut asked: Vec<&'static Entry>,
    ) -> Option<Remedies> {
        if !question.remedies || self.known() == Known::Schedulable {
            return None;
        }
        let policies = &self.analysis.policies;
        asked.retain(|named| {
            let found = policies.iter().find(|found| found.policy == named.name);
            found.is_none_or(|found| self.answer(self.criterion, found) != Known::Schedulable)
        });
        let search = Search {
            set,
            criterion: self.criterion,
            overheads: self.overheads.as_ref().map(|(_, file)| file),
            steps: question.max_steps,
        };
        Some(search.run(policies, &self.accounts, &asked))
    }

    /// The policies that the user asks about.
    pub fn asked(&self) -> impl Iterator<Item = &PolicyAnalysis> {
        let policies = self.analysis.policies.iter();
        policies.filter(|found| self.chosen.contains(&found.policy))
    }

    /// What is known of each policy, and under which overheads.
    pub fn accounted(&self) -> impl Iterator<Item = (&PolicyAnalysis, &Account)> {
        self.analysis.policies.iter().zip(&self.accounts)
    }

    /// The missed deadlines that a simulation shows under a policy, in words.
    pub fn example(&self, found: &PolicyAnalysis) -> Option<&str> {
        let mut examples = self.examples.iter();
        let example = examples.find(|(policy, _)| *policy == found.policy);
        example.map(|(_, words)| words.as_str())
    }

    /// How late jobs may be under a policy, which may be zero, for the releases that are asked about.
    pub fn tardiness(&self, set: &TaskSet, found: &PolicyAnalysis) -> Tardiness {
        let as_written = self.as_written(found).map(|known| known.answer);
        if self.releases == Releases::AsWritten && as_written == Some(Known::Schedulable) {
            return Tardiness::Bounded((!set.tasks.is_empty()).then_some((0, Span::ZERO)));
        }
        match found.soft.answer {
            Known::Unschedulable => return Tardiness::Unbounded,
            Known::Unknown => return Tardiness::Unknown,
            Known::Schedulable => {}
        }
        let late = |(place, best): (usize, &Option<Best>)| {
            let deadline = set.tasks[place].deadline.as_ns();
            let response = best.as_ref()?.response.as_ns();
            Some((place, Span::from_ns(response.saturating_sub(deadline))))
        };
        let bounds: Option<Vec<(usize, Span)>> = found.best.iter().enumerate().map(late).collect();
        // Of several that may be equally late the first.
        let latest = bounds
            .into_iter()
            .flatten()
            .rev()
            .max_by_key(|&(_, late)| late);
        Tardiness::Bounded(latest)
    }

    /// What is known of the releases in the file under a policy.
    pub fn as_written(&self, found: &PolicyAnalysis) -> Option<&AsWritten> {
        let mut all = self.analysis.policies.iter().zip(&self.as_written);
        let same = all.find(|(other, _)| other.policy == found.policy);
        same.map(|(_, known)| known)
    }

    /// What is known of a criterion under a policy, for the releases that are asked about.
    pub fn answer(&self, criterion: Criterion, found: &PolicyAnalysis) -> Known {
        self.answer_by(criterion, found).0
    }

    /// The same, with what decides.
    ///
    /// Of tardiness under the releases in the file, whatever is known of sporadic ones holds: a no of these is a demand
    /// that is too much in the long run.
    pub fn answer_by<'a>(
        &'a self,
        criterion: Criterion,
        found: &'a PolicyAnalysis,
    ) -> (Known, &'a [&'static str]) {
        let sporadic = found.judgement(criterion);
        let as_written = self
            .as_written(found)
            .filter(|_| self.releases == Releases::AsWritten)
            .filter(|known| match criterion {
                Criterion::Hard => true,
                Criterion::Soft => {
                    sporadic.answer == Known::Unknown && known.answer == Known::Schedulable
                }
            });
        match as_written {
            Some(known) => (known.answer, &known.by),
            None => (sporadic.answer, &sporadic.by),
        }
    }

    /// Whether all policies that are asked about do what is wanted of them; if none is named, whether any
    /// policy does.
    pub fn known(&self) -> Known {
        let answers = |asked: &mut dyn Iterator<Item = &PolicyAnalysis>| -> Vec<Known> {
            asked
                .map(|found| self.answer(self.criterion, found))
                .collect()
        };
        if self.chosen.is_empty() {
            return any(&answers(&mut self.analysis.policies.iter()));
        }
        every(&answers(&mut self.asked()))
    }
}

fn every(answers: &[Known]) -> Known {
    let is = |wanted| answers.contains(&wanted);
    match (is(Known::Unschedulable), is(Known::Unknown)) {
        (true, _) => Known::Unschedulable,
        (false, true) => Known::Unknown,
        (false, false) => Known::Schedulable,
    }
}

fn any(answers: &[Known]) -> Known {
    let is = |wanted| answers.contains(&wanted);
    match (is(Known::Schedulable), is(Known::Unknown)) {
        (true, _) => Known::Schedulable,
        (false, true) => Known::Unknown,
        (false, false) => Known::Unschedulable,
    }
}

fn admission(entry: &Entry, set: &TaskSet) -> Admission {
    let candidate = candidate(entry, set);
    let bound = candidate.bound.as_deref().map_err(String::as_str);
    Admission::of(entry, set, bound)
}

fn scales(
    question: &Question,
    set: &TaskSet,
    looked_at: &[&'static Entry],
    begins: &mut dyn FnMut(Stage),
) -> Vec<Scale> {
    let scale = |named: &&'static Entry| {
        begins(Stage::Factors(named.name));
        let criterion = question.criterion;
        let mut of = |set: &TaskSet| candidate(named, set);
        Scale {
            policy: named.name.to_owned(),
            criterion,
            is_refused: of(set).bound.is_err(),
            factor: largest_factor(set, &mut of, criterion, question.max_steps),
        }
    };
    looked_at.iter().map(scale).collect()
}
