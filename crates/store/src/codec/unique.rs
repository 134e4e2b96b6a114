//! What a job must be unique in, as bytes within its row.

use super::{Decoder, Encode, Malformed, Unreadable};
use crate::{OnConflict, States, Unique, UniqueKey};

/// The lowest bits are the number of what happens to a duplicate.
const ON_CONFLICT: u8 = 3;
const PERIOD: u8 = 1 << 2;
const SCHEDULE: u8 = 1 << 3;

pub(super) fn encode(unique: &Unique, out: &mut Vec<u8>) {
    let Unique { key, states, period, on_conflict, schedule } = unique;
    let parts = u8::from(period.is_some()) * PERIOD + u8::from(schedule.is_some()) * SCHEDULE;
    out.raw(&key.0);
    out.byte(states.bits());
    out.byte(*on_conflict as u8 | parts);
    if let Some(period) = period {
        out.span(*period);
    }
    if let Some(schedule) = schedule {
        out.moment(*schedule);
    }
}

pub(super) fn decode(from: &mut Decoder<'_>) -> Result<Unique, Unreadable> {
    let key = UniqueKey(from.array()?);
    let [states, parts] = from.array()?;
    if parts & !(ON_CONFLICT | PERIOD | SCHEDULE) != 0 {
        return Err(Malformed("a uniqueness has parts that this format does not know"));
    }
    let on_conflict = OnConflict::ALL[usize::from(parts & ON_CONFLICT)];
    let period = if parts & PERIOD != 0 { Some(from.span()?) } else { None };
    let schedule = if parts & SCHEDULE != 0 { Some(from.moment()?) } else { None };
    Ok(Unique { key, states: States::from_bits(states), period, on_conflict, schedule })
}
