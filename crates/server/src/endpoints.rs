//! Paths and methods, and the query parameters that each of them takes.

use crate::app::App;
use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, on};
use std::sync::Arc;

/// The parameters that an endpoint takes; none where it is empty.
pub(crate) type Parameters = &'static [&'static str];

/// All endpoints. Each says which parameters it takes: what it does not name is refused before it runs.
pub(crate) struct Endpoints {
    router: Router<Arc<App>>,
    table: Table,
}

/// Which parameters each endpoint takes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(Vec<(Method, &'static str, Parameters)>);

impl Table {
    /// All endpoints, in the order in which they were added.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Method, &'static str, Parameters)> {
        self.0.iter().map(|(method, path, parameters)| (method, *path, *parameters))
    }

    /// The parameters that the endpoint of a request takes; `None` where the path, or the path with this
    /// method, is no endpoint.
    pub(crate) fn parameters(&self, request: &Request) -> Option<Parameters> {
        let path = request.extensions().get::<MatchedPath>()?.as_str();
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        self.0.iter().find(|(known, at, _)| known == method && *at == path).map(|(.., parameters)| *parameters)
    }
}

impl Endpoints {
    pub(crate) fn new() -> Self {
        Self { router: Router::new(), table: Table::default() }
    }

    pub(crate) fn get<H: Handler<T, Arc<App>>, T: 'static>(self, path: &'static str, takes: Parameters, to: H) -> Self {
        self.on(Method::GET, MethodFilter::GET, path, takes, to)
    }

    pub(crate) fn post<H: Handler<T, Arc<App>>, T: 'static>(
        self,
        path: &'static str,
        takes: Parameters,
        to: H,
    ) -> Self {
        self.on(Method::POST, MethodFilter::POST, path, takes, to)
    }

    pub(crate) fn put<H: Handler<T, Arc<App>>, T: 'static>(self, path: &'static str, takes: Parameters, to: H) -> Self {
        self.on(Method::PUT, MethodFilter::PUT, path, takes, to)
    }

    pub(crate) fn patch<H: Handler<T, Arc<App>>, T: 'static>(
        self,
        path: &'static str,
        takes: Parameters,
        to: H,
    ) -> Self {
        self.on(Method::PATCH, MethodFilter::PATCH, path, takes, to)
    }

    pub(crate) fn delete<H: Handler<T, Arc<App>>, T: 'static>(
        self,
        path: &'static str,
        takes: Parameters,
        to: H,
    ) -> Self {
        self.on(Method::DELETE, MethodFilter::DELETE, path, takes, to)
    }

    fn on<H: Handler<T, Arc<App>>, T: 'static>(
        mut self,
        method: Method,
        filter: MethodFilter,
        path: &'static str,
        takes: Parameters,
        to: H,
    ) -> Self {
        self.table.0.push((method, path, takes));
        Self { router: self.router.route(path, on(filter, to)), ..self }
    }

    /// The router, with what answers where there is no endpoint; and the table of parameters.
    pub(crate) fn finish<H: Handler<T, Arc<App>>, T: 'static>(self, fallback: H) -> (Router<Arc<App>>, Table) {
        (self.router.fallback(fallback), self.table)
    }
}
