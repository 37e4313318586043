//! sinfo: every node once, with its GPUs by model and how many are in use.

use crate::model::cluster::{Node, NodeGpus};

use super::rows::{RowEnd, for_each, shown};
use super::{gres, state};

/// A column of sinfo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Node,
    Partition,
    State,
    Gres,
    GresUsed,
    Cpus,
    Memory,
    AllocMem,
    /// Read past.
    Ignored,
}

use Column as C;

/// What is asked for, in this order. StateLong carries the same signs as StateCompact, in words that
/// need less guessing.
pub const COLUMNS: [(Column, &str, &str); 8] = [
    (C::Node, "NodeList", "NODELIST"),
    (C::Partition, "Partition", "PARTITION"),
    (C::State, "StateLong", "STATE"),
    (C::Gres, "Gres", "GRES"),
    (C::GresUsed, "GresUsed", "GRES_USED"),
    (C::Cpus, "CPUsState", "CPUS(A/I/O/T)"),
    (C::Memory, "Memory", "MEMORY"),
    (C::AllocMem, "AllocMem", "ALLOCMEM"),
];

/// Arguments: hidden partitions too, and one row per node and partition.
pub fn argv(separator: &str) -> Vec<String> {
    let columns = COLUMNS.map(|(_, name, _)| format!("{name}:{separator}"));
    vec!["-a".to_owned(), "-N".to_owned(), "-O".to_owned(), columns.join(",")]
}

/// Reads the answer to [`argv`]; nodes in the order of their first row.
pub fn parse(text: &str, separator: &str) -> Result<Vec<Node>, String> {
    let columns = COLUMNS.map(|(column, _, _)| column);
    let mut nodes = Nodes::default();
    let mut header = true;
    for_each(text, separator, columns.len(), RowEnd::SeparatorNewline, |cells| {
        if !std::mem::take(&mut header) {
            nodes.add(cells, &columns);
            return Ok(());
        }
        for (cell, (_, name, expected)) in cells.iter().zip(COLUMNS) {
            if cell.trim() != expected {
                return Err(format!(
                    "column {name} has the header {}, not {expected:?}",
                    shown(cell)
                ));
            }
        }
        Ok(())
    })?;
    Ok(nodes.list)
}

/// Rows of any columns, without a header.
pub fn parse_rows(text: &str, separator: &str, columns: &[Column]) -> Result<Vec<Node>, String> {
    let mut nodes = Nodes::default();
    for_each(text, separator, columns.len(), RowEnd::SeparatorNewline, |cells| {
        nodes.add(cells, columns);
        Ok(())
    })?;
    Ok(nodes.list)
}

#[derive(Default)]
struct Nodes {
    list: Vec<Node>,
    places: std::collections::HashMap<String, usize>,
}

impl Nodes {
    fn add(&mut self, cells: &[&str], columns: &[Column]) {
        let mut node = Node::default();
        let (mut gres, mut used, mut memory, mut taken) = ("", "", None, None);
        for (cell, column) in cells.iter().zip(columns) {
            let cell = cell.trim();
            match column {
                C::Node => node.name = cell.to_owned(),
                // The star marks the default partition.
                C::Partition => node.partitions = vec![cell.trim_end_matches('*').to_owned()],
                C::State => node.state = cell.to_owned(),
                C::Gres => gres = cell,
                C::GresUsed => used = cell,
                C::Cpus => node.cpus_idle = cell.split('/').nth(1).and_then(|n| n.parse().ok()),
                C::Memory => memory = cell.parse::<u64>().ok(),
                C::AllocMem => taken = cell.parse::<u64>().ok(),
                C::Ignored => {}
            }
        }
        // An empty partition has a row without a node.
        if node.name.is_empty() || node.name.eq_ignore_ascii_case("n/a") {
            return;
        }
        node.usable = state::node(&node.state).usable();
        node.gpus = gpus(gres, used);
        node.mem_idle = memory.zip(taken).map(|(all, taken)| all.saturating_sub(taken));
        match self.places.get(&node.name).and_then(|at| self.list.get_mut(*at)) {
            None => {
                self.places.insert(node.name.clone(), self.list.len());
                self.list.push(node);
            }
            Some(known) => merge(known, node),
        }
    }
}

/// One node in several partitions. The rows should agree; where they do not, the worse one counts.
fn merge(known: &mut Node, other: Node) {
    let Node { name: _, partitions, usable, state, gpus, cpus_idle, mem_idle } = other;
    for partition in partitions {
        if !known.partitions.contains(&partition) {
            known.partitions.push(partition);
        }
    }
    if usable != known.usable && state::worse(usable, known.usable) == usable {
        known.usable = usable;
        known.state = state;
    }
    if gpus != known.gpus {
        known.gpus = None;
    }
    known.cpus_idle = known.cpus_idle.zip(cpus_idle).map(|(a, b)| a.min(b));
    known.mem_idle = known.mem_idle.zip(mem_idle).map(|(a, b)| a.min(b));
}

/// Capacity and use by model. `None` where either is unreadable or they do not belong together: GPUs
/// whose use is unknown must not look free. MIG slices are left out, as they are no whole GPUs.
fn gpus(gres: &str, used: &str) -> Option<Vec<NodeGpus>> {
    let there = gres::of_node(gres).filter(|gres| !gres.torn)?;
    let used = gres::of_node(used).filter(|gres| !gres.torn)?;
    let all_idle = !used.gpus.is_empty() && used.total() == 0;
    let mut left = used.gpus.clone();
    let mut found = Vec::new();
    for gpu in there.gpus {
        let at = left.iter().position(|other| match (&other.model, &gpu.model) {
            (Some(a), Some(b)) => a.eq_ignore_ascii_case(b),
            (a, b) => a == b,
        });
        let used = match at {
            Some(at) => left.remove(at).count,
            None if all_idle || gpu.count == 0 => 0,
            None => return None,
        };
        if !gpu.model.as_deref().is_some_and(gres::is_slice) {
            found.push(NodeGpus { model: gpu.model, capacity: gpu.count, used });
        }
    }
    left.iter().all(|gpu| gpu.count == 0).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cluster::Usable;

    #[test]
    fn use_by_model() {
        let check = |gres, used, expected: &str| {
            let text = gpus(gres, used).map_or("unknown".to_owned(), |gpus| {
                let one = |g: &NodeGpus| {
                    format!("{}={}/{}", g.model.as_deref().unwrap_or("-"), g.used, g.capacity)
                };
                gpus.iter().map(one).collect::<Vec<_>>().join(" ")
            });
            assert_eq!(text, expected, "{gres} {used}");
        };
        check("gpu:a:2,gpu:b:2", "gpu:a:2(IDX:0-1),gpu:b:0(IDX:N/A)", "a=2/2 b=0/2");
        check("gpu:4(S:0-1)", "gpu:(null):3(IDX:0-2)", "-=3/4");
        check("gpu:A30:4", "gpu:a30:1(IDX:0)", "A30=1/4");
        check("gpu:a:2,gpu:b:2", "gpu:0", "a=0/2 b=0/2");
        check("(null)", "gpu:0", "");
        check("N/A", "N/A", "");
        check("gpu:a:4,gpu:1g.10gb:7", "gpu:a:1(IDX:0),gpu:1g.10gb:7(IDX:1-7)", "a=1/4");
        // The use of a model is not told, or of one that is not there.
        check("gpu:a:2,gpu:b:2", "gpu:a:2(IDX:0-1)", "unknown");
        check("gpu:a:2", "gpu:2", "unknown");
        check("gpu:a:2", "N/A", "unknown");
        check("gpu:a:2", "gpu:a:2(IDX:0-1)1637", "unknown");
        check("gpu:a:2,shard:h1x", "gpu:a:0", "unknown");
    }

    #[test]
    fn a_table_of_other_columns_is_no_answer_of_sinfo() {
        let table = |headers: &[&str]| headers.join("|") + "|\n";
        let headers = COLUMNS.map(|(_, _, header)| header);
        assert_eq!(parse(&table(&headers), "|"), Ok(Vec::new()));
        let mut swapped = headers;
        swapped.swap(3, 4);
        let fault = parse(&table(&swapped), "|").expect_err("capacity and use would change places");
        assert_eq!(fault, "column Gres has the header \"GRES_USED\", not \"GRES\"");
        let row = ["a1", "gpu", "idle", "gpu:1", "gpu:0", "0/1/0/1", "1", "0"];
        assert!(parse(&table(&row), "|").is_err(), "no header at all");
    }

    #[test]
    fn a_node_of_two_partitions_is_one() {
        let row = |partition, state| {
            format!("a1|{partition}|{state}|gpu:a:2|gpu:a:1(IDX:0)|1/7/0/8|1000|300|\n")
        };
        let text = row("gpu*", "mixed") + &row("big", "mixed-") + "n/a|none|||||||\n";
        let columns = COLUMNS.map(|(column, _, _)| column);
        let nodes = parse_rows(&text, "|", &columns).expect("fits");
        let [node] = nodes.as_slice() else { panic!("{nodes:?}") };
        assert_eq!(node.partitions, ["gpu", "big"]);
        assert_eq!((node.usable, node.state.as_str()), (Usable::Backfill, "mixed-"));
        assert_eq!((node.cpus_idle, node.mem_idle), (Some(7), Some(700)));
    }
}
