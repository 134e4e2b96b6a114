use super::*;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
const NOON: i64 = 1_770_984_000 * SECOND;

/// The two clocks of a machine, moved by hand, and what was saved for the next process.
#[derive(Clone, Default)]
struct Machine {
    elapsed: Arc<AtomicI64>,
    wall: Arc<AtomicI64>,
    saved: Arc<Mutex<Vec<(i64, i64)>>>,
}

impl Machine {
    fn at(wall: i64) -> Self {
        let machine = Self::default();
        machine.set(wall);
        machine
    }

    fn set(&self, wall: i64) {
        self.wall.store(wall, Ordering::SeqCst);
    }

    fn pass(&self, micros: i64) {
        self.elapsed.fetch_add(micros, Ordering::SeqCst);
        self.wall.fetch_add(micros, Ordering::SeqCst);
    }

    fn clock_after(&self, latest: i64, ahead_us: i64) -> SystemClock {
        let (elapsed, wall, saved) = (Arc::clone(&self.elapsed), Arc::clone(&self.wall), Arc::clone(&self.saved));
        let save = move |at: Moment, ahead| saved.lock().unwrap().push((at.micros(), ahead));
        let read = |source: Arc<AtomicI64>| move || source.load(Ordering::SeqCst);
        let latest = Moment::from_micros(latest);
        SystemClock::on(Box::new(read(elapsed)), Box::new(read(wall)), latest, ahead_us, Box::new(save))
    }

    fn clock(&self) -> SystemClock {
        self.clock_after(i64::MIN, 0)
    }

    fn last_saved(&self) -> Option<(i64, i64)> {
        self.saved.lock().unwrap().last().copied()
    }
}

#[test]
fn time_goes_on_when_the_wall_clock_is_set_back_or_forward() {
    for step in [-HOUR, HOUR, -2 * SECOND, 24 * HOUR] {
        let machine = Machine::at(NOON);
        let clock = machine.clock();
        machine.pass(10 * SECOND);
        machine.set(NOON + 10 * SECOND + step);
        assert_eq!(clock.now().micros(), NOON + 10 * SECOND, "a step of {step}");
        let noticed = Step { at: Moment::from_micros(NOON + 10 * SECOND), by_us: step };
        assert_eq!(clock.check_wall(), Some(noticed));
        assert_eq!(clock.check_wall(), None, "it is told once");
        assert_eq!(clock.wall(), Wall { ahead_us: step, steps: 1, last: Some(noticed) });
        assert_eq!(machine.last_saved(), Some((NOON + 10 * SECOND, step)), "and saved");
        machine.pass(2 * SECOND);
        assert_eq!(clock.now().micros(), NOON + 12 * SECOND);
        assert_eq!(clock.check_wall(), None);
    }
}

#[test]
fn steps_add_up() {
    let machine = Machine::at(NOON);
    let clock = machine.clock();
    for (wall, ahead) in [(NOON + HOUR, HOUR), (NOON - HOUR, -HOUR), (NOON, 0)] {
        machine.set(wall);
        assert!(clock.check_wall().is_some());
        assert_eq!(clock.wall().ahead_us, ahead);
    }
    assert_eq!((clock.wall().steps, clock.now().micros()), (3, NOON));
}

#[test]
fn small_differences_are_made_up_for_slowly() {
    for drift in [300_000, -300_000] {
        let machine = Machine::at(NOON);
        let clock = machine.clock();
        machine.set(NOON + drift);
        let mut shown = clock.now().micros();
        for _ in 0..1_000 {
            machine.pass(SECOND);
            assert_eq!(clock.check_wall(), None, "no step");
            let now = clock.now().micros();
            assert!((now - shown - SECOND).abs() <= SECOND * SLEW_PPM / 1_000_000, "a second took {}", now - shown);
            shown = now;
        }
        assert_eq!(shown, NOON + drift + 1_000 * SECOND, "the two are together again");
    }
}

#[test]
fn a_reading_that_was_interrupted_says_nothing() {
    let machine = Machine::at(NOON);
    let (elapsed, wall) = (Arc::clone(&machine.elapsed), Arc::clone(&machine.wall));
    // The process stands still for an hour between the reading of the one clock and of the other.
    let interrupted = move || {
        elapsed.fetch_add(HOUR, Ordering::SeqCst);
        wall.fetch_add(HOUR, Ordering::SeqCst)
    };
    let elapsed = Arc::clone(&machine.elapsed);
    let elapsed = move || elapsed.load(Ordering::SeqCst);
    let begin = Moment::from_micros(i64::MIN);
    let clock = SystemClock::on(Box::new(elapsed), Box::new(interrupted), begin, 0, Box::new(|_, _| {}));
    assert_eq!((clock.check_wall(), clock.wall().steps), (None, 0));
}

#[test]
fn a_restart_goes_on_after_the_last_moment_that_is_known() {
    let machine = Machine::at(NOON - HOUR);
    let clock = machine.clock_after(NOON, 0);
    assert_eq!(clock.now().micros(), NOON, "the wall clock was set back in between");
    let step = clock.check_wall().expect("that is told");
    assert_eq!((step.by_us, clock.wall().ahead_us, machine.last_saved()), (-HOUR, -HOUR, Some((NOON, -HOUR))));
    assert_eq!(clock.check_wall(), None, "once");
    machine.pass(SECOND);
    clock.save();
    assert_eq!(machine.last_saved(), Some((NOON + SECOND, -HOUR)));
}

#[test]
fn a_restart_keeps_the_distance_from_the_wall_clock() {
    let machine = Machine::at(NOON + HOUR);
    // The last process had seen the wall clock go forward by an hour; ten minutes have passed since it ended.
    let clock = machine.clock_after(NOON - 600 * SECOND, HOUR);
    assert_eq!((clock.now().micros(), clock.check_wall(), clock.wall().ahead_us), (NOON, None, HOUR));
}
