//! The streams of shepherds: each runs in a task of its own, and the answer begins at once, because a shepherd says who
//! it is only after it has seen the headers of the answer.

use super::{Protocol, stream};
use redrive_azolla::orchestrator::cluster_service_server::ClusterService;
use redrive_azolla::orchestrator::{ClientMsg, ServerMsg};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// How many messages to a shepherd wait at most for its connection.
pub(super) const OUTGOING: usize = 64;

/// Streams of shepherds.
pub(super) struct Cluster(pub(super) Arc<Protocol>);

#[tonic::async_trait]
impl ClusterService for Cluster {
    type StreamStream = ReceiverStream<Result<ServerMsg, Status>>;

    async fn stream(&self, request: Request<Streaming<ClientMsg>>) -> Result<Response<Self::StreamStream>, Status> {
        let (outgoing, answer) = mpsc::channel(OUTGOING);
        tokio::spawn(stream::run(Arc::clone(&self.0), request.into_inner(), outgoing));
        Ok(Response::new(ReceiverStream::new(answer)))
    }
}
