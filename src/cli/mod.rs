//! The commands: wiring only. What is decided is decided in planning; what is said, in output.

pub mod figures;
