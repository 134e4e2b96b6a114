"""The tables of the policy core and of the simulation."""

import statistics

from .data import MISSING, goal, table, with_spread


def comparison(results, name):
    lines = results.of("core", comparison=name)
    rows = []
    for who in dict.fromkeys(one["name"] for one in lines):
        some = [one for one in lines if one["name"] == who]
        rows.append([who, *(with_spread([one[key] for one in some]) for key in ("median_ns", "least_ns", "ratio"))])
    rounds = len({one["round"] for one in lines})
    head = ["", "median, ns", "fastest slice, ns", "ratio"]
    return table(head, rows) + "\n\n" + results.caption("core", rounds, comparison=...) if rows else None


def goals(results):
    lines = results.of("core", goal=...)
    if not lines:
        return [f"- {MISSING}."]
    told = []
    for says in dict.fromkeys(one["goal"] for one in lines):
        some = [one for one in lines if one["goal"] == says]
        told.append(goal(says, statistics.median(one["found"] for one in some), at_most=some[0]["at_most"]))
    return told


def simulation(results):
    lines = results.of("simulate", seconds=...)
    if not lines:
        return None
    rows = [
        ["jobs", f"{lines[0]['jobs']:,}"],
        ["attempts", f"{lines[0]['attempts']:,}"],
        ["time, s", with_spread([one["seconds"] for one in lines])],
        ["processor time, s", with_spread([one["processor_seconds"] for one in lines])],
        ["memory at its highest, MB", with_spread([one["memory_mb"] for one in lines])],
    ]
    return table(["", ""], rows) + "\n\n" + results.caption("simulate", len(lines), seconds=...)


TABLES = {
    **{f"core-{name}": lambda results, name=name: comparison(results, name)
       for name in ["delay", "async", "blocking", "decide"]},
    "simulate": simulation,
}
GOALS = {"core": goals}
