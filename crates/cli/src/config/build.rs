//! Builds the configuration of the server from all sources, and lists every problem.

use super::setting::{self, TypedValue};
use super::source::{Origin, Problems, Sources};
use super::table::Table;
use super::{groups, names};
use crate::enqueue::policy_document;
use crate::log;
use redrive_engine::{Layer, Layers, OperatorCap, PolicyDocument, Settings};
use redrive_policy::Span;
use redrive_policy::dialect::Dialect;
use redrive_server::{ApiKeys, AzollaSettings, BackupSchedule, Hosts, Leases, Limits, SecretKeys, WebhookSettings};
use redrive_store::{Group, Retention, Setting};
use serde_json::Value;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The configuration of the server.
pub(crate) struct ServerConfig {
    pub(crate) listen: SocketAddr,
    /// Where Azolla's protocol is served, if it is.
    pub(crate) azolla_listen: Option<SocketAddr>,
    pub(crate) azolla: AzollaSettings,
    pub(crate) location: StoreLocation,
    /// The folder for backups.
    pub(crate) backups: Option<PathBuf>,
    /// Those that the server makes by itself.
    pub(crate) backup_schedule: Option<BackupSchedule>,
    pub(crate) threads: usize,
    pub(crate) keys: ApiKeys,
    /// Whether everyone may call, without any key.
    pub(crate) anyone_may_call: bool,
    /// The keys for secrets that callers store.
    pub(crate) secret_keys: SecretKeys,
    pub(crate) hosts: Hosts,
    pub(crate) test_directives: bool,
    pub(crate) webhooks: WebhookSettings,
    pub(crate) limits: Limits,
    pub(crate) engine: Settings,
    /// The leases of states of graphs.
    pub(crate) leases: Leases,
    /// What the file sets for queues, types and keys.
    pub(crate) groups: Vec<(Group, Setting)>,
    pub(crate) log: log::Settings,
}

/// Where the store is.
pub(crate) enum StoreLocation {
    /// In a folder on this machine.
    Folder(PathBuf),
    /// In a database.
    Postgres(Box<redrive_store::postgres::Options>),
}

/// Checks everything, and lists everything that is wrong.
pub(super) fn build(sources: &Sources) -> Result<ServerConfig, Problems> {
    let mut from = Reader { sources, problems: sources.problems.clone() };
    let keys = from.keys();
    let secret_keys = from.secret_keys();
    let listen = from.listen("listen");
    let anyone_may_call = from.anyone_may_call(&keys);
    let has_azolla = !from.text("azolla_listen").is_empty();
    let azolla_listen = has_azolla.then(|| from.listen("azolla_listen")).flatten();
    let azolla = from.azolla();
    let (hosts, test_directives) = (from.hosts(), from.flag("allow_test_directives"));
    let webhooks = WebhookSettings {
        allow_private: from.flag("webhooks.allow_private"),
        allow_http: from.flag("webhooks.allow_http"),
    };
    let limits = from.limits();
    let layers = from.layers();
    let engine = layers.map(|layers| Settings {
        lease: from.span("lease"),
        timeout: Some(from.span("timeout")),
        retention: Retention { finished: from.span("retention.finished"), dead: from.span("retention.dead") },
        most_releases: from.number("releases"),
        max_depth: Some(from.number("max_depth")),
        most_claimed: limits.fetch,
        ..Settings::new(layers)
    });
    let (groups, leases) = (from.groups(), from.leases());
    let log = from.log();
    let (location, threads) = (from.location(), from.number("threads"));
    let backups = Some(from.text("backups")).filter(|text| !text.is_empty()).map(PathBuf::from);
    let backup_schedule = from.backup_schedule(backups.is_some(), location.as_ref());
    match (engine, listen, location) {
        (Some(engine), Some(listen), Some(location)) if from.problems.list.is_empty() => Ok(ServerConfig {
            listen,
            azolla_listen,
            azolla,
            location,
            backups,
            backup_schedule,
            threads,
            keys,
            anyone_may_call,
            secret_keys,
            hosts,
            test_directives,
            webhooks,
            limits,
            engine,
            leases,
            groups,
            log,
        }),
        _ => Err(from.problems),
    }
}

/// Whether a name is valid for a queue or a job type; if not, why.
type NameCheck = fn(&str) -> Result<(), String>;

pub(super) struct Reader<'s> {
    pub(super) sources: &'s Sources,
    pub(super) problems: Problems,
}

impl Reader<'_> {
    pub(super) fn wrong(&mut self, key: &str, message: &str) {
        let origin = self.sources.get(key).map(|(_, _, origin)| origin);
        self.problems.is_usage |= matches!(origin, Some(Origin::Flag(_)));
        let origin = origin.map(|origin| format!("{origin}: ")).unwrap_or_default();
        self.problems.list.push(format!("{origin}{key}: {message}"));
    }

    fn read(&mut self, key: &str) -> Option<TypedValue> {
        let (setting, text, _) = self.sources.get(key)?;
        setting
            .kind
            .read(text)
            .map_err(|allowed| self.wrong(key, &format!("found \"{text}\"; allowed is {allowed}")))
            .ok()
    }

    pub(super) fn text(&mut self, key: &str) -> String {
        match self.read(key) {
            Some(TypedValue::Text(text)) => text,
            _ => String::new(),
        }
    }

    /// A number; zero if it is invalid, and then the server does not start.
    pub(super) fn number<T: TryFrom<u64> + Default>(&mut self, key: &str) -> T {
        match self.read(key) {
            Some(TypedValue::Number(number)) => T::try_from(number).unwrap_or_default(),
            _ => T::default(),
        }
    }

    fn span(&mut self, key: &str) -> Span {
        match self.read(key) {
            Some(TypedValue::Duration(span)) => span,
            _ => Span::ZERO,
        }
    }

    pub(super) fn flag(&mut self, key: &str) -> bool {
        self.read(key) == Some(TypedValue::Flag(true))
    }

    pub(super) fn duration(&mut self, key: &str) -> Duration {
        self.span(key).into()
    }

    fn limits(&mut self) -> Limits {
        Limits {
            body_bytes: self.number("limits.body_bytes"),
            args_bytes: self.number("limits.args_bytes"),
            error_bytes: self.number("limits.error_bytes"),
            nesting: self.number("limits.nesting"),
            batch: self.number("limits.batch"),
            workflow: self.number("limits.workflow"),
            fetch: self.number("limits.fetch"),
            page: self.number("limits.page"),
            answer_bytes: self.number("limits.answer_bytes"),
            bulk: self.number("limits.bulk"),
            name_bytes: self.number("limits.name_bytes"),
            connections: self.number("limits.connections"),
            connections_per_address: self.number("limits.connections_per_address"),
            header_timeout: self.duration("limits.header_timeout"),
            body_timeout: self.duration("limits.body_timeout"),
            write_timeout: self.duration("limits.write_timeout"),
            long_poll: self.duration("limits.long_poll"),
            long_polls: self.number("limits.long_polls"),
            streams: self.number("limits.streams"),
            stream_events: self.number("limits.stream_events"),
            stream_heartbeat: self.duration("limits.stream_heartbeat"),
            stream_idle: self.duration("limits.stream_idle"),
            metric_labels: self.number("limits.metric_labels"),
            drain: self.duration("limits.drain"),
        }
    }

    fn log(&mut self) -> log::Settings {
        let (filter, format) = (self.text("log.level"), self.text("log.format"));
        let read = log::filter(&filter);
        if read.is_none() {
            self.wrong("log.level", &format!("found \"{filter}\"; allowed is {}", setting::LOG_LEVEL));
        }
        let format = format.parse().map_err(|()| {
            self.wrong("log.format", &format!("found \"{format}\"; allowed is {}", setting::LOG_FORMAT));
        });
        let default = log::Settings::default();
        log::Settings { format: format.unwrap_or_default(), filter: read.unwrap_or(default.filter) }
    }

    fn hosts(&mut self) -> Hosts {
        let (list, listen) = (self.text("hosts"), self.text("listen"));
        Hosts::read(&list, &listen).unwrap_or_else(|message| {
            self.wrong("hosts", &message);
            Hosts::default()
        })
    }

    /// Where the store is. A folder set by a flag takes precedence over a database set elsewhere.
    fn location(&mut self) -> Option<StoreLocation> {
        let (data, address) = (self.text("data"), self.text("store"));
        let by_flag = |key| matches!(self.sources.get(key), Some((_, _, Origin::Flag(_))));
        if address.is_empty() || by_flag("data") && !by_flag("store") {
            return Some(StoreLocation::Folder(PathBuf::from(data)));
        }
        let options = redrive_store::postgres::Options::read(&address);
        options.map(Box::new).map(StoreLocation::Postgres).map_err(|message| self.wrong("store", &message)).ok()
    }

    /// When the server makes backups by itself.
    fn backup_schedule(&mut self, has_folder: bool, location: Option<&StoreLocation>) -> Option<BackupSchedule> {
        const KEY: &str = "backup.every";
        let (every, keep) = (self.span(KEY), self.number("backup.keep"));
        if every.is_zero() {
            return None;
        }
        if matches!(location, Some(StoreLocation::Postgres(_))) {
            self.wrong(
                KEY,
                "found a schedule for backups of a database; PostgreSQL has its own tools, such as pg_dump",
            );
        } else if !has_folder {
            self.wrong(KEY, "found a schedule without a folder for backups; set backups to one");
        }
        Some(BackupSchedule { every, keep })
    }

    /// What the file sets for queues, types and keys.
    fn groups(&mut self) -> Vec<(Group, Setting)> {
        let file = self.sources.file_name().unwrap_or_default();
        let mut found = Vec::new();
        let tables = groups::TABLES.iter().filter_map(|table| Some((*table, self.sources.part(table)?)));
        let read = tables.flat_map(|(table, value)| groups::read(table, value, &mut found)).collect();
        self.problems.list.extend(found.into_iter().map(|problem| format!("file {file}: {problem}")));
        read
    }

    fn layers(&mut self) -> Option<Layers> {
        let mut layers = match Layers::ojs_default() {
            Ok(layers) => layers,
            Err(problems) => {
                self.problems.list.push(problems.to_string());
                return None;
            }
        };
        let policies = Table::of(
            self.sources.part("policies"),
            "policies",
            &["server", "queues", "types"],
            &mut self.problems.list,
        );
        if let Some(layer) = self.server_layer(policies.get("server")) {
            layers.server = layer;
        }
        layers.queues = self.named_layers("policies.queues", policies.get("queues"), names::queue);
        layers.kinds = self.named_layers("policies.types", policies.get("types"), names::kind);
        let caps = Table::of(
            self.sources.part("caps"),
            "caps",
            &["max_attempts", "max_elapsed", "queues"],
            &mut self.problems.list,
        );
        layers.cap = self.cap("caps", &caps);
        let queues = Table::of(caps.get("queues"), "caps.queues", &[], &mut self.problems.list);
        for (name, value) in queues.iter() {
            let path = format!("caps.queues.{name}");
            self.named("caps.queues", name, names::queue);
            let table = Table::of(Some(value), &path, &["max_attempts", "max_elapsed"], &mut self.problems.list);
            layers.queue_caps.insert(name.clone(), self.cap(&path, &table));
        }
        Some(layers)
    }

    /// The policy of jobs without another one: from its own file, or from the configuration file.
    fn server_layer(&mut self, own: Option<&Value>) -> Option<Layer> {
        const KEY: &str = "default_policy";
        let path = self.text(KEY);
        if path.is_empty() {
            return own.and_then(|value| self.layer("policies.server", value));
        }
        if own.is_some() && matches!(self.sources.get(KEY), Some((_, _, Origin::File(_)))) {
            self.wrong(KEY, "found together with [policies.server]; keep one of them");
        }
        let document = policy_document(Path::new(&path), None, None).map_err(|failed| failed.message);
        let layer = document.and_then(|(dialect, value)| {
            let lines = |problems: redrive_policy::Problems| format!("{path} is not valid: {problems}");
            Layer::read(PolicyDocument { dialect, value }).map_err(lines)
        });
        layer.map_err(|message| self.wrong(KEY, &message)).ok()
    }

    fn named_layers(&mut self, path: &str, value: Option<&Value>, check: NameCheck) -> HashMap<String, Layer> {
        let table = Table::of(value, path, &[], &mut self.problems.list);
        let layers = table.iter().filter_map(|(name, value)| {
            self.named(path, name, check);
            Some((name.clone(), self.layer(&format!("{path}.{name}"), value)?))
        });
        layers.collect()
    }

    /// Refuses an invalid name, whose table would be ignored.
    fn named(&mut self, path: &str, name: &str, check: NameCheck) {
        if let Err(message) = check(name) {
            let file = self.sources.file_name().unwrap_or_default();
            self.problems.list.push(format!("file {file}: {path}: {message}"));
        }
    }

    /// A policy: an OJS object, or one with `dialect` and `policy`.
    fn layer(&mut self, path: &str, value: &Value) -> Option<Layer> {
        let file = self.sources.file_name().unwrap_or_default();
        let (dialect, value) = match value.get("dialect") {
            None => (Dialect::Ojs, value),
            Some(name) => match (name.as_str().map(str::parse::<Dialect>), value.get("policy")) {
                (Some(Ok(dialect)), Some(policy)) => (dialect, policy),
                (Some(Err(unknown)), _) => {
                    self.problems.list.push(format!("file {file}: {path}.dialect: {unknown}"));
                    return None;
                }
                _ => {
                    let message = "found a dialect without a policy; write dialect = \"azolla\" and policy = { … }";
                    self.problems.list.push(format!("file {file}: {path}: {message}"));
                    return None;
                }
            },
        };
        match Layer::read(PolicyDocument { dialect, value: value.clone() }) {
            Ok(layer) => Some(layer),
            Err(problems) => {
                let messages = problems.0.iter().map(|problem| {
                    format!("file {file}: {path}{}: {}", problem.path.replace('/', "."), problem.message)
                });
                self.problems.list.extend(messages);
                None
            }
        }
    }

    fn cap(&mut self, path: &str, table: &Table<'_>) -> OperatorCap {
        let file = self.sources.file_name().unwrap_or_default();
        let mut wrong = |key: &str, value: &Value, allowed: &str| {
            self.problems.list.push(format!("file {file}: {path}.{key}: found {value}; allowed is {allowed}"));
        };
        let mut cap = OperatorCap::default();
        if let Some(value) = table.get("max_attempts") {
            cap.max_attempts = value.as_u64().and_then(|number| u32::try_from(number).ok());
            if cap.max_attempts.is_none() {
                wrong("max_attempts", value, "a whole number");
            }
        }
        if let Some(value) = table.get("max_elapsed") {
            let read = value.as_str().map(|text| super::setting::Kind::Duration.read(text));
            match read {
                Some(Ok(TypedValue::Duration(span))) => cap.max_elapsed = Some(span),
                _ => wrong("max_elapsed", value, "a length of time, such as \"24h\""),
            }
        }
        cap
    }
}
