//! The channels of a system: numbers, storage, and what a channel name means.
//!
//! Every channel that can exist has a number of its own: global ones in order of declaration, as in SPIN (a model
//! may confuse them with other numbers, and then they should be the same), then local ones slot by slot.
//! Channels of the same shape form a *family*. Members with consecutive numbers that are reached through
//! variables form a *row*: elements of one array, so that a number is an index. Channels that are only ever named
//! directly are variables of their own. A rendezvous channel has a number but no storage.

use super::points::{Holder, Set};
use super::value::Draft;
use super::{Frame, Lowering};
use crate::promela::ast::{Access, Base, Init, Place as Named};
use crate::promela::lexer::Site;
use plimsoll_ir::{BinOp, Expr, Narrow, Place, ProcessId, Scalar, Stmt, Type, VarId};

/// More channels in a row are not all named.
const MOST_NAMED: usize = 4;

/// Channels of one shape.
pub struct Family {
    pub capacity: u32,
    pub fields: Vec<Base>,
}

/// Channels of one family, with consecutive numbers, that are reached through variables.
pub struct Row {
    family: usize,
    first: i64,
    len: usize,
    /// Holds them, unless they are rendezvous channels.
    array: Option<VarId>,
}

pub struct Channel {
    pub family: usize,
    pub id: i64,
    store: Option<Place>,
    /// The slot and proctype whose local it is.
    pub tenant: Option<(usize, usize)>,
    origin: usize,
}

/// What a channel name may mean in a state: one of `list`, or nothing if `bad` holds.
pub struct Targets {
    pub list: Vec<Target>,
    pub bad: Option<Expr>,
}

#[derive(Clone)]
pub struct Target {
    pub family: usize,
    /// `None` for a rendezvous channel.
    pub store: Option<Place>,
    pub id: Expr,
    /// The channels it may be, by number.
    pub members: (i64, i64),
    /// When it is this one; always, if there is no other.
    pub when: Option<Expr>,
}

impl Target {
    pub fn len(&self) -> Place {
        self.store.clone().expect("only buffered channels have a length").field(0)
    }

    pub fn message(&self, index: impl Into<Expr>) -> Place {
        self.store.clone().expect("only buffered channels have messages").field(1).index(index)
    }
}

impl Lowering<'_> {
    /// Does the variable always hold the same channels, so that it needs no storage?
    pub fn is_constant_channel(&self, proctype: Option<usize>, number: usize) -> bool {
        let variable = self.variable(proctype, number);
        if variable.base != Base::Chan {
            return false;
        }
        let holder = Holder::variable(proctype, number);
        if matches!(variable.init, Init::Channel(_)) {
            return !self.points.is_written(&holder);
        }
        self.only_channel(&holder).is_some()
    }

    /// The one global channel that a plain variable can hold.
    fn only_channel(&self, holder: &Holder) -> Option<usize> {
        let variable = self.variable(holder.proctype, holder.variable);
        let set = self.points.of_holder(holder);
        match (variable.len, set.null, set.origins.len(), set.origins.first()) {
            (None, false, 1, Some(&origin)) if self.points.origins[origin].proctype.is_none() => Some(origin),
            _ => None,
        }
    }

    fn variable(&self, proctype: Option<usize>, number: usize) -> &crate::promela::ast::Variable {
        match proctype {
            Some(proctype) => &self.program.proctypes[proctype].locals[number],
            None => &self.program.globals[number],
        }
    }

    /// Numbers all channels; storage is added later by [`Lowering::add_channels`].
    pub fn number_channels(&mut self) {
        let mut instances: Vec<(usize, Option<(usize, usize)>)> = Vec::new();
        let globals = (0..self.points.origins.len()).filter(|&origin| self.points.origins[origin].proctype.is_none());
        instances.extend(globals.map(|origin| (origin, None)));
        for (slot, proctypes) in self.config.slots.iter().enumerate() {
            for &proctype in proctypes {
                let own = |&origin: &usize| self.points.origins[origin].proctype == Some(proctype);
                let locals = (0..self.points.origins.len()).filter(own);
                instances.extend(locals.map(|origin| (origin, Some((slot, proctype)))));
            }
        }
        let indirect = self.indirect_origins();
        let mut before: Option<(usize, bool)> = None;
        for (index, (origin, tenant)) in instances.into_iter().enumerate() {
            let family = self.family_of(self.points.origins[origin].ty);
            let id = index as i64 + 1;
            self.channels.push(Channel { family, id, store: None, tenant, origin });
            if indirect[origin] {
                match self.rows.last_mut() {
                    Some(row) if before == Some((family, true)) => row.len += 1,
                    _ => self.rows.push(Row { family, first: id, len: 1, array: None }),
                }
            }
            before = Some((family, indirect[origin]));
        }
    }

    fn family_of(&mut self, ty: usize) -> usize {
        let shape = &self.program.channels[ty];
        let same = |family: &Family| family.capacity == shape.capacity && family.fields == shape.fields;
        self.families.iter().position(same).unwrap_or_else(|| {
            self.families.push(Family { capacity: shape.capacity, fields: shape.fields.clone() });
            self.families.len() - 1
        })
    }

    /// Is the origin reached other than by the name it was declared with?
    fn indirect_origins(&self) -> Vec<bool> {
        let mut out = vec![false; self.points.origins.len()];
        for (holder, set) in self.points.all() {
            let variable = self.variable(holder.proctype, holder.variable);
            if variable.len.is_none() && self.is_constant_channel(holder.proctype, holder.variable) {
                continue;
            }
            for &origin in &set.origins {
                out[origin] = true;
            }
        }
        out
    }

    /// Adds the variables that hold messages.
    pub fn add_channels(&mut self) {
        for index in 0..self.rows.len() {
            let Row { family, first, len, .. } = self.rows[index];
            if self.families[family].capacity == 0 {
                continue;
            }
            let name = self.row_name(first as usize - 1, len);
            let ty = Type::array(self.record_type(family), len as u32);
            let array = self.system.var(name, ty, None);
            self.declared.push((array, self.site_of(first as usize - 1)));
            self.rows[index].array = Some(array);
            for offset in 0..len {
                self.channels[first as usize - 1 + offset].store = Some(Place::from(array).index(offset as i64));
            }
        }
        for index in 0..self.channels.len() {
            let family = self.channels[index].family;
            if self.channels[index].store.is_some() || self.families[family].capacity == 0 {
                continue;
            }
            let name = self.channel_name(index);
            let owner = self.channels[index].tenant.map(|(slot, _)| ProcessId(slot as u32));
            let store = self.system.var(name, self.record_type(family), owner);
            self.declared.push((store, self.site_of(index)));
            self.channels[index].store = Some(store.into());
        }
    }

    /// Where a channel is declared.
    fn site_of(&self, index: usize) -> Site {
        let origin = &self.points.origins[self.channels[index].origin];
        self.variable(origin.proctype, origin.variable).site
    }

    fn record_type(&self, family: usize) -> Type {
        let Family { capacity, fields, .. } = &self.families[family];
        let bits = u32::BITS - capacity.leading_zeros();
        let message =
            fields.iter().enumerate().map(|(field, &base)| (format!("f{field}"), self.types.scalar(base).into()));
        let message = Type::Record(message.collect());
        Type::channel(*capacity, Scalar::range(0, (1 << bits) - 1), message)
    }

    /// What the channels of a row are called together: like their array, if they are one, or after all of them.
    fn row_name(&self, first: usize, len: usize) -> String {
        let mut names: Vec<String> = (first..first + len).map(|index| self.channel_name(index)).collect();
        names.dedup();
        if names.len() > MOST_NAMED {
            names.truncate(MOST_NAMED);
            names.push("...".into());
        }
        names.join("/")
    }

    fn channel_name(&self, index: usize) -> String {
        let Channel { tenant, origin, .. } = self.channels[index];
        let declared = &self.points.origins[origin];
        let name = &self.variable(declared.proctype, declared.variable).name;
        match tenant {
            Some((slot, proctype)) => format!("{}({slot}).{name}", self.program.proctypes[proctype].name),
            None => name.clone(),
        }
    }

    /// The channel of an origin: the global one, or that of the slot.
    fn instance(&self, origin: usize, slot: Option<usize>) -> Option<&Channel> {
        let global = self.points.origins[origin].proctype.is_none();
        let wanted =
            |channel: &&Channel| channel.origin == origin && (global || channel.tenant.map(|(slot, _)| slot) == slot);
        self.channels.iter().find(wanted)
    }

    /// Numbers of the channels that a declared variable starts with, by scalar.
    pub fn declared_channels(&self, proctype: Option<usize>, number: usize, slot: Option<usize>) -> Vec<(usize, i64)> {
        let of_variable =
            |(_, origin): &(usize, &super::points::Origin)| origin.proctype == proctype && origin.variable == number;
        let origins = self.points.origins.iter().enumerate().filter(of_variable);
        origins.filter_map(|(index, origin)| Some((origin.scalar, self.instance(index, slot)?.id))).collect()
    }

    /// The number of the channel that a place holds.
    pub fn channel_id(&mut self, place: &Named, frame: Frame, draft: &mut Draft) -> Expr {
        let holder = Holder::of(place, frame.proctype);
        if !self.is_constant_channel(holder.proctype, holder.variable) {
            return Expr::read(self.place(place, frame, draft));
        }
        if let Some(origin) = self.only_channel(&holder) {
            return Expr::Const(self.instance(origin, None).map_or(0, |channel| channel.id));
        }
        let ids = self.declared_channels(holder.proctype, holder.variable, frame.slot);
        match place.path.as_slice() {
            [Access::Index(index)] => {
                let index = self.value(index, frame, draft).expr;
                if let Expr::Const(index) = index {
                    return match usize::try_from(index).ok().and_then(|index| ids.get(index)) {
                        Some(&(_, id)) => Expr::Const(id),
                        None => {
                            draft.code.push(Stmt::Fault("array index out of bounds".into()));
                            Expr::Const(0)
                        }
                    };
                }
                let index = draft.keep(index);
                let inside = in_range(&index, 0, ids.len() as i64 - 1);
                let fault = vec![Stmt::Fault("array index out of bounds".into())];
                draft.code.push(Stmt::If { condition: Expr::negate(inside), then: fault, otherwise: Vec::new() });
                let first = ids.first().map_or(0, |&(_, id)| id);
                Expr::binary(BinOp::Add, index, Expr::Const(first))
            }
            _ => Expr::Const(ids.first().map_or(0, |&(_, id)| id)),
        }
    }

    /// What a channel name may mean.
    pub fn targets(&mut self, place: &Named, frame: Frame, draft: &mut Draft) -> Targets {
        let set = self.points.of_place(place, frame.proctype);
        let id = self.channel_id(place, frame, draft);
        if let Expr::Const(number) = id {
            let found = self.channels.iter().find(|channel| channel.id == number);
            let list = found.map(|channel| Target {
                family: channel.family,
                store: channel.store.clone(),
                id: id.clone(),
                members: (number, number),
                when: None,
            });
            return Targets { bad: list.is_none().then_some(Expr::TRUE), list: list.into_iter().collect() };
        }
        let id = draft.keep(id);
        let stale = self.stale(&id, &set, frame);
        let mut targets = self.dynamic_targets(id, &set);
        if !stale.is_empty() {
            targets.bad = Some(Expr::any(targets.bad.into_iter().chain(stale)));
        }
        targets
    }

    /// Conditions saying that the channel died with its process.
    fn stale(&self, id: &Expr, set: &Set, frame: Frame) -> Vec<Expr> {
        let mut out = Vec::new();
        for (slot, proctypes) in self.config.slots.iter().enumerate().filter(|(slot, _)| frame.slot != Some(*slot)) {
            for &proctype in proctypes {
                let own = |channel: &&Channel| {
                    channel.tenant == Some((slot, proctype)) && set.origins.contains(&channel.origin)
                };
                let ids: Vec<i64> = self.channels.iter().filter(own).map(|channel| channel.id).collect();
                if let (Some(&low), Some(&high)) = (ids.iter().min(), ids.iter().max()) {
                    out.push(Expr::all([in_range(id, low, high), self.is_slot_free(slot)]));
                }
            }
        }
        out
    }

    fn dynamic_targets(&self, id: Expr, set: &Set) -> Targets {
        let mut list = Vec::new();
        for row in &self.rows {
            let members = &self.channels[row.first as usize - 1..][..row.len];
            let members = members.iter().filter(|channel| set.origins.contains(&channel.origin));
            let members: Vec<i64> = members.map(|channel| channel.id).collect();
            let (Some(&low), Some(&high)) = (members.iter().min(), members.iter().max()) else { continue };
            let offset = Expr::binary(BinOp::Sub, id.clone(), Expr::Const(row.first));
            let store = row.array.map(|array| Place::from(array).index(offset));
            let when = Some(in_range(&id, low, high));
            list.push(Target { family: row.family, store, id: id.clone(), members: (low, high), when });
        }
        if let [one] = list.as_mut_slice()
            && !set.null
        {
            one.when = None;
            return Targets { list, bad: None };
        }
        let known = Expr::any(list.iter().filter_map(|target| target.when.clone()));
        Targets { list, bad: Some(Expr::negate(known)) }
    }

    /// Empties the local channels of a process.
    pub fn reset_channels(&self, slot: usize, proctype: usize) -> Vec<Stmt> {
        let own = self.channels.iter().filter(|channel| channel.tenant == Some((slot, proctype)));
        own.filter_map(|channel| channel.store.clone()).map(Stmt::Reset).collect()
    }

    /// Sets the channel scalars of a variable that is stored.
    pub fn store_channels(&self, proctype: Option<usize>, number: usize, slot: Option<usize>, to: Place) -> Vec<Stmt> {
        let variable = self.variable(proctype, number);
        let mut places = Vec::new();
        scalar_places(&self.types.variable(self.program, variable), to, &mut places);
        let declared = self.declared_channels(proctype, number, slot);
        declared.into_iter().map(|(scalar, id)| Stmt::assign(places[scalar].clone(), id, Narrow::Wrap)).collect()
    }
}

/// `low <= value && value <= high`
pub fn in_range(value: &Expr, low: i64, high: i64) -> Expr {
    if low == high {
        return Expr::equal(value.clone(), Expr::Const(low));
    }
    let above = Expr::binary(BinOp::Ge, value.clone(), Expr::Const(low));
    let below = Expr::binary(BinOp::Le, value.clone(), Expr::Const(high));
    Expr::all([above, below])
}

/// The places of all scalars of a type, in order.
fn scalar_places(ty: &Type, place: Place, out: &mut Vec<Place>) {
    match ty {
        Type::Scalar(_) => out.push(place),
        Type::Array { element, len } => {
            (0..*len).for_each(|index| scalar_places(element, place.clone().index(index as i64), out))
        }
        Type::Record(fields) => {
            (0u32..).zip(fields).for_each(|(index, (_, ty))| scalar_places(ty, place.clone().field(index), out))
        }
    }
}
