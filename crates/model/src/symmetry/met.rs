//! The representatives of states met lately.
//!
//! Steps of different processes commute, so a search meets most states several times within a moment, and a representative is a
//! matter of the state alone. A table of one state for each place, where the newest wins.

/// Bytes that are remembered, about.
const BYTES: usize = 256 << 10;
const LEAST_PLACES: usize = 256;

#[derive(Clone, Debug, Default)]
pub struct Met {
    places: usize,
    width: usize,
    hashes: Vec<u64>,
    /// Each state, and its representative behind it.
    states: Vec<u32>,
}

/// Where the representative of a state belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(usize);

impl Met {
    /// For states of so many words.
    pub fn new(width: usize) -> Met {
        let places = places(width);
        // No place has a state with this hash.
        Met { places, width, hashes: vec![0; places], states: vec![0; places * width * 2] }
    }

    /// Bytes for states of so many words.
    pub fn bytes(width: usize) -> usize {
        places(width) * entry_bytes(width)
    }

    /// Replaces a state that was met by its representative, or says where that is to be put.
    #[inline]
    pub fn represent(&mut self, state: &mut [u32]) -> Result<(), Place> {
        let hash = hash(state);
        let place = ((hash as u128 * self.places as u128) >> 64) as usize;
        let (held, representative) = self.states[place * self.width * 2..][..self.width * 2].split_at_mut(self.width);
        if self.hashes[place] == hash && held == state {
            state.copy_from_slice(representative);
            return Ok(());
        }
        self.hashes[place] = hash;
        held.copy_from_slice(state);
        Err(Place(place))
    }

    /// Puts the representative where it belongs.
    #[inline]
    pub fn put(&mut self, Place(place): Place, representative: &[u32]) {
        self.states[(place * 2 + 1) * self.width..][..self.width].copy_from_slice(representative);
    }
}

fn entry_bytes(width: usize) -> usize {
    width * 2 * size_of::<u32>() + size_of::<u64>()
}

fn places(width: usize) -> usize {
    (BYTES / entry_bytes(width)).max(LEAST_PLACES)
}

/// Two chains side by side, for each multiplication waits for the one before. Never zero.
#[inline]
fn hash(state: &[u32]) -> u64 {
    let fold = |a: u64, b: u64| {
        let product = a as u128 * b as u128;
        product as u64 ^ (product >> 64) as u64
    };
    let mut lanes = [0x9E37_79B9_7F4A_7C15u64, 0xD6E8_FEB8_6659_FD93];
    let (pairs, rest) = state.as_chunks::<2>();
    let (fours, pairs) = pairs.as_chunks::<2>();
    let step =
        |lane: u64, pair: &[u32; 2]| fold(lane ^ (pair[0] as u64 | (pair[1] as u64) << 32), 0xE703_7ED1_A0B4_28DB);
    for four in fours {
        lanes = [step(lanes[0], &four[0]), step(lanes[1], &four[1])];
    }
    pairs.iter().for_each(|pair| lanes[0] = step(lanes[0], pair));
    rest.iter().for_each(|&word| lanes[1] = step(lanes[1], &[word, 0]));
    fold(lanes[0] ^ lanes[1].rotate_left(29), 0x8A91_A6D4_0BF4_2041) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_met_comes_back_and_nothing_else() {
        for width in 1..20 {
            let mut met = Met::new(width);
            let mut recognised = 0;
            for round in 0..40_000u32 {
                // Zeros too, which lie in every place at first.
                let number = round.wrapping_mul(0x9E37_79B9) % 3000;
                let state: Vec<u32> =
                    (0..width as u32).map(|word| if word == 0 { number } else { number % 5 }).collect();
                let mut given = state.clone();
                match met.represent(&mut given) {
                    Ok(()) => {
                        recognised += 1;
                        assert!(given.iter().zip(&state).all(|(given, state)| *given == !state), "width {width}");
                    }
                    Err(place) => met.put(place, &state.iter().map(|word| !word).collect::<Vec<_>>()),
                }
            }
            assert!((1..40_000 - 2000).contains(&recognised), "width {width}: {recognised}");
        }
    }
}
