//! The form of what lies beside the state for pilots: the offer, and each claim.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::form::{Blank, Form, disk_struct};
use crate::model::id::{JobId, ShardId};
use crate::model::pilot::{BadClaim, Claim, Claims, Offer, Offered};
use crate::model::units::{Secs, Time};

const OFFER: &str = "babysit/offer/v1";
const CLAIM: &str = "babysit/claim/v1";

disk_struct!(DiskOffer for Offer {
    instance: String,
    shards: Vec<Offered>;
    taken: Vec<(ShardId, u32, JobId)>
});
disk_struct!(DiskOffered for Offered {
    shard: ShardId,
    group: String,
    fence: u32,
    command: String,
    workdir: PathBuf,
    log_dir: PathBuf,
    env: Vec<(String, String)>,
    remaining: Secs,
    row: Secs;
});

disk_struct!(#[derive(Default)] DiskClaims for Claims { ; claims: Vec<Claim>, bad: Vec<BadClaim> });
// Owner and return are what the file system says; recordings have them too.
disk_struct!(DiskClaim for Claim {
    shard: ShardId,
    fence: u32,
    instance: String,
    job: JobId,
    token: String,
    host: String,
    at: Time;
    run: u32,
    place: u32,
    after: Secs,
    uid: u32,
    returned: bool
});
disk_struct!(DiskBadClaim for BadClaim { shard: ShardId, fence: u32, why: String; });

impl Form for (String, String) {
    type Disk<'a> = (<String as Form>::Disk<'a>, <String as Form>::Disk<'a>);
    fn to_disk(&self) -> Self::Disk<'_> {
        let (name, value) = self;
        (name.to_disk(), value.to_disk())
    }
    fn from_disk((name, value): Self::Disk<'_>) -> Self {
        (Form::from_disk(name), Form::from_disk(value))
    }
}

impl Form for (ShardId, u32, JobId) {
    type Disk<'a> = (<ShardId as Form>::Disk<'a>, u32, <JobId as Form>::Disk<'a>);
    fn to_disk(&self) -> Self::Disk<'_> {
        let (shard, fence, job) = self;
        (shard.to_disk(), *fence, job.to_disk())
    }
    fn from_disk((shard, fence, job): Self::Disk<'_>) -> Self {
        (Form::from_disk(shard), fence, Form::from_disk(job))
    }
}

#[cfg(test)]
impl super::dice::Roll for (ShardId, u32, JobId) {
    fn roll(dice: &mut super::dice::Dice) -> Self {
        use super::dice::Roll;
        (Roll::roll(dice), Roll::roll(dice), Roll::roll(dice))
    }
}

#[derive(Serialize, Deserialize)]
struct Tagged<T> {
    schema: String,
    #[serde(flatten)]
    what: T,
}

fn spell<T: Serialize>(schema: &str, what: T) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(&Tagged { schema: schema.to_owned(), what })?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn read<'a, T: Deserialize<'a>>(schema: &str, bytes: &'a [u8]) -> Result<T, String> {
    let found: Tagged<T> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match found.schema == schema {
        true => Ok(found.what),
        false => Err(format!("it is of the form {:?}, not {schema}", found.schema)),
    }
}

pub(in crate::store) fn offer_to_bytes(offer: &Offer) -> serde_json::Result<Vec<u8>> {
    spell(OFFER, offer.to_disk())
}

pub(in crate::store) fn offer_of(bytes: &[u8]) -> Result<Offer, String> {
    read::<DiskOffer<'_>>(OFFER, bytes).map(Form::from_disk)
}

pub(in crate::store) fn claim_to_bytes(claim: &Claim) -> serde_json::Result<Vec<u8>> {
    spell(CLAIM, claim.to_disk())
}

pub(in crate::store) fn claim_of(bytes: &[u8]) -> Result<Claim, String> {
    read::<DiskClaim<'_>>(CLAIM, bytes).map(Form::from_disk)
}
