//! States that come one by one, as they do depth first. Blocks hide how long memory takes; here all successors of a state are asked for
//! when they are put on the stack, and filters, of which every state needs one line only, are not prepared as for a block.

use super::{Table, Tiers, own};
use crate::batch::shard_of;
use crate::packed::Run;

impl Tiers {
    /// Enters the digest of one state, and says whether it is fresh; nothing if there are not only filters.
    #[inline]
    pub(crate) fn enter_digest(&mut self, high: u64, low: u64) -> Option<bool> {
        match &mut own(&mut self.shards[shard_of(high, self.shard_bits)]).last {
            Table::Filter(filter) if self.ladder.is_none() => Some(filter.insert(high, low)),
            _ => None,
        }
    }

    /// Asks for the lines in which keys with these leading bits will be looked for soon.
    pub(crate) fn expect(&mut self, keys: &[u64]) {
        for high in keys {
            let shard = own(&mut self.shards[shard_of(*high, self.shard_bits)]);
            shard.last.prefetch(Run { high: std::slice::from_ref(high), low: &[] });
        }
    }
}
