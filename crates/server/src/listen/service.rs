//! One request after the other, each noted on its connection.

use super::peer::Peer;
use crate::app::App;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, Response};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The service of one connection.
pub(super) struct Requests {
    pub(super) router: TowerToHyperService<Router>,
    pub(super) app: Arc<App>,
    pub(super) peer: Arc<Peer>,
}

impl Service<Request<Incoming>> for Requests {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.peer.begin(self.app.guard.knows(&self.app.engine, request.headers()));
        let running = Running(Arc::clone(&self.peer));
        let request = request.map(|body| Received { body, peer: Arc::clone(&self.peer) });
        let response = self.router.call(request);
        Box::pin(async move { Ok(response.await?.map(|body| ResponseBody { body, _running: running })) })
    }
}

/// A request, until its response is ready to be written.
struct Running(Arc<Peer>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The body of a request as it comes.
struct Received {
    body: Incoming,
    peer: Arc<Peer>,
}

impl HttpBody for Received {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        match &frame {
            Poll::Pending => self.peer.await_body(),
            // Between two parts the client is still waited for.
            Poll::Ready(Some(Ok(_))) if !self.body.is_end_stream() => {}
            Poll::Ready(_) => self.peer.have_body(),
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The handler may give up on a body that does not come.
impl Drop for Received {
    fn drop(&mut self) {
        self.peer.have_body();
    }
}

/// The body of an answer.
pub(super) struct ResponseBody {
    body: Body,
    _running: Running,
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
