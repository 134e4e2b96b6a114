"""What the benchmarks in Python share: real servers, a client, a database, and figures."""
import http.client, json, os, shutil, signal, socket, subprocess, sys, tempfile, time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "target/release/redrive"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """A real server, on a store of its own. Loopback only."""

    program = PROGRAM
    work = None
    running = []

    def __init__(self, *arguments):
        self.port = free_port()
        command = [self.program, "serve", "--listen", f"127.0.0.1:{self.port}", *arguments]
        begun = time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        Server.running.append(self)
        while not self.is_ready():
            if self.process.poll() is not None:
                sys.exit(f"a server ended with {self.process.returncode}")
            time.sleep(0.005)
        self.open_seconds = time.monotonic() - begun

    def is_ready(self):
        try:
            return Client(self.port).call("GET", "/ojs/v1/health") is not None
        except OSError:
            return False

    def bench(self, phases, jobs):
        """Starts `redrive bench` against this server."""
        command = [self.program, "bench", "--keep", "--server", f"http://127.0.0.1:{self.port}", "--jobs", str(jobs),
                   "--phases", phases, "--json"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def rates(self, phases, jobs):
        return rates(self.bench(phases, jobs))

    def stop(self):
        Server.running.remove(self)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def stop_servers():
    for server in list(Server.running):
        server.stop()


def rates(bench):
    """Waits for `redrive bench`; jobs per second of each phase."""
    answer = bench.communicate()[0]
    if bench.returncode:
        sys.exit(f"a bench ended with {bench.returncode}")
    return {one["phase"]: one["jobs_per_second"] for one in json.loads(answer)["phases"]}


class Client:
    """One connection, one call at a time."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def call(self, method, path, body=None):
        body = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        self.connection.request(method, path, body, {"content-type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 201):
            sys.exit(f"{method} {path} was answered with {answer.status}: {text[:400].decode()}")
        return json.loads(text)

    def post(self, path, body=None):
        return self.call("POST", path, body)

    def fetch(self, queue, count, wait_ms=0):
        body = {"queues": [queue], "count": count, "worker_id": "bench", "wait_ms": wait_ms}
        return self.post("/ojs/v1/workers/fetch", body)["jobs"]

    def settle(self, body):
        answer = self.post("/ojs/v1/workers/settle", body)
        if answer["refused"]:
            sys.exit(f"{answer['refused']} reports were refused")


class Database:
    """A throw-away PostgreSQL that flushes every commit; it ends with its input."""

    def __init__(self):
        command = [ROOT / "scripts/postgres", "--durable"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()

    def ask(self, sql):
        command = ["psql", "-A", "-t", "-c", sql, self.address]
        return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.split()

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def with_embedded(use):
    """Calls `use` with a function that gives the store of a name, as arguments of `redrive serve`."""
    folder = tempfile.mkdtemp(prefix="redrive-bench-", dir=Server.work)
    try:
        use(lambda name: ["--data", os.path.join(folder, name)])
    finally:
        stop_servers()
        shutil.rmtree(folder, ignore_errors=True)


def with_postgres(use):
    """The same on PostgreSQL, where a store is a schema; `use` also gets the database."""
    database = Database()
    try:
        use(lambda name: ["--store", f"{database.address}?schema={name}&application_name={name}"], database)
    finally:
        stop_servers()
        database.stop()


def round_trips(port, until, queue="other"):
    """Enqueues, claims and acks a job, one call after another, for as long as `until` says; the seconds of each call."""
    client, times = Client(port), {"enqueue": [], "claim": [], "ack": []}
    job = {"type": "bench.other", "args": [{"i": 1, "note": "x" * 64}], "options": {"queue": queue}}
    while until(len(times["ack"])):
        begun = time.perf_counter()
        client.post("/ojs/v1/jobs", job)
        enqueued = time.perf_counter()
        claimed = client.fetch(queue, 1, 1000)
        got = time.perf_counter()
        client.post("/ojs/v1/workers/ack", {"job_id": claimed[0]["id"], "lease_token": claimed[0]["lease_token"]})
        acked = time.perf_counter()
        for name, seconds in [("enqueue", enqueued - begun), ("claim", got - enqueued), ("ack", acked - got)]:
            times[name].append(seconds)
    return times


def ticks(pid):
    """The processor time of a process so far, in ticks of the system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def postmaster_of(database):
    """The first process of a PostgreSQL."""
    folder = Path(database.ask("SHOW data_directory")[0])
    return int((folder / "postmaster.pid").read_text().split()[0])


def ticks_of_database(postmaster):
    """The processor time of PostgreSQL so far: of its first process, of those that have ended, and of the others."""
    if postmaster is None:
        return 0
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if stat.parent.name == str(postmaster):
            total += sum(map(int, fields[11:15]))
        elif fields[1] == str(postmaster):
            total += int(fields[11]) + int(fields[12])
    return total


class Used:
    """The processor time of a server and of its database, in percent of a core."""

    def __init__(self, server, postmaster):
        self.server, self.postmaster = server.process.pid, postmaster
        self.then, self.begun = self.now(), time.perf_counter()

    def now(self):
        return ticks(self.server), ticks_of_database(self.postmaster)

    def so_far(self, seconds=None):
        """Of the time since then, or of so many seconds of it, in which all was used."""
        seconds = seconds or time.perf_counter() - self.begun
        percent = 100 / os.sysconf("SC_CLK_TCK") / seconds
        server, database = (round((now - then) * percent) for now, then in zip(self.now(), self.then))
        found = {"seconds": round(seconds, 3), "server_percent": server}
        return {**found, "database_percent": database} if self.postmaster else found


def backends(database, schema):
    """The processes of PostgreSQL that serve a server, which has its schema as its name."""
    names = f"'{schema}', 'redrive listener {schema}'"
    return [int(pid) for pid in database.ask(f"SELECT pid FROM pg_stat_activity WHERE application_name IN ({names})")]


def idle(servers, seconds, backends_of):
    """The processor time of servers that nothing calls, and of their connections to PostgreSQL, in percent of a core."""
    pids = {name: [server.process.pid, *backends_of(name)] for name, server in servers.items()}
    before = {name: [ticks(pid) for pid in pids[name]] for name in servers}
    time.sleep(seconds)
    percent, found = 100 / os.sysconf("SC_CLK_TCK") / seconds, {}
    for name in servers:
        used = [ticks(pid) - then for pid, then in zip(pids[name], before[name])]
        found[name] = {"server_percent": round(used[0] * percent, 2)}
        if len(used) > 1:
            found[name]["database_percent"] = round(sum(used[1:]) * percent, 2)
    return found


def quantile(times, share):
    times = sorted(times)
    return round(1e3 * times[min(len(times) - 1, int(share * len(times)))], 3)


def in_turns(store, cases, rounds):
    """The machine is not the same from second to second: the cases take turns. A line for each call of each turn; the
    report makes medians of them, and compares the second case with the first.

    `cases` has two names, each with a function that gives the seconds of calls.
    """
    for number in range(1, rounds + 1):
        for name, measure in cases.items():
            for call, times in measure().items():
                show(store=store, call=call, case=name, round=number,
                     p50_ms=quantile(times, 0.5), p99_ms=quantile(times, 0.99), flushes=call == "enqueue")


def fdatasync_per_second(folder, seconds):
    """How often 4 KiB can be appended and flushed: the mood of the disk varies from minute to minute."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix="flush-probe-") as file:
        count, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            os.write(file.fileno(), b"x" * 4096)
            os.fdatasync(file.fileno())
            count += 1
    return round(count / seconds)


def show(flushes=True, **line):
    """One line of JSON, with the load of the machine and the flushes of its disk per second."""
    line["load"] = round(os.getloadavg()[0], 2)
    if flushes:
        line["fdatasync_per_second"] = fdatasync_per_second(Server.work, 0.3)
    print(json.dumps(line), flush=True)
