//! The client of a running server: HTTP, encrypted for `https://`, with JSON in both directions.

use crate::exit::Failed;
use crate::output;
use clap::Subcommand;
pub(crate) use redrive_worker::http::escaped;
use redrive_worker::http::{HttpClient, HttpResponse, leaves_in_the_clear};
use redrive_worker::{ClientError, RootCertificates};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Once, OnceLock, mpsc};
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long to wait for a whole answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// What to do about a server whose authority is unknown.
pub(crate) const CA_HINT: &str = "--ca FILE or REDRIVE_CA names the certificate of an authority";

/// The server that a command talks to.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ServerArgs {
    /// The address of the server
    #[arg(long, env = "REDRIVE_SERVER", value_name = "URL", default_value = "http://127.0.0.1:8080", global = true)]
    pub(crate) server: String,
    /// A file with the API key; the default is REDRIVE_API_KEY
    #[arg(long, value_name = "FILE", global = true)]
    api_key_file: Option<PathBuf>,
    /// A PEM file with root certificates for https:// servers, in addition to those of the system
    #[arg(long, env = "REDRIVE_CA", value_name = "FILE", global = true)]
    ca: Option<PathBuf>,
}

/// What the commands that talk to a server have in common.
#[derive(clap::Args)]
pub(crate) struct CommonArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Print JSON for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// A command whose subcommands all talk to a server.
#[derive(clap::Args)]
pub(crate) struct ServerCommand<C: Subcommand> {
    #[command(subcommand)]
    pub(crate) command: C,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

impl CommonArgs {
    /// A client of the server that follows events. Nothing is sent yet.
    pub(crate) fn event_client(&self) -> Result<redrive_worker::Client, Failed> {
        self.server.worker_client()
    }

    /// A client of the server. Nothing is sent yet.
    pub(crate) fn client(&self) -> Result<Client, Failed> {
        self.server.client()
    }

    /// Prints an answer: the document for programs, or the text for people.
    pub(crate) fn print(&self, answer: &Value, text: &str) -> Result<(), Failed> {
        if self.json { output::json(answer) } else { output::text(text) }
    }
}

impl ServerArgs {
    pub(crate) const fn new(server: String, api_key_file: Option<PathBuf>, ca: Option<PathBuf>) -> Self {
        Self { server, api_key_file, ca }
    }

    /// The address, and the root certificates to verify an encrypted server with.
    fn address(&self) -> Result<(&str, Option<RootCertificates>), Failed> {
        let base = self.server.trim_end_matches('/');
        if base.starts_with("http://") {
            return Ok((base, None));
        }
        if !base.starts_with("https://") {
            return Err(Failed::usage(format!(
                "\"{}\" is not the address of a server: allowed is http://HOST:PORT or https://HOST:PORT",
                self.server
            )));
        }
        let roots = RootCertificates::system();
        let roots = match &self.ca {
            Some(ca) => roots.with_file(ca).map_err(|error| Failed::usage(format!("--ca: {error}")))?,
            None => roots,
        };
        if roots.certificates().next().is_none() {
            return Err(Failed::usage(format!("this system has no root certificates; {CA_HINT}")));
        }
        Ok((base, Some(roots)))
    }

    /// A client of the server. Nothing is sent yet.
    pub(crate) fn client(&self) -> Result<Client, Failed> {
        self.client_within(ANSWER_TIMEOUT)
    }

    /// A client whose requests may take this long.
    pub(crate) fn client_within(&self, timeout: Duration) -> Result<Client, Failed> {
        let (base, roots) = self.address()?;
        let key = self.api_key()?;
        let http = match &roots {
            Some(roots) => HttpClient::with_roots(base, key.as_deref(), roots),
            None => HttpClient::new(base, key.as_deref()),
        };
        let http = http.map_err(Failed::usage)?;
        Ok(Client { http, base: base.to_owned(), timeout, runtime: runtime()? })
    }

    /// The client that workers use. Nothing is sent yet.
    pub(crate) fn worker_client(&self) -> Result<redrive_worker::Client, Failed> {
        let (url, roots) = self.address()?;
        let client = match (roots, self.api_key()?) {
            (Some(roots), key) => redrive_worker::Client::http_with_roots(url, key.as_deref(), &roots),
            (None, Some(key)) => redrive_worker::Client::http_with_key(url, &key),
            (None, None) => redrive_worker::Client::http(url),
        };
        client.map_err(Failed::usage)
    }

    /// The API key, if one is given.
    pub(crate) fn api_key(&self) -> Result<Option<String>, Failed> {
        let key = match &self.api_key_file {
            Some(path) => Some(key_from(path)?),
            None => std::env::var("REDRIVE_API_KEY").ok(),
        };
        // A file may hold several keys, the old and the new one; the server accepts any of them.
        let first = |text: String| text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
        match key.and_then(first) {
            Some(key) if !key.chars().all(|c| c.is_ascii_graphic()) => {
                Err(Failed::usage("the API key has spaces or characters outside of ASCII; check where it comes from"))
            }
            key => {
                if key.is_some() {
                    self.warn_of_unencrypted_key();
                }
                Ok(key)
            }
        }
    }

    /// Warns once of a key that leaves this machine unencrypted.
    fn warn_of_unencrypted_key(&self) {
        static WARNED: Once = Once::new();
        if leaves_in_the_clear(&self.server) {
            WARNED.call_once(|| {
                let server = output::plain(&self.server);
                eprintln!("redrive: the API key travels unencrypted to {server}; use https:// if others can listen");
            });
        }
    }
}

fn key_from(path: &Path) -> Result<String, Failed> {
    std::fs::read_to_string(path)
        .map_err(|error| Failed::usage(format!("cannot read the API key from {}: {error}", path.display())))
}

/// One thread for the requests of the whole process, so that a command may wait for a response anywhere, also inside
/// of another runtime.
fn runtime() -> Result<&'static Runtime, Failed> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let build = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let built = RUNTIME.get_or_init(|| build().map_err(|error| format!("cannot start a thread: {error}")));
    built.as_ref().map_err(Failed::unreachable)
}

/// Waits for an answer of the client that workers use.
pub(crate) fn wait_for<T>(answer: impl Future<Output = Result<T, Failed>>) -> Result<T, Failed> {
    runtime()?.block_on(answer)
}

/// A client of a server.
pub(crate) struct Client {
    http: HttpClient,
    base: String,
    timeout: Duration,
    runtime: &'static Runtime,
}

/// A refusal.
#[derive(Debug)]
pub(crate) struct Refused {
    /// The status of the answer.
    pub(crate) status: u16,
    /// The message of the server, with what to do about it.
    pub(crate) message: String,
}

impl From<Refused> for Failed {
    fn from(refused: Refused) -> Self {
        // 5xx is the server's fault, and 429 means "later".
        let code = if refused.status >= 500 || refused.status == 429 { 3 } else { 1 };
        Self { code, message: refused.message }
    }
}

/// The method and the body of a request.
#[derive(Clone, Copy)]
pub(crate) enum Send<'a> {
    /// No body.
    Get,
    /// A document.
    Post(&'a Value),
    /// A document in place of the one that is there.
    Put(&'a Value),
    /// The text of a document, byte for byte.
    PutText(&'a str),
    /// A change of what is there.
    Patch(&'a Value),
    /// A deletion.
    Delete,
}

impl Client {
    /// Sends a request; a refusal is an error. `path` starts after the host.
    pub(crate) fn ask(&self, send: Send<'_>, path: &str) -> Result<Value, Failed> {
        self.try_ask(send, path)?.map_err(Failed::from)
    }

    /// Sends a request; a refusal is an answer.
    pub(crate) fn try_ask(&self, send: Send<'_>, path: &str) -> Result<Result<Value, Refused>, Failed> {
        let response = self.send(send, path).map_err(|error| unreachable(&error))?;
        let document: Value = match serde_json::from_slice(&response.body) {
            Ok(document) => document,
            Err(_) if response.body.is_empty() && response.is_success() => Value::Null,
            Err(error) => return Err(self.not_a_redrive_server(response.status, &error.to_string())),
        };
        Ok(if response.is_success() { Ok(document) } else { Err(refusal(response.status, &document)) })
    }

    /// Sends a request, and blocks until the response arrives.
    fn send(&self, send: Send<'_>, path: &str) -> Result<HttpResponse, ClientError> {
        let (http, path, timeout) = (self.http.clone(), path.to_owned(), self.timeout);
        let (sender, response) = mpsc::channel();
        let answered = move |answer| drop(sender.send(answer));
        match send {
            Send::Get => drop(self.runtime.spawn(async move { answered(http.get(&path, timeout).await) })),
            Send::Delete => drop(self.runtime.spawn(async move { answered(http.delete(&path, timeout).await) })),
            Send::Post(document) => {
                let body = document.to_string().into_bytes();
                self.runtime.spawn(async move { answered(http.post(&path, body, timeout).await) });
            }
            Send::Put(document) => {
                let body = document.to_string().into_bytes();
                self.runtime.spawn(async move { answered(http.put(&path, body, timeout).await) });
            }
            Send::PutText(text) => {
                let body = text.as_bytes().to_vec();
                self.runtime.spawn(async move { answered(http.put(&path, body, timeout).await) });
            }
            Send::Patch(document) => {
                let body = document.to_string().into_bytes();
                self.runtime.spawn(async move { answered(http.patch(&path, body, timeout).await) });
            }
        }
        response.recv().unwrap_or_else(|_| Err(ClientError::Unreachable("the request panicked".to_owned())))
    }

    fn not_a_redrive_server(&self, status: u16, why: &str) -> Failed {
        Failed {
            code: 3,
            message: format!(
                "the server at {} is not a redrive server: status {}, and no JSON ({why}); set its address with \
                 --server URL or REDRIVE_SERVER",
                self.base, status
            ),
        }
    }
}

/// What a user of this command can do about an error of the client that workers use.
pub(crate) fn failed(error: &ClientError) -> Failed {
    match error {
        ClientError::Refused(refused) => {
            let mut message = format!("{} ({})", refused.message, refused.code);
            if let Some(hint) = hint(&refused.code, &refused.message) {
                message.push_str(&format!("\n{hint}"));
            }
            Failed::from(Refused { status: refused.status, message })
        }
        ClientError::Unreachable(_) | ClientError::Untrusted(_) => unreachable(error),
        other => Failed::unreachable(other),
    }
}

fn unreachable(error: &ClientError) -> Failed {
    let way_out = match error {
        ClientError::Untrusted(_) => CA_HINT,
        _ => "start one with `redrive serve`, or set its address with --server URL or REDRIVE_SERVER",
    };
    Failed::unreachable(format!("{error}; {way_out}"))
}

fn refusal(status: u16, document: &Value) -> Refused {
    let error = &document["error"];
    let text = error["message"].as_str().unwrap_or("the server gives no reason");
    let mut message = match error["code"].as_str() {
        Some(code) => format!("{text} ({code})"),
        None => format!("{text} (status {status})"),
    };
    if let Some(hint) = error["code"].as_str().and_then(|code| hint(code, text)) {
        message.push_str(&format!("\n{hint}"));
    }
    Refused { status, message }
}

/// What a user of this command can do about a refusal; the server's own hint is for programs that speak HTTP.
fn hint(code: &str, message: &str) -> Option<&'static str> {
    match code {
        "unauthorized" => Some("name the API key with --api-key-file FILE or REDRIVE_API_KEY"),
        "not_found" => {
            let hints = [
                ("no job", "jobs that have ended are removed once their retention is over"),
                ("no subscription", "`redrive webhook list` has the ids of subscriptions, such as sub_019c5654-…"),
                ("no delivery", "`redrive webhook deliveries` has the ids of deliveries, such as del_019c5654-…"),
                ("no workflow", "`redrive workflow list` has the ids of workflows"),
                ("no definition", "`redrive flow definitions` lists them, and `redrive flow put FILE` adds one"),
                ("of a flow", "`redrive flow list` has the ids of runs"),
                ("no schedule", "`redrive cron list` has the names of schedules"),
                ("no run of a graph", "`redrive graph runs` has the ids of runs"),
                ("no state", "`redrive graph stuck --older-than AGE` has the ids of states that a runtime has"),
                ("no worker", "`redrive workers` lists them"),
            ];
            hints.into_iter().find(|(about, _)| message.contains(about)).map(|(_, hint)| hint)
        }
        "duplicate" if message.contains("uniqueness") => {
            Some("--on-conflict says what else happens to a duplicate: ignore, replace or replace_except_schedule")
        }
        "duplicate" => Some("leave out --id, and the server generates one"),
        "conflict" if message.contains("the workflow") => Some("`redrive workflow show ID` shows how far it is"),
        "conflict" if message.contains("the run ") => Some("`redrive flow show ID` shows how it ended"),
        "conflict" if message.contains("a schedule") => Some("--replace changes the schedule that has the name"),
        "conflict" if message.contains("can be freed") || message.contains("graph stuck") => None,
        "conflict" => Some("`redrive job explain ID` shows the state of the job"),
        "payload_too_large" => Some("send less at once, or raise this limit on the server"),
        "validation_error" => Some("`redrive policy check FILE` lists everything that is wrong with a policy"),
        "QUEUE_FULL" => Some("try again later; `redrive queues config QUEUE --max-depth N` changes how many may wait"),
        "rate_limited" | "unavailable" => Some("try again in a moment"),
        "backend_error" | "internal_error" => Some("the log of the server says more"),
        _ => None,
    }
}

/// `?key=value&…` of the given parts, percent-encoded.
pub(crate) fn query(parts: &[(&str, Option<String>)]) -> String {
    let mut text = String::new();
    for (key, value) in parts {
        if let Some(value) = value {
            text.push(if text.is_empty() { '?' } else { '&' });
            text.push_str(&format!("{key}={}", escaped(value)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_the_given_parts_percent_encoded() {
        assert_eq!(query(&[("queue", None), ("type", None)]), "");
        let parts = [("queue", Some("a b&c".to_owned())), ("state", None), ("type", Some("ü/1".to_owned()))];
        assert_eq!(query(&parts), "?queue=a%20b%26c&type=%C3%BC%2F1");
    }
}
