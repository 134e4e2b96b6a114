"""procrastinate on PostgreSQL. Two worker processes, each with its own event loop and 25 jobs at a time, which was two
to three times as fast in trials as one with 50. Each polls every 100 ms; listening for notifications, and deleting jobs
that are done instead of keeping them, made no difference. Retries wait for 0 seconds.

The start of the workers is not counted. Its time for one job grows with the number of jobs.

usage: PEER=… PG_URL=… JOBS=… python bench_procrastinate.py
"""

import asyncio
import json
import logging
import multiprocessing
import os
import sys
import time

import procrastinate
import psycopg

PROCESSES, CONCURRENCY = 2, 25
peer, url = os.environ["PEER"], os.environ["PG_URL"]
jobs = int(os.environ.get("JOBS", "10000"))
runs = multiprocessing.Value("q", 0)
logging.getLogger("procrastinate").setLevel(logging.CRITICAL)


def new_app():
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, min_size=4, max_size=20))

    async def run(context, **_):
        with runs.get_lock():
            runs.value += 1
        if context.job.queue == "failing" and context.job.attempts < 2:
            raise RuntimeError("planned")

    retry = procrastinate.RetryStrategy(max_attempts=2, wait=0)
    return app, app.task(run, name="job", pass_context=True, retry=retry)


def payload(i):
    return {"i": i, "kind": "bench", "note": "x" * 64}


def report(phase, count, seconds):
    print(json.dumps({"peer": peer, "phase": phase, "jobs": count, "seconds": seconds, "rate": round(count / seconds)}))


def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: found {found}, expected {wanted}")


def unfinished(database):
    sql = "select count(*) from procrastinate_jobs where status <> 'succeeded'"
    return database.execute(sql).fetchone()[0]


def clear(database):
    database.execute("truncate procrastinate_jobs cascade")
    database.execute("vacuum analyze procrastinate_jobs")


async def fill(task, queue, count):
    for first in range(0, count, 100):
        batch = [payload(i) for i in range(first, min(first + 100, count))]
        await task.configure(queue=queue).batch_defer_async(*batch)


async def one_by_one(task):
    numbers = iter(range(jobs))

    async def lane():
        for i in numbers:
            await task.configure(queue="single").defer_async(**payload(i))

    await asyncio.gather(*(lane() for _ in range(16)))


def in_loop(work):
    """Calls `work` with the task of an open app; the seconds it took."""
    async def inner():
        app, task = new_app()
        async with app.open_async():
            begun = time.perf_counter()
            await work(task)
            return time.perf_counter() - begun

    return asyncio.run(inner())


def worker(queue, ready):
    async def inner():
        app, _ = new_app()
        async with app.open_async():
            ready.wait()
            await app.run_worker_async(queues=[queue], concurrency=CONCURRENCY, fetch_job_polling_interval=0.1,
                                       listen_notify=False, delete_jobs="never", shutdown_graceful_timeout=5)

    asyncio.run(inner())


def drained(database, queue, count):
    """The seconds until all jobs have succeeded."""
    clear(database)
    in_loop(lambda task: fill(task, queue, count))
    database.execute("vacuum analyze procrastinate_jobs")
    runs.value = 0
    ready = multiprocessing.Barrier(PROCESSES + 1)
    workers = [multiprocessing.Process(target=worker, args=(queue, ready), daemon=True) for _ in range(PROCESSES)]
    for one in workers:
        one.start()
    ready.wait()
    begun = time.perf_counter()
    while unfinished(database) and time.perf_counter() < begun + 300:
        time.sleep(0.005)
    seconds = time.perf_counter() - begun
    for one in workers:
        one.terminate()
        one.join()
    expect("jobs left", unfinished(database), 0)
    return seconds


def main():
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("drop schema if exists procrastinate cascade; create schema procrastinate")
        database.execute("set search_path to procrastinate")
        in_loop(lambda task: task.blueprint.schema_manager.apply_schema_async())
        for phase, work in [("a", one_by_one), ("b", lambda task: fill(task, "batches", jobs))]:
            clear(database)
            seconds = in_loop(work)
            expect("jobs stored", unfinished(database), jobs)
            report(phase, jobs, seconds)
        seconds = drained(database, "plain", jobs)
        expect("runs", runs.value, jobs)
        report("c", jobs, seconds)
        count = -(-jobs // 2)
        seconds = drained(database, "failing", count)
        expect("runs", runs.value, 3 * count)
        report("d", count, seconds)


url += "?options=-csearch_path%3Dprocrastinate"
main()
