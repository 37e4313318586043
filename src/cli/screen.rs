//! The terminal of `status --watch`: raw keys, the other screen, and both put back however it ends.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::output::board::Key;

use super::exit::Stop;

/// Puts the terminal back when it is dropped: at the end, on an error, on a panic.
pub struct Screen {
    before: Termios,
    ended: Arc<AtomicBool>,
}

impl Screen {
    pub fn open() -> Result<Screen, Stop> {
        let wrong = |error: &dyn std::fmt::Display| {
            Stop::failed("terminal", format!("the terminal cannot be set up: {error}"))
        };
        let ended = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&ended)).map_err(|e| wrong(&e))?;
        }
        let before = tcgetattr(std::io::stdin()).map_err(|e| wrong(&e))?;
        let mut raw = before.clone();
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        // A read ends after a tenth of a second, with or without a key.
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 1;
        let screen = Screen { before, ended };
        tcsetattr(std::io::stdin(), OptionalActions::Now, &raw).map_err(|e| wrong(&e))?;
        write("\u{1b}[?1049h\u{1b}[?25l").map_err(|e| wrong(&e))?;
        Ok(screen)
    }

    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Columns and lines, as they are now.
    pub fn size(&self) -> (usize, usize) {
        let size = tcgetwinsize(std::io::stdout()).ok();
        let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
        size.map_or((80, 24), |size| (usize::from(size.ws_col), usize::from(size.ws_row)))
    }

    pub fn draw(&self, lines: &[String]) -> Result<(), Stop> {
        let mut text = String::from("\u{1b}[H");
        for (i, line) in lines.iter().enumerate() {
            if i > 0 {
                text.push_str("\r\n");
            }
            text.push_str(line);
            text.push_str("\u{1b}[K");
        }
        text.push_str("\u{1b}[J");
        write(&text).map_err(|_| Stop::ClosedPipe)
    }

    /// What was typed meanwhile; waits a tenth of a second for it.
    pub fn typed(&self) -> Vec<u8> {
        let mut bytes = [0; 64];
        // An interrupted read is no key.
        let n = std::io::stdin().lock().read(&mut bytes).unwrap_or(0);
        bytes.iter().take(n).copied().collect()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nobody is left to be told where this fails.
        tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before).unwrap_or_default();
        write("\u{1b}[?25h\u{1b}[?1049l").unwrap_or_default();
    }
}

fn write(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
}

/// The keys in what was read; `None`: quit. While a filter is typed, letters are letters.
pub fn keys(bytes: &[u8], typing: bool) -> Option<Vec<Key>> {
    let text = String::from_utf8_lossy(bytes);
    let named = [
        ("\u{1b}[A", Key::Up),
        ("\u{1b}[B", Key::Down),
        ("\u{1b}[5~", Key::PageUp),
        ("\u{1b}[6~", Key::PageDown),
        ("\u{1b}[H", Key::First),
        ("\u{1b}[F", Key::Last),
        ("\u{1b}", Key::Escape),
    ];
    let mut keys = Vec::new();
    let (mut rest, mut typing) = (text.as_ref(), typing);
    'next: while let Some(c) = rest.chars().next() {
        for (code, key) in named {
            if let Some(after) = rest.strip_prefix(code) {
                keys.push(key);
                rest = after;
                continue 'next;
            }
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        keys.push(match c {
            '\r' | '\n' => {
                typing = false;
                Key::Toggle
            }
            '\u{7f}' | '\u{8}' => Key::Erase,
            c if typing && !c.is_control() => Key::Type(c),
            'q' => return None,
            'k' => Key::Up,
            'j' => Key::Down,
            'g' => Key::First,
            'G' => Key::Last,
            ' ' => Key::Toggle,
            'a' => Key::ToggleAll,
            '/' => {
                typing = true;
                Key::Filter
            }
            _ => continue,
        });
    }
    Some(keys)
}
