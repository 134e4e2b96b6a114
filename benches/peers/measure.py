"""Runs one program, adds the round and the state of the disk and of the machine to each line that it prints, and
appends the lines to the results. A program that ends with an error has no lines, even for what it measured before.

usage: PEER=… ROUND=… python3 measure.py RESULTS FOLDER -- command…
"""

import json
import os
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import fdatasync_per_second

results, folder, _, *command = sys.argv[1:]
flushes = fdatasync_per_second(folder, 0.7)
done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=1800, check=False)
lines = []
for line in done.stdout.splitlines():
    try:
        lines.append(json.loads(line))
    except ValueError:
        print(line, file=sys.stderr)
if done.returncode:
    lines = [{"peer": os.environ["PEER"], "failed": done.returncode}]
with open(results, "a", encoding="utf-8") as file:
    for line in lines:
        line.update(round=int(os.environ.get("ROUND", "1")), load=round(os.getloadavg()[0], 2),
                    fdatasync_per_second=flushes)
        print(json.dumps(line), flush=True)
        file.write(json.dumps(line) + "\n")
sys.exit(done.returncode)
