//! `redrive serve`: puts the clock, randomness, the store, the engine and the server together.

use crate::config::{self, Flags, ServerConfig};
use crate::exit::Failed;
use crate::{backend, descriptors, log, signals};
use redrive_engine::{Backend, Engine, EngineError, SystemRandomness, advance_runs, sweeper};
use redrive_server::{LocalStore, Server, ServerSettings};
use redrive_store::embedded::Notice;
use redrive_store::{Group, Setting};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tracing::{error, info, warn};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,
}

const EXAMPLES: &str = "\
Examples:
  redrive serve --listen 127.0.0.1:8080 --data ./redrive-data
  redrive serve --listen 0.0.0.0:8080 --data /var/lib/redrive --api-key-file /etc/redrive.keys
  REDRIVE_STORE=postgres://redrive_node:secret@db.internal/app redrive serve --listen 127.0.0.1:8080
  redrive serve --default-policy retry.json
  redrive serve --azolla-listen 127.0.0.1:52710
  REDRIVE_LIMITS_BATCH=5000 redrive serve --config redrive.toml

Settings come from flags, else from REDRIVE_* in the environment, else from redrive.toml;
`redrive config` lists them. SIGTERM and SIGINT stop the server gracefully; the second one
stops it immediately.";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let mut config = config::load(&args.flags)?;
    log::start(std::mem::take(&mut config.log));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(config.threads).enable_all().build();
    let runtime = runtime.map_err(|error| Failed::unreachable(format!("cannot start threads: {error}")))?;
    let served = runtime.block_on(serve(config));
    // A backup that is being made is not waited for: what there is of it is removed with the next one.
    runtime.shutdown_background();
    served
}

async fn serve(mut config: ServerConfig) -> Result<(), Failed> {
    let (stopper, stop) = watch::channel(false);
    let stopper = Arc::new(stopper);
    stop_on_signal(Arc::clone(&stopper))?;
    let listener = TcpListener::bind(config.listen)
        .await
        .map_err(|error| Failed::unreachable(format!("cannot listen on {}: {error}", config.listen)))?;
    let azolla = azolla_listener(config.azolla_listen).await?;
    let address = listener.local_addr().unwrap_or(config.listen);
    let few_descriptors = descriptors::reserve(&mut config.limits)?;
    let (backend, lines) = backend::open(&config.location).await?;
    few_descriptors.iter().for_each(|line| warn!("{line}"));
    lines.iter().for_each(|line| info!("{line}"));

    let programs = redrive_server::programs(&config.limits, config.leases);
    let engine = backend.engine(Arc::new(SystemRandomness::default()), config.engine, programs).await;
    let engine = engine.map_err(Failed::unreachable)?;
    set_groups(&engine, config.groups).await.map_err(Failed::unreachable)?;
    watch_store(&backend, stopper);
    if config.test_directives {
        warn!("test directives are allowed: a job may stop the worker that runs it; for tests of the protocol only",);
    }
    let settings = ServerSettings {
        limits: config.limits,
        keys: config.keys,
        anyone_may_call: config.anyone_may_call,
        hosts: config.hosts,
        test_directives: config.test_directives,
        backend: backend.name(),
        webhooks: config.webhooks,
        azolla: config.azolla,
    };
    let local = match &backend {
        Backend::Folder { store, .. } => {
            Some(LocalStore::new(Arc::clone(store), config.backups).with_schedule(config.backup_schedule))
        }
        _ => None,
    };
    let server = Server::new(Arc::clone(&engine), settings).with_local_store(local);
    let server = server.with_secret_keys(config.secret_keys);
    let azolla_address = azolla.as_ref().and_then(|listener| listener.local_addr().ok());
    let addresses = [("listen", Some(address)), ("azolla_listen", azolla_address)];
    let keys = admission(&server, addresses, config.anyone_may_call).await?;
    info!(%address, "redrive {} on http://{address} ({keys})", env!("CARGO_PKG_VERSION"));
    if let Some(address) = azolla_address {
        info!(%address, "Azolla's protocol on {address} ({keys})");
    }
    backend.observe(server.write_observer());
    let (finish, finished) = watch::channel(false);
    let advancing = wait_for(finished.clone());
    let advancer = tokio::spawn(advance_runs(Arc::clone(&engine), advancing, |notice| error!("{notice}")));
    let sweeper = tokio::spawn(sweeper::run(engine, wait_for(finished), |notice| match notice {
        sweeper::Notice::Failed(_) => error!("{notice}"),
        sweeper::Notice::ClockStepped(_) | sweeper::Notice::StoodStill(_) => warn!("{notice}"),
    }));
    tokio::join!(
        server.serve(listener, wait_for(stop.clone())),
        serve_azolla(&server, azolla, stop.clone()),
        server.log_discarded(wait_for(stop.clone())),
        server.deliver_webhooks(wait_for(stop.clone())),
        server.call_services(wait_for(stop.clone())),
        server.make_backups(wait_for(stop.clone())),
        drain_inbox(&backend, &server, stop),
    );
    finish.send_replace(true);
    let _ = tokio::join!(sweeper, advancer);
    backend::close(&backend, &config.location).await
}

/// Who is admitted, in words. A server that other machines can reach admits everyone only where the operator has said
/// so.
async fn admission(
    server: &Server,
    addresses: [(&str, Option<SocketAddr>); 2],
    anyone_may_call: bool,
) -> Result<&'static str, Failed> {
    let needs_keys = server.needs_keys().await.map_err(Failed::unreachable)?;
    for (setting, address) in addresses {
        let Some(address) = address.filter(|address| !needs_keys && !address.ip().is_loopback()) else { continue };
        if !anyone_may_call {
            return Err(Failed::invalid(format!(
                "{setting}: found \"{address}\", which other machines can reach, and there is no key; allowed without a \
                 key are loopback addresses: set api_key_file (or REDRIVE_API_KEY), or listen on 127.0.0.1 and make a \
                 key with `redrive key create`, or, if everyone who can reach it may do everything, set \
                 anyone_may_call = true"
            )));
        }
        warn!("everyone who can reach {address} may call this server, without any key (anyone_may_call)");
    }
    Ok(if needs_keys { "callers need a key" } else { "no key needed" })
}

/// Sets what the configuration file says for queues, types and keys, where that is not set already.
async fn set_groups(engine: &Engine, groups: Vec<(Group, Setting)>) -> Result<(), EngineError> {
    let known = if groups.is_empty() { Vec::new() } else { engine.limit_settings().await? };
    for entry in groups.into_iter().filter(|entry| !known.contains(entry)) {
        info!("the configuration file sets the limits of {}", entry.0);
        engine.set_limit(entry.0, Some(entry.1)).await?;
    }
    Ok(())
}

/// Logs what happens to the store, and stops the server once a store in a folder has stopped.
fn watch_store(backend: &Backend, stopper: Arc<watch::Sender<bool>>) {
    match backend {
        Backend::Folder { store, .. } => store.watch(move |notice| match notice {
            // A store that has stopped does not recover: only a restart helps.
            Notice::Stopped(_) => {
                error!("{notice}");
                stopper.send_replace(true);
            }
            Notice::Waits(_) | Notice::CompactionFails(_) | Notice::FileLost(_) => warn!("{notice}"),
            Notice::GoesOn | Notice::CompactionWorks | Notice::FileReplaced => info!("{notice}"),
        }),
        Backend::Postgres(store) => store.watch_unreadable(|id, why| {
            error!(
                job_id = %id,
                "{id} cannot be read and was set aside: {why}; `redrive store unreadable` lists what was"
            );
        }),
        _ => {}
    }
}

/// The listener for Azolla's protocol, if it is served.
async fn azolla_listener(address: Option<SocketAddr>) -> Result<Option<TcpListener>, Failed> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address).await;
    listener.map(Some).map_err(|error| Failed::unreachable(format!("cannot listen on {address}: {error}")))
}

async fn serve_azolla(server: &Server, listener: Option<TcpListener>, stop: watch::Receiver<bool>) {
    if let Some(listener) = listener {
        server.serve_azolla(listener, wait_for(stop)).await;
    }
}

/// Drains the inbox, if the store has one.
async fn drain_inbox(backend: &Backend, server: &Server, stop: watch::Receiver<bool>) {
    if backend.has_inbox() {
        server.drain_inbox(wait_for(stop)).await;
    }
}

/// Stops the server at the first SIGTERM or SIGINT. The second one ends the program immediately: what was
/// acknowledged is as safe as in a power failure.
fn stop_on_signal(stopper: Arc<watch::Sender<bool>>) -> Result<(), Failed> {
    let signals = signals::count()?;
    tokio::spawn(async move {
        signals::wait_for(signals.clone(), 1).await;
        info!("stopping: no new connections; running requests are answered. A second signal ends them now");
        stopper.send_replace(true);
        let second = signals::wait_for(signals, 2).await;
        info!("stopped immediately, by a second signal; what was acknowledged is safe");
        std::process::exit(128 + second.last);
    });
    Ok(())
}

async fn wait_for(mut flag: watch::Receiver<bool>) {
    let _ = flag.wait_for(|set| *set).await;
}
