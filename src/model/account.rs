//! What labs are charged for: runs and reservations (policy.md section 7).

use super::attempt::Pin;
use super::units::{GpuSeconds, Secs, Tflops, Time, Usage};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LabRecord {
    pub usage: Usage,
    /// Usage it was given at its start (newcomer = "floor"), not charged for anything.
    pub floor: Usage,
}

#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Reservation {
    pub pin: Pin,
    pub gpus: u32,
    pub since: Time,
    pub accrued_at: Time,
    /// Raw; weighted when charged.
    pub gpu_seconds: GpuSeconds,
}

/// A reservation that ended without having been charged yet.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Owed {
    pub reservation: Reservation,
    /// It led to a start.
    pub started: bool,
}

/// One line of `babysit usage`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Charge {
    pub kind: ChargeKind,
    pub lab: String,
    pub attempt: u32,
    /// Of a run: its start; of a reservation: its beginning. With `attempt` and `kind` the
    /// identity that keeps it from being charged twice.
    pub from: Time,
    /// From there to the end of the run or reservation.
    pub length: Secs,
    /// Of a reservation: what it held last; it may have grown and shrunk before.
    pub gpus: u32,
    pub gpu_seconds: GpuSeconds,
    pub tier: Option<String>,
    pub weight: Tflops,
    pub at: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChargeKind {
    Run,
    /// A reservation that led to its start.
    Reserved,
    /// A reservation that was released without one.
    Released,
}
