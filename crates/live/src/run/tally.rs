//! Notes of a run, each with the number of times that it occurred.

use std::collections::BTreeMap;

/// Notes and how often each occurred: a task may make the same request again and again.
#[derive(Default)]
pub(super) struct Tally {
    counts: BTreeMap<String, u64>,
    /// How often other notes occurred, beyond the number of different ones that are kept.
    more: u64,
}

impl Tally {
    const SENTENCES_MAX: usize = 20;

    pub(super) fn add(&mut self, sentence: String) {
        if self.counts.len() < Self::SENTENCES_MAX || self.counts.contains_key(&sentence) {
            *self.counts.entry(sentence).or_default() += 1;
        } else {
            self.more += 1;
        }
    }

    pub(super) fn sentences(self) -> impl Iterator<Item = String> {
        let counted = |(sentence, times): (String, u64)| match times {
            1 => sentence,
            _ => format!("{sentence} ({times} times)"),
        };
        let more = (self.more > 0).then(|| format!("and {} requests more were refused", self.more));
        self.counts.into_iter().map(counted).chain(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_notes_are_counted() {
        let mut tally = Tally::default();
        for sentence in 0..22 {
            tally.add(format!("{sentence:02}"));
        }
        tally.add(String::from("03"));
        let sentences: Vec<String> = tally.sentences().collect();
        assert_eq!(sentences.len(), Tally::SENTENCES_MAX + 1);
        assert_eq!(sentences[2..4], ["02", "03 (2 times)"]);
        assert_eq!(sentences[20], "and 2 requests more were refused");
    }
}
