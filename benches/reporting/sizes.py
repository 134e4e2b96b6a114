"""The tables of the benchmarks of size: scale (many jobs in the embedded store) and postgres (one database)."""

import statistics

from .data import MISSING, goal, number, table, with_spread

PHASES = {"b": "b batches of 100", "c": "c claim and ack", "d": "d fail twice, then succeed"}


def bytes_of(megabytes):
    return f"{number(megabytes / 1000)} GB" if megabytes >= 1000 else f"{megabytes:,} MB"


def waiting(results):
    rows = []
    for one in results.of("scale", waiting=...):
        rates = [number(one[phase]) for phase in "abcd"]
        opening = f"{number(one['open_seconds'])} s"
        rows.append([f"{one['waiting']:,}", *rates, opening, bytes_of(one["memory_mb"]), bytes_of(one["disk_mb"]),
                     one["load"], number(one["fdatasync_per_second"])])
    head = ["waiting jobs", "a /s", "b /s", "c /s", "d /s", "opening", "memory", "disk", "load", "flushes/s"]
    return table(head, rows) + "\n\n" + results.caption("scale", 1, waiting=...) if rows else None


def steady(results):
    rows = [[f"{one['jobs_so_far']:,}", number(one["jobs_per_second"]), bytes_of(one["memory_mb"]),
             bytes_of(one["disk_mb"])] for one in results.of("scale", jobs_so_far=...)]
    # Every fourth tells as much, and the first and the last.
    shown = [row for index, row in enumerate(rows) if index in (0, len(rows) - 1) or index % 4 == 3]
    head = ["jobs so far", "jobs per second", "memory", "disk"]
    return table(head, shown) + "\n\n" + results.caption("scale", 0, jobs_so_far=...) if rows else None


def piling_up(results):
    lines = results.of("postgres", finished_before=..., round=...)
    rows = []
    for before in sorted({one["finished_before"] for one in lines}):
        some = [one for one in lines if one["finished_before"] == before]
        says = f"with {before:,} ended jobs" if before else "empty"
        rows.append([says, *(with_spread([one[phase] for one in some]) for phase in PHASES)])
    rounds = len({one["round"] for one in lines})
    head = ["jobs per second", *PHASES.values()]
    return table(head, rows) + "\n\n" + results.caption("postgres", rounds, finished_before=...) if rows else None


def nodes(results):
    lines = results.of("postgres", nodes=..., phase=...)
    rows = []
    for count in sorted({one["nodes"] for one in lines}):
        some = {phase: [one["jobs_per_second"] for one in lines if one["nodes"] == count and one["phase"] == phase]
                for phase in PHASES}
        rows.append([f"{count} node{'s' if count > 1 else ''}", *map(with_spread, some.values())])
    rounds = len({one["round"] for one in lines})
    head = ["jobs per second", *PHASES.values()]
    return table(head, rows) + "\n\n" + results.caption("postgres", rounds, nodes=...) if rows else None


def goals(results):
    lines = []
    for phase in PHASES:
        full, empty = ([one[phase] for one in results.of("postgres", finished_before=..., round=...)
                        if bool(one["finished_before"]) == is_full] for is_full in (True, False))
        ratio = statistics.median(full) / statistics.median(empty) if full and empty else None
        lines.append(goal(f"the rate of phase {phase} with many ended jobs, divided by that of an empty store", ratio,
                          at_least=0.9))
    return lines


def figures(results):
    found = {}
    for key in ["payload_bytes", "memory_each", "memory_each_after_opening", "disk_each", "open_seconds", "each_of"]:
        values = results.values("scale", key, each_of=...)
        found[f"scale.{key}"] = f"{values[0]:,}" if values else MISSING
    for key in ["bytes_waiting", "bytes_ended"]:
        values = results.values("postgres", key)
        found[f"postgres.{key}"] = f"{values[0]:,}" if values else MISSING
    return found


TABLES = {
    "scale-waiting": waiting,
    "scale-steady": steady,
    "postgres-piling-up": piling_up,
    "postgres-nodes": nodes,
}
GOALS = {"postgres": goals}
