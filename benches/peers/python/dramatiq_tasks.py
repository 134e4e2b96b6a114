"""The task that dramatiq's workers run."""

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker

dramatiq.set_broker(RedisBroker(host="127.0.0.1", port=int(os.environ["REDIS_PORT"]), db=2))


@dramatiq.actor
def noop(data):
    """Does nothing."""
