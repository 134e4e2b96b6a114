"""The tables of MWL flows: in memory, durable, and asleep."""

import statistics

from .data import brackets, goal, number, table, with_spread
from .stores import STORES

DURABLE = {"steps": "three steps", "retry": "a Retry that waits 0.1 s"}


def memory(results):
    cases = {one["flow"]: one["says"] for one in results.of("mwl", flow=..., median_ms=...)}
    rows = [[says, with_spread(results.values("mwl", "median_ms", flow=flow))] for flow, says in cases.items()]
    rounds = len({one["round"] for one in results.of("mwl", flow=...)})
    return table(["a run in memory", "ms"], rows) + "\n\n" + results.caption("mwl", rounds, flow=...) if rows else None


def goals_of_memory(results):
    slowest = [statistics.median(results.values("mwl", "median_ms", flow=flow)) for flow in ("pass", "assign")
               if results.of("mwl", flow=flow, median_ms=...)]
    return [goal("1,000 steps without effects in memory, ms", max(slowest, default=None), at_most=20)]


def durable(results):
    rows, rounds = [], 0
    for store, says in STORES.items():
        for flow, what in DURABLE.items():
            found = results.of("mwl", store=store, durable=flow)
            if not found:
                continue
            rounds = len(found)
            middle = lambda key: number(statistics.median(one[key] for one in found))
            rates = [one["runs_per_second"] for one in found]
            rows.append([says, what, number(statistics.median(rates)) + brackets(rates), middle("p50_ms"),
                         middle("p99_ms"), middle("cpu_us_per_run"), middle("server_cores")])
    head = ["", "flow", "runs per second", "start: p50, ms", "p99, ms", "processor time of one, µs",
            "cores that the server used"]
    return table(head, rows, 2) + "\n\n" + results.caption("mwl", rounds, durable=...) if rows else None


def sleeping(results):
    rows = [[STORES[one["store"]], f"{one['sleeping']:,}", number(one["start_per_second"]), number(one["full_mib"]),
             number(one["bytes_per_run"]), f"{one['idle_percent']:.2f} %", number(one["late_p50_ms"]),
             number(one["late_p99_ms"]), number(one["late_most_ms"])] for one in results.of("mwl", sleeping=...)]
    head = ["", "runs that sleep", "started per second", "memory of the server, MiB", "bytes for each run",
            "a core meanwhile", "ended late: p50, ms", "p99, ms", "most, ms"]
    return table(head, rows) + "\n\n" + results.caption("mwl", 1, sleeping=...) if rows else None


def goals_of_sleeping(results):
    lines = []
    for store, says in STORES.items():
        found = results.of("mwl", store=store, sleeping=100_000)
        latest = lambda key: found[-1][key] if found else None
        lines.append(goal(f"{says}: memory of the server with 100,000 runs that sleep, MiB", latest("full_mib"),
                          at_most=1024))
        lines.append(goal(f"{says}: p99 of how late they end, ms", latest("late_p99_ms"), at_most=1000))
    return lines


def figures(results):
    return {}


TABLES = {"mwl-memory": memory, "mwl-durable": durable, "mwl-sleeping": sleeping}
GOALS = {"mwl-memory": goals_of_memory, "mwl-sleeping": goals_of_sleeping}
