//! The limits of a job, and what is set for a group, as bytes.

use super::{Decoder, Encode, Malformed, Unreadable, version};
use crate::limit::{GroupRow, Starts};
use crate::{Bounds, Limits, OnLimit, OwnLimit, Rate, Setting};

/// The version of both.
const VERSION: u8 = 1;

pub(crate) fn encode(limits: &Limits, out: &mut Vec<u8>) {
    out.byte(VERSION);
    out.byte(u8::from(limits.own.is_some()) | u8::from(limits.by_kind) << 1);
    if let Some(own) = &limits.own {
        out.text(&own.key);
        out.byte(own.on_limit as u8);
        encode_bounds(&own.bounds, out);
    }
}

pub(crate) fn decode(from: &mut Decoder<'_>) -> Result<Limits, Unreadable> {
    version(from, "a limit", VERSION)?;
    let flags = from.byte()?;
    if flags > 3 {
        return Err(Malformed("a limit has parts that this format does not know"));
    }
    let own = if flags & 1 != 0 {
        let key = from.text()?.into();
        let on_limit = match from.byte()? {
            0 => OnLimit::Wait,
            1 => OnLimit::Reschedule,
            2 => OnLimit::Drop,
            _ => return Err(Malformed("what happens at a limit is not known")),
        };
        Some(OwnLimit { key, on_limit, bounds: decode_bounds(from)? })
    } else {
        None
    };
    Ok(Limits { own, by_kind: flags & 2 != 0 })
}

pub(crate) fn encode_group(row: &GroupRow, out: &mut Vec<u8>) {
    out.byte(VERSION);
    let GroupRow { setting, starts, held } = row;
    out.byte(u8::from(setting.is_some()) | u8::from(held.is_some()) << 1);
    if let Some(setting) = setting {
        encode_bounds(&setting.bounds, out);
        out.byte(u8::from(setting.until.is_some()) | u8::from(setting.depth.is_some()) << 1);
        setting.until.into_iter().for_each(|until| out.moment(until));
        setting.depth.into_iter().for_each(|depth| out.count(depth));
        out.bytes(&setting.text);
    }
    held.iter().for_each(|held| out.moment(*held));
    starts.encode(out);
}

pub(crate) fn decode_group(from: &mut Decoder<'_>) -> Result<GroupRow, Unreadable> {
    version(from, "what is stored of a group", VERSION)?;
    let flags = from.byte()?;
    if flags > 3 {
        return Err(Malformed("a group has parts that this format does not know"));
    }
    let setting = if flags & 1 != 0 { Some(decode_setting(from)?) } else { None };
    let held = if flags & 2 != 0 { Some(from.moment()?) } else { None };
    Ok(GroupRow { setting, held, starts: Starts::decode(from)? })
}

fn decode_setting(from: &mut Decoder<'_>) -> Result<Setting, Unreadable> {
    let bounds = decode_bounds(from)?;
    let flags = from.byte()?;
    if flags > 3 {
        return Err(Malformed("a setting has parts that this format does not know"));
    }
    let until = if flags & 1 != 0 { Some(from.moment()?) } else { None };
    let depth = if flags & 2 != 0 { Some(from.count()?) } else { None };
    Ok(Setting { bounds, until, depth, text: from.bytes()?.into() })
}

fn encode_bounds(bounds: &Bounds, out: &mut Vec<u8>) {
    let Bounds { concurrency, rate, throttle } = bounds;
    let flags = [concurrency.is_some(), rate.is_some(), throttle.is_some()];
    out.byte((0..).zip(flags).map(|(place, flag)| u8::from(flag) << place).sum());
    concurrency.iter().for_each(|most| out.count(u64::from(*most)));
    for rate in [rate, throttle].into_iter().flatten() {
        out.count(u64::from(rate.limit));
        out.span(rate.period);
    }
}

fn decode_bounds(from: &mut Decoder<'_>) -> Result<Bounds, Unreadable> {
    let flags = from.byte()?;
    if flags > 7 {
        return Err(Malformed("bounds have parts that this format does not know"));
    }
    let concurrency = if flags & 1 != 0 { Some(from.small()?) } else { None };
    let mut rate = |flag: u8| -> Result<Option<Rate>, Unreadable> {
        if flags & flag == 0 {
            return Ok(None);
        }
        Ok(Some(Rate { limit: from.small()?, period: from.span()? }))
    };
    Ok(Bounds { concurrency, rate: rate(2)?, throttle: rate(4)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_policy::{Moment, Span};

    fn bounds() -> Bounds {
        let rate = |limit, secs| Some(Rate { limit, period: Span::from_secs(secs) });
        Bounds { concurrency: Some(3), rate: rate(100, 60), throttle: rate(1, 2) }
    }

    #[test]
    fn what_is_written_is_read() {
        let plain = Limits::default();
        let own = Limits::own("stripe", bounds());
        let mut dropped = Limits { by_kind: true, ..own.clone() };
        dropped.own.as_mut().unwrap().on_limit = OnLimit::Drop;
        for limits in [plain, own, dropped] {
            let mut bytes = Vec::new();
            encode(&limits, &mut bytes);
            let mut from = Decoder::new(&bytes);
            assert_eq!(decode(&mut from).unwrap(), limits);
            assert!(from.is_empty());
        }
        let mut starts = Starts::default();
        starts.push(Moment::from_micros(5), Span::from_secs(1));
        let until = Some(Moment::from_micros(7));
        let setting = Setting { bounds: bounds(), until, depth: Some(50_000), text: Default::default() };
        let full = GroupRow { setting: Some(setting), starts, held: until };
        for row in [GroupRow::default(), full] {
            let mut bytes = Vec::new();
            encode_group(&row, &mut bytes);
            let mut from = Decoder::new(&bytes);
            assert_eq!(decode_group(&mut from).unwrap(), row);
            assert!(from.is_empty());
        }
    }
}
