//! What `babysit status --json` says.

use serde_json::Value;

pub struct Status(pub Value);

impl Status {
    pub fn shards(&self) -> &[Value] {
        self.0["shards"].as_array().expect("shards")
    }

    pub fn shard(&self, id: &str) -> &Value {
        let found = self.shards().iter().find(|shard| shard["id"] == id);
        found.unwrap_or_else(|| panic!("no shard {id} in {:#}", self.0))
    }

    pub fn state(&self, id: &str) -> &str {
        self.shard(id)["state"].as_str().expect("a word")
    }

    pub fn why(&self, id: &str) -> &str {
        self.shard(id)["why"].as_str().expect("a sentence")
    }

    pub fn rows(&self, id: &str) -> u64 {
        self.shard(id)["rows"]["done"].as_u64().expect("a number")
    }

    pub fn number(&self, id: &str, key: &str) -> u64 {
        self.shard(id)[key].as_u64().expect("a number")
    }

    pub fn job(&self, id: &str) -> Option<u64> {
        self.shard(id)["job"]["id"].as_u64()
    }

    pub fn count(&self, state: &str) -> usize {
        self.shards().iter().filter(|shard| shard["state"] == state).count()
    }

    pub fn all_done(&self) -> bool {
        self.count("done") == self.shards().len()
    }

    pub fn total(&self, key: &str) -> f64 {
        self.0["totals"][key].as_f64().expect("a number")
    }
}
