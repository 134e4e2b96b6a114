//! Webhooks of a server: events that it sends to endpoints.

use crate::transport::{Ask, Transport, WebhookAsk};
use crate::webhook::{DeliveryInfo, WebhookInfo, WebhookSettings, WebhookTest};
use crate::{ClientError, EventInfo};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// The webhooks of a server. An engine in this process sends nothing, and refuses them: follow its
/// [events](crate::Client::events), or serve its folder with `redrive serve`.
///
/// ```
/// use redrive_worker::{Client, ClientError, WebhookSettings};
///
/// async fn subscribe(client: &Client) -> Result<String, ClientError> {
///     let payments = WebhookSettings::new().queues(["payments"]).description("the ledger");
///     let webhook = client.webhooks().subscribe("https://api.example.com/hooks", ["job.discarded"], payments).await?;
///     let tested = client.webhooks().test(webhook.id()).await?;
///     println!("{} answers {:?}", webhook.url(), tested.status());
///     // It is not shown again.
///     Ok(webhook.secret().unwrap_or_default().to_owned())
/// }
/// ```
#[derive(Clone)]
pub struct Webhooks {
    transport: Arc<dyn Transport>,
}

impl Webhooks {
    pub(crate) fn new(transport: Arc<dyn Transport>) -> Self {
        Self { transport }
    }

    /// Subscribes an endpoint to types of events, or patterns such as `job.*`. Only this answer, and that of
    /// [`Webhooks::rotate_secret`], have the secret.
    ///
    /// # Errors
    /// The server refuses it with every problem, or cannot be reached.
    pub async fn subscribe<T: Into<String>>(
        &self,
        url: impl Into<String>,
        events: impl IntoIterator<Item = T>,
        settings: WebhookSettings,
    ) -> Result<WebhookInfo, ClientError> {
        self.webhook(WebhookAsk::Subscribe(settings.url(url).events(events).document())).await
    }

    /// All of them, the newest first.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn list(&self) -> Result<Vec<WebhookInfo>, ClientError> {
        Ok(entries(self.ask(WebhookAsk::List).await?, "subscriptions").map(WebhookInfo::new).collect())
    }

    /// One of them.
    ///
    /// # Errors
    /// There is no such webhook, or the server cannot be reached.
    pub async fn get(&self, id: &str) -> Result<WebhookInfo, ClientError> {
        self.webhook(WebhookAsk::Get(id)).await
    }

    /// Changes what is set.
    ///
    /// # Errors
    /// There is no such webhook, the server refuses the change with every problem, or cannot be reached.
    pub async fn update(&self, id: &str, settings: WebhookSettings) -> Result<WebhookInfo, ClientError> {
        self.webhook(WebhookAsk::Update(id, settings.document())).await
    }

    /// Pauses it: nothing is sent, and nothing is recorded.
    ///
    /// # Errors
    /// As [`Webhooks::get`].
    pub async fn pause(&self, id: &str) -> Result<WebhookInfo, ClientError> {
        self.webhook(WebhookAsk::Update(id, json!({ "active": false }))).await
    }

    /// Resumes it, also where the server has disabled it.
    ///
    /// # Errors
    /// As [`Webhooks::get`].
    pub async fn resume(&self, id: &str) -> Result<WebhookInfo, ClientError> {
        self.webhook(WebhookAsk::Update(id, json!({ "active": true }))).await
    }

    /// Replaces the secret; for a day deliveries are signed with both.
    ///
    /// # Errors
    /// As [`Webhooks::get`].
    pub async fn rotate_secret(&self, id: &str) -> Result<WebhookInfo, ClientError> {
        self.webhook(WebhookAsk::RotateSecret(id)).await
    }

    /// Sends an event of the type `webhook.test` now, and waits for the answer of the endpoint.
    ///
    /// # Errors
    /// As [`Webhooks::get`]. That the endpoint does not answer is no error.
    pub async fn test(&self, id: &str) -> Result<WebhookTest, ClientError> {
        Ok(WebhookTest::new(self.ask(WebhookAsk::Test(id)).await?))
    }

    /// Deletes it, and cancels its deliveries.
    ///
    /// # Errors
    /// As [`Webhooks::get`].
    pub async fn delete(&self, id: &str) -> Result<(), ClientError> {
        self.ask(WebhookAsk::Delete(id)).await.map(drop)
    }

    /// The newest deliveries, at most `limit`: of one webhook or of all, and of any status or of one, such as `dead`.
    ///
    /// # Errors
    /// There is no such webhook or status, or the server cannot be reached.
    pub async fn deliveries(
        &self,
        webhook: Option<&str>,
        status: Option<&str>,
        limit: usize,
    ) -> Result<Vec<DeliveryInfo>, ClientError> {
        let answer = self.ask(WebhookAsk::Deliveries { subscription: webhook, status, limit }).await?;
        Ok(entries(answer, "deliveries").map(DeliveryInfo::new).collect())
    }

    /// One delivery, and the event that it carries.
    ///
    /// # Errors
    /// There is no such delivery, or the server cannot be reached.
    pub async fn delivery(&self, id: &str) -> Result<(DeliveryInfo, EventInfo), ClientError> {
        let mut answer = self.ask(WebhookAsk::Delivery(id)).await?;
        let event = answer["event"].take();
        Ok((DeliveryInfo::new(answer), EventInfo::new(event)))
    }

    /// Sends a delivery that has ended again, under the same id.
    ///
    /// # Errors
    /// There is no such delivery, it has not ended, or the server cannot be reached.
    pub async fn retry(&self, delivery: &str) -> Result<DeliveryInfo, ClientError> {
        Ok(DeliveryInfo::new(self.ask(WebhookAsk::Retry(delivery)).await?))
    }

    /// Drops a delivery.
    ///
    /// # Errors
    /// There is no such delivery, or the server cannot be reached.
    pub async fn drop_delivery(&self, delivery: &str) -> Result<(), ClientError> {
        self.ask(WebhookAsk::Drop(delivery)).await.map(drop)
    }

    async fn ask(&self, ask: WebhookAsk<'_>) -> Result<Value, ClientError> {
        self.transport.ask(Ask::Webhooks(ask)).await
    }

    async fn webhook(&self, ask: WebhookAsk<'_>) -> Result<WebhookInfo, ClientError> {
        self.ask(ask).await.map(WebhookInfo::new)
    }
}

fn entries(mut answer: Value, key: &str) -> impl Iterator<Item = Value> + use<> {
    match answer[key].take() {
        Value::Array(entries) => entries.into_iter(),
        _ => Vec::new().into_iter(),
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Webhooks")
    }
}
