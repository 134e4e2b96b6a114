"""The versions of what is about to be measured, as one JSON line for each.

usage: [PG_URL=…] python3 versions.py WORK peer…
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

here, (work, *peers) = Path(__file__).resolve().parent, sys.argv[1:]


def output(*command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def locked(folder, crate):
    """The version of a crate in the lock file that its build has written."""
    text = (here / folder / "Cargo.lock").read_text(encoding="utf-8")
    return re.search(rf'name = "{crate}"\nversion = "([^"]+)"', text).group(1)


def npm(name):
    return json.loads(Path(work, "node/node_modules", name, "package.json").read_text(encoding="utf-8"))["version"]


def pip(name):
    code = f"import importlib.metadata as m; print(m.version({name!r}))"
    return output(f"{work}/venv/bin/python", "-c", code).strip()


def version(peer):
    first = peer.removeprefix("flows-").split("-")[0]
    if peer == "graphile-rust":
        return locked("graphile", "graphile_worker")
    if first == "apalis":
        return locked("apalis", peer)
    if first in ("celery", "dramatiq", "procrastinate"):
        return pip(first)
    if first == "sidekiq":
        return output("dpkg-query", "-W", "-f", "${Version}", "ruby-sidekiq").split("+")[0]
    if first in ("bullmq", "graphile", "pgboss"):
        return npm({"graphile": "graphile-worker", "pgboss": "pg-boss"}.get(first, first))
    return None


for peer in peers:
    if found := version(peer):
        print(json.dumps({"peer": peer, "version": found}))
if found := re.search(r" v=(\S+)", output("redis-server", "--version")):
    print(json.dumps({"server": "Redis", "version": found.group(1)}))
if found := output("psql", "-A", "-t", "-c", "show server_version", os.environ.get("PG_URL", "")).split():
    print(json.dumps({"server": "PostgreSQL", "version": found[0]}))
