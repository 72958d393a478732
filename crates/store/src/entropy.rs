//! Bytes at about their entropy: a Huffman code of their own for every piece.
//!
//! A piece begins with the lengths of the codes of all 256 values, four bits each; then follow the codes, first bit lowest.
//! Codes are canonical: of one length they are consecutive, in the order of the values.

const VALUES: usize = 256;
/// Bits of the longest code: its length has four bits, and zero says that a value does not occur.
const LONGEST: usize = 15;
const HEAD: usize = VALUES / 2;

/// The piece that stands for `bytes`.
pub fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut counts = [0u32; VALUES];
    bytes.iter().for_each(|&byte| counts[byte as usize] += 1);
    let lengths = lengths(&counts);
    let codes = codes(&lengths);
    let mut out = Vec::with_capacity(HEAD + bytes.len());
    out.extend(lengths.chunks(2).map(|pair| pair[0] | pair[1] << 4));
    let (mut gathered, mut bits) = (0u64, 0);
    for &byte in bytes {
        gathered |= (codes[byte as usize] as u64) << bits;
        bits += lengths[byte as usize] as u32;
        if bits >= 48 {
            out.extend_from_slice(&gathered.to_le_bytes()[..6]);
            (gathered, bits) = (gathered >> 48, bits - 48);
        }
    }
    out.extend_from_slice(&gathered.to_le_bytes()[..bits.div_ceil(8) as usize]);
    out.shrink_to_fit();
    out
}

/// The first `count` bytes for which a piece stands.
pub fn unpack(piece: &[u8], count: usize) -> Vec<u8> {
    let (head, codes) = piece.split_at(HEAD);
    let lengths: Vec<u8> = head.iter().flat_map(|pair| [pair & 15, pair >> 4]).collect();
    let mut sorted: Vec<u8> = (0..=255).filter(|&value| lengths[value as usize] > 0).collect();
    sorted.sort_by_key(|&value| lengths[value as usize]);
    let of_length: Vec<u32> =
        (0..=LONGEST).map(|length| lengths.iter().filter(|&&l| l > 0 && l as usize == length).count() as u32).collect();
    let mut bits = (0..codes.len() * 8).map(|bit| (codes[bit / 8] >> (bit % 8) & 1) as u32);
    let value = |_| {
        // How far the code is behind the first of its length, and how many values have shorter ones.
        let (mut code, mut shorter) = (0, 0);
        for &here in &of_length[1..] {
            code = code << 1 | bits.next().expect("no code ends early");
            if code < here {
                return sorted[(shorter + code) as usize];
            }
            (code, shorter) = (code - here, shorter + here);
        }
        unreachable!("codes have at most {LONGEST} bits")
    };
    (0..count).map(value).collect()
}

/// The lengths of the codes that are best for values that occur so often.
fn lengths(counts: &[u32; VALUES]) -> [u8; VALUES] {
    let mut weights: Vec<(u32, usize)> = counts.iter().copied().zip(0..).filter(|(count, _)| *count > 0).collect();
    loop {
        let lengths = tree(&mut weights);
        if lengths.iter().all(|&length| length as usize <= LONGEST) {
            return lengths;
        }
        // Rare values get shorter codes, and the others hardly longer ones.
        weights.iter_mut().for_each(|(weight, _)| *weight = *weight / 4 + 1);
    }
}

/// The depths of the leaves of a Huffman tree; a single value gets a code of one bit.
fn tree(weights: &mut [(u32, usize)]) -> [u8; VALUES] {
    let mut lengths = [0; VALUES];
    weights.sort_unstable();
    if let [(_, value)] = weights {
        lengths[*value] = 1;
        return lengths;
    }
    // Leaves in order and inner nodes in order: the lightest is the first of either.
    let leaves = weights.len();
    let mut nodes: Vec<(u64, usize)> = weights.iter().map(|&(weight, _)| (weight as u64, 0)).collect();
    let (mut leaf, mut inner) = (0, leaves);
    for parent in leaves..(2 * leaves).saturating_sub(1) {
        let mut lightest = || {
            let from_leaves = leaf < leaves && (inner >= nodes.len() || nodes[leaf].0 <= nodes[inner].0);
            let next = if from_leaves { &mut leaf } else { &mut inner };
            *next += 1;
            let node = *next - 1;
            nodes[node].1 = parent;
            nodes[node].0
        };
        let weight = lightest() + lightest();
        nodes.push((weight, 0));
    }
    let mut depths = vec![0u8; nodes.len()];
    for node in (0..nodes.len().saturating_sub(1)).rev() {
        depths[node] = depths[nodes[node].1].saturating_add(1);
    }
    weights.iter().zip(depths).for_each(|(&(_, value), depth)| lengths[value] = depth);
    lengths
}

/// The codes of values with codes of these lengths, first bit lowest.
fn codes(lengths: &[u8; VALUES]) -> [u16; VALUES] {
    let (mut codes, mut next) = ([0; VALUES], 0u32);
    for length in 1..=LONGEST {
        next <<= 1;
        for value in (0..VALUES).filter(|&value| lengths[value] as usize == length) {
            codes[value] = (next as u16).reverse_bits() >> (u16::BITS as usize - length);
            next += 1;
        }
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;

    #[test]
    fn pieces_give_their_bytes_back() {
        let mut draw = Draw::new(0);
        for (len, values) in [(0, 1), (1, 1), (2, 2), (100, 1), (5_000, 3), (70_000, 17), (70_000, 256)] {
            let bytes: Vec<u8> = (0..len).map(|_| draw.below(values) as u8).collect();
            assert_eq!(unpack(&pack(&bytes), len), bytes, "{len} bytes of {values} values");
        }
        // Each value twice as often as the one before: codes would be longer than they may be.
        let steep: Vec<u8> = (0..22).flat_map(|value| std::iter::repeat_n(value, 1 << value)).collect();
        assert_eq!(unpack(&pack(&steep), steep.len()), steep);
    }

    #[test]
    fn they_take_hardly_more_than_the_entropy() {
        let mut draw = Draw::new(0);
        let skewed: Vec<u8> = (0..60_000).map(|_| (draw.bits() & draw.bits() & draw.bits() & 7) as u8).collect();
        let entropy: f64 = (0..8)
            .map(|value| skewed.iter().filter(|&&byte| byte == value).count() as f64 / skewed.len() as f64)
            .map(|share| -share * share.log2())
            .sum();
        let bits = pack(&skewed).len() as f64 * 8.0 / skewed.len() as f64;
        assert!(bits < entropy * 1.05 + 0.1, "{bits} bits, entropy {entropy}");
    }
}
