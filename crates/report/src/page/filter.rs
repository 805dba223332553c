//! The search box, by which a page of many tasks shows those with some names only.

use super::RunView;
use super::foremost::Foremost;
use crate::units;

/// Pages of at most so many tasks need no search.
const FEW: usize = 12;

/// The search box; a script shows it and does the rest (`assets/filter.js`).
pub(super) fn section(views: &[RunView<'_>], foremost: &Foremost) -> String {
    if foremost.tasks() <= FEW || views.is_empty() {
        return String::new();
    }
    format!(
        "<search class=\"filter scripted\" hidden>\n<label for=\"filter\">Find tasks</label>\n\
         <input id=\"filter\" type=\"search\" autocomplete=\"off\" spellcheck=\"false\" \
         placeholder=\"parts of names, apart by spaces\" aria-describedby=\"found\">\n\
         <output id=\"found\" for=\"filter\">{} tasks</output>\n\
         <span class=\"hint\">key / to come here, Esc to show all</span>\n</search>\n",
        units::count(foremost.tasks() as u64)
    )
}
