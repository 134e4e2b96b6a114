//! The leases of states of Exosphere's graphs.

use super::build::Reader;
use super::file;
use super::setting::{Kind, TypedValue};
use super::table::Table;
use redrive_exosphere::check_name;
use redrive_server::Leases;
use serde_json::Value;

impl Reader<'_> {
    /// Those of the server, and of namespaces.
    pub(super) fn leases(&mut self) -> Leases {
        const KEY: &str = "exosphere.lease";
        let read = |text: &str| match Kind::Duration.read(text) {
            Ok(TypedValue::Duration(span)) => Some(span),
            _ => None,
        };
        let text = self.text(KEY);
        let server = read(&text);
        if server.is_none() && !text.is_empty() {
            self.wrong(KEY, &format!("found \"{text}\"; allowed is {}, or nothing", Kind::Duration.allowed()));
        }
        let (name, file) = (file::NAMESPACES, self.sources.file_name().unwrap_or_default());
        let mut problems = Vec::new();
        let namespaces = Table::of(self.sources.part(name), name, &[], &mut problems);
        let mut leases = Leases { server, ..Leases::default() };
        for (namespace, value) in namespaces.iter() {
            let path = format!("{name}.{namespace}");
            problems.extend(check_name("the namespace", namespace).err().map(|why| format!("{name}: {why}")));
            let lease = Table::of(Some(value), &path, &["lease"], &mut problems).get("lease");
            match (lease, lease.and_then(Value::as_str).and_then(read)) {
                (_, Some(span)) => drop(leases.namespaces.insert(namespace.clone(), span)),
                (None, None) => {}
                (Some(found), None) => {
                    problems.push(format!("{path}.lease: found {found}; allowed is {}", Kind::Duration.allowed()));
                }
            }
        }
        self.problems.list.extend(problems.into_iter().map(|problem| format!("file {file}: {problem}")));
        leases
    }
}
