//! Reading the journal from its oldest line on, over the files that it was rotated into, and on
//! while others append and rotate.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use serde_json::Value;

use super::file::{beside, options};
use super::journal::KEPT;

/// Longest line that is read, in bytes; those that babysit writes are below a thousandth of it.
const LONGEST: u64 = 1 << 20;

/// The lines of a journal. An iterator that ends where nothing more is there for now: ask it again
/// later, and it goes on. What is no JSON (a line that a crash cut off) is left out.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    /// Files that are not read to their end, oldest first; the last is the journal itself.
    files: VecDeque<Open>,
}

#[derive(Debug)]
struct Open {
    reader: BufReader<File>,
    /// Stays the same when the file is renamed.
    inode: (u64, u64),
    /// What there is of the line that is being written.
    line: Vec<u8>,
}

impl Open {
    /// The next whole line; `None`: there is none yet.
    fn line(&mut self) -> io::Result<Option<Value>> {
        loop {
            let left = LONGEST.saturating_sub(self.line.len() as u64);
            let read = self.reader.by_ref().take(left).read_until(b'\n', &mut self.line)?;
            let whole = self.line.ends_with(b"\n");
            if !whole && read == 0 && left > 0 {
                return Ok(None);
            }
            if whole || self.line.len() as u64 >= LONGEST {
                let value = serde_json::from_slice(&self.line).ok();
                self.line.clear();
                if value.is_some() {
                    return Ok(value);
                }
            }
        }
    }
}

impl Lines {
    pub(super) fn of(path: PathBuf) -> Lines {
        Lines { path, files: VecDeque::new() }
    }

    /// Opens what was begun since the newest file that is known. From the newest to the oldest, so
    /// that one that is renamed meanwhile is met again rather than missed.
    fn look_for_newer(&mut self) -> io::Result<bool> {
        let known = self.files.back().map(|open| open.inode);
        let mut newer: Vec<Open> = Vec::new();
        for n in 0..=KEPT {
            let path =
                if n == 0 { self.path.clone() } else { beside(&self.path, &format!(".{n}")) };
            let file = match options().read(true).open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let meta = file.metadata()?;
            if !meta.is_file() {
                return Err(io::Error::other(format!("{} is no regular file", path.display())));
            }
            let inode = inode(&meta);
            if known == Some(inode) {
                break;
            }
            if newer.iter().all(|open| open.inode != inode) {
                newer.push(Open { reader: BufReader::new(file), inode, line: Vec::new() });
            }
        }
        let any = !newer.is_empty();
        self.files.extend(newer.into_iter().rev());
        Ok(any)
    }
}

fn inode(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

impl Iterator for Lines {
    type Item = io::Result<Value>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(open) = self.files.front_mut() {
                if let Some(line) = open.line().transpose() {
                    return Some(line);
                }
                // A newer one was there before this one was read to its end, so nobody writes on
                // it any more.
                if self.files.len() > 1 {
                    self.files.pop_front();
                    continue;
                }
            }
            match self.look_for_newer() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::json;

    use super::super::journal::{append, rotate};
    use super::*;

    #[track_caller]
    fn reads(lines: &mut Lines, expected: &[i32]) {
        let read: Vec<Value> = lines.map(|line| line.expect("readable")).collect();
        let expected: Vec<Value> = expected.iter().map(|n| json!(n)).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn a_reader_goes_on_over_rotations_and_misses_and_repeats_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal.jsonl");
        let put = |n: i32| append(&path, None, &[json!(n)]).expect("appends");
        let turn = || rotate(&path, 1).expect("rotates");
        let mut lines = Lines::of(path.clone());
        reads(&mut lines, &[]);
        put(1);
        reads(&mut lines, &[1]);
        // Written before it was rotated away, and not read yet.
        put(2);
        turn();
        reads(&mut lines, &[2]);
        put(3);
        turn();
        put(4);
        turn();
        put(5);
        reads(&mut lines, &[3, 4, 5]);
        reads(&mut lines, &[]);
        // More rotations than files are kept: what is gone is gone.
        for n in 6..12 {
            turn();
            put(n);
        }
        reads(&mut lines, &[8, 9, 10, 11]);
        reads(&mut Lines::of(path.clone()), &[8, 9, 10, 11]);
    }

    #[test]
    fn a_line_is_read_when_it_is_whole_and_a_torn_one_never() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal.jsonl");
        append(&path, None, &[json!(1)]).expect("appends");
        let mut lines = Lines::of(path.clone());
        let mut file = options().append(true).open(&path).expect("opens");
        file.write_all(b"[2").expect("writes");
        reads(&mut lines, &[1]);
        file.write_all(b"3]\n[4").expect("writes");
        let read: Vec<Value> = lines.by_ref().map(|line| line.expect("readable")).collect();
        assert_eq!(read, [json!([23])]);
        append(&path, None, &[json!(5)]).expect("appends");
        reads(&mut lines, &[5]);
        let long = vec![b'x'; 3 * LONGEST as usize];
        file.write_all(&long).expect("writes");
        append(&path, None, &[json!(6)]).expect("appends");
        reads(&mut lines, &[6]);
    }
}
