"""Chains and chords of Celery on Redis: chains of 10 tasks, and 100 tasks with one after them. From the first that is
sent until the last task has run. Chords need a place for results, which is the same Redis. The start of the workers
is not counted.

usage: PEER=… REDIS_PORT=… JOBS=… python bench_celery_flows.py
"""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import redis
from celery import chain, chord
from celery_flow_tasks import count

peer = os.environ["PEER"]
jobs = int(os.environ.get("JOBS", "5000"))
database = redis.Redis(port=int(os.environ["REDIS_PORT"]), db=4)
PAYLOAD = {"kind": "bench", "note": "x" * 64}


def one_chain(number):
    return chain(*(count.si({"i": number * 10 + i, **PAYLOAD}) for i in range(10)))


def one_chord(number):
    return chord([count.si({"i": number * 101 + i, **PAYLOAD}) for i in range(100)],
                 count.si({"i": number * 101 + 100, **PAYLOAD}))


def measured(phase, flows, length, make, width):
    database.set("done", 0)
    start, deadline = time.perf_counter(), time.perf_counter() + 300
    with ThreadPoolExecutor(width) as pool:
        list(pool.map(lambda number: make(number).apply_async(), range(flows)))
    while int(database.get("done")) < flows * length and time.perf_counter() < deadline:
        time.sleep(0.005)
    seconds, done = time.perf_counter() - start, int(database.get("done"))
    if done != flows * length:
        sys.exit(f"{done} tasks have run, expected {flows * length}")
    print(json.dumps({"peer": peer, "phase": phase, "jobs": done, "seconds": seconds, "rate": round(done / seconds)}))


database.flushdb()
command = ["celery", "-A", "celery_flow_tasks", "worker", "-l", "ERROR", "--without-gossip", "--without-mingle"]
workers = subprocess.Popen([*command, "-P", "threads", "-c", "50"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    count.delay(PAYLOAD)
    while not database.get("done"):
        time.sleep(0.01)
    measured("w", -(-jobs // 10), 10, one_chain, 16)
    measured("g", -(-jobs // 100), 101, one_chord, 4)
finally:
    workers.terminate()
    workers.wait(30)
    database.flushdb()
