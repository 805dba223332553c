//! Links between the documents, and the table of contents of the site.

use std::fs;
use std::path::{Path, PathBuf};

use crate::root;

/// All pages in a folder and in those inside it.
pub fn documents(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let entries = entries.map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let inside = folders.iter().flat_map(|folder| documents(folder));
    let pages = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    files.into_iter().filter(pages).chain(inside).collect()
}

/// The anchors of a page, as GitHub makes them from its headings: lower-case letters, digits, `-` and `_`, spaces as `-`, and
/// a number behind one that was there before.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        if is_code || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        // Of a link in a heading only the text counts.
        let mut words = String::new();
        for (index, part) in heading.trim().split("](").enumerate() {
            let part = match index {
                0 => part,
                _ => part.split_once(')').unwrap_or(("", part)).1,
            };
            words += part;
        }
        let kept = words.to_lowercase();
        let kept = kept
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let mut candidates = std::iter::once(anchor.clone()).chain(numbered);
        let free = candidates.find(|name| !anchors.contains(name)).unwrap();
        anchors.push(free);
    }
    anchors
}

#[test]
fn anchors_are_made_of_headings() {
    let text = "# A *b* `c-d`, e_f\n```\n# no\n```\n## [G](h.md#i) j!\n#no\n## A b c-d e_f\n";
    assert_eq!(anchors(text), ["a-b-c-d-e_f", "g-j", "a-b-c-d-e_f-1"]);
}

#[test]
fn every_link_between_the_documents_leads_somewhere() {
    let mut files = vec![root().join("README.md"), root().join("CHANGELOG.md")];
    files.extend(documents(&root().join("docs")));
    let (mut followed, mut anchored) = (0, 0);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for rest in text.split("](").skip(1) {
            let link = rest.split(')').next().unwrap();
            if link.contains("://") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => file.clone(),
                path => file.parent().unwrap().join(path),
            };
            assert!(target.exists(), "{}: {link}", file.display());
            followed += 1;
            if anchor.is_empty() || target.extension().is_none_or(|it| it != "md") {
                continue;
            }
            let found = anchors(&fs::read_to_string(&target).unwrap());
            let is_there = found.iter().any(|name| name == anchor);
            assert!(is_there, "{}: {link} of {found:?}", file.display());
            anchored += 1;
        }
    }
    assert!(followed >= 15, "{followed}");
    assert!(anchored >= 100, "{anchored}");
}

/// `make site` shows the pages that docs/SUMMARY.md names, and pages of docs/ only there link to each other.
#[test]
fn summary_names_every_page_once() {
    let docs = root().join("docs");
    let text = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut named = Vec::new();
    for line in text.lines().filter(|line| line.contains("](")) {
        let link = line.split_once("](").unwrap().1.trim_end_matches(')');
        // Without a link: pages that `make site` generates. Outside: README.md and CHANGELOG.md.
        if !link.is_empty() && !link.starts_with("../") {
            named.push(docs.join(link));
        }
    }
    let mut pages = documents(&docs);
    pages.retain(|path| !path.ends_with("SUMMARY.md"));
    named.sort();
    pages.sort();
    assert_eq!(named, pages);
}
