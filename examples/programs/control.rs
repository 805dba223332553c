//! A control loop: 2 ms of processor time in each 10 ms, and for a while 4 ms.

use shiftwork_client::{Failure, OwnTask, Reservation, Span};

fn control() {
    // Reads sensors, computes, sets actuators; whatever it does, it does not sleep.
}

fn run() -> Result<(), Failure> {
    let mut reservation = Reservation::new(Span::from_ms(2), Span::from_ms(10));
    let mut task = OwnTask::admit("control", &reservation)?;
    println!("guarantee: {}", task.guarantee());

    let mut skipped = 0;
    for job in 0..20 {
        if job == 10 {
            reservation.cost = Span::from_ms(4);
            if let Err(failure) = task.change(&reservation) {
                eprintln!("it goes on with 2 ms: {failure}");
            }
        }
        control();
        skipped += task.wait_next()?;
    }
    println!("skipped releases: {skipped}");
    task.dismiss()
}

/// Ends with 1 if there is no room, or no daemon.
pub fn main() {
    if let Err(failure) = run() {
        eprintln!("{failure}");
        std::process::exit(1);
    }
}
