//! The form of what lies beside the state for pilots: the offer, and each claim.

use std::path::PathBuf;

use serde::Deserialize;

use super::form::{Blank, Form, disk_struct};
use super::json;
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
    fn spell(&self, out: &mut Vec<u8>) {
        let (name, value) = self;
        json::list(*b"[]", out, |out| {
            name.spell(out);
            out.push(b',');
            value.spell(out);
        });
    }
    fn from_disk((name, value): Self::Disk<'_>) -> Self {
        (Form::from_disk(name), Form::from_disk(value))
    }
}

impl Form for (ShardId, u32, JobId) {
    type Disk<'a> = (<ShardId as Form>::Disk<'a>, u32, <JobId as Form>::Disk<'a>);
    fn spell(&self, out: &mut Vec<u8>) {
        let (shard, fence, job) = self;
        json::list(*b"[]", out, |out| {
            shard.spell(out);
            out.push(b',');
            fence.spell(out);
            out.push(b',');
            job.spell(out);
        });
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

#[derive(Deserialize)]
struct Tagged<T> {
    schema: String,
    #[serde(flatten)]
    what: T,
}

/// What it is stands in front, among its fields.
fn spell<T: Form>(schema: &str, what: &T) -> Vec<u8> {
    let mut fields = Vec::new();
    what.spell(&mut fields);
    let mut bytes = b"{\"schema\":".to_vec();
    json::text(schema, &mut bytes);
    bytes.push(b',');
    bytes.extend(fields.into_iter().skip(1));
    bytes.push(b'\n');
    bytes
}

fn read<'a, T: Deserialize<'a>>(schema: &str, bytes: &'a [u8]) -> Result<T, String> {
    let found: Tagged<T> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match found.schema == schema {
        true => Ok(found.what),
        false => Err(format!("it is of the form {:?}, not {schema}", found.schema)),
    }
}

pub(in crate::store) fn offer_to_bytes(offer: &Offer) -> Vec<u8> {
    spell(OFFER, offer)
}

pub(in crate::store) fn offer_of(bytes: &[u8]) -> Result<Offer, String> {
    read::<DiskOffer<'_>>(OFFER, bytes).map(Form::from_disk)
}

pub(in crate::store) fn claim_to_bytes(claim: &Claim) -> Vec<u8> {
    spell(CLAIM, claim)
}

pub(in crate::store) fn claim_of(bytes: &[u8]) -> Result<Claim, String> {
    read::<DiskClaim<'_>>(CLAIM, bytes).map(Form::from_disk)
}
