"""The tables of benches/peers/run."""

import statistics

from .catalogue import FLUSHED, ON_POSTGRES, OTHERS, PHASES, WHO, promise, storage, title
from .data import MISSING, among, brackets, goal, number, table, times, with_spread

NAME = "peers"
# Only the peers on PostgreSQL, which takes a fifth of the time.
ON_POSTGRES_ALONE = "peers-postgres"


def rates(results, peer, phase):
    """Jobs per second by the number of the round."""
    return {one["round"]: one["rate"] for one in results.of(NAME, peer=peer, phase=phase, rate=...)}


def ratios(results, own, peer, phase):
    """Our median divided by theirs, and the same for each round that both have; or nothing."""
    ours, theirs = rates(results, own, phase), rates(results, peer, phase)
    if not ours or not theirs:
        return None
    each = [ours[number] / theirs[number] for number in ours if number in theirs]
    return statistics.median(ours.values()) / statistics.median(theirs.values()), each


def best(results, own, phase, among_peers):
    """The fastest of these by its median, and our ratio to it; or nothing."""
    found = [(*ratios(results, own, peer, phase), peer) for peer in among_peers if ratios(results, own, peer, phase)]
    return min(found, default=None, key=lambda one: one[0])


def measured(results, peers):
    return [peer for peer in peers if results.of(NAME, peer=peer, phase=...)]


def caption(results, peers):
    rounds = len({one["round"] for peer in peers for one in results.of(NAME, peer=peer, phase=...)})
    lines = [results.caption(NAME, rounds, phase=...)]
    servers = [f"{one['server']} {one['version']}" for one in results.of(NAME, server=...)]
    if servers:
        lines.append(f"*Servers: {', '.join(servers)}. A ratio is our rate divided by theirs.*")
    failed = [f"{one['peer']} in round {one['round']}" for one in results.of(NAME, failed=...) if one["peer"] in peers]
    if failed:
        lines.append(f"*Runs that did not add up and have no figures: {', '.join(failed)}.*")
    return "\n\n" + "\n".join(lines)


def cell(results, own, peer, phase):
    values = list(rates(results, peer, phase).values())
    found = own != peer and ratios(results, own, peer, phase)
    return with_spread(values) + (f" **{times(found[0])}**" if found else "")


def name_of(results, peer):
    version = results.values(NAME, "version", peer=peer)
    return " ".join([title(peer), *version[:1]])


def side_by_side(results, own, others):
    if not measured(results, [own]):
        return None
    rows = []
    for peer in [own, *measured(results, others)]:
        state = [among(results.values(NAME, key, peer=peer, phase=...)) for key in ("load", "fdatasync_per_second")]
        figures = [cell(results, own, peer, phase) for phase in PHASES]
        rows.append([name_of(results, peer), storage(peer), promise(peer), *figures, *state])
    head = ["jobs per second", "storage", "on disk", *PHASES.values(), "load", "flushes/s"]
    return table(head, rows, 3) + caption(results, [own, *others])


def beside_the_best(results):
    """Each way to use this project beside the best of three groups."""
    rows = []
    for own in measured(results, [peer for peer in WHO if peer not in OTHERS]):
        groups = [("all", OTHERS), ("those that flush before they answer", FLUSHED)]
        for group, peers in [*groups, ("those on PostgreSQL", ON_POSTGRES)]:
            if group == "those on PostgreSQL" and storage(own) != "PostgreSQL":
                continue
            found = [best(results, own, phase, peers) for phase in PHASES]
            cells = [f"{times(one[0])}{brackets(one[1], times)} {title(one[2])}" if one else "–" for one in found]
            rows.append([f"{title(own)} ({storage(own)})", group, *cells])
    head = ["ours", "beside the best of", *PHASES.values()]
    return table(head, rows, 2) + caption(results, list(WHO)) if rows else None


def one_by_one(results):
    """The phases that only `redrive bench` has, and its delays."""
    rows = []
    for own in ["redrive", "redrive-postgres"]:
        for phase in ["a", "b", "b4", "c", "c1", "d", "d1"]:
            values = list(rates(results, own, phase).values())
            if values:
                delays = [with_spread(results.values(NAME, key, peer=own, phase=phase)) for key in ("p50_ms", "p99_ms")]
                rows.append([f"{title(own)} ({storage(own)})", phase, with_spread(values), *delays])
    head = ["", "phase", "jobs per second", "p50 of a request, ms", "p99, ms"]
    return table(head, rows, 2) + caption(results, ["redrive", "redrive-postgres"]) if rows else None


def goals_of(results, own, others, limits, says):
    lines = []
    for phase, limit in limits:
        found = best(results, own, phase, others)
        whom = f" ({title(found[2])})" if found else ""
        lines.append(goal(f"{says} in phase {phase}{whom}", found and found[0], at_least=limit))
    return lines


def goals(results):
    client = goals_of(results, "worker", OTHERS, [("a", 1.5)], "the client over HTTP beside the best of all peers")
    each = [(phase, 1.0) for phase in PHASES]
    return client + goals_of(results, "redrive", OTHERS, each, "the embedded store beside the best of all peers")


def goals_on_postgres(results):
    results = results.with_newer(NAME, ON_POSTGRES_ALONE)
    limits = [(phase, limit) for limit in (2.0, 1.3) for phase in PHASES]
    return [
        *goals_of(results, "redrive-postgres", ON_POSTGRES, limits, "`redrive bench` beside the best peer on PostgreSQL"),
        *goals_of(results, "worker-postgres", ON_POSTGRES, limits, "client and worker beside the best peer on PostgreSQL"),
    ]


TABLES = {
    "peers-embedded": lambda results: side_by_side(results, "redrive", OTHERS),
    "peers-postgres": lambda results: side_by_side(
        results.with_newer(NAME, ON_POSTGRES_ALONE), "redrive-postgres", ON_POSTGRES),
    "peers-best": beside_the_best,
    "peers-ours": one_by_one,
}
GOALS = {"peers-embedded": goals, "peers-postgres": goals_on_postgres}


def figures(results):
    found = {}
    for own, others in [("redrive", OTHERS), ("redrive-postgres", ON_POSTGRES)]:
        for phase in PHASES:
            one = best(results, own, phase, others)
            found[f"peers.{own}.{phase}"] = with_spread(list(rates(results, own, phase).values())) if one else MISSING
            found[f"peers.{own}.{phase}.ratio"] = number(one[0]) + "×" if one else MISSING
    return found
