//! Pages: Markdown and pictures, written into a folder.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

/// A file of the documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its path from the folder of all papers.
    pub path: String,
    /// Everything in it.
    pub text: String,
}

impl Page {
    /// Writes it below `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// As the file system says.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let path = folder.join(&self.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, &self.text)
    }
}

/// Something that a paper says, beside what comes out here.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Of what it is said.
    pub what: String,
    /// What the paper says.
    pub paper: String,
    /// What comes out here.
    pub ours: String,
    /// The reason, if they differ; otherwise unused.
    pub why: &'static str,
}

impl Claim {
    /// Two that have to be the same.
    pub fn new(what: &str, paper: impl ToString, ours: impl ToString) -> Self {
        Self {
            what: what.to_owned(),
            paper: paper.to_string(),
            ours: ours.to_string(),
            why: "",
        }
    }

    /// Two that may differ, for this reason.
    pub fn because(self, why: &'static str) -> Self {
        Self { why, ..self }
    }

    /// `agrees`, or that they differ and why.
    fn verdict(&self) -> String {
        match (self.paper == self.ours, self.why) {
            (true, _) => "agrees".to_owned(),
            (false, "") => "**differs**".to_owned(),
            (false, why) => format!("differs: {why}"),
        }
    }
}

/// The claims as a table.
pub fn claims(claims: &[Claim]) -> String {
    let row = |claim: &Claim| {
        let Claim {
            what, paper, ours, ..
        } = claim;
        vec![what.clone(), paper.clone(), ours.clone(), claim.verdict()]
    };
    let rows: Vec<_> = claims.iter().map(row).collect();
    table(&["", "paper", "shiftwork", ""], &rows)
}

/// A table in Markdown; a bar in a cell stays in it.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        writeln!(text, "| {} |", cells.join(" | ")).expect("a string takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_says_whether_it_holds() {
        let text = claims(&[
            Claim::new("a", 1, 1).because("never read"),
            Claim::new("b", 1, 2).because("time passed"),
            Claim::new("c|d", 1, 2),
        ]);
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| a | 1 | 1 | agrees |",
                "| b | 1 | 2 | differs: time passed |",
                "| c\\|d | 1 | 2 | **differs** |"
            ]
        );
    }
}
