//! Where the database is, and how it is used.

use super::access::Access;
use super::pool::TIMEOUT;
use super::tls::{Tls, Wishes};
use percent_encoding::percent_decode_str;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use tokio_postgres::Config;

/// PostgreSQL takes names of 63 bytes, and the channel for notifications is `redrive_` and this name.
const LONGEST_SCHEMA: usize = 63 - "redrive_".len();
/// How long to wait for a connection, where the address does not say.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How many jobs a list looks at in one call, where nothing else is said.
const LIST_MOST: usize = 10_000;
/// How long the database may take for one answer when a whole store is read or written.
const LONG_TIMEOUT: Duration = Duration::from_secs(600);

/// Where the database is, and how it is used.
#[derive(Clone, Debug)]
pub struct Options {
    pub(super) config: Config,
    pub(super) tls: Tls,
    pub(super) schema: String,
    pub(super) connections: usize,
    pub(super) access: Access,
    /// How many jobs a list looks at in one call, at most.
    pub(super) list_most: usize,
    /// How long the database may take for one answer.
    pub(super) timeout: Duration,
}

impl Options {
    /// The schema, where nothing else is said.
    pub const SCHEMA: &str = "redrive";

    /// Reads an address, such as `postgres://user:password@host:5432/database`. `?schema=name` names the
    /// schema of the store; everything else is as libpq has it, with two exceptions: `sslmode=require` verifies
    /// the server as `verify-full` does, and `prefer` does without encryption only where no password of the
    /// address would leave the machine. Certificates are read here.
    ///
    /// # Errors
    /// What is wrong with the address, or with a certificate that it names; never the address itself, which may hold
    /// a password.
    pub fn read(address: &str) -> Result<Self, String> {
        let mut address = address.to_owned();
        let schema = take("schema", &mut address);
        let wishes = Wishes {
            mode: take("sslmode", &mut address),
            roots: take("sslrootcert", &mut address),
            certificate: take("sslcert", &mut address),
            key: take("sslkey", &mut address),
        };
        let mut config = Config::from_str(&address).map_err(|error| match std::error::Error::source(&error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        })?;
        if config.get_hosts().is_empty() {
            return Err("found no host; allowed is postgres://user@host/database".to_owned());
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("redrive");
        }
        let tls = Tls::new(wishes, &mut config)?;
        let (name, access) = (Self::SCHEMA.to_owned(), Access::Shared);
        let (connections, list_most, timeout) = (16, LIST_MOST, TIMEOUT);
        let options = Self { config, tls, schema: name, connections, access, list_most, timeout };
        schema.map_or(Ok(options.clone()), |schema| options.in_schema(&schema))
    }

    /// In another schema.
    ///
    /// # Errors
    /// The name is not one.
    pub fn in_schema(mut self, schema: &str) -> Result<Self, String> {
        let starts = schema.starts_with(|first: char| first.is_ascii_lowercase());
        let fits = |other: char| other.is_ascii_lowercase() || other.is_ascii_digit() || other == '_';
        if !starts || !schema.chars().all(fits) || schema.len() > LONGEST_SCHEMA {
            return Err(format!(
                "found the schema \"{schema}\"; allowed are up to {LONGEST_SCHEMA} of a-z, 0-9 and _, a letter first"
            ));
        }
        schema.clone_into(&mut self.schema);
        Ok(self)
    }

    /// Sets the largest number of connections for commands, at least two. One more listens.
    #[must_use]
    pub const fn with_connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Sets how many jobs a list looks at in one call at most.
    #[must_use]
    pub const fn with_list_most(mut self, jobs: usize) -> Self {
        self.list_most = jobs;
        self
    }

    /// For one connection that has the store to itself.
    pub(super) fn alone(self) -> Self {
        Self { connections: 1, access: Access::Sole, timeout: LONG_TIMEOUT, ..self }
    }

    /// What each connection is set to. The statements are few and known, each with an index made for it;
    /// plans by statistics that lag behind a growing queue would scan it whole. No statement is worth a second process.
    pub(super) fn session_settings(&self) -> String {
        format!(
            "SET search_path = \"{}\"; SET synchronous_commit = on; SET enable_seqscan = off; \
             SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
             SET jit = off; SET plan_cache_mode = force_generic_plan; SET max_parallel_workers_per_gather = 0; \
             SET idle_in_transaction_session_timeout = '30s'; SET lock_timeout = '10s'",
            self.schema
        )
    }
}

/// For people: where it is, without the password.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or("default");
        write!(f, "database \"{database}\", schema \"{}\"", self.schema)
    }
}

/// Takes a parameter out of an address that the client does not know, or knows less of.
fn take(name: &str, address: &mut String) -> Option<String> {
    // A password may hold a question mark.
    let place = address.find('@').unwrap_or_default();
    let question = place + address.get(place..)?.find('?')?;
    let parameters = address.split_off(question);
    let value_of = |parameter: &&str| Some(parameter.strip_prefix(name)?.strip_prefix('=')?.to_owned());
    let (named, others): (Vec<&str>, Vec<&str>) = parameters
        .trim_start_matches('?')
        .split('&')
        .filter(|parameter| !parameter.is_empty())
        .partition(|parameter| value_of(parameter).is_some());
    if !others.is_empty() {
        *address = format!("{address}?{}", others.join("&"));
    }
    let value = named.last().and_then(value_of)?;
    Some(percent_decode_str(&value).decode_utf8_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_name_the_schema() {
        let read = |address: &str| Options::read(address).map(|options| options.schema);
        assert_eq!(read("postgres://u@h/d"), Ok("redrive".to_owned()));
        assert_eq!(read("postgres://u@h/d?schema=jobs_2"), Ok("jobs_2".to_owned()));
        assert_eq!(read("postgres://u@h/d?connect_timeout=3&schema=jobs&sslmode=disable"), Ok("jobs".to_owned()));
        assert_eq!(read("postgres://u:a?b@h/d?&schema=jobs&"), Ok("jobs".to_owned()));
        let (longest, too_long) = ("s".repeat(55), "s".repeat(56));
        assert_eq!(read(&format!("postgres://u@h/d?schema={longest}")), Ok(longest));
        for wrong in ["a-b", "A", "1a", "", "a\"b", &too_long] {
            let address = format!("postgres://u@h/d?schema={wrong}");
            assert!(Options::read(&address).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_wrong_with_an_address_is_said_without_its_password() {
        for address in ["postgres://u:hush@h/d?nonsense=1", "postgres://u:hush@h/d?sslmode=allow", "postgres:///d"] {
            let Err(message) = Options::read(address) else { panic!("{address} is not allowed") };
            assert!(!message.contains("hush"), "{message}");
        }
    }
}
