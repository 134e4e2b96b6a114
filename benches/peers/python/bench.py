"""Celery or dramatiq on Redis: phases a and c. They have no bulk call; their retries wait whole
seconds or need a result store, so that phase d is left out.

Celery runs a pool of 50 threads and acknowledges before it runs a task, which is its default;
dramatiq runs two processes of 25 threads. The start of the workers is not counted.

usage: PEER=… REDIS_PORT=… JOBS=… python bench.py celery|dramatiq
"""

import json
import os
import subprocess
import sys
import threading
import time

import redis

kind = sys.argv[1]
peer = os.environ["PEER"]
jobs = int(os.environ.get("JOBS", "10000"))
database = redis.Redis(port=int(os.environ["REDIS_PORT"]), db=1 if kind == "celery" else 2)

if kind == "celery":
    from celery_tasks import noop

    send = noop.delay
    command = ["celery", "-A", "celery_tasks", "worker", "-l", "ERROR", "--without-gossip", "--without-mingle"]
    command += ["-P", "threads", "-c", "50"]
    waiting = lambda: database.llen("celery")
    unfinished = lambda: database.llen("celery") + database.hlen("unacked")
else:
    from dramatiq_tasks import noop

    send = noop.send
    command = ["dramatiq", "dramatiq_tasks", "-p", "2", "-t", "25"]
    waiting = lambda: database.llen("dramatiq:default")
    unfinished = lambda: database.hlen("dramatiq:default.msgs")


def report(phase, seconds):
    print(json.dumps({"peer": peer, "phase": phase, "jobs": jobs, "seconds": seconds, "rate": round(jobs / seconds)}))


def enqueue_every_16th(first):
    for i in range(first, jobs, 16):
        send({"i": i, "kind": "bench", "note": "x" * 64})


database.flushdb()
threads = [threading.Thread(target=enqueue_every_16th, args=(first,)) for first in range(16)]
start = time.perf_counter()
for one in threads:
    one.start()
for one in threads:
    one.join()
enqueued = time.perf_counter() - start
if unfinished() != jobs:
    sys.exit(f"{unfinished()} jobs are stored, expected {jobs}")
report("a", enqueued)

workers = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
deadline = time.perf_counter() + 300
try:
    while waiting() == jobs and time.perf_counter() < deadline:
        time.sleep(0.002)
    start = time.perf_counter()
    while unfinished() and time.perf_counter() < deadline:
        time.sleep(0.01)
    if unfinished():
        sys.exit(f"{unfinished()} of {jobs} jobs are left after five minutes")
    report("c", time.perf_counter() - start)
finally:
    workers.terminate()
    workers.wait(30)
    database.flushdb()
