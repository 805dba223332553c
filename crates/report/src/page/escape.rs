//! Escaping of text from files for HTML and for JSON in a page.

/// Escapes text for element content and quoted attribute values of HTML.
pub fn html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(' '),
            control if control.is_control() => safe.extend(control.escape_default()),
            // These reorder the text around them.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                safe.extend(character.escape_default());
            }
            other => safe.push(other),
        }
    }
    safe
}

/// JSON for a `<script type="application/json">` element, without sequences that would end the element.
pub(super) fn json(value: &serde_json::Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_place() {
        assert_eq!(
            html("<b a='1' b=\"2\">&\u{7}\u{202e}"),
            "&lt;b a=&#39;1&#39; b=&quot;2&quot;&gt;&amp;\\u{7}\\u{202e}"
        );
        assert_eq!(
            json(&serde_json::json!("</script><!--")),
            "\"\\u003c/script>\\u003c!--\""
        );
    }
}
