//! Where the database is, and how it is used.

use super::access::Access;
use super::pool::PATIENCE;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

/// PostgreSQL takes names of 63 bytes, and the channel for notifications is `redrive_` and this name.
const LONGEST_SCHEMA: usize = 63 - "redrive_".len();
/// How long to wait for a connection, where the address does not say.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the database may take for one answer to whoever reads or writes a store as a whole.
const LONG_PATIENCE: Duration = Duration::from_secs(600);

/// Where the database is, and how it is used.
#[derive(Clone, Debug)]
pub struct Options {
    pub(super) config: Config,
    pub(super) schema: String,
    pub(super) connections: usize,
    pub(super) access: Access,
    /// How long the database may take for one answer.
    pub(super) patience: Duration,
}

impl Options {
    /// The schema, where nothing else is said.
    pub const SCHEMA: &str = "redrive";

    /// Reads an address, such as `postgres://user:password@host:5432/database`. `?schema=name` names the
    /// schema of the store; everything else is as libpq has it.
    ///
    /// # Errors
    /// What is wrong with the address; never the address itself, which may hold a password.
    pub fn read(address: &str) -> Result<Self, String> {
        let (address, schema) = take_schema(address);
        let mut config = Config::from_str(&address).map_err(|error| match std::error::Error::source(&error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        })?;
        if config.get_hosts().is_empty() {
            return Err("found no host; allowed is postgres://user@host/database".to_owned());
        }
        if config.get_ssl_mode() == SslMode::Require {
            return Err("found sslmode=require; encrypted connections are not supported yet: \
                        reach the database over a private network or a local proxy, with sslmode=disable"
                .to_owned());
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("redrive");
        }
        let schema_name = Self::SCHEMA.to_owned();
        let options = Self { config, schema: schema_name, connections: 16, access: Access::Shared, patience: PATIENCE };
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

    /// With at most so many connections for commands, and never less than two. One more listens.
    #[must_use]
    pub const fn with_connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// For one connection that has the store to itself.
    pub(super) fn alone(self) -> Self {
        Self { connections: 1, access: Access::Sole, patience: LONG_PATIENCE, ..self }
    }

    /// What each connection is set to. The statements are few and known, each with an index made for it;
    /// plans by statistics that lag behind a growing queue would scan it whole.
    pub(super) fn session_settings(&self) -> String {
        format!(
            "SET search_path = {}; SET synchronous_commit = on; SET enable_seqscan = off; \
             SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
             SET jit = off; SET idle_in_transaction_session_timeout = '30s'; SET lock_timeout = '10s'",
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

/// Takes `schema=name` out of the parameters of an address.
fn take_schema(address: &str) -> (String, Option<String>) {
    let Some((place, parameters)) = address.split_once('?') else { return (address.to_owned(), None) };
    let (named, others): (Vec<&str>, Vec<&str>) =
        parameters.split('&').partition(|parameter| parameter.starts_with("schema="));
    let schema = named.last().and_then(|parameter| parameter.strip_prefix("schema=")).map(str::to_owned);
    let address = if others.is_empty() { place.to_owned() } else { format!("{place}?{}", others.join("&")) };
    (address, schema)
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
        let (longest, too_long) = ("s".repeat(55), "s".repeat(56));
        assert_eq!(read(&format!("postgres://u@h/d?schema={longest}")), Ok(longest));
        for wrong in ["a-b", "A", "1a", "", "a\"b", &too_long] {
            let address = format!("postgres://u@h/d?schema={wrong}");
            assert!(Options::read(&address).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_wrong_with_an_address_is_said_without_its_password() {
        for address in ["postgres://u:hush@h/d?nonsense=1", "postgres://u:hush@h/d?sslmode=require", "postgres:///d"] {
            let Err(message) = Options::read(address) else { panic!("{address} is not allowed") };
            assert!(!message.contains("hush"), "{message}");
        }
    }
}
