"""The tables of graphs: how fast they go on through the protocol of Exosphere's SDK, and what runs cost that wait."""

import statistics

from .data import goal, number, table, with_spread
from .stores import STORES

CASES = {("chain", False): "chains of 10", ("fan-out", False): "a fan-out with a unite",
         ("chain", True): "chains of 10, the SDK itself", ("fan-out", True): "a fan-out with a unite, the SDK itself"}


def of_case(results, store, case):
    found = results.of("graphs", store=store, graph=case[0], states_per_second=...)
    return [one for one in found if bool(one.get("sdk")) == case[1]]


def median_of(found, key):
    values = [one[key] for one in found if key in one]
    return f"{number(statistics.median(values))} %" if values else "–"


def graphs(results):
    rows, rounds = [], 0
    for store, says in STORES.items():
        for case, what in CASES.items():
            found = of_case(results, store, case)
            if found:
                rounds = max(rounds, len({one["round"] for one in found}))
                rate = with_spread([one["states_per_second"] for one in found])
                used = [median_of(found, f"{who}_percent") for who in ("server", "database", "runtimes")]
                rows.append([says, what, f"{found[0]['states']:,}", rate, *used])
    head = ["", "graphs", "states", "states per second", "a core: server", "database", "runtimes"]
    return table(head, rows, 2) + "\n\n" + results.caption("graphs", rounds, graph=...) if rows else None


def percent(one, case):
    return sum(one[case].values())


def waiting(results):
    rows = [[STORES[one["store"]], f"{one['waiting']:,}", number(one["triggered_per_second"]),
             f"{percent(one, 'empty'):.2f} %", f"{percent(one, 'filled'):.2f} %"]
            for one in results.of("graphs", waiting=..., idle_seconds=...)]
    head = ["", "runs that wait", "triggered per second", "a core while idle, empty", "with the runs"]
    return table(head, rows) + "\n\n" + results.caption("graphs", 1, idle_seconds=...) if rows else None


def goals_of_waiting(results):
    lines = []
    for store, says in STORES.items():
        found = results.of("graphs", store=store, waiting=..., idle_seconds=...)
        more = [percent(one, "filled") - percent(one, "empty") for one in found]
        lines.append(goal(f"{says}: percent of a core that waiting runs cost an idle server",
                          max(more) if more else None, at_most=0.5))
    return lines


def figures(_):
    return {}


TABLES = {"graphs": graphs, "graphs-waiting": waiting}
GOALS = {"graphs-waiting": goals_of_waiting}
