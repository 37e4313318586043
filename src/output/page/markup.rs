//! Elements and their text, written as HTML that is well-formed XML too.
//!
//! The one place that escapes: text and attribute values come in as they are and go out harmless,
//! whatever a shard, a log line or Slurm called itself. There is no way around it but a `style`,
//! which takes texts of this program only.

use super::super::format::is_unseen;

/// Elements without an end tag in HTML.
const VOID: [&str; 4] = ["meta", "link", "br", "hr"];

#[derive(Debug, Clone, PartialEq)]
pub struct El {
    tag: &'static str,
    attributes: Vec<(&'static str, String)>,
    inside: Vec<Inside>,
}

#[derive(Debug, Clone, PartialEq)]
enum Inside {
    El(El),
    Text(String),
    Style(&'static str),
}

pub fn el(tag: &'static str) -> El {
    El { tag, attributes: Vec::new(), inside: Vec::new() }
}

/// The same with a class.
pub fn classed(tag: &'static str, class: &str) -> El {
    el(tag).at("class", class)
}

/// A sentence; what stands between two backticks is code.
pub fn prose(tag: &'static str, text: &str) -> El {
    text.split('`').enumerate().fold(el(tag), |all, (n, part)| match n % 2 {
        0 => all.text(part),
        _ => all.put(el("code").text(part)),
    })
}

impl El {
    pub fn at(mut self, name: &'static str, value: impl ToString) -> El {
        self.attributes.push((name, value.to_string()));
        self
    }

    pub fn text(mut self, text: impl Into<String>) -> El {
        self.inside.push(Inside::Text(text.into()));
        self
    }

    pub fn put(mut self, inside: El) -> El {
        self.inside.push(Inside::El(inside));
        self
    }

    pub fn all(mut self, inside: impl IntoIterator<Item = El>) -> El {
        self.inside.extend(inside.into_iter().map(Inside::El));
        self
    }

    /// A style sheet of this program's own.
    pub fn style(mut self, text: &'static str) -> El {
        self.inside.push(Inside::Style(text));
        self
    }

    pub fn write(&self, out: &mut String) {
        out.push('<');
        out.push_str(self.tag);
        for (name, value) in &self.attributes {
            out.push(' ');
            out.push_str(name);
            out.push_str("=\"");
            escape(value, out);
            out.push('"');
        }
        if VOID.contains(&self.tag) {
            out.push_str("/>\n");
            return;
        }
        out.push('>');
        for inside in &self.inside {
            match inside {
                Inside::El(el) => el.write(out),
                Inside::Text(text) => escape(text, out),
                Inside::Style(text) => out.push_str(text),
            }
        }
        out.push_str("</");
        out.push_str(self.tag);
        out.push('>');
        // A line an element where blanks between elements say nothing: diffs stay readable.
        if matches!(self.tag, "section" | "figure" | "tr" | "li" | "p" | "h1" | "h2" | "rect") {
            out.push('\n');
        }
    }
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            // No XML, and nothing that a reader should meet.
            c if c.is_control() || is_unseen(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                out.push(' ');
            }
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(el: &El) -> String {
        let mut out = String::new();
        el.write(&mut out);
        out
    }

    #[test]
    fn hostile_text_stays_text() {
        let hostile = "</title><script>alert('1')</script>\" onload=\"x&\u{0}\u{1b}\u{202e}";
        let out = written(&el("b").at("title", hostile).text(hostile));
        assert_eq!(out.matches('<').count(), 2, "{out}");
        assert_eq!(out.matches('"').count(), 2, "{out}");
        assert!(!out.contains(['\u{0}', '\u{1b}', '\u{202e}']), "{out:?}");
        assert!(out.contains("&quot; onload=&quot;x&amp;   </b>"), "{out}");
    }

    #[test]
    fn void_elements_have_no_end_tag_and_others_always_have_one() {
        let out = written(&el("p").put(el("br")).put(el("td")));
        assert_eq!(out, "<p><br/>\n<td></td></p>\n");
    }
}
