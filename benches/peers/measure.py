"""Runs one program, adds the state of the disk and of the machine to each line that it prints, and
appends the lines to the results.

usage: python3 measure.py RESULTS FOLDER -- command…
"""

import json
import os
import subprocess
import sys
import time

results, folder, _, *command = sys.argv[1:]


def fdatasync_per_second(seconds=0.7):
    """How often 4 KiB can be appended and flushed: the mood of the disk varies from minute to minute."""
    path = os.path.join(folder, "flush-probe")
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        os.write(file, b"x" * 4096)
        os.fdatasync(file)
        count += 1
    os.close(file)
    os.unlink(path)
    return round(count / seconds)


flushes = fdatasync_per_second()
done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=1800, check=False)
with open(results, "a", encoding="utf-8") as file:
    for line in done.stdout.splitlines():
        try:
            one = json.loads(line)
        except ValueError:
            print(line, file=sys.stderr)
            continue
        one.update(fdatasync_per_second=flushes, load=round(os.getloadavg()[0], 2))
        print(json.dumps(one))
        file.write(json.dumps(one) + "\n")
sys.exit(done.returncode)
