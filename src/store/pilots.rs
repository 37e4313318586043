//! `<state>.pilots/`: the offer that ticks write and pilots read, and the claims that pilots write and
//! ticks read. No lock: pilots run on nodes that share nothing but the file system.
//!
//! A claim is a file that is made whole or not at all, under a name that only one can make (a hard
//! link, valid on NFS). Pilots only ever add files; only a tick removes them, and long after.

use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt as _, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::error::StoreError;
use super::file;
use super::v1::pilot;
use crate::model::id::ShardId;
use crate::model::pilot::{BadClaim, Claim, Claims, Offer};
use crate::model::units::{Secs, Time};

const OFFER: &str = "offer.json";
const CLAIM: &str = ".claim";
/// Beside a claim: it was given back before anything was begun.
const BACK: &str = ".back";

/// Bytes; a claim is a few hundred.
const MOST_OF_A_CLAIM: u64 = 16 << 10;
/// Bytes; ten thousand shards with long command lines.
const MOST_OF_AN_OFFER: u64 = 64 << 20;

/// An empty claim younger than this is one that is being written, where there are no hard links.
const TORN: Secs = Secs::minutes(1);

/// Claims that count no more are kept so long. A node whose view of the folder is older than that
/// could take one of their names for free.
const KEPT: Secs = Secs::hours(1);
/// And so many of each shard: whoever claims by a number that is long past sees a higher one.
const KEPT_EACH: u32 = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pilots {
    folder: PathBuf,
}

/// What came of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    Won,
    /// Somebody has it.
    Lost,
}

impl Pilots {
    pub fn at(folder: PathBuf) -> Pilots {
        Pilots { folder }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Replaces the offer where it says something else than before. True: it did.
    pub fn put_offer(&self, offer: &Offer) -> Result<bool, StoreError> {
        let path = self.folder.join(OFFER);
        let bytes = pilot::offer_to_bytes(offer);
        file::make_folder(&self.folder)?;
        // One that cannot be read is as good as another offer.
        if matches!(file::read(&path), Ok(Some((there, _))) if there == bytes) {
            return Ok(false);
        }
        file::replace_cache(&path, &bytes)?;
        Ok(true)
    }

    /// What may be taken, if `me` or root wrote it: its command lines are going to be run. `Err`: a
    /// sentence.
    pub fn offer(&self, me: u32) -> Result<Offer, String> {
        let path = self.folder.join(OFFER);
        let wrong = |what: String| format!("{}: {what}", path.display());
        let (bytes, owner) = read_small(&path, MOST_OF_AN_OFFER).map_err(wrong)?;
        if owner != me && owner != 0 {
            return Err(wrong(format!("it is of user {owner}, whose commands are not run here")));
        }
        pilot::offer_of(&bytes).map_err(wrong)
    }

    /// Makes the claim, unless there is one of this shard under the same or a higher number.
    ///
    /// # Errors
    /// A sentence: the folder cannot be written, so nobody knows whose the shard is.
    pub fn claim(&self, claim: &Claim) -> Result<Claimed, String> {
        let path = self.folder.join(name(&claim.shard, claim.fence, CLAIM));
        let bytes = pilot::claim_to_bytes(claim);
        let wrong = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        let Claim { host, job, run, place, .. } = claim;
        // No two processes share it, and one that a crash left is of the same process's kind.
        let own = format!(".{host}.{}.{job}.{run}.{place}.{}.tmp", std::process::id(), claim.fence);
        let fresh = self.folder.join(own);
        file::remove(&fresh).map_err(|error| error.to_string())?;
        let options = || {
            let mut options = file::options();
            options.write(true).create_new(true);
            options
        };
        let mut draft = options().open(&fresh).map_err(|error| wrong(&fresh, error))?;
        draft
            .write_all(&bytes)
            .and_then(|()| draft.sync_all())
            .map_err(|error| wrong(&fresh, error))?;
        let linked = std::fs::hard_link(&fresh, &path);
        // Over NFS the answer may be lost and the link there all the same.
        let won = linked.is_ok() || draft.metadata().is_ok_and(|meta| meta.nlink() == 2);
        file::remove(&fresh).map_err(|error| error.to_string())?;
        match linked {
            Ok(()) => {}
            Err(_) if won => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(Claimed::Lost),
            Err(error) if has_no_links(&error) => match options().open(&path) {
                Ok(file) => file
                    .write_all_at(&bytes, 0)
                    .and_then(|()| file.sync_all())
                    .map_err(|error| wrong(&path, error))?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Ok(Claimed::Lost);
                }
                Err(error) => return Err(wrong(&path, error)),
            },
            Err(error) => return Err(wrong(&path, error)),
        }
        // A number of long ago, whose file is gone by now, is nobody's.
        let mut all = self.names().map_err(|error| wrong(&self.folder, error))?;
        if all.any(|(shard, fence, _)| shard == claim.shard && fence > claim.fence) {
            self.give_back(claim)?;
            return Ok(Claimed::Lost);
        }
        Ok(Claimed::Won)
    }

    /// Says of a claim that nothing was begun under it.
    pub fn give_back(&self, claim: &Claim) -> Result<(), String> {
        let path = self.folder.join(name(&claim.shard, claim.fence, BACK));
        match file::options().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(format!("{}: {error}", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// The claims that are `wanted` by shard and number, in the order of their names.
    ///
    /// # Errors
    /// The folder cannot be read. One that is not there holds none.
    pub fn claims(
        &self,
        wanted: impl Fn(&ShardId, u32) -> bool,
        now: Time,
    ) -> Result<Claims, StoreError> {
        let names = match self.names() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Claims::default()),
            names => names.map_err(StoreError::io("list it", &self.folder))?,
        };
        let mut found: Vec<_> = names.filter(|(shard, fence, _)| wanted(shard, *fence)).collect();
        found.sort();
        let mut claims = Claims::default();
        for (shard, fence, suffix) in &found {
            if suffix != CLAIM {
                continue;
            }
            let returned = found.binary_search(&(shard.clone(), *fence, BACK.to_owned())).is_ok();
            match self.read(shard, *fence, now) {
                Ok(None) => {}
                Ok(Some(claim)) => claims.claims.push(Claim { returned, ..claim }),
                Err(why) => {
                    claims.bad.push(BadClaim { shard: shard.clone(), fence: *fence, why });
                }
            }
        }
        Ok(claims)
    }

    /// One claim; `None`: it is gone, or not written yet.
    fn read(&self, shard: &ShardId, fence: u32, now: Time) -> Result<Option<Claim>, String> {
        let path = self.folder.join(name(shard, fence, CLAIM));
        let meta = match path.symlink_metadata() {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        if meta.is_file() && meta.len() == 0 && now.since(Time(meta.mtime())) < TORN {
            return Ok(None);
        }
        let (bytes, uid) = read_small(&path, MOST_OF_A_CLAIM)?;
        let claim = pilot::claim_of(&bytes)?;
        if (&claim.shard, claim.fence) != (shard, fence) {
            return Err(format!("it claims {} by number {}", claim.shard, claim.fence));
        }
        Ok(Some(Claim { uid, ..claim }))
    }

    /// Removes claims that count no more. `next`: by shard, the number that the next claim carries;
    /// `None` keeps all of a shard's. Call it when what says so has been saved.
    pub fn forget(
        &self,
        next: impl Fn(&ShardId) -> Option<u32>,
        now: Time,
    ) -> Result<(), StoreError> {
        let names = match self.names() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            names => names.map_err(StoreError::io("list it", &self.folder))?,
        };
        for (shard, fence, suffix) in names {
            let past = next(&shard).is_some_and(|next| fence.saturating_add(KEPT_EACH) < next);
            if !past {
                continue;
            }
            let path = self.folder.join(name(&shard, fence, &suffix));
            let old = path.symlink_metadata();
            if old.is_ok_and(|meta| now.since(Time(meta.mtime())) >= KEPT && !meta.is_dir()) {
                file::remove(&path)?;
            }
        }
        Ok(())
    }

    fn names(&self) -> io::Result<impl Iterator<Item = (ShardId, u32, String)>> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            all.extend(entry?.file_name().to_str().and_then(meant));
        }
        Ok(all.into_iter())
    }
}

/// `find+s0.3.claim`: letters of a family's name and of a shard's have no plus sign.
fn name(shard: &ShardId, fence: u32, suffix: &str) -> String {
    format!("{}+{}.{fence}{suffix}", shard.family, shard.shard)
}

fn meant(name: &str) -> Option<(ShardId, u32, String)> {
    let suffix = [CLAIM, BACK].into_iter().find(|suffix| name.ends_with(suffix))?;
    let (shard, fence) = name.strip_suffix(suffix)?.rsplit_once('.')?;
    let shard = ShardId::parse(&shard.replacen('+', "/", 1))?;
    let fence = fence.parse().ok().filter(|number: &u32| number.to_string() == fence)?;
    Some((shard, fence, suffix.to_owned()))
}

/// The whole of a regular file that is no larger than `most`, and whose it is.
fn read_small(path: &Path, most: u64) -> Result<(Vec<u8>, u32), String> {
    let open = file::options().read(true).open(path);
    let file = open.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => "it is a symlink".to_owned(),
        _ => error.to_string(),
    })?;
    let meta = file.metadata().map_err(|error| error.to_string())?;
    if !meta.is_file() {
        return Err("it is no regular file".to_owned());
    }
    if meta.len() > most {
        return Err(format!("it has {} bytes, {most} at most are read", meta.len()));
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok((bytes, meta.uid()))
}

fn has_no_links(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    [Errno::PERM, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP, Errno::MLINK]
        .into_iter()
        .any(|e| errno == Some(e))
}

#[cfg(test)]
mod tests;
