//! A 64-bit hash that is the same in every build, since hashes are kept from cycle to cycle.
//!
//! FNV-1a. Among n distinct keys two share a hash with odds of about n^2 / 2^65: one in forty
//! million for a million rows, and one row would then count as done too little.

#[derive(Clone, Copy)]
pub(super) struct Hash(u64);

impl Hash {
    pub(super) fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    pub(super) fn add(self, bytes: &[u8]) -> Hash {
        Hash(bytes.iter().fold(self.0, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        }))
    }

    pub(super) fn get(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_fnv_1a_and_stays_so() {
        assert_eq!(Hash::new().add(b"").get(), 0xcbf2_9ce4_8422_2325);
        assert_eq!(Hash::new().add(b"a").get(), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(Hash::new().add(b"foo").add(b"bar").get(), 0x8594_4171_f739_67e8);
    }
}
