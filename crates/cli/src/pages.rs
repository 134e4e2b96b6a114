//! Lists of a server, read page by page.

use crate::client::{Client, Send, query};
use crate::exit::Failed;
use serde_json::{Map, Value};

/// How many entries one request asks for.
const PAGE: usize = 500;

/// A list on the server.
pub(crate) struct List<'a> {
    pub(crate) path: &'a str,
    /// The member of an answer that has the entries.
    pub(crate) entries: &'static str,
    /// The parameter with the number of entries.
    pub(crate) limit: &'static str,
    /// The other parameters.
    pub(crate) filter: Vec<(&'a str, Option<String>)>,
}

/// Entries of a list, and how many there are in all.
pub(crate) struct Listed {
    pub(crate) entries: Vec<Value>,
    pub(crate) total: u64,
    /// There are at least this many; the server has not counted them all.
    pub(crate) at_least: bool,
}

impl List<'_> {
    /// Reads the list until there are `limit` entries, or no more. A page may have fewer entries than were requested,
    /// or none, and not be the last.
    pub(crate) fn read(&self, client: &Client, limit: usize) -> Result<Listed, Failed> {
        let mut found = Listed { entries: Vec::new(), total: 0, at_least: false };
        let mut cursor = None;
        loop {
            let wanted = PAGE.min(limit - found.entries.len());
            let mut parts = self.filter.clone();
            parts.extend([(self.limit, Some(wanted.to_string())), ("cursor", cursor)]);
            let mut answer = client.ask(Send::Get, &format!("{}{}", self.path, query(&parts)))?;
            let Value::Array(entries) = answer[self.entries].take() else {
                let message = format!("the server's answer to {} has no list of {}", self.path, self.entries);
                return Err(Failed { code: 3, message });
            };
            found.entries.extend(entries);
            let pagination = &answer["pagination"];
            found.total = pagination["total"].as_u64().unwrap_or(0);
            found.at_least = pagination["total_at_least"].as_bool() == Some(true);
            cursor = pagination["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() || found.entries.len() >= limit {
                found.entries.truncate(limit);
                return Ok(found);
            }
        }
    }
}

impl Listed {
    /// The list as an object for programs, under `name`.
    pub(crate) fn object(self, name: &str) -> Value {
        let mut object = Map::new();
        object.insert(name.to_owned(), self.entries.into());
        object.insert("total".to_owned(), self.total.into());
        if self.at_least {
            object.insert("total_at_least".to_owned(), true.into());
        }
        object.into()
    }

    /// Prints how many more there are, if there are any.
    pub(crate) fn print_remaining(&self, things: &str) {
        let count = self.entries.len();
        if self.at_least {
            eprintln!("{count} {things}, and there may be more; --limit shows more");
        } else if self.total > count as u64 {
            eprintln!("{count} of {} {things}; --limit shows more", self.total);
        }
    }
}
