"""The task that Celery's worker runs."""

import os

from celery import Celery

app = Celery("peers", broker=f"redis://127.0.0.1:{os.environ['REDIS_PORT']}/1")
app.conf.update(task_ignore_result=True, worker_hijack_root_logger=False, broker_pool_limit=20)


@app.task
def noop(data):
    """Does nothing."""
