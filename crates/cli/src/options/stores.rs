//! How visited states are held, as it is written on the command line.

use plimsoll_store::Codec;
use plimsoll_store::filter::MOST_BITS_PER_STATE;
use plimsoll_store::huffman::Kind;
use std::fmt;
use std::str::FromStr;

/// Bits that a filter sets for a state, if nobody says otherwise: the fewest states are missed from 5 to 20 bits of memory each.
const USUAL_BITS_PER_STATE: u32 = 4;
/// Digests are this long if nobody says otherwise.
const USUAL_DIGEST_BITS: u32 = 64;
/// States from which a code comes.
const USUAL_TRAINING_STATES: u64 = 10_000;
const DIGESTS: [u32; 3] = [40, 64, 128];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StoreName {
    /// Packed if states use few enough bits, else the tree.
    #[default]
    Auto,
    /// The same in as few bytes as possible.
    Compact,
    /// Whatever the states are like.
    Held(Codec),
}

/// A family of stores.
#[derive(Clone, Copy, Debug)]
pub struct Store {
    pub name: &'static str,
    /// One of them; what is said of it is true of all.
    pub example: &'static str,
    pub meaning: &'static str,
}

/// The table.
pub const STORES: [Store; 10] = [
    Store {
        name: "auto",
        example: "auto",
        meaning: "packed if states use up to 60 bits and a tree would not take much less, else tree",
    },
    Store { name: "compact", example: "compact", meaning: "like auto in as few bytes as possible, which takes longer" },
    Store { name: "plain", example: "plain", meaning: "states as they are" },
    Store {
        name: "packed",
        example: "packed",
        meaning: "the bits that states use, at most 128, less what their place tells",
    },
    Store { name: "tree", example: "tree", meaning: "tree compression" },
    Store {
        name: "huffman:static",
        example: "huffman:static",
        meaning: "Huffman codes from our own models (Pelanek, Rosecky, Sedenka 2008)",
    },
    Store {
        name: "huffman:trained(ORDER,N)",
        example: "huffman:trained(bfs,10000)",
        meaning: "a Huffman code for each byte, from the first N states of a search, bfs or dfs",
    },
    Store {
        name: "digest:BITS",
        example: "digest:64",
        meaning: "hash compaction: digests of 40, 64 or 128 bits (Wolper, Leroy 1993; Stern, Dill 1995)",
    },
    Store {
        name: "bitstate:K",
        example: "bitstate:4",
        meaning: "bit-state hashing: K bits a state in a Bloom filter that fills the memory (Holzmann 1988)",
    },
    Store {
        name: "adaptive",
        example: "adaptive",
        meaning: "digests while there is room, then a Bloom filter, in one block (Dillinger, Manolios 2009)",
    },
];

impl StoreName {
    /// The codec, unless the states of the model decide.
    pub fn codec(self) -> Option<Codec> {
        match self {
            StoreName::Auto | StoreName::Compact => None,
            StoreName::Held(codec) => Some(codec),
        }
    }
}

impl fmt::Display for StoreName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.codec() {
            None if *self == StoreName::Compact => f.write_str("compact"),
            None => f.write_str("auto"),
            Some(codec) => codec.fmt(f),
        }
    }
}

impl FromStr for StoreName {
    type Err = String;

    fn from_str(text: &str) -> Result<StoreName, String> {
        if let Some(kind) = text.strip_prefix("huffman") {
            return parse_huffman(kind).map(|kind| StoreName::Held(Codec::Huffman(kind))).ok_or_else(|| unknown(text));
        }
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number.parse::<u32>().map_err(|_| unknown(text))?)),
            None => (text, None),
        };
        let codec = match (name, number) {
            ("auto", None) => return Ok(StoreName::Auto),
            ("compact", None) => return Ok(StoreName::Compact),
            ("plain", None) => Codec::Plain,
            ("packed", None) => Codec::Packed,
            ("tree", None) => Codec::Tree,
            ("digest", None) => Codec::Digest(USUAL_DIGEST_BITS),
            ("digest", Some(bits)) if DIGESTS.contains(&bits) => Codec::Digest(bits),
            ("digest", Some(_)) => return Err("digests have 40, 64 or 128 bits".into()),
            ("bitstate", None) => Codec::Bitstate(USUAL_BITS_PER_STATE),
            ("bitstate", Some(bits)) if (1..=MOST_BITS_PER_STATE).contains(&bits) => Codec::Bitstate(bits),
            ("bitstate", Some(_)) => return Err(format!("a state may have 1 to {MOST_BITS_PER_STATE} bits")),
            ("adaptive", None) => Codec::Adaptive,
            _ => return Err(unknown(text)),
        };
        Ok(StoreName::Held(codec))
    }
}

/// Reads `:static`, `:trained`, `:trained(bfs,1000)` or nothing.
fn parse_huffman(text: &str) -> Option<Kind> {
    match text {
        "" | ":trained" => return Some(Kind::Trained { breadth_first: true, states: USUAL_TRAINING_STATES }),
        ":static" => return Some(Kind::Static),
        _ => {}
    }
    let (order, states) = text.strip_prefix(":trained(")?.strip_suffix(')')?.split_once(',')?;
    let breadth_first = match order.trim() {
        "bfs" => true,
        "dfs" => false,
        _ => return None,
    };
    let states = states.trim().parse().ok().filter(|states| *states > 0)?;
    Some(Kind::Trained { breadth_first, states })
}

fn unknown(text: &str) -> String {
    let names: Vec<&str> = STORES.iter().map(|store| store.name).collect();
    format!("there is no store `{text}`; there are {}: `plimsoll strategies` explains them", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_printed_as_they_are_read() {
        for store in &STORES {
            let parsed = store.example.parse::<StoreName>().unwrap();
            assert_eq!(parsed.to_string(), store.example);
            let family = store.name.trim_end_matches("BITS").trim_end_matches('K').trim_end_matches("ORDER,N)");
            assert!(store.example.starts_with(family));
        }
        assert_eq!("digest".parse::<StoreName>().unwrap().to_string(), "digest:64");
        assert_eq!("bitstate".parse::<StoreName>().unwrap().to_string(), "bitstate:4");
        assert_eq!("huffman:trained(dfs, 77)".parse::<StoreName>().unwrap().to_string(), "huffman:trained(dfs,77)");
    }

    #[test]
    fn wrong_names_are_refused_with_the_right_ones() {
        for text in [
            "",
            "trees",
            "tree:",
            "tree:3",
            "packed:x",
            "adaptive:1",
            "huffman:x",
            "huffman:trained(bfs,0)",
            "huffman:trained(bfs)",
            "digest:x",
            ":",
            "bitstate:-1",
        ] {
            assert!(text.parse::<StoreName>().unwrap_err().contains("digest:BITS"), "{text}");
        }
        assert!("digest:50".parse::<StoreName>().unwrap_err().contains("40, 64 or 128"));
        for text in ["bitstate:0", "bitstate:17"] {
            assert!(text.parse::<StoreName>().unwrap_err().contains("1 to 16"), "{text}");
        }
    }
}
