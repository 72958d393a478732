//! Chains of caches as they are written: `LRU`, or `MFU:25%,LRU:75%`.
//!
//! What one cache gives up is offered to the next; what the last gives up is forgotten. A rule without a
//! share gets an equal part of what the others leave. `KEEP:50%,SC:50%` remembers the first half for ever and forgets
//! of the rest; `KEEP` alone is an exact store of limited size.

use super::Rule;
use std::fmt;
use std::str::FromStr;

const FORMS: &str = "write `LRU`, `MFU:25%,LRU:75%` or `RND,SC`: rules with shares that add up to 100 %";
const MOST_TIERS: usize = 8;

/// The caches of a chain, first to last.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    tiers: Vec<(Rule, f64)>,
    /// Keep the ancestors of states that wait to be expanded.
    pub cover: bool,
}

impl Spec {
    /// One cache.
    pub fn single(rule: Rule) -> Spec {
        Spec { tiers: vec![(rule, 100.0)], cover: false }
    }

    /// One cache that gives up only what no open state descends from.
    pub fn cover(rule: Rule) -> Spec {
        Spec { cover: true, ..Spec::single(rule) }
    }

    /// Rules and their shares in per cent.
    pub fn tiers(&self) -> &[(Rule, f64)] {
        &self.tiers
    }

    /// The rule, if there is only one and it alone decides; what `KEEP` decides is never to decide.
    pub fn alone(&self) -> Option<Rule> {
        match self.tiers[..] {
            [(rule, _)] if !self.cover && rule != Rule::Keep => Some(rule),
            _ => None,
        }
    }

    /// How many of `capacity` states each cache holds; together exactly `capacity`.
    pub(super) fn rooms(&self, capacity: usize) -> Vec<usize> {
        let mut rooms: Vec<usize> =
            self.tiers.iter().map(|(_, share)| (capacity as f64 * share / 100.0) as usize).collect();
        let others: usize = rooms[..rooms.len() - 1].iter().sum();
        *rooms.last_mut().expect("there is a cache") = capacity.saturating_sub(others);
        rooms
    }
}

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Spec, String> {
        let mut tiers: Vec<(Rule, Option<f64>)> = Vec::new();
        for part in text.split(',') {
            let (rule, share) = match part.split_once(':') {
                Some((rule, share)) => (rule, Some(parse_share(share)?)),
                None => (part, None),
            };
            tiers.push((rule.parse().map_err(|error| format!("{error}; {FORMS}"))?, share));
        }
        if tiers.len() > MOST_TIERS {
            return Err(format!("{} caches are too many, {MOST_TIERS} are allowed", tiers.len()));
        }
        let given: f64 = tiers.iter().filter_map(|(_, share)| *share).sum();
        let open = tiers.iter().filter(|(_, share)| share.is_none()).count();
        if given > 100.001 || open == 0 && given < 99.999 || open > 0 && given > 99.999 {
            return Err(format!("the shares of `{text}` add up to {given} %; {FORMS}"));
        }
        let rest = (100.0 - given) / open.max(1) as f64;
        let tiers = tiers.into_iter().map(|(rule, share)| (rule, share.unwrap_or(rest))).collect();
        Ok(Spec { tiers, cover: false })
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    number
        .filter(|share| *share > 0.0 && *share <= 100.0)
        .ok_or_else(|| format!("`{}` is not a share like 25%; {FORMS}", text.trim()))
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.cover {
            f.write_str("cover:")?;
        }
        if let [(rule, _)] = self.tiers[..] {
            return write!(f, "{rule}");
        }
        let parts: Vec<String> = self.tiers.iter().map(|(rule, share)| format!("{rule}:{share}%")).collect();
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_read_as_written() {
        let spec: Spec = "MFU:25%,LRU:75%".parse().unwrap();
        assert_eq!(spec.tiers(), [(Rule::MostFrequent, 25.0), (Rule::LeastRecent, 75.0)]);
        assert_eq!((spec.to_string(), spec.rooms(10)), ("MFU:25%,LRU:75%".into(), vec![2, 8]));
        assert_eq!("sc".parse(), Ok(Spec::single(Rule::Stratified)));
        assert_eq!("RND:50%,O,I".parse::<Spec>().unwrap().rooms(100), [50, 25, 25]);
        assert_eq!("keep:50%,SC:50%".parse::<Spec>().unwrap().to_string(), "KEEP:50%,SC:50%");
        assert_eq!("KEEP".parse::<Spec>().unwrap().alone(), None);
        assert_eq!("LRU,MRU".parse::<Spec>().unwrap().rooms(1), [0, 1]);
    }

    #[test]
    fn wrong_chains_are_refused_with_the_valid_forms() {
        for text in
            ["", "LRV:10%", "LRU:101%", "LRU:60%,MFU:60%", "LRU:50%", "LRU:100%,MFU", "LRU:x", "LRU:-5%", "LRU,"]
        {
            let error = text.parse::<Spec>().unwrap_err();
            assert!(error.contains("MFU:25%,LRU:75%"), "{text}: {error}");
        }
        assert!(["LRU"; 9].join(",").parse::<Spec>().is_err());
    }
}
