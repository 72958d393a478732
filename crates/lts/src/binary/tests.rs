use super::*;
use crate::{AutWriter, Edge, EdgeReader, Lts, ReadError};

/// A little generator of numbers (xorshift).
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

const LABELS: [&str; 6] = ["a", "i", "", "say \"hi\", then", "two\nlines", "ünïcode"];

/// Edges of random graphs: sources in order or not, states without edges, one with very many.
fn random_edges(draw: &mut Draw, states: u64) -> Vec<(u64, Vec<(u32, u64)>)> {
    let in_order = draw.below(2) == 0;
    let edges = |draw: &mut Draw, from: u64| {
        let most = if draw.below(50) == 0 { 10_000 } else { 5 };
        let edge = |draw: &mut Draw| {
            (draw.below(LABELS.len() as u64) as u32, if draw.below(3) == 0 { from } else { draw.below(states) })
        };
        (0..draw.below(most)).map(|_| edge(draw)).collect()
    };
    let record = |place: u64| {
        let from = if in_order { place } else { draw.below(states) };
        (from, edges(draw, from))
    };
    let count = states.min(40);
    (0..count).map(record).collect()
}

fn written(records: &[(u64, Vec<(u32, u64)>)], initial: u64, states: u64) -> Vec<u8> {
    let mut writer = LtsWriter::new(Vec::new()).unwrap();
    let labels = LABELS.map(|label| writer.label(label).unwrap());
    for (from, edges) in records {
        let edges: Vec<(u32, u64)> = edges.iter().map(|&(label, to)| (labels[label as usize], to)).collect();
        writer.edges(*from, &edges).unwrap();
    }
    writer.finish(initial, states).unwrap()
}

fn all_edges(bytes: &[u8]) -> Result<(Vec<Edge>, crate::Ends), ReadError> {
    let mut reader = EdgeReader::new(bytes)?;
    let mut edges = Vec::new();
    while let Some(edge) = reader.next_edge()? {
        edges.push(edge);
    }
    Ok((edges, reader.ends()))
}

#[test]
fn what_is_written_can_be_read_back() {
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    for round in 0..60 {
        // Now and then the numbers of states are huge.
        let states = if round % 10 == 0 { 1 << 50 } else { 1 + draw.below(300) };
        let mut records = random_edges(&mut draw, states.min(2000));
        if round % 10 == 0 {
            records.push((states - 1, vec![(0, states - 1), (1, 0), (0, states / 2)]));
        }
        let initial = draw.below(states);
        let (edges, ends) = all_edges(&written(&records, initial, states)).unwrap();
        let expected: Vec<Edge> = records
            .iter()
            .flat_map(|(from, edges)| edges.iter().map(|&(label, to)| Edge { from: *from, label, to }))
            .collect();
        assert_eq!(edges, expected);
        assert_eq!((ends.initial, ends.states, ends.transitions), (initial, states, expected.len() as u64));
    }
}

#[test]
fn both_formats_hold_the_same_graph() {
    let mut draw = Draw(77);
    for _ in 0..20 {
        let records = random_edges(&mut draw, 100);
        let binary = Lts::read(&mut EdgeReader::new(&written(&records, 3, 100)[..]).unwrap()).unwrap();
        let mut text = AutWriter::new(std::io::Cursor::new(Vec::new())).unwrap();
        for (from, edges) in &records {
            edges.iter().for_each(|&(label, to)| text.edge(*from, LABELS[label as usize], to).unwrap());
        }
        let text = text.finish(3, 100).unwrap().into_inner();
        let text = Lts::read(&mut EdgeReader::new(&text[..]).unwrap()).unwrap();
        let named = |lts: &Lts| -> Vec<(String, u32)> {
            (0..lts.edge_count()).map(|edge| (lts.labels[lts.label[edge] as usize].clone(), lts.target[edge])).collect()
        };
        assert_eq!((binary.initial, &binary.first, named(&binary)), (text.initial, &text.first, named(&text)));
    }
}

#[test]
fn any_flipped_bit_and_any_missing_end_is_noticed() {
    let mut draw = Draw(5);
    let records: Vec<_> =
        (0..40).map(|from| (from, vec![(draw.below(6) as u32, from + 1), (1, draw.below(40))])).collect();
    let whole = written(&records, 0, 41);
    assert!(all_edges(&whole).is_ok());
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let error = all_edges(&damaged).expect_err("a flipped bit").to_string();
        assert!(!error.is_empty());
    }
    // Whichever bit of the first bytes it is, nobody speaks of another format.
    for bit in 0..MAGIC.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let error = EdgeReader::new(&damaged[..]).map(|_| ()).expect_err("a flipped bit").to_string();
        assert!(error.contains(".lts"), "bit {bit}: {error}");
    }
    for end in 0..whole.len() {
        assert!(all_edges(&whole[..end]).is_err(), "cut at {end}");
    }
    assert!(all_edges(&[&whole[..], b"x"].concat()).is_err());
}

#[test]
fn blocks_that_change_places_or_are_missing_are_noticed() {
    let records: Vec<_> =
        (0..60_000).map(|from| (from, vec![(0, from * 7 % 60_001), (1, from * 13 % 60_001)])).collect();
    let whole = written(&records, 0, 60_001);
    let mut places = vec![MAGIC.len() + 1];
    while places.last().unwrap() + HEAD_BYTES < whole.len() {
        let at = *places.last().unwrap();
        let length = u32::from_le_bytes(whole[at + 1..at + 5].try_into().unwrap()) as usize;
        places.push(at + HEAD_BYTES + length);
    }
    assert!(places.len() > 5, "{} blocks", places.len() - 1);
    let block = |number: usize| &whole[places[number]..places[number + 1]];
    let start = &whole[..places[1]];
    let swapped = [start, block(2), block(1), &whole[places[3]..]].concat();
    assert!(all_edges(&swapped).unwrap_err().to_string().contains("checksum"));
    assert!(all_edges(&[start, &whole[places[2]..]].concat()).is_err());
}

#[test]
fn random_bytes_behind_right_checksums_never_panic() {
    let mut draw = Draw(99);
    for _ in 0..5_000 {
        let mut bytes = [&MAGIC[..], &[VERSION]].concat();
        for place in 0..1 + draw.below(4) {
            let kind = [super::LABELS, EDGES, END][draw.below(3) as usize];
            let most = if draw.below(4) == 0 { 256 } else { 12 };
            let payload: Vec<u8> = (0..draw.below(30)).map(|_| draw.below(most) as u8).collect();
            bytes.push(kind);
            bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&checksum(place, kind, &payload).to_le_bytes());
            bytes.extend_from_slice(&payload);
        }
        let _ = all_edges(&bytes);
    }
}

#[test]
fn other_versions_and_other_files_are_named() {
    let mut whole = written(&[(0, vec![(0, 0)])], 0, 1);
    whole[8] = 2;
    assert!(all_edges(&whole).unwrap_err().to_string().contains("version 2"));
    assert!(all_edges(b"\x89PNG\r\n\x1a\nxyz").unwrap_err().to_string().contains("not an .lts file"));
    assert!(all_edges(b"").unwrap_err().to_string().contains("empty"));
}

#[test]
fn open_targets_are_for_those_who_ask() {
    let mut writer = LtsWriter::new(Vec::new()).unwrap();
    let label = writer.label("a").unwrap();
    writer.edges(0, &[(label, 1), (label, OPEN), (label, 2)]).unwrap();
    let bytes = writer.finish(0, 3).unwrap();
    assert!(all_edges(&bytes).unwrap_err().to_string().contains("incomplete"));
    let mut reader = LtsReader::with_open(&bytes[..]).unwrap();
    let targets: Vec<u64> = std::iter::from_fn(|| reader.next_edge().unwrap().map(|edge| edge.to)).collect();
    assert_eq!(targets, [1, OPEN, 2]);
}

#[test]
fn a_graph_takes_less_than_a_fifth_of_its_text() {
    // A grid: from each state a step to the right and one down, numbered as a breadth-first search would.
    let side = 300u64;
    let number = |x: u64, y: u64| (x + y) * (x + y + 1) / 2 + y;
    let (mut binary, mut text_bytes) = (LtsWriter::new(Vec::new()).unwrap(), 0);
    let [right, down] = ["right", "down"].map(|label| binary.label(label).unwrap());
    for sum in 0..side {
        for y in 0..=sum {
            let x = sum - y;
            let (from, edges) = (number(x, y), [(right, number(x + 1, y)), (down, number(x, y + 1))]);
            binary.edges(from, &edges).unwrap();
            text_bytes += format!("({from}, \"right\", {})\n({from}, \"down\", {})\n", edges[0].1, edges[1].1).len();
        }
    }
    assert_eq!(binary.transitions(), side * (side + 1));
    let binary = binary.finish(0, number(0, side + 1)).unwrap();
    assert!(binary.len() * 5 < text_bytes, "{} bytes of {text_bytes}", binary.len());
}
