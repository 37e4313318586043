//! Colours as values: a piece of text and how it is meant, turned into escape codes at the very end
//! or not at all.

/// How a piece of text is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    /// Headings.
    Strong,
    /// What matters least: done shards, units.
    Faint,
    Good,
    /// Worth a look soon.
    Warn,
    /// A person is needed.
    Bad,
    Cool,
}

/// Whether escape codes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    pub colour: bool,
}

impl Paint {
    pub const OFF: Paint = Paint { colour: false };

    pub fn put(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Strong => "1",
            Tone::Faint => "2",
            Tone::Good => "32",
            Tone::Warn => "33",
            Tone::Bad => "1;31",
            Tone::Cool => "36",
        };
        if self.colour && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}
