//! The nine implementations of G-EDF that Brandenburg and Anderson compare: ready queue (Coarse, Hierarchical,
//! Fine-grained), scheduling at Events or in Quanta (Staggered or not), interrupts on all m CPUs or on 1.

use alloc::boxed::Box;

use shiftwork_model::{
    Alignment, CpuId, Interrupts, Invariant, PolicyTraits, Preemption, ReadyQueue, Structure,
    TaskSet,
};

use super::traits::{self, published};
use super::{Built, Entry};
use crate::order::Edf;
use crate::placement::{InQuanta, structured_global};

const GLOBAL: Interrupts = Interrupts::Global;
const DEDICATED: Interrupts = Interrupts::Dedicated(CpuId::from_index(0));

pub(super) const CE_M: Entry = Entry {
    summary: "global EDF with a coarse-grained ready queue, event-driven, interrupts on all CPUs",
    ..variant("CEm", at_events(ReadyQueue::Coarse, GLOBAL))
};

pub(super) const CQ_M: Entry = Entry {
    summary: "global EDF with a coarse-grained ready queue, in aligned quanta, interrupts on all CPUs",
    ..variant("CQm", in_quanta(Alignment::Aligned, GLOBAL))
};

pub(super) const S_CQ_M: Entry = Entry {
    summary: "global EDF with a coarse-grained ready queue, in staggered quanta, interrupts on all CPUs",
    ..variant("S-CQm", in_quanta(Alignment::Staggered, GLOBAL))
};

pub(super) const HE_M: Entry = Entry {
    summary: "global EDF with hierarchical ready queues, event-driven, interrupts on all CPUs",
    ..variant("HEm", at_events(ReadyQueue::Hierarchical, GLOBAL))
};

pub(super) const FE_M: Entry = Entry {
    summary: "global EDF with a fine-grained ready queue, event-driven, interrupts on all CPUs",
    ..variant("FEm", at_events(ReadyQueue::Fine, GLOBAL))
};

pub(super) const CE_1: Entry = Entry {
    summary: "global EDF with a coarse-grained ready queue, event-driven, CPU 0 dedicated to interrupts",
    ..variant("CE1", at_events(ReadyQueue::Coarse, DEDICATED))
};

pub(super) const CQ_1: Entry = Entry {
    summary: "global EDF with a coarse-grained ready queue, in aligned quanta, CPU 0 dedicated to interrupts",
    ..variant("CQ1", in_quanta(Alignment::Aligned, DEDICATED))
};

pub(super) const S_CQ_1: Entry = Entry {
    summary: "global EDF with a coarse-grained ready queue, in staggered quanta, CPU 0 dedicated to interrupts",
    ..variant("S-CQ1", in_quanta(Alignment::Staggered, DEDICATED))
};

pub(super) const FE_1: Entry = Entry {
    summary: "global EDF with a fine-grained ready queue, event-driven, CPU 0 dedicated to interrupts",
    ..variant("FE1", at_events(ReadyQueue::Fine, DEDICATED))
};

/// What the nine have in common; the summary is to be filled in.
const fn variant(name: &'static str, traits: PolicyTraits) -> Entry {
    Entry {
        name,
        summary: "",
        source: "Brandenburg and Anderson, RTSS 2009",
        domain: match traits.structure {
            Some(Structure {
                interrupts: Interrupts::Dedicated(_),
                ..
            }) => "every task may use every CPU but 0, at least two CPUs",
            _ => "every task may use every CPU",
        },
        traits,
        build,
    }
}

const fn at_events(queue: ReadyQueue, interrupts: Interrupts) -> PolicyTraits {
    PolicyTraits {
        invariant: match interrupts {
            Interrupts::Global => Invariant::Strong,
            Interrupts::Dedicated(_) => Invariant::Packed,
        },
        structure: Some(Structure { queue, interrupts }),
        ..published(traits::GLOBAL)
    }
}

/// Quanta and coarse-grained queues go together: at a boundary parallel updates do not help.
const fn in_quanta(alignment: Alignment, interrupts: Interrupts) -> PolicyTraits {
    PolicyTraits {
        preemption: Preemption::AtQuanta(alignment),
        invariant: Invariant::Quanta,
        ..at_events(ReadyQueue::Coarse, interrupts)
    }
}

fn build(entry: &Entry, set: &TaskSet) -> Built {
    let (name, traits) = (entry.name, &entry.traits);
    let structure = traits.structure.expect("each of the nine has one");
    Ok(match traits.preemption.alignment() {
        None => Box::new(structured_global::<Edf>(name, set, structure)?),
        Some(alignment) => Box::new(InQuanta::<Edf>::new(name, set, structure, alignment)?),
    })
}
