//! Which shard a pilot takes next. Pure, like all that is decided.

use crate::model::id::{JobId, ShardId};
use crate::model::pilot::{Claim, Offer, Offered};
use crate::model::units::{Secs, Time};

/// Fewer rows than this are not worth another start.
const ROWS: i64 = 2;
/// A program's start, on top of the rows: loading a model.
const START: Secs = Secs::minutes(1);

/// What a pilot tries to claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice<'o> {
    Offered(&'o Offered),
    /// The shard that its job was submitted for.
    Own,
}

/// Shards of its group in the order of the offer, longest first. From its second shard on, only those
/// of which some rows are done before the job's time is up. At its start its `own` comes last where it
/// is not offered: submitted after the offer was made, as a tick does with one that comes back.
pub fn choices<'o>(
    offer: &'o Offer,
    own: &ShardId,
    group: &str,
    goes_on: bool,
    now: Time,
    ends: Option<Time>,
) -> Vec<Choice<'o>> {
    let fits = |shard: &&Offered| {
        let need = Secs(shard.row.0.saturating_mul(ROWS)).min(shard.remaining);
        !goes_on || ends.is_none_or(|ends| now + need + START <= ends)
    };
    let offered = offer.shards.iter().filter(|shard| shard.group == group).filter(fits);
    let unknown = !goes_on && offer.shards.iter().all(|shard| shard.shard != *own);
    offered.map(Choice::Offered).chain(unknown.then_some(Choice::Own)).collect()
}

/// Does the offer, read again after the claim, still stand behind it? A tick may have booked it
/// meanwhile.
pub fn stands(offer: &Offer, claim: &Claim) -> bool {
    let offered = |shard: &Offered| shard.shard == claim.shard && shard.fence == claim.fence;
    let taken = (claim.shard.clone(), claim.fence, JobId(claim.job.0));
    offer.instance == claim.instance
        && (offer.shards.iter().any(offered) || offer.taken.contains(&taken))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::ShardId;

    fn offered(shard: &str, group: &str, remaining: i64, row: i64) -> Offered {
        Offered {
            shard: ShardId::new("find", shard),
            group: group.to_owned(),
            fence: 3,
            command: String::new(),
            workdir: "/".into(),
            log_dir: "/".into(),
            env: Vec::new(),
            remaining: Secs(remaining),
            row: Secs(row),
        }
    }

    #[test]
    fn the_next_one_must_be_worth_its_start_and_the_first_need_not() {
        let shards = vec![
            offered("long", "g", 90_000, 900),
            offered("other", "h", 80_000, 1),
            offered("short", "g", 300, 300),
        ];
        let offer = Offer { instance: "i".to_owned(), shards, taken: Vec::new() };
        let check = |goes_on: bool, left: Option<i64>, expected: &[&str]| {
            let ends = left.map(|left| Time(1000 + left));
            let own = ShardId::new("find", "short");
            let chosen = choices(&offer, &own, "g", goes_on, Time(1000), ends);
            let names: Vec<_> = chosen.iter().map(name).collect();
            assert_eq!(names, expected, "{goes_on} {left:?}");
        };
        check(false, Some(0), &["long", "short"]);
        check(true, None, &["long", "short"]);
        check(true, Some(1860), &["long", "short"]);
        check(true, Some(1859), &["short"]);
        check(true, Some(360), &["short"]);
        check(true, Some(359), &[]);
    }

    fn name<'o>(choice: &Choice<'o>) -> &'o str {
        match choice {
            Choice::Offered(offered) => offered.shard.shard.as_str(),
            Choice::Own => "its own",
        }
    }

    #[test]
    fn its_own_comes_last_at_its_start_where_it_is_not_offered() {
        let shards = vec![offered("a", "g", 900, 900), offered("b", "h", 900, 900)];
        let offer = Offer { instance: "i".to_owned(), shards, taken: Vec::new() };
        let check = |own: &str, goes_on: bool, expected: &[&str]| {
            let own = ShardId::new("find", own);
            let chosen = choices(&offer, &own, "g", goes_on, Time(0), None);
            let names: Vec<_> = chosen.iter().map(name).collect();
            assert_eq!(names, expected, "{own} {goes_on}");
        };
        check("a", false, &["a"]);
        // Offered to others now: it is not for this job any more.
        check("b", false, &["a"]);
        check("c", false, &["a", "its own"]);
        check("c", true, &["a"]);
    }

    #[test]
    fn a_claim_stands_while_its_shard_is_offered_by_its_number_or_booked_as_its_own() {
        let claim = |fence: u32, job: u64, instance: &str| Claim {
            shard: ShardId::new("find", "s0"),
            fence,
            instance: instance.to_owned(),
            job: JobId(job),
            token: String::new(),
            run: 0,
            place: 0,
            after: Secs(0),
            host: String::new(),
            at: Time(0),
            uid: 0,
            returned: false,
        };
        let mut offer = Offer {
            instance: "i".to_owned(),
            shards: vec![offered("s0", "g", 1, 1)],
            taken: Vec::new(),
        };
        assert!(stands(&offer, &claim(3, 7, "i")));
        assert!(!stands(&offer, &claim(2, 7, "i")) && !stands(&offer, &claim(3, 7, "j")));
        offer.shards.clear();
        assert!(!stands(&offer, &claim(3, 7, "i")));
        offer.taken.push((ShardId::new("find", "s0"), 3, JobId(7)));
        assert!(stands(&offer, &claim(3, 7, "i")) && !stands(&offer, &claim(3, 8, "i")));
    }
}
