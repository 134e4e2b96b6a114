"""The medians of a run, and how they compare with ours.

usage: python3 summary.py results.jsonl
"""

import collections
import json
import statistics
import sys

rates = collections.defaultdict(list)
flushes = []
with open(sys.argv[1], encoding="utf-8") as lines:
    for line in lines:
        one = json.loads(line)
        rates[one["peer"], one["phase"]].append(one["rate"])
        if one.get("fdatasync_per_second"):
            flushes.append(one["fdatasync_per_second"])

peers = list(dict.fromkeys(peer for peer, _ in rates))
phases = ["a", "b", "c", "d"]
# Where both of our stores ran, the embedded one is compared.
own = "redrive" if "redrive" in peers else "redrive-postgres"
ours = {phase: statistics.median(rates[own, phase]) for phase in phases if rates.get((own, phase))}

# The best of the others that flush before they answer, and of all others.
SAFE = {"apalis-postgres", "apalis-sqlite", "bullmq-always", "graphile", "pgboss"}


def best(phase, among):
    found = [(statistics.median(rates[peer, phase]), peer) for peer in among if rates.get((peer, phase))]
    return max(found, default=None)


print("| jobs per second | a one by one | b batches of 100 | c claim and ack | d fail twice |")
print("| --- | ---: | ---: | ---: | ---: |")
for peer in peers:
    cells = []
    for phase in phases:
        values = rates.get((peer, phase))
        if not values:
            cells.append("–")
            continue
        median = statistics.median(values)
        ratio = f" ({ours[phase] / median:.1f}×)" if phase in ours and not peer.startswith(("redrive", "worker")) else ""
        cells.append(f"{median:,.0f}{ratio}")
    print(f"| {peer} | " + " | ".join(cells) + " |")
others = [peer for peer in peers if not peer.startswith(("redrive", "worker"))]
for title, among in [("all", others), ("those that flush before they answer", [p for p in others if p in SAFE])]:
    told = []
    for phase in phases:
        found = best(phase, among)
        if found and phase in ours:
            told.append(f"{phase} {ours[phase] / found[0]:.1f}× {found[1]}")
    if told:
        print(f"\nOurs beside the best of {title}: " + ", ".join(told) + ".", end="")
print()
if flushes:
    print(f"\nThe disk flushed {min(flushes):,} to {max(flushes):,} times a second during this run.")
runs = max(len(values) for values in rates.values())
print(f"In brackets: our rate divided by theirs. Medians of {runs} rounds." if runs > 1 else
      "In brackets: our rate divided by theirs. One round; on a busy machine take three.")
