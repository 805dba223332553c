//! The tables of CPUs and of capacity.

use shiftwork_client::{Cpu, Room, Status};

use crate::table::{Shape, Side, printable, text};

const CPUS: [Shape; 4] = [
    Shape::new("CPU", Side::Left, 1, None),
    Shape::new("running", Side::Left, 0, Some(8)),
    Shape::new("load", Side::Left, 2, None),
    Shape::new("available", Side::Left, 3, None),
];

const ROOMS: [Shape; 3] = [
    Shape::new("CPUs", Side::Left, 0, Some(8)),
    Shape::new("reserved", Side::Left, 2, None),
    Shape::new("free for one task", Side::Left, 1, None),
];

/// What runs on each CPU, and how much of it is used.
pub fn cpus(status: &Status, width: usize) -> String {
    let name = |number: u32| {
        let mut tasks = status.tasks.iter();
        let task = tasks.find(|task| task.task == number);
        task.map_or_else(|| number.to_string(), |task| printable(&task.name))
    };
    let row = |cpu: &Cpu| {
        vec![
            cpu.cpu.to_string(),
            match (cpu.online, cpu.running) {
                (false, _) => "offline".to_owned(),
                (true, Some(number)) => name(number),
                (true, None) => "-".to_owned(),
            },
            percent(cpu.load),
            percent(cpu.share),
        ]
    };
    let rows: Vec<_> = status.cpus.iter().map(row).collect();
    text(&CPUS, &rows, width)
}

/// What is reserved on each set of CPUs, and what else would be admitted.
pub fn rooms(status: &Status, width: usize) -> String {
    let row = |room: &Room| {
        vec![
            printable(&room.cpus),
            format!("{:.3}", room.reserved),
            format!("{:.3}", room.free),
        ]
    };
    let rows: Vec<_> = status.rooms.iter().map(row).collect();
    text(&ROOMS, &rows, width)
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
