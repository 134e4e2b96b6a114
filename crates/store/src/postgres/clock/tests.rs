use super::*;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
const NOON: i64 = 1_770_984_000 * SECOND;

/// A clock on a node that counts from `start`, and the hand that moves it.
fn node(start: i64) -> (DatabaseClock, Arc<AtomicI64>) {
    let hand = Arc::new(AtomicI64::new(start));
    let own = Arc::clone(&hand);
    (DatabaseClock::on(move || own.load(Ordering::SeqCst)), hand)
}

/// A database with the clock of the cluster.
#[derive(Default)]
struct Database {
    clock_us: i64,
    offset_us: i64,
    revision: i64,
    latest_us: i64,
}

impl Database {
    fn at(clock_us: i64) -> Self {
        Self { clock_us, ..Self::default() }
    }

    /// A node looks, and takes out what it finds, as [`DatabaseClock::look`] does.
    fn seen_by(&mut self, clock: &DatabaseClock) -> Found {
        let own = (clock.own)();
        let look = |database: &Self| Look {
            asked: own,
            answered: own,
            database_us: database.clock_us,
            offset_us: database.offset_us,
            revision: database.revision,
            latest_us: database.latest_us,
        };
        let found = clock.note(look(self));
        if let Found::Stepped(by_us) = found {
            self.offset_us -= by_us;
            self.revision += 1;
            clock.corrected(look(self), by_us);
        }
        found
    }
}

#[test]
fn nodes_an_hour_apart_show_the_same_time() {
    for start in [NOON, NOON - HOUR, NOON + HOUR, 0] {
        let (clock, hand) = node(start);
        let (database_us, answered) = (NOON, start + 400);
        clock.note(Look { asked: start, answered, database_us, offset_us: 0, revision: 0, latest_us: 0 });
        hand.store(start + 400, Ordering::SeqCst);
        assert_eq!(clock.now().micros(), NOON + 200, "from {start}");
        hand.fetch_add(SECOND, Ordering::SeqCst);
        assert_eq!(clock.now().micros(), NOON + SECOND + 200, "a second later, from {start}");
    }
}

#[test]
fn small_differences_are_followed_and_never_step_back() {
    let (clock, hand) = node(0);
    let mut database = Database::at(1_000);
    assert_eq!(database.seen_by(&clock), Found::Right);
    assert_eq!(clock.now().micros(), 1_000);
    database.clock_us = 400;
    assert_eq!(database.seen_by(&clock), Found::Right);
    for (own, shown) in [(0, 1_000), (599, 1_000), (601, 1_001)] {
        hand.store(own, Ordering::SeqCst);
        assert_eq!(clock.now().micros(), shown);
    }
    assert_eq!(clock.wall(), Wall::default(), "no step");
}

#[test]
fn a_step_of_the_database_is_taken_out_once_for_all_nodes() {
    for step in [-HOUR, HOUR, -2 * SECOND] {
        let mut database = Database::at(NOON);
        let nodes = [node(0), node(HOUR), node(-HOUR)];
        for (clock, hand) in &nodes {
            assert_eq!(database.seen_by(clock), Found::Right);
            hand.fetch_add(10 * SECOND, Ordering::SeqCst);
        }
        database.clock_us += 10 * SECOND + step;
        assert_eq!(nodes.each_ref().map(|(clock, _)| clock.now().micros()), [NOON + 10 * SECOND; 3]);
        assert_eq!(database.seen_by(&nodes[0].0), Found::Stepped(step));
        assert_eq!(database.seen_by(&nodes[1].0), Found::Right);
        assert_eq!(database.seen_by(&nodes[2].0), Found::Right);
        for (clock, _) in &nodes {
            assert_eq!(clock.now().micros(), NOON + 10 * SECOND, "a step of {step}");
            let noticed = Step { at: Moment::from_micros(NOON + 10 * SECOND), by_us: step };
            assert_eq!(
                (clock.check_wall(), clock.check_wall()),
                (Some(noticed), None),
                "it is told once, on each node"
            );
            assert_eq!(clock.wall(), Wall { ahead_us: step, steps: 1, last: Some(noticed) });
        }
        let (late, _) = node(5);
        assert_eq!(database.seen_by(&late), Found::Right);
        assert_eq!((late.now().micros(), late.wall().ahead_us), (NOON + 10 * SECOND, step), "a node that starts later");
    }
}

#[test]
fn a_node_that_did_not_count_its_own_standstill_is_put_right_by_the_others() {
    let mut database = Database::at(NOON);
    let ((stood, _), (other, hand)) = (node(0), node(0));
    database.seen_by(&stood);
    database.seen_by(&other);
    hand.fetch_add(HOUR, Ordering::SeqCst);
    database.clock_us += HOUR;
    assert_eq!(database.seen_by(&stood), Found::Stepped(HOUR), "it takes its own standstill for a step");
    assert_eq!(database.seen_by(&other), Found::Stepped(-HOUR), "which another node does not go back for");
    assert_eq!(database.seen_by(&stood), Found::Right);
    assert_eq!([&stood, &other].map(|clock| clock.now().micros()), [NOON + HOUR; 2]);
    assert_eq!([&stood, &other].map(|clock| clock.wall().ahead_us), [0; 2]);
}

#[test]
fn an_answer_that_took_long_is_no_step() {
    let (clock, hand) = node(0);
    let mut database = Database::at(NOON);
    database.seen_by(&clock);
    hand.store(10 * SECOND, Ordering::SeqCst);
    let look = Look { asked: 0, answered: 10 * SECOND, database_us: NOON, offset_us: 0, revision: 0, latest_us: 0 };
    assert_eq!(clock.note(look), Found::Right);
    assert_eq!(clock.now().micros(), NOON + 10 * SECOND);
}

#[test]
fn a_cluster_that_starts_after_the_clock_was_set_back_goes_on_where_it_was() {
    let mut database = Database { latest_us: NOON, ..Database::at(NOON - HOUR) };
    let (first, _) = node(7);
    assert_eq!(database.seen_by(&first), Found::Stepped(-HOUR));
    assert_eq!((first.now().micros(), first.wall().ahead_us, first.wall().steps), (NOON, -HOUR, 1));
    let (second, _) = node(8);
    assert_eq!(database.seen_by(&second), Found::Right);
    assert_eq!((second.now().micros(), second.wall().ahead_us), (NOON, -HOUR));
}
