"""The task that Celery's worker runs in chains and chords."""

import os

import redis
from celery import Celery

ADDRESS = f"redis://127.0.0.1:{os.environ['REDIS_PORT']}/4"
app = Celery("flows", broker=ADDRESS, backend=ADDRESS)
app.conf.update(worker_hijack_root_logger=False, broker_pool_limit=20)
database = redis.Redis.from_url(ADDRESS)


@app.task
def count(data):
    """Counts itself, so that the end of all tasks can be told."""
    database.incr("done")
