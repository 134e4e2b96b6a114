//! The selection of dead letters.

use crate::{client, exit::Failed, when};
use serde_json::{Map, Value};

/// A filter; an absent part matches all.
#[derive(clap::Args, Clone)]
pub(super) struct Filter {
    /// Only those of this queue
    #[arg(long)]
    queue: Option<String>,
    /// Only those of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only those whose last error is of this type
    #[arg(long, value_name = "TYPE")]
    error_type: Option<String>,
    /// Only those that died at this time or later: RFC 3339, or a time ago such as 2h
    #[arg(long, value_name = "TIME", value_parser = when::past)]
    since: Option<String>,
    /// Only those that died before this time: RFC 3339, or a time ago such as 7d
    #[arg(long, value_name = "TIME", value_parser = when::past)]
    until: Option<String>,
}

impl Filter {
    pub(super) fn parts(&self) -> [(&'static str, Option<String>); 5] {
        [
            ("queue", self.queue.clone()),
            ("type", self.kind.clone()),
            ("error_type", self.error_type.clone()),
            ("since", self.since.clone()),
            ("until", self.until.clone()),
        ]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts().iter().all(|(_, value)| value.is_none())
    }

    /// As a query, with further parts.
    pub(super) fn query(&self, more: &[(&str, String)]) -> String {
        let more = more.iter().map(|(key, value)| (*key, Some(value.clone())));
        client::query(&self.parts().into_iter().chain(more).collect::<Vec<_>>())
    }

    /// As an object.
    pub(super) fn object(&self) -> Map<String, Value> {
        self.parts().into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.into()))).collect()
    }
}

/// Some by their ids, or all that match a filter.
#[derive(clap::Args)]
pub(crate) struct Selection {
    /// The ids of the jobs; without ids, a filter or --all
    #[arg(value_name = "ID")]
    pub(super) ids: Vec<String>,
    #[command(flatten)]
    pub(super) filter: Filter,
    /// All of them
    #[arg(long)]
    pub(super) all: bool,
    /// With a filter or --all: do it, instead of printing how many match
    #[arg(long)]
    pub(super) yes: bool,
}

impl Selection {
    /// Refuses an ambiguous or empty selection, so that no dead letter is lost to a slip.
    pub(super) fn check(&self) -> Result<(), Failed> {
        let ways = [!self.ids.is_empty(), !self.filter.is_empty(), self.all].into_iter().filter(|way| *way).count();
        match ways {
            1 if self.yes && !self.ids.is_empty() => {
                Err(Failed::usage("--yes belongs to a filter; ids do not need it"))
            }
            1 => Ok(()),
            0 => Err(Failed::usage(
                "which dead letters? Name ids, or a filter (--queue, --type, --error-type, --since, --until), or --all",
            )),
            _ => Err(Failed::usage("ids, a filter and --all exclude each other; use one of them")),
        }
    }
}
