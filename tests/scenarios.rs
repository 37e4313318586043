//! Scenarios of policy.md section 8 through the real tick on the simulated cluster.

#[path = "scenarios/field.rs"]
mod field;
#[path = "scenarios/harness.rs"]
mod harness;
