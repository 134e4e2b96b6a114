//! Pages of lists.

use crate::fault::Fault;
use crate::json::{member, push_str, push_u64};
use crate::request::Query;
use redrive_store::Page;

/// How many entries a page holds where the caller does not say.
const DEFAULT: usize = 50;

/// What [`page`] reads.
pub(super) const PARAMETERS: &[&str] = &["limit", "offset", "cursor"];

/// The page that a caller asks for: by `offset`, or by the `cursor` that came with the page before.
pub(super) fn page(query: &Query, most: usize) -> Result<Page, Fault> {
    let mut problems = Vec::new();
    let limit = query.number("limit", DEFAULT, most, &mut problems).max(1);
    let key = if query.get("cursor").is_some() { "cursor" } else { "offset" };
    let offset = query.number(key, 0, usize::MAX, &mut problems);
    if problems.is_empty() { Ok(Page { offset, limit }) } else { Err(Fault::invalid(problems)) }
}

/// Writes which page this was, of how many entries (C32).
pub(super) fn push_pagination(out: &mut Vec<u8>, page: Page, total: usize) {
    let next = page.offset.saturating_add(page.limit);
    member(out, "pagination");
    out.push(b'{');
    for (key, number) in [("total", total), ("limit", page.limit), ("offset", page.offset)] {
        member(out, key);
        push_u64(out, number as u64);
    }
    member(out, "has_more");
    out.extend_from_slice(if next < total { b"true" } else { b"false" });
    member(out, "next_cursor");
    if next < total {
        push_str(out, &next.to_string())
    } else {
        out.extend_from_slice(b"null")
    }
    out.push(b'}');
}
