"""Who is measured beside whom, where they keep their jobs, and what they promise when they answer."""

EACH, COMMIT, SECOND = "before each answer", "at each commit", "once a second"

# name: (title, storage, when what was answered is on disk)
WHO = {
    "redrive": ("**redrive**", "embedded store", EACH),
    "redrive-postgres": ("**redrive**", "PostgreSQL", COMMIT),
    "worker": ("**redrive**, client and worker over HTTP", "embedded store", EACH),
    "worker-postgres": ("**redrive**, client and worker over HTTP", "PostgreSQL", COMMIT),
    "worker-in-process": ("**redrive**, client and worker in-process", "embedded store", EACH),
    "apalis-sqlite": ("apalis", "SQLite", COMMIT),
    "apalis-postgres": ("apalis", "PostgreSQL", COMMIT),
    "apalis-redis": ("apalis", "Redis", SECOND),
    "bullmq": ("BullMQ", "Redis", SECOND),
    "bullmq-always": ("BullMQ", "Redis", EACH),
    "graphile": ("graphile-worker (Node)", "PostgreSQL", COMMIT),
    "graphile-rust": ("graphile_worker (Rust)", "PostgreSQL", COMMIT),
    "pgboss": ("pg-boss", "PostgreSQL", COMMIT),
    "procrastinate": ("procrastinate", "PostgreSQL", COMMIT),
    "celery": ("Celery", "Redis", SECOND),
    "dramatiq": ("dramatiq", "Redis", SECOND),
    "sidekiq": ("Sidekiq", "Redis", SECOND),
}
PHASES = {"a": "a one by one", "b": "b batches of 100", "c": "c claim and ack", "d": "d fail twice, then succeed"}


def is_ours(peer):
    return peer.startswith(("redrive", "worker"))


def title(peer):
    return WHO[peer][0] if peer in WHO else peer


def storage(peer):
    return WHO[peer][1] if peer in WHO else "?"


def promise(peer):
    return WHO[peer][2] if peer in WHO else "?"


OTHERS = [peer for peer in WHO if not is_ours(peer)]
ON_POSTGRES = [peer for peer in OTHERS if storage(peer) == "PostgreSQL"]
FLUSHED = [peer for peer in OTHERS if promise(peer) != SECOND]
