//! Vectors in a block, where keys are hashes: equal ones say nothing before what they stand for was compared.
//!
//! They lie at the end of the block, in the order of the keys: of each the bytes in which vectors of the block differ, then
//! the first vector, then a bit for each byte of a vector that says whether it differs. Vectors in the order of their hashes
//! have nothing in common with their neighbours, so there is little else to gain.

/// Wider vectors are not written: a few of them must fit into a block.
pub const MOST_WORDS: usize = 512;

fn map_bytes(width: usize) -> usize {
    width.div_ceil(2)
}

/// In which bytes vectors differ from the first one.
#[derive(Debug, Default)]
pub struct Differences {
    first: Vec<u32>,
    words: Vec<u32>,
}

impl Differences {
    pub fn clear(&mut self) {
        self.first.clear();
    }

    pub fn add(&mut self, vector: &[u32]) {
        if self.first.is_empty() {
            self.first.extend_from_slice(vector);
            self.words.clear();
            self.words.resize(vector.len(), 0);
        }
        for ((word, &first), &here) in self.words.iter_mut().zip(&self.first).zip(vector) {
            *word |= first ^ here;
        }
    }

    /// Bytes that differ.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        let bytes = self.words.iter().flat_map(|word| word.to_le_bytes());
        bytes.enumerate().filter(|&(_, byte)| byte != 0).map(|(place, _)| place)
    }

    /// Bytes that each vector takes in a block, and bytes that all of them take together.
    pub fn sizes(&self, width: usize) -> [usize; 2] {
        [self.places().count(), width * 4 + map_bytes(width)]
    }
}

/// Writes vectors of so many words, end to end, to the end of a block in which there is room for them.
pub fn encode(vectors: &[u32], width: usize, block: &mut [u8]) {
    let mut differences = Differences::default();
    vectors.chunks_exact(width).for_each(|vector| differences.add(vector));
    let places: Vec<usize> = differences.places().collect();
    let (rest, map) = block.split_at_mut(block.len() - map_bytes(width));
    map.fill(0);
    places.iter().for_each(|place| map[place / 8] |= 1 << (place % 8));
    let (rest, first) = rest.split_at_mut(rest.len() - width * 4);
    first.copy_from_slice(bytemuck::cast_slice(&vectors[..width]));
    let start = rest.len() - vectors.len() / width * places.len();
    for (vector, out) in vectors.chunks_exact(width).zip(rest[start..].chunks_exact_mut(places.len().max(1))) {
        let bytes: &[u8] = bytemuck::cast_slice(vector);
        places.iter().zip(out).for_each(|(&place, byte)| *byte = bytes[place]);
    }
}

/// Where the vectors of a block are.
#[derive(Debug, Default)]
pub struct Places {
    places: Vec<usize>,
    start: usize,
    first: Vec<u32>,
}

impl Places {
    /// Looks at a block of `count` vectors of so many words.
    pub fn look(&mut self, block: &[u8], count: usize, width: usize) {
        let (rest, map) = block.split_at(block.len() - map_bytes(width));
        self.places.clear();
        self.places.extend((0..width * 4).filter(|place| map[place / 8] >> (place % 8) & 1 == 1));
        let (rest, first) = rest.split_at(rest.len() - width * 4);
        self.first.clear();
        self.first.extend(first.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))));
        self.start = rest.len() - count * self.places.len();
    }

    /// Puts a vector, by its number in the block, into `vector`.
    pub fn read(&self, block: &[u8], number: usize, vector: &mut Vec<u32>) {
        let start = vector.len();
        vector.extend_from_slice(&self.first);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut vector[start..]);
        let from = &block[self.start + number * self.places.len()..][..self.places.len()];
        self.places.iter().zip(from).for_each(|(&place, &byte)| bytes[place] = byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;

    #[test]
    fn vectors_come_back_whatever_they_have_in_common() {
        let mut draw = Draw::new(0);
        for (width, count, below) in [(1, 1, 5), (5, 1, 9), (5, 40, 1), (5, 40, 3), (14, 100, 1 << 20), (33, 9, 300)] {
            let vectors: Vec<u32> = (0..count * width).map(|_| draw.below(below) as u32 * 259).collect();
            let mut differences = Differences::default();
            vectors.chunks_exact(width).for_each(|vector| differences.add(vector));
            let [each, all] = differences.sizes(width);
            let mut block = vec![0xAA; 10 + each * count + all];
            encode(&vectors, width, &mut block);
            assert!(block[..10].iter().all(|&byte| byte == 0xAA), "only as much was written as was said");
            let (mut places, mut vector) = (Places::default(), Vec::new());
            places.look(&block, count, width);
            (0..count).for_each(|number| places.read(&block, number, &mut vector));
            assert_eq!(vector, vectors, "{width} {count} {below}");
        }
    }
}
