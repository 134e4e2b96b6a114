//! Paths and methods, what each of them asks of its callers, and the query parameters that it takes.

use crate::access::{Access, Queues, Rule};
use crate::app::App;
use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, on};
use std::collections::HashMap;
use std::sync::Arc;

/// The parameters that an endpoint takes; none where it is empty.
pub(crate) type Parameters = &'static [&'static str];

/// All endpoints. Each says who may call it, and which parameters it takes: what it does not name is refused before it
/// runs.
pub(crate) struct Endpoints {
    router: Router<Arc<App>>,
    table: Table,
}

/// What each endpoint asks of its callers, and which parameters it takes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    entries: Vec<Entry>,
    /// The places of the entries of each path.
    of_path: HashMap<&'static str, Vec<usize>>,
}

/// One endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) rule: Rule,
    pub(crate) takes: Parameters,
}

/// One endpoint, as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointInfo {
    /// Its method.
    pub method: &'static str,
    /// Its path, with parameters in braces.
    pub path: &'static str,
    /// The scope that a key needs for it; `None` where no key is needed.
    pub scope: Option<&'static str>,
    /// Whether keys that are for some queues only can be used for it.
    pub by_queue: bool,
}

impl EndpointInfo {
    pub(crate) fn of(entry: &Entry) -> Self {
        let scope = match entry.rule.access {
            Access::Open => None,
            Access::Needs(scope) => Some(scope.name()),
        };
        let method = match entry.method {
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            _ => "GET",
        };
        Self { method, path: entry.path, scope, by_queue: entry.rule.queues != Queues::All }
    }
}

impl Table {
    /// The endpoint of a request; `None` where the path, or the path with this method, is none.
    pub(crate) fn entry(&self, request: &Request) -> Option<&Entry> {
        let path = request.extensions().get::<MatchedPath>()?.as_str();
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        let places = self.of_path.get(path)?.iter();
        places.filter_map(|place| self.entries.get(*place)).find(|entry| entry.method == *method)
    }

    /// All endpoints, in the order in which they were added.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl Endpoints {
    pub(crate) fn new() -> Self {
        Self { router: Router::new(), table: Table::default() }
    }

    pub(crate) fn get<H: Handler<T, Arc<App>>, T: 'static>(
        self,
        path: &'static str,
        rule: Rule,
        takes: Parameters,
        to: H,
    ) -> Self {
        self.on(MethodFilter::GET, Entry { method: Method::GET, path, rule, takes }, to)
    }

    pub(crate) fn post<H: Handler<T, Arc<App>>, T: 'static>(
        self,
        path: &'static str,
        rule: Rule,
        takes: Parameters,
        to: H,
    ) -> Self {
        self.on(MethodFilter::POST, Entry { method: Method::POST, path, rule, takes }, to)
    }

    pub(crate) fn put<H: Handler<T, Arc<App>>, T: 'static>(
        self,
        path: &'static str,
        rule: Rule,
        takes: Parameters,
        to: H,
    ) -> Self {
        self.on(MethodFilter::PUT, Entry { method: Method::PUT, path, rule, takes }, to)
    }

    pub(crate) fn patch<H: Handler<T, Arc<App>>, T: 'static>(
        self,
        path: &'static str,
        rule: Rule,
        takes: Parameters,
        to: H,
    ) -> Self {
        self.on(MethodFilter::PATCH, Entry { method: Method::PATCH, path, rule, takes }, to)
    }

    pub(crate) fn delete<H: Handler<T, Arc<App>>, T: 'static>(
        self,
        path: &'static str,
        rule: Rule,
        takes: Parameters,
        to: H,
    ) -> Self {
        self.on(MethodFilter::DELETE, Entry { method: Method::DELETE, path, rule, takes }, to)
    }

    fn on<H: Handler<T, Arc<App>>, T: 'static>(mut self, filter: MethodFilter, entry: Entry, to: H) -> Self {
        let path = entry.path;
        self.table.of_path.entry(path).or_default().push(self.table.entries.len());
        self.table.entries.push(entry);
        Self { router: self.router.route(path, on(filter, to)), ..self }
    }

    /// The router, with what answers where there is no endpoint; and the table of endpoints.
    pub(crate) fn finish<H: Handler<T, Arc<App>>, T: 'static>(self, fallback: H) -> (Router<Arc<App>>, Table) {
        (self.router.fallback(fallback), self.table)
    }
}
