"""The tables of the benchmarks that drive a server and look at its calls: held, lists, scale, postgres."""

import statistics

from .data import MISSING, brackets, goal, number, table, with_spread

STORES = {"embedded": "embedded store", "postgres": "PostgreSQL"}
CALLS = ["enqueue", "claim", "ack"]


def by_round(results, name, case, key, **fields):
    return {one["round"]: one[key] for one in results.of(name, case=case, **{key: ...}, **fields)}


def calls_ratio(results, name, cases, key, **fields):
    """The second case's median divided by the first's, and the same for each round; or nothing."""
    first, second = (by_round(results, name, case, key, **fields) for case in cases)
    each = [second[number] / first[number] for number in first if number in second and first[number]]
    if not each:
        return None
    return statistics.median(second.values()) / statistics.median(first.values()), each


def calls(results, name, cases, titles):
    rows, rounds = [], 0
    for store, title in STORES.items():
        for call in CALLS:
            for key, says in [("p50_ms", "p50"), ("p99_ms", "p99")]:
                fields = {"store": store, "call": call}
                found = calls_ratio(results, name, cases, key, **fields)
                if found:
                    both = [list(by_round(results, name, case, key, **fields).values()) for case in cases]
                    rounds = max(rounds, len(found[1]))
                    ratio = number(found[0]) + brackets(found[1])
                    rows.append([f"{title}: {call}, {says}, ms", *map(with_spread, both), ratio])
    return table(["", *titles, "ratio"], rows) + "\n\n" + results.caption(name, rounds, case=...) if rows else None


def goals_of_calls(results, name, cases, says):
    lines = []
    for store, title in STORES.items():
        found = [calls_ratio(results, name, cases, "p99_ms", store=store, call=call) for call in CALLS]
        worst = max((one[0] for one in found if one), default=None)
        lines.append(goal(f"{title}: the worst ratio of the p99 of enqueue, claim and ack, {says}", worst, at_most=1.2))
    return lines


HELD, LISTS = ["empty", "held"], ["alone", "beside_lists"]


def idle(results):
    rows = []
    for one in results.of("held", idle_seconds=...):
        for key, who in [("server_percent", "the server"), ("database_percent", "its connections to PostgreSQL")]:
            if key in one["held"]:
                cells = [f"{one[case][key]:.2f} %" for case in HELD]
                rows.append([f"{STORES[one['store']]}: {who}, over {one['idle_seconds']} s", *cells])
    head = ["processor time while idle, of one core", "empty", "held"]
    return table(head, rows) + "\n\n" + results.caption("held", 0, idle_seconds=...) if rows else None


def resumed(results):
    found = results.of("held", resumed=...)
    says = {
        "resumed": ("jobs", lambda one: f"{one['resumed']:,}"),
        "seconds": ("until all of them were done, s", lambda one: number(one["seconds"])),
        "answer": ("until the request that resumes the queue was answered, ms", lambda one: number(one["answer_ms"])),
        "first": ("until the first of them was claimed, ms", lambda one: number(one["first_job_ms"])),
        "order": ("jobs out of order", lambda one: str(one["out_of_order"])),
        "p99": ("calls in the other queue: p99, ms", lambda one: number(one["other"]["p99_ms"])),
        "longest": ("the longest of them, ms", lambda one: number(one["other"]["longest_ms"])),
        "calls": ("how many", lambda one: f"{one['other']['calls']:,}"),
    }
    rows = [[title, *map(write, found)] for title, write in says.values()]
    head = ["", *(STORES[one["store"]] for one in found)]
    return table(head, rows) + "\n\n" + results.caption("held", 1, resumed=...) if found else None


def goals_of_held(results):
    lines = goals_of_calls(results, "held", HELD, "held beside empty")
    for store, title in STORES.items():
        idle_lines = results.of("held", idle_seconds=..., store=store)
        percent = max((sum(one["held"].values()) for one in idle_lines), default=None)
        lines.append(goal(f"{title}: percent of a core while idle", percent, at_most=1.0))
        disorder = max(results.values("held", "out_of_order", store=store), default=None)
        lines.append(goal(f"{title}: jobs out of order after the resumption", disorder, at_most=0))
    return lines


def pages(results):
    """What the clients that list did, and how long the list of queues takes."""
    rows = []
    for store, title in STORES.items():
        for kind, says in [("no.such.type", "a type that no job has"), ("bench.waits", "the type of all jobs")]:
            values = results.values("lists", "pages_per_second", store=store, listed=kind)
            if values:
                rows.append([f"{title}: pages per second, by {says}", with_spread(values)])
        for one in results.of("lists", store=store, call="GET /queues"):
            rows.append([f"{title}: `GET /queues`, p50 and p99, ms", f"{one['p50_ms']} and {one['p99_ms']}"])
    return table(["", ""], rows) if rows else None


TABLES = {
    "held-calls": lambda results: calls(results, "held", HELD, ["empty", "held"]),
    "held-idle": idle,
    "held-resume": resumed,
    "lists-calls": lambda results: calls(results, "lists", LISTS, ["alone", "beside lists"]),
    "lists-pages": pages,
}
GOALS = {
    "held": goals_of_held,
    "lists": lambda results: goals_of_calls(results, "lists", LISTS, "beside lists"),
}


def figures(results):
    jobs = {"lists.jobs": results.values("lists", "waiting"), "held.jobs": results.values("held", "resumed")}
    return {name: f"{max(values):,}" if values else MISSING for name, values in jobs.items()}
