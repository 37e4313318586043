//! What babysit knows of GPU models: TFLOP/s in half precision (FP16 or BF16 on the tensor or matrix
//! units, sums in FP32, without sparsity), as their makers publish it. docs/gpu-models.md names the sources.
//!
//! Only ratios matter: they weigh one model's hours against another's, and rank the models. A table and
//! a look-up; nothing else belongs here.

/// Begin of a model's name, without makers and series, and the TFLOP/s of one GPU.
const MODELS: &[(&str, f64)] = &[
    // NVIDIA, data centre.
    ("gb200", 2500.0),
    ("b200", 2250.0),
    ("gh200", 989.0),
    ("h200", 989.0),
    ("h100pcie", 756.0),
    ("h100nvl", 835.0),
    ("h100", 989.0),
    ("h800", 989.0),
    ("h20", 148.0),
    ("a100", 312.0),
    ("a800", 312.0),
    ("a40", 149.7),
    ("a30", 165.0),
    ("a10", 125.0),
    ("a16", 17.9),
    ("a2", 18.0),
    ("l40s", 362.0),
    ("l40", 181.0),
    ("l20", 119.5),
    ("l4", 121.0),
    ("v100pcie", 112.0),
    ("v100", 125.0),
    ("t4", 65.0),
    // Without tensor units: plain half precision, and single where half is slower than that.
    ("p100pcie", 18.7),
    ("p100", 21.2),
    ("p40", 11.8),
    ("k80", 5.6),
    // NVIDIA, workstation.
    ("pro6000", 503.8),
    ("6000ada", 364.2),
    ("5000ada", 261.1),
    ("a6000", 154.8),
    ("a5500", 136.4),
    ("a5000", 111.1),
    ("a4500", 94.6),
    ("a4000", 76.7),
    ("8000", 130.5),
    ("6000", 130.5),
    ("5000", 89.2),
    ("titanrtx", 130.5),
    ("titanv", 110.0),
    ("titanxp", 12.1),
    // GeForce: half the rate of the data centre's tensor units where sums are in FP32.
    ("5090", 209.5),
    ("5080", 112.6),
    ("5070ti", 87.9),
    ("5070", 61.7),
    ("4090d", 147.1),
    ("4090", 165.2),
    ("4080super", 104.4),
    ("4080", 97.5),
    ("4070tisuper", 88.2),
    ("4070ti", 80.2),
    ("4070", 58.3),
    ("4060ti", 44.1),
    ("3090ti", 80.0),
    ("3090", 71.2),
    ("3080ti", 68.2),
    ("3080", 59.5),
    ("3070ti", 43.5),
    ("3070", 40.6),
    ("3060ti", 32.4),
    ("3060", 25.5),
    ("2080ti", 53.8),
    ("2080super", 44.6),
    ("2080", 40.3),
    ("1080ti", 11.3),
    ("1080", 8.9),
    // AMD Instinct.
    ("mi355x", 2500.0),
    ("mi350x", 2300.0),
    ("mi325x", 1307.0),
    ("mi300x", 1307.0),
    ("mi300a", 980.6),
    ("mi250x", 383.0),
    ("mi250", 362.1),
    ("mi210", 181.0),
    ("mi100", 184.6),
];

/// Words of makers and series that sites put in front, in any number.
const PREFIXES: &[&str] =
    &["nvidia", "geforce", "tesla", "quadro", "amd", "instinct", "radeon", "rtx", "gtx", "gpu"];

/// TFLOP/s of a model as Slurm's GRES spells it; `None` where it is not known.
///
/// The longest entry that the name begins with counts. What follows it must be no digit, so that an
/// `a1000` is no `a100`; a separator may follow (`h100_80gb_hbm3`).
pub fn tflops(model: &str) -> Option<f64> {
    let lower = model.to_ascii_lowercase();
    let mut name = lower.as_str();
    loop {
        name = name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        match PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)) {
            Some(rest) if !rest.is_empty() => name = rest,
            _ => break,
        }
    }
    let hits = MODELS.iter().filter(|(begin, _)| begins(name, begin));
    hits.max_by_key(|(begin, _)| begin.len()).map(|(_, tflops)| *tflops)
}

/// Separators in `name` do not count, but for the digit that may follow one.
fn begins(name: &str, begin: &str) -> bool {
    let mut rest = name.chars();
    for wanted in begin.chars() {
        if rest.by_ref().find(char::is_ascii_alphanumeric) != Some(wanted) {
            return false;
        }
    }
    !rest.next().is_some_and(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_as_sites_spell_them() {
        let check =
            |model: &str, expected: Option<f64>| assert_eq!(tflops(model), expected, "{model}");
        for model in ["a100", "A100", "nvidia_a100-sxm4-80gb", "nvidia_a100_80gb_pcie", "a100x"] {
            check(model, Some(312.0));
        }
        for model in ["h100", "nvidia_h100_80gb_hbm3", "h100-80g", "H100_SXM", "h100_96"] {
            check(model, Some(989.0));
        }
        check("nvidia_h100_pcie", Some(756.0));
        check("h100_nvl", Some(835.0));
        check("nvidia_gh200_480gb", Some(989.0));
        check("l40s", Some(362.0));
        check("nvidia_l40", Some(181.0));
        check("l4", Some(121.0));
        for model in ["rtx3080ti", "rtx_3080_ti", "3080ti", "nvidia_geforce_rtx_3080_ti"] {
            check(model, Some(68.2));
        }
        check("rtx_3080", Some(59.5));
        check("NVIDIA_GeForce_RTX_4090", Some(165.2));
        check("rtx4090d", Some(147.1));
        check("rtx5090", Some(209.5));
        check("tesla_v100-sxm2-32gb", Some(125.0));
        check("Tesla_V100-PCIE-16GB", Some(112.0));
        check("rtx_a6000", Some(154.8));
        check("a6000", Some(154.8));
        check("quadro_rtx_6000", Some(130.5));
        check("nvidia_rtx_6000_ada_generation", Some(364.2));
        check("nvidia_rtx_pro_6000_blackwell", Some(503.8));
        check("titan_rtx", Some(130.5));
        check("gtx_1080_ti", Some(11.3));
        check("amd_instinct_mi250x", Some(383.0));
        check("mi250", Some(362.1));
        check("mi300x", Some(1307.0));
        check("a10", Some(125.0));
        check("a1000", None);
        check("h1000", None);
        check("gpu", None);
        check("", None);
        check("rtx", None);
        check("volta", None);
        check("b1", None);
    }

    #[test]
    fn no_entry_stands_twice_or_behind_a_prefix() {
        for (i, (begin, tflops)) in MODELS.iter().enumerate() {
            assert!(*tflops > 0.0);
            assert!(MODELS.iter().skip(i + 1).all(|(other, _)| other != begin), "{begin}");
            assert_eq!(super::tflops(begin), Some(*tflops), "{begin}");
        }
    }
}
