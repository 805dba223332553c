//! The nine implementations of G-EDF that Brandenburg and Anderson compare: ready queue (Coarse, Hierarchical,
//! Fine-grained), scheduling at Events or in Quanta (Staggered or not), interrupts on all m CPUs or on 1.

use alloc::boxed::Box;

use shiftwork_model::{CpuId, TaskSet};

use super::{Built, Entry, Invariant, OrderName};
use crate::order::Edf;
use crate::placement::{Alignment, InQuanta, structured_global};
use crate::structure::{Interrupts, ReadyQueue, Structure};

const GLOBAL: Interrupts = Interrupts::Global;
const DEDICATED: Interrupts = Interrupts::Dedicated(CpuId::from_index(0));

pub(super) const CE_M: Entry = Entry {
    summary: "global EDF with a coarse-grained ready queue, event-driven, interrupts on all CPUs",
    ..variant("CEm", GLOBAL, Invariant::Strong, |name, set| {
        event_driven(name, set, ReadyQueue::Coarse, GLOBAL)
    })
};

pub(super) const CQ_M: Entry = Entry {
    summary: "global EDF with a coarse-grained ready queue, in aligned quanta, interrupts on all CPUs",
    ..variant("CQm", GLOBAL, Invariant::Quanta, |name, set| {
        in_quanta(name, set, Alignment::Aligned, GLOBAL)
    })
};

pub(super) const S_CQ_M: Entry = Entry {
    summary: "global EDF with a coarse-grained ready queue, in staggered quanta, interrupts on all CPUs",
    ..variant("S-CQm", GLOBAL, Invariant::Quanta, |name, set| {
        in_quanta(name, set, Alignment::Staggered, GLOBAL)
    })
};

pub(super) const HE_M: Entry = Entry {
    summary: "global EDF with hierarchical ready queues, event-driven, interrupts on all CPUs",
    ..variant("HEm", GLOBAL, Invariant::Strong, |name, set| {
        event_driven(name, set, ReadyQueue::Hierarchical, GLOBAL)
    })
};

pub(super) const FE_M: Entry = Entry {
    summary: "global EDF with a fine-grained ready queue, event-driven, interrupts on all CPUs",
    ..variant("FEm", GLOBAL, Invariant::Strong, |name, set| {
        event_driven(name, set, ReadyQueue::Fine, GLOBAL)
    })
};

pub(super) const CE_1: Entry = Entry {
    summary: "global EDF with a coarse-grained ready queue, event-driven, CPU 0 dedicated to interrupts",
    ..variant("CE1", DEDICATED, Invariant::Packed, |name, set| {
        event_driven(name, set, ReadyQueue::Coarse, DEDICATED)
    })
};

pub(super) const CQ_1: Entry = Entry {
    summary: "global EDF with a coarse-grained ready queue, in aligned quanta, CPU 0 dedicated to interrupts",
    ..variant("CQ1", DEDICATED, Invariant::Quanta, |name, set| {
        in_quanta(name, set, Alignment::Aligned, DEDICATED)
    })
};

pub(super) const S_CQ_1: Entry = Entry {
    summary: "global EDF with a coarse-grained ready queue, in staggered quanta, CPU 0 dedicated to interrupts",
    ..variant("S-CQ1", DEDICATED, Invariant::Quanta, |name, set| {
        in_quanta(name, set, Alignment::Staggered, DEDICATED)
    })
};

pub(super) const FE_1: Entry = Entry {
    summary: "global EDF with a fine-grained ready queue, event-driven, CPU 0 dedicated to interrupts",
    ..variant("FE1", DEDICATED, Invariant::Packed, |name, set| {
        event_driven(name, set, ReadyQueue::Fine, DEDICATED)
    })
};

/// What the nine have in common; the summary is to be filled in.
const fn variant(
    name: &'static str,
    interrupts: Interrupts,
    invariant: Invariant,
    build: fn(&'static str, &TaskSet) -> Built,
) -> Entry {
    Entry {
        name,
        summary: "",
        source: "Brandenburg and Anderson, RTSS 2009",
        domain: match interrupts {
            Interrupts::Global => "every task may use every CPU",
            Interrupts::Dedicated(_) => "every task may use every CPU but 0, at least two CPUs",
        },
        order: OrderName::Edf,
        invariant,
        build,
    }
}

fn event_driven(
    name: &'static str,
    set: &TaskSet,
    queue: ReadyQueue,
    interrupts: Interrupts,
) -> Built {
    let structure = Structure { queue, interrupts };
    Ok(Box::new(structured_global::<Edf>(name, set, structure)?))
}

/// Quanta and coarse-grained queues go together: at a boundary parallel updates do not help.
fn in_quanta(
    name: &'static str,
    set: &TaskSet,
    alignment: Alignment,
    interrupts: Interrupts,
) -> Built {
    let structure = Structure {
        queue: ReadyQueue::Coarse,
        interrupts,
    };
    let policy = InQuanta::<Edf>::new(name, set, structure, alignment)?;
    Ok(Box::new(policy))
}
