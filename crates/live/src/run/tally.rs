//! Notes of a run, each once, with the number of times that it was said.

use std::collections::BTreeMap;

/// Sentences and how often each was said: a restless task says the same again and again.
#[derive(Default)]
pub(super) struct Tally {
    said: BTreeMap<String, u64>,
    /// What was said beyond the most different sentences that are kept.
    more: u64,
}

impl Tally {
    const SENTENCES_MAX: usize = 20;

    pub(super) fn add(&mut self, sentence: String) {
        if self.said.len() < Self::SENTENCES_MAX || self.said.contains_key(&sentence) {
            *self.said.entry(sentence).or_default() += 1;
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
        self.said.into_iter().map(counted).chain(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_again_and_again_is_counted() {
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
