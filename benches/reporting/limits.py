"""The table of benches/limits/run: where the processor time of a job goes, and what is left without flushes."""

import statistics

from .data import MISSING, number, table, with_spread

NAME = "limits"
CALLERS = 16
PLACES = {"disk": "embedded store, a folder on disk", "memory": "embedded store, a folder in memory", "PostgreSQL": "PostgreSQL"}


def processors(line):
    """How many processors were busy with it."""
    spent = sum(line.get(f"{name}_us", 0) for name in ("client", "server", "postgres"))
    return spent * line["jobs_per_second"] / 1e6


def limits(results):
    lines = results.of(NAME, phase=..., place=...)
    rows = []
    for key in dict.fromkeys((one["phase"], one["by"], one["place"]) for one in lines):
        some = [one for one in lines if (one["phase"], one["by"], one["place"]) == key]
        phase, by, place = key
        each = [with_spread([one[f"{name}_us"] for one in some]) if f"{name}_us" in some[0] else "–"
                for name in ("client", "server", "postgres")]
        busy = number(statistics.median(map(processors, some))) if phase == "a" else "–"
        rows.append([phase, by, PLACES[place], with_spread([one["jobs_per_second"] for one in some]), *each, busy])
    rounds = len({one["round"] for one in lines})
    head = ["phase", "by", "store", "jobs per second", "client, µs", "server, µs", "PostgreSQL, µs", "processors busy"]
    return table(head, rows, 3) + "\n\n" + results.caption(NAME, rounds, phase=...) if rows else None


def without_flushes(results):
    """How much faster phase a is where a flush costs nothing, by the client."""
    rates = {place: [one["jobs_per_second"] for one in results.of(NAME, phase="a", by="client", place=place)]
             for place in ("disk", "memory")}
    return statistics.median(rates["memory"]) / statistics.median(rates["disk"]) if all(rates.values()) else None


def most_with_flushes(results):
    """What sixteen callers could have at the very most if each flush of the disk had a job of every one of them."""
    flushes = [one["fdatasync_per_second"] for one in results.of(NAME, phase="a", place="disk")]
    return CALLERS * statistics.median(flushes) if flushes else None


def figures(results):
    found = {"without_flushes": without_flushes(results), "most_with_flushes": most_with_flushes(results)}
    return {f"limits.{name}": number(value) if value else MISSING for name, value in found.items()}


TABLES = {"limits": limits}
GOALS = {}
