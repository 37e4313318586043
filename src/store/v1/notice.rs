//! The disk form of what the notify hook is to be told.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::form::{Blank, Form, disk_enum, disk_struct};
use crate::model::id::{JobId, ShardId};
use crate::model::notice::{Delivery, DeliveryEnd, Matter, Notice, Notices};
use crate::model::units::{Money, Time};

disk_struct!(#[derive(Default)] DiskNotices for Notices {
    ;
    waiting: Vec<Notice>,
    left_out: BTreeMap<String, u32>,
    probe_told: bool,
    rests: bool,
    number: u64,
    last: Option<Delivery>
});

disk_struct!(DiskNotice for Notice { at: Time, matter: Matter; shard: Option<ShardId> });

disk_enum!(DiskMatter for Matter {
    Done { rows: u32 },
    OverCap { spent: Money, cap: Money },
    Held { why: String },
    Refused { said: String },
    NoFit { asked: String, largest: String },
    Breaker { family: String, refused: u32, said: String },
    Stalled { job: JobId, since: Time, restarted: bool },
    Lingers { job: JobId, since: Time, ended: bool },
    BadNode { node: String, deaths: u32, until: Time },
    ProbeFailing { skipped: u32, why: String },
    Finished { done: u32, not_done: u32 },
});

disk_struct!(DiskDelivery for Delivery { at: Time, events: u32, end: DeliveryEnd; });

disk_enum!(DiskDeliveryEnd for DeliveryEnd { InHand, Delivered, Failed(said: String) });
