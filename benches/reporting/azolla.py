"""The table of Azolla's tasks: how fast they go through the protocol, beside the original's orchestrator."""

import statistics

from .data import number, table, with_spread
from .stores import STORES

# Tasks per second of the original. They are fixed: its orchestrator was measured once, on a machine of the same kind,
# when its behaviour was recorded (issue 18 has them); it is not built or run here.
ORIGINAL = {"create": 3_240, "run": 501, "failing-twice": 285}
PHASES = {"create": "tasks are created", "run": "they run, and callers wait for each",
          "failing-twice": "the same, failing twice without a delay"}


def median_of(found, key):
    values = [one[key] for one in found if key in one]
    return f"{number(statistics.median(values))} %" if values else "–"


def tasks(results):
    rows, rounds = [], 0
    for store, says in STORES.items():
        for phase, what in PHASES.items():
            found = results.of("azolla", store=store, phase=phase)
            if not found:
                continue
            rounds = max(rounds, len(found))
            rate = with_spread([one["tasks_per_second"] for one in found])
            used = [median_of(found, f"{who}_percent") for who in ("server", "database", "client")]
            rows.append([says, what, rate, *used])
    if not rows:
        return None
    rows += [["Azolla's orchestrator (fixed figures)", what, number(ORIGINAL[phase]), "–", "–", "–"]
             for phase, what in PHASES.items()]
    head = ["", "", "tasks per second", "a core: server", "database", "client and shepherd"]
    return table(head, rows, 2) + "\n\n" + results.caption("azolla", rounds, phase=...)


def figures(results):
    return {}


TABLES = {"azolla": tasks}
GOALS = {}
