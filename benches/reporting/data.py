"""The results of the benchmarks, and how figures are written."""

import json
import statistics
from datetime import date
from pathlib import Path

MISSING = "not measured yet"


class Results:
    """The records of each benchmark by its name: benches/results/NAME.json."""

    def __init__(self, records):
        self.records = records

    @classmethod
    def of_folder(cls, folder):
        return cls({file.stem: json.loads(file.read_text(encoding="utf-8")) for file in Path(folder).glob("*.json")})

    @classmethod
    def of_lines(cls, name, file):
        """Of one run that has just ended, whose lines are not yet in the folder."""
        return cls({name: [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]})

    def with_newer(self, name, newer):
        """The same, with the records of a later run of a part of a benchmark in place of the whole, where there is one."""
        return Results({**self.records, name: self.records.get(newer) or self.records.get(name, [])})

    def of(self, name, **fields):
        """The records of a benchmark that have all these fields; a field given as ... may have any value."""
        fits = lambda one: all(key in one and wanted in (..., one[key]) for key, wanted in fields.items())
        return [one for one in self.records.get(name, []) if fits(one)]

    def values(self, name, key, **fields):
        return [one[key] for one in self.of(name, **{key: ..., **fields})]

    def caption(self, name, rounds, **fields):
        """When, where and under which load the records with these fields were measured."""
        machine = next((one["machine"] for one in self.of(name, machine=...)), None)
        parts = []
        if machine:
            state = "with changes on top" if machine["changed"] else "nothing changed"
            parts.append(f"{day(machine['date'])}, commit {machine['commit']} ({state}), {machine['cores']} cores")
            parts.append(f"a load of {machine['load_before']} before the run")
        loads, flushes = self.values(name, "load", **fields), self.values(name, "fdatasync_per_second", **fields)
        if loads:
            parts.append(f"a load of {among(loads)} during it")
        if flushes:
            parts.append(f"{among(flushes)} flushes of the disk per second")
        if rounds:
            spread = ", in brackets the lowest and the highest" if rounds > 1 else ", so that there is no spread to tell"
            parts.append(f"medians of {rounds} rounds{spread}" if rounds > 1 else f"one round{spread}")
        text = "; ".join(parts)
        return f"*{text[:1].upper()}{text[1:]}.*"


def day(text):
    found = date.fromisoformat(text)
    return f"{found.day} {found:%B %Y}"


def number(value):
    """Three figures or more, with commas."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def times(value):
    return f"{value:.0f}×" if value >= 100 else f"{value:.1f}×"


def among(values):
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def brackets(values, write=number):
    low, high = write(min(values)), write(max(values))
    return f" ({low}–{high})" if len(values) > 1 else ""


def with_spread(values, write=number):
    """The median, and in brackets the lowest and the highest."""
    return write(statistics.median(values)) + brackets(values, write) if values else "–"


def table(head, rows, texts=1):
    """A table of Markdown: the first columns are text, the others are figures."""
    lines = [head, ["---"] * texts + ["---:"] * (len(head) - texts), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def goal(says, found, *, at_least=None, at_most=None):
    """A line that says whether a goal was met; `found` may be missing."""
    limit = f"at least {number(at_least)}" if at_most is None else f"at most {number(at_most)}"
    if found is None:
        return f"- {MISSING}: {says}, {limit}."
    met = found >= at_least if at_most is None else found <= at_most
    return f"- **{'met' if met else 'not met'}**: {says}: {number(found)}, {limit}."
