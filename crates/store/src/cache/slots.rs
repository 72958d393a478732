//! The entries of a cache: keys with what is remembered about them, and an index by hash.
//!
//! Slots never move, so a slot's number names its entry as long as it lives. The index chains slots through
//! their first word, so that deleting takes constant time. After that come, with `cover`, the parent and the number of
//! pins; a byte for the rule of each tier; the key. The arrays grow in steps up to a limit; when the grant refuses to
//! grow, what there is becomes the limit.

use super::key::{KeyForm, bytes_mut};
use crate::budget::Grant;
use crate::hash;
use crate::region::{Region, prefetch};

/// No slot.
pub(super) const NONE: u32 = u32::MAX;
const FIRST_SLOTS: usize = 64;

const WORD: usize = 4;
/// Where words begin in a slot.
const NEXT: usize = 0;
const PARENT: usize = WORD;
const PINS: usize = 2 * WORD;

/// What a slot has beside its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// Does it have a parent, and are its pins counted?
    pub ancestry: bool,
    /// Bytes that rules remember.
    pub memories: usize,
}

impl Parts {
    /// Where the memories begin.
    const fn memories_at(self) -> usize {
        if self.ancestry { 3 * WORD } else { WORD }
    }

    const fn key_at(self) -> usize {
        self.memories_at() + self.memories
    }

    /// Bytes of an entry, its part of the index included.
    pub fn bytes_per_entry(self, form: KeyForm) -> usize {
        self.key_at() + form.kept_bytes() + WORD
    }
}

/// Keys of one length with what is remembered about them.
#[derive(Debug)]
pub(super) struct Slots {
    form: KeyForm,
    parts: Parts,
    stride: usize,
    table: Region,
    index: Region,
    /// Slots that exist, and as many chains.
    count: usize,
    live: usize,
    /// First free slot plus one; free slots are chained like others.
    free: u32,
    limit: usize,
}

impl Slots {
    pub fn new(form: KeyForm, parts: Parts, limit: usize, grant: &Grant) -> Slots {
        let (table, index) = (Region::new(grant.clone()), Region::new(grant.clone()));
        let (stride, limit) = (parts.key_at() + form.kept_bytes(), limit.min(NONE as usize - 1));
        Slots { form, parts, stride, table, index, count: 0, live: 0, free: 0, limit }
    }

    pub fn form(&self) -> KeyForm {
        self.form
    }

    pub fn live(&self) -> usize {
        self.live
    }

    /// Slots that exist or may come to exist.
    pub fn limit(&self) -> usize {
        self.limit
    }

    pub fn count(&self) -> usize {
        self.count
    }

    pub fn bytes(&self) -> usize {
        self.table.bytes() + self.index.bytes()
    }

    /// Is there no free slot?
    pub fn is_full(&self) -> bool {
        self.live == self.count
    }

    /// How many slots there should be next, if more are allowed.
    pub fn next_count(&self) -> Option<usize> {
        (self.count < self.limit).then(|| (self.count * 2).max(FIRST_SLOTS).min(self.limit))
    }

    /// No growth beyond what exists.
    pub fn settle(&mut self) {
        self.limit = self.count;
    }

    /// Makes `count` slots, all of the old ones being live.
    #[must_use]
    pub fn grow(&mut self, count: usize) -> bool {
        assert!(self.is_full() && self.free == 0);
        if !self.table.grow(count * self.stride) || !self.index.grow(count * WORD) {
            return false;
        }
        self.index.words_mut().fill(0);
        let old = std::mem::replace(&mut self.count, count);
        for slot in 0..old as u32 {
            let chain = self.chain_of(slot);
            self.link(slot, chain);
        }
        for slot in (old..count).rev() {
            self.set_word(slot as u32, NEXT, self.free);
            self.free = slot as u32 + 1;
        }
        true
    }

    #[inline]
    fn chain(&self, hash: u64) -> usize {
        hash::scale(self.form.own(hash), self.count)
    }

    fn chain_of(&mut self, slot: u32) -> usize {
        let (form, key_at) = (self.form, self.parts.key_at());
        let own = form.own_of_kept(&self.slot(slot)[key_at..]);
        hash::scale(own, self.count)
    }

    #[inline]
    pub fn prefetch(&self, hash: u64) {
        if self.count > 0 {
            prefetch(&self.index.words()[self.chain(hash)]);
        }
    }

    /// The slot that holds `key`.
    #[inline]
    pub fn find(&mut self, key: &[u8], hash: u64) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        let (chain, stride, key_at) = (self.chain(hash), self.stride, self.parts.key_at());
        let key = self.form.kept(key);
        let mut next = self.index.words_mut()[chain];
        let table = bytes_mut(&mut self.table);
        while next != 0 {
            let slot = &table[(next - 1) as usize * stride..][..stride];
            if slot[key_at..] == *key {
                return Some(next - 1);
            }
            next = word(slot, NEXT);
        }
        None
    }

    /// Takes a free slot for `key`, without a parent or pins; what the rules remember is the caller's to set.
    #[inline]
    pub fn add(&mut self, key: &[u8], hash: u64) -> u32 {
        assert!(self.free != 0);
        let slot = self.free - 1;
        self.free = self.word(slot, NEXT);
        let (form, key_at) = (self.form, self.parts.key_at());
        self.slot(slot)[key_at..].copy_from_slice(form.kept(key));
        if self.parts.ancestry {
            self.set_word(slot, PARENT, NONE);
            self.set_word(slot, PINS, 0);
        }
        self.live += 1;
        let chain = self.chain(hash);
        self.link(slot, chain);
        slot
    }

    pub fn remove(&mut self, slot: u32) {
        let chain = self.chain_of(slot);
        let after = self.word(slot, NEXT);
        let mut before = self.index.words_mut()[chain];
        if before == slot + 1 {
            self.index.words_mut()[chain] = after;
        } else {
            while self.word(before - 1, NEXT) != slot + 1 {
                before = self.word(before - 1, NEXT);
            }
            self.set_word(before - 1, NEXT, after);
        }
        self.set_word(slot, NEXT, self.free);
        self.free = slot + 1;
        self.live -= 1;
    }

    /// Visits the leading bits of all keys.
    pub fn visit(&mut self, mut visit: impl FnMut(u64)) {
        let (form, key_at) = (self.form, self.parts.key_at());
        for chain in 0..self.count {
            let mut next = self.index.words_mut()[chain];
            while next != 0 {
                let slot = self.slot(next - 1);
                visit(form.leading_of_kept(&slot[key_at..]));
                next = word(slot, NEXT);
            }
        }
    }

    fn link(&mut self, slot: u32, chain: usize) {
        let head = std::mem::replace(&mut self.index.words_mut()[chain], slot + 1);
        self.set_word(slot, NEXT, head);
    }

    #[inline]
    fn slot(&mut self, slot: u32) -> &mut [u8] {
        let stride = self.stride;
        &mut bytes_mut(&mut self.table)[slot as usize * stride..][..stride]
    }

    #[inline]
    fn word(&mut self, slot: u32, at: usize) -> u32 {
        word(self.slot(slot), at)
    }

    #[inline]
    fn set_word(&mut self, slot: u32, at: usize, value: u32) {
        self.slot(slot)[at..][..WORD].copy_from_slice(&value.to_ne_bytes());
    }

    /// What the rules of the tiers remember.
    #[inline]
    pub fn memories(&mut self, slot: u32) -> &mut [u8] {
        let (from, to) = (self.parts.memories_at(), self.parts.key_at());
        &mut self.slot(slot)[from..to]
    }

    pub fn parent(&mut self, slot: u32) -> u32 {
        if self.parts.ancestry { self.word(slot, PARENT) } else { NONE }
    }

    pub fn set_parent(&mut self, slot: u32, parent: u32) {
        debug_assert!(self.parts.ancestry);
        self.set_word(slot, PARENT, parent);
    }

    /// For how many reasons the entry must stay, where they are counted.
    pub fn pins(&mut self, slot: u32) -> u32 {
        debug_assert!(self.parts.ancestry);
        self.word(slot, PINS)
    }

    pub fn set_pins(&mut self, slot: u32, pins: u32) {
        debug_assert!(self.parts.ancestry);
        self.set_word(slot, PINS, pins);
    }
}

#[inline]
fn word(slot: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(slot[at..][..WORD].try_into().expect("a word has four bytes"))
}
