"""The tables of flows (workflows beside those of others) and runs (what runs, schedules and unique jobs cost)."""

import statistics

from .catalogue import promise, storage, title
from .data import brackets, goal, number, table, times, with_spread
from .stores import STORES

FLOWS = {"w": "chains of 10", "g": "100 at once, one after them"}
PHASES = {"a": "a one by one", "b": "b batches of 100", "c": "c claim and ack", "d": "d fail twice, then succeed"}
PEERS = ["bullmq", "bullmq-always", "celery"]


def rates(results, peer, phase):
    return [one["rate"] for one in results.of("flows", peer=f"flows-{peer}", phase=phase, rate=...)]


def flows(results):
    rows = []
    for peer in ["redrive", "redrive-postgres", *PEERS]:
        found = {phase: rates(results, peer, phase) for phase in FLOWS}
        if any(found.values()):
            rows.append([title(peer), storage(peer), promise(peer), *map(with_spread, found.values())])
    rounds = len({one["round"] for one in results.of("flows", phase=...)})
    head = ["jobs of workflows per second", "storage", "on disk", *FLOWS.values()]
    return table(head, rows, 3) + "\n\n" + results.caption("flows", rounds, phase=...) if rows else None


def goals_of_flows(results):
    lines = []
    for own in ["redrive", "redrive-postgres"]:
        for phase, says in FLOWS.items():
            measured = [rates(results, peer, phase) for peer in PEERS]
            best = max((statistics.median(some) for some in measured if some), default=None)
            ours = rates(results, own, phase)
            ratio = statistics.median(ours) / best if ours and best else None
            lines.append(goal(f"{storage(own)}, {says}: our rate divided by that of the best peer", ratio, at_least=1.0))
    return lines


def unique(results):
    rows, rounds = [], 0
    for store, says in STORES.items():
        both = [{one["round"]: one["jobs_per_second"] for one in results.of("runs", store=store, unique=case)}
                for case in ("plain", "unique")]
        if all(both):
            plain, once = both
            each = [once[turn] / plain[turn] for turn in plain if turn in once]
            rounds = max(rounds, len(each))
            ratio = number(statistics.median(once.values()) / statistics.median(plain.values())) + brackets(each)
            rows.append([says, *(with_spread(list(one.values())) for one in both), ratio])
    head = ["enqueues per second, batches of 100", "plain", "unique", "ratio"]
    return table(head, rows) + "\n\n" + results.caption("runs", rounds, unique=...) if rows else None


def compared(results, store, phase):
    """Our rate now divided by that before, of the medians and of each round; or nothing."""
    old, new = ({one["round"]: one["jobs_per_second"]
                 for one in results.of("runs", store=store, phase=phase, case=case)} for case in ("before", "now"))
    each = [new[turn] / old[turn] for turn in old if turn in new]
    return (statistics.median(new.values()) / statistics.median(old.values()), each) if each else None


def before(results):
    rows, rounds = [], 0
    for store, says in STORES.items():
        found = [compared(results, store, phase) for phase in PHASES]
        if any(found):
            rounds = max(len(one[1]) for one in found if one)
            rows.append([says, *(number(one[0]) + brackets(one[1]) if one else "–" for one in found)])
    head = ["rate now, divided by that before", *PHASES.values()]
    return table(head, rows) + "\n\n" + results.caption("runs", rounds, case=...) if rows else None


def goals_of_before(results):
    lines = []
    for store, says in STORES.items():
        for phase in PHASES:
            found = compared(results, store, phase)
            what = f"{says}: jobs without a run in phase {phase}, now divided by before"
            lines.append(goal(what, found and found[0], at_least=0.97))
    return lines


def due(results):
    rows = [[STORES[one["store"]], f"{one['due']:,}", number(one["seconds"]), number(one["jobs_per_second"]),
             number(one["other"]["p99_ms"]), number(one["other"]["longest_ms"])] for one in results.of("runs", due=...)]
    head = ["", "jobs due at once", "until all are available, s", "jobs per second", "other calls: p99, ms", "longest, ms"]
    return table(head, rows) + "\n\n" + results.caption("runs", 1, due=...) if rows else None


def percent(one, case):
    return sum(one[case].values())


def schedules(results):
    rows = [[STORES[one["store"]], f"{one['schedules']:,}", number(one["register_per_second"]),
             number(one["register_p99_ms"]), number(one["list_page_ms"]), f"{percent(one, 'empty'):.2f} %",
             f"{percent(one, 'filled'):.2f} %"] for one in results.of("runs", schedules=..., idle_seconds=...)]
    head = ["", "schedules", "registered per second", "p99 of one, ms", "a page of 100, ms", "a core while idle, empty",
            "with the schedules"]
    return table(head, rows) + "\n\n" + results.caption("runs", 1, idle_seconds=...) if rows else None


def figures(results):
    ratios = [(phase, rates(results, "redrive", phase), rates(results, "bullmq", phase)) for phase in FLOWS]
    return {f"flows.{phase}": times(statistics.median(ours) / statistics.median(theirs)) if ours and theirs
            else "not measured yet" for phase, ours, theirs in ratios}


TABLES = {"flows": flows, "runs-unique": unique, "runs-before": before, "runs-due": due, "runs-schedules": schedules}
GOALS = {"flows": goals_of_flows, "runs-before": goals_of_before}
