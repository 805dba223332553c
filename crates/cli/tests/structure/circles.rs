//! No two files import each other in a circle. Parents and children apart: a module may use what its parts define, and
//! they what it defines.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources;

/// A module: its names from the root of its crate on, which is the empty list.
type Module = Vec<String>;

/// Imports between the modules of one crate, by the module that imports.
type Arrows = BTreeMap<Module, BTreeSet<Module>>;

/// The module that is this file, by its path below `crates`, and its crate.
fn module(path: &str) -> (String, Module) {
    let mut names: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
    if ["mod", "lib", "main"].contains(names.last().unwrap()) {
        names.pop();
    }
    let module = names[2..].iter().map(|&name| name.to_owned());
    (names[0].to_owned(), module.collect())
}

/// All paths in the code that begin with `crate::` or `super::`, without their groups in braces.
fn paths(code: &str) -> Vec<String> {
    let code: String = code.split_whitespace().collect::<Vec<_>>().join(" ");
    let starts = ["crate::", "super::"].map(|start| code.match_indices(start));
    let starts = starts.into_iter().flatten().map(|(at, _)| at);
    let begins = |at: &usize| !code[..*at].ends_with(|before: char| is_of_path(before));
    let mut found = Vec::new();
    for at in starts.filter(begins) {
        expand("", &code[at..], &mut found);
    }
    found
}

fn is_of_path(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == ':'
}

/// Adds the paths at the beginning of the text to those found; returns what follows.
fn expand<'t>(before: &str, text: &'t str, found: &mut Vec<String>) -> &'t str {
    let text = text.trim_start();
    let end = text.find(|letter| !is_of_path(letter));
    let (path, mut rest) = text.split_at(end.unwrap_or(text.len()));
    let path = format!("{before}{path}");
    if !(path.ends_with("::") && rest.starts_with('{')) {
        found.push(path);
        return rest;
    }
    loop {
        rest = expand(&path, &rest[1..], found);
        // Over ` as NAME`, and over what is no list of imports.
        let Some(end) = rest.find([',', '}', ';']) else {
            return "";
        };
        rest = &rest[end..];
        if !rest.starts_with(',') {
            return rest.get(1..).unwrap_or_default();
        }
    }
}

/// The innermost of these modules that the path names, as seen from `from`.
fn target(path: &str, from: &[String], modules: &BTreeSet<Module>) -> Module {
    let mut names = path.split("::").peekable();
    let mut module = match names.next_if_eq(&"crate") {
        Some(_) => Module::new(),
        None => from.to_vec(),
    };
    while names.next_if_eq(&"super").is_some() {
        module.pop();
    }
    for name in names {
        module.push(name.to_owned());
        if !modules.contains(&module) {
            module.pop();
            break;
        }
    }
    module
}

/// The modules that can be reached from this one.
fn reached<'a>(from: &'a Module, arrows: &'a Arrows) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        let next = arrows.get(module).into_iter().flatten();
        open.extend(next.filter(|next| found.insert(*next)));
    }
    found
}

/// The imports within each crate, but for those between parents and children.
fn arrows() -> BTreeMap<String, Arrows> {
    let sources = sources();
    let mut modules: BTreeMap<String, BTreeSet<Module>> = BTreeMap::new();
    for source in &sources {
        let (name, module) = module(&source.path);
        modules.entry(name).or_default().insert(module);
    }
    let mut arrows: BTreeMap<String, Arrows> = BTreeMap::new();
    for source in &sources {
        let (name, from) = module(&source.path);
        let to = paths(&source.code)
            .into_iter()
            .map(|path| target(&path, &from, &modules[&name]));
        let others = to.filter(|to| !from.starts_with(to) && !to.starts_with(&from));
        let others: Vec<Module> = others.collect();
        let all = arrows.entry(name).or_default();
        all.entry(from).or_default().extend(others);
    }
    arrows
}

#[test]
fn files_do_not_import_each_other_in_a_circle() {
    let mut count = 0;
    for (name, arrows) in arrows() {
        count += arrows.values().map(BTreeSet::len).sum::<usize>();
        let is_on_circle = |module: &&Module| reached(module, &arrows).contains(*module);
        let circles: Vec<_> = arrows.keys().filter(is_on_circle).collect();
        assert!(
            circles.is_empty(),
            "`{name}` has a circle among {circles:?}"
        );
    }
    assert!(count > 1_000, "{count}");
}

#[test]
fn imports_are_found_in_groups_and_in_code() {
    let code = "use crate::{a::{b, c as d}, e};\nuse super::super::f;\nlet x = crate::g::h(i);";
    let mut found = paths(code);
    found.sort_unstable();
    let expected = [
        "crate::a::b",
        "crate::a::c",
        "crate::e",
        "crate::g::h",
        "super::super::f",
    ];
    assert_eq!(found, expected);
    let modules = [vec![], vec!["a".to_owned()], vec!["e".to_owned()]].into();
    assert_eq!(target("crate::a::b", &[], &modules), ["a"]);
    assert_eq!(target("super::e::f", &["a".to_owned()], &modules), ["e"]);
}
