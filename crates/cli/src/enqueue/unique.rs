//! What a job must be unique in, as flags.

use crate::when;
use redrive_policy::Span;
use serde_json::{Map, Value, json};

#[derive(clap::Args)]
pub(super) struct UniqueArgs {
    /// Only one such job at a time: of its type, and of the same queue, args or meta; several with commas
    #[arg(long, value_name = "type,queue,args,meta", value_delimiter = ',', num_args = 0..=1, require_equals = true,
          default_missing_value = "type", value_parser = ["type", "queue", "args", "meta"])]
    unique: Option<Vec<String>>,
    /// With --unique=args: only these members of the one object that is the argument
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', requires = "unique")]
    unique_args: Option<Vec<String>>,
    /// With --unique: jobs that are older do not count
    #[arg(long, value_name = "DURATION", value_parser = when::above_zero, requires = "unique")]
    unique_for: Option<Span>,
    /// With --unique: jobs in these states count [default: all that have not ended]
    #[arg(long, value_name = "STATE,…", value_delimiter = ',', requires = "unique")]
    unique_states: Option<Vec<String>>,
    /// With --unique: the members of the metadata that count, for --unique=meta
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', requires = "unique")]
    unique_meta: Option<Vec<String>>,
    /// With --unique: what happens to a second job [default: reject]
    #[arg(long, value_name = "HOW", requires = "unique",
          value_parser = ["reject", "ignore", "replace", "replace_except_schedule"])]
    on_conflict: Option<String>,
}

impl UniqueArgs {
    /// The policy as the server takes it.
    pub(super) fn policy(&self) -> Option<Value> {
        let keys = self.unique.as_ref()?;
        let mut policy = Map::new();
        policy.insert("keys".to_owned(), json!(keys));
        let lists =
            [("args_keys", &self.unique_args), ("meta_keys", &self.unique_meta), ("states", &self.unique_states)];
        for (name, list) in lists {
            policy.extend(list.as_ref().map(|list| (name.to_owned(), json!(list))));
        }
        policy.extend(self.unique_for.map(|span| ("period".to_owned(), format!("PT{}S", span.secs()).into())));
        policy.extend(self.on_conflict.as_ref().map(|how| ("on_conflict".to_owned(), how.as_str().into())));
        Some(Value::Object(policy))
    }
}
