//! How states are held where nobody says it: packed, in a tree, or as they are; and what the first of them may change about that.

use super::{Facts, PlanError, Wishes};
use crate::options::{Order, StoreName};
use crate::presets::Strategy;
use plimsoll_store::packing::{FEW_BITS, FEWEST_BITS, MOST_BITS};
use plimsoll_store::runs::Keep;
use plimsoll_store::{Codec, Row};

pub(super) fn choose_codec(wishes: &Wishes, row: &Row, facts: &Facts) -> Result<Codec, PlanError> {
    let (cached, wish, used_bits) = (row.is_cache(), wishes.store, facts.used_bits());
    let refused = |reason: String| Err(PlanError::Strategy(format!("--store packed is not possible: {reason}")));
    match wish.codec() {
        Some(codec) if cached && !codec.is_injective() => Err(PlanError::Strategy(format!(
            "--store {wish} may take a state for another, so it is for searches that forget none: leave out the cache"
        ))),
        Some(Codec::Plain) if row.has_levels() => Err(PlanError::Strategy(format!(
            "--store plain is not possible: `{row}` holds keys of up to {MOST_BITS} bits, so take packed, tree or auto"
        ))),
        Some(Codec::Packed) if used_bits > MOST_BITS => {
            refused(format!("states use {used_bits} bits, and at most {MOST_BITS} can be packed"))
        }
        Some(codec) => Ok(codec),
        // Nodes of forgotten states stay in the tree; they are few beside the states.
        None if row.has_levels() && used_bits > MOST_BITS => Ok(Codec::Tree),
        // Nodes of forgotten states would stay in a tree.
        None if cached && used_bits > MOST_BITS => Ok(Codec::Plain),
        None if cached => Ok(Codec::Packed),
        // A tree is given up where memory is too little for it; but not if somebody knows states by their keys, or if some have been forgotten.
        None if keeps_keys(wishes, row) && used_bits <= MOST_BITS => Ok(Codec::Packed),
        None if used_bits > FEW_BITS => Ok(Codec::Tree),
        None => Ok(Codec::Packed),
    }
}

/// Must keys stay what they are from the first state on, should states leave memory?
fn keeps_keys(wishes: &Wishes, row: &Row) -> bool {
    let forgets = row.kept_levels().is_some_and(|keep| keep != Keep::All);
    (wishes.disk_bytes > 0 || wishes.checkpoint) && (wishes.numbers || forgets)
}

/// Is it left to the first states whether they stay packed?
pub(super) fn chooses(codec: Codec, wishes: &Wishes, strategy: &Strategy, facts: &Facts) -> bool {
    wishes.store.codec().is_none() && narrows(codec, wishes, strategy, facts) && !keeps_keys(wishes, &strategy.row)
}

/// Do keys of packed states tell no more than the first states show? Observers know states by their keys.
pub(super) fn narrows(codec: Codec, wishes: &Wishes, strategy: &Strategy, facts: &Facts) -> bool {
    let is_exact = strategy.order == Order::Bfs && !strategy.row.is_cache();
    codec == Codec::Packed && is_exact && !wishes.numbers && facts.used_bits() > FEWEST_BITS
}

/// What the report says about how states are held.
pub(super) fn store_name(codec: Codec, wish: StoreName) -> String {
    if wish == StoreName::Compact { format!("{codec}, compact") } else { codec.to_string() }
}
