"""Programs with Exosphere's SDK as the package index has it, against a Redrive server: scenarios.py NAME.

The address and the key are in EXOSPHERE_STATE_MANAGER_URI and EXOSPHERE_API_KEY, as for any program with the SDK.
"""

import asyncio
import json
import logging
import os
import sys
import time
import urllib.request
from datetime import timedelta
from pathlib import Path

from exospherehost import (
    BaseNode,
    CronTrigger,
    GraphNodeModel,
    PruneSignal,
    ReQueueAfterSignal,
    RetryPolicyModel,
    RetryStrategyEnum,
    Runtime,
    StateManager,
    StoreConfigModel,
    UnitesModel,
    UnitesStrategyEnum,
)
from pydantic import BaseModel

NAMESPACE = "My Project"
TIMEOUT = 60
calls = []


def get(path, namespace=NAMESPACE):
    """A call of the dashboard."""
    base = os.environ["EXOSPHERE_STATE_MANAGER_URI"] + "/v0/namespace/" + namespace.replace(" ", "%20")
    request = urllib.request.Request(base + path, headers={"x-api-key": os.environ["EXOSPHERE_API_KEY"]})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def states(run):
    return get(f"/states/run/{run}/graph")


def detail(graph, run, state):
    return get(f"/graph/{graph}/run/{run}/node/{state}")


def node(name, identifier, inputs, *next_nodes, unites=None):
    return GraphNodeModel(
        node_name=name,
        namespace=NAMESPACE,
        identifier=identifier,
        inputs=inputs,
        next_nodes=list(next_nodes) or None,
        unites=unites,
    )


def policy(strategy="FIXED", retries=3, factor=20):
    return RetryPolicyModel(max_retries=retries, strategy=RetryStrategyEnum(strategy), backoff_factor=factor)


class Graph:
    """A graph that is put and triggered, with runtimes for its nodes."""

    def __init__(self, name, nodes, runtimes=1, **options):
        self.name, self.manager = name, StateManager(namespace=NAMESPACE)
        started = [
            Runtime(namespace=NAMESPACE, name=f"runtime-{number}", nodes=nodes, poll_interval=0.02, **options)
            for number in range(runtimes)
        ]
        self.tasks = [runtime.start() for runtime in started]

    async def put(self, *nodes, **more):
        await asyncio.gather(*(registered(node.node_name) for node in nodes))
        more.setdefault("secrets", {})
        return await self.manager.upsert_graph(self.name, list(nodes), **more)

    async def run(self, **more):
        """Triggers it, and waits until the run has ended; its states, by status."""
        run = (await self.manager.trigger(self.name, **more))["run_id"]
        return await self.ended(run)

    async def ended(self, run):
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            for task in self.tasks:
                assert not task.done(), task
            found = await asyncio.to_thread(states, run)
            summary = found["execution_summary"]
            if found["node_count"] and not summary["CREATED"] + summary["QUEUED"] + summary["EXECUTED"]:
                return run, found
            await asyncio.sleep(0.02)
        raise AssertionError(f"the run {run} has not ended: {found}")


async def registered(name):
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        if any(node["name"] == name for node in (await asyncio.to_thread(get, "/nodes/"))["nodes"]):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{name} is not registered")


def counts(found):
    return {status: count for status, count in found["execution_summary"].items() if count}


def listed(run):
    return next(one for one in get("/runs/1/1000")["runs"] if one["run_id"] == run)


class Append(BaseNode):
    """Adds an exclamation mark to its input."""

    class Inputs(BaseModel):
        text: str

    class Outputs(BaseModel):
        text: str

    class Secrets(BaseModel):
        pass

    async def execute(self):
        calls.append(self.inputs.text)
        return self.Outputs(text=self.inputs.text + "!")


class Fails(Append):
    """Fails as often as its input says, by the number of calls so far."""

    async def execute(self):
        calls.append(time.monotonic())
        if len(calls) <= int(self.inputs.text):
            raise ValueError(f"failure {len(calls)}")
        return self.Outputs(text="done")


async def linear():
    graph = Graph("linear", [Append])
    body = await graph.put(
        node("Append", "first", {"text": "${{store.greeting}}"}, "second"),
        node("Append", "second", {"text": "${{first.outputs.text}}"}, "third"),
        node("Append", "third", {"text": "${{ first.outputs.text }} and ${{ second.outputs.text }}"}),
        store_config=StoreConfigModel(required_keys=["greeting"], default_values={"unused": "x"}),
    )
    assert body["validation_status"] == "VALID", body
    run, found = await graph.run(store={"greeting": "hello ${{ }}"})
    assert counts(found) == {"SUCCESS": 3}, found
    assert calls == ["hello ${{ }}", "hello ${{ }}!", "hello ${{ }}! and hello ${{ }}!!"], calls
    last = detail("linear", run, next(one["id"] for one in found["nodes"] if one["identifier"] == "third"))
    assert last["outputs"] == {"text": calls[2] + "!"} and list(last["parents"]) == ["first", "second"], last
    assert listed(run)["status"] == "SUCCESS" and listed(run)["total_count"] == 3, listed(run)
    assert found["edge_count"] == 2 and len(found["root_states"]) == 1, found


async def strategies():
    """All nine strategies: two failures, then success. The waits are those of the strategy."""
    graph = Graph("strategies", [Fails])
    for strategy in RetryStrategyEnum:
        calls.clear()
        await graph.put(node("Fails", "fails", {"text": "2"}), retry_policy=policy(strategy, 3, 100))
        run, found = await graph.run()
        assert counts(found) == {"SUCCESS": 1, "RETRY_CREATED": 2}, (strategy, found)
        errors = [one["error"] for one in found["nodes"]]
        assert errors == ["failure 1", "failure 2", None], (strategy, errors)
        totals = listed(run)
        assert (totals["status"], totals["retried_count"], totals["errored_count"]) == ("SUCCESS", 2, 0), totals
        growth, _, jitter = strategy.value.partition("_")
        second = {"EXPONENTIAL": 200, "LINEAR": 200, "FIXED": 100}[growth]
        for wait, whole in zip((calls[1] - calls[0], calls[2] - calls[1]), (100, second)):
            least = {"": whole, "EQUAL_JITTER": whole / 2, "FULL_JITTER": 0}[jitter]
            assert wait * 1000 >= least, (strategy, wait, whole)


async def exhaustion():
    graph = Graph("exhaustion", [Fails, Append])
    await graph.put(
        node("Fails", "fails", {"text": "100"}, "after"),
        node("Append", "after", {"text": "${{fails.outputs.text}}"}),
        retry_policy=policy(retries=2),
    )
    run, found = await graph.run()
    assert counts(found) == {"RETRY_CREATED": 2, "ERRORED": 1}, found
    assert len(calls) == 3 and found["nodes"][2]["error"] == "failure 3", (calls, found)
    assert listed(run)["status"] == "FAILED", listed(run)


class Prunes(Append):
    async def execute(self):
        raise PruneSignal({"why": self.inputs.text})


async def prune():
    graph = Graph("prune", [Prunes, Append])
    await graph.put(
        node("Prunes", "prunes", {"text": "enough"}, "after"),
        node("Append", "after", {"text": "never"}),
    )
    run, found = await graph.run()
    assert counts(found) == {"PRUNED": 1} and not calls, (found, calls)
    assert listed(run)["status"] == "SUCCESS", listed(run)


class Returns(Append):
    """Fails once, is enqueued again twice, fails once more, and succeeds."""

    async def execute(self):
        calls.append(time.monotonic())
        if len(calls) in (1, 4):
            raise ValueError("a failure")
        if len(calls) < 4:
            raise ReQueueAfterSignal(timedelta(milliseconds=50))
        return self.Outputs(text="done")


async def requeue():
    graph = Graph("requeue", [Returns])
    await graph.put(node("Returns", "returns", {"text": ""}), retry_policy=policy("LINEAR", 2, 100))
    _, found = await graph.run()
    # The count is carried over: two failures use up both retries, whatever happens in between.
    assert counts(found) == {"SUCCESS": 1, "RETRY_CREATED": 2}, found
    waits = [later - earlier for earlier, later in zip(calls, calls[1:])]
    for wait, least in zip(waits, (0.1, 0.05, 0.05, 0.2)):
        assert wait >= least, waits


class Splits(Append):
    async def execute(self):
        return [self.Outputs(text=str(number)) for number in range(int(self.inputs.text))]


class Sometimes(Append):
    """Ends as its input says."""

    async def execute(self):
        if self.inputs.text == "1":
            raise PruneSignal({})
        if self.inputs.text == "2":
            raise ValueError("a failure")
        return self.Outputs(text=self.inputs.text)


async def fanout():
    graph = Graph("fanout", [Splits, Append])
    await graph.put(
        node("Append", "first", {"text": "x"}, "splits"),
        node("Splits", "splits", {"text": "20"}, "each"),
        node("Append", "each", {"text": "${{splits.outputs.text}}"}, "joins"),
        node("Append", "joins", {"text": "joined ${{first.outputs.text}}"}, "last", unites=UnitesModel(identifier="first")),
        node("Append", "last", {"text": "${{joins.outputs.text}}"}),
    )
    _, found = await graph.run()
    assert counts(found) == {"SUCCESS": 1 + 20 + 20 + 1 + 1}, found
    assert sorted(calls[1:21], key=int) == [str(number) for number in range(20)], calls
    assert calls[21:] == ["joined x!", "joined x!!"], calls


async def unite_done():
    """The last branches end by an error and a prune; the node that unites runs, and one that wants success does not."""
    graph = Graph("unite_done", [Splits, Sometimes, Append])
    for strategy, joined in ((UnitesStrategyEnum.ALL_DONE, 1), (UnitesStrategyEnum.ALL_SUCCESS, 0)):
        calls.clear()
        await graph.put(
            node("Append", "first", {"text": "x"}, "splits"),
            node("Splits", "splits", {"text": "3"}, "each"),
            node("Sometimes", "each", {"text": "${{splits.outputs.text}}"}, "joins"),
            node("Append", "joins", {"text": "joined"}, unites=UnitesModel(identifier="first", strategy=strategy)),
            retry_policy=policy(retries=0),
        )
        run, found = await graph.run()
        assert counts(found) == {"SUCCESS": 5 + joined, "PRUNED": 1, "ERRORED": 1}, (strategy, found)
        assert calls == ["x"] + ["joined"] * joined, calls
        assert listed(run)["status"] == "FAILED", listed(run)


async def store():
    graph = Graph("store", [Append])
    await graph.put(
        node("Append", "first", {"text": "${{store.a}} ${{store.b}}"}),
        store_config=StoreConfigModel(required_keys=["a"], default_values={"b": "default"}),
    )
    await graph.run(store={"a": "1"})
    await graph.run(store={"a": "1", "b": "2"})
    await graph.run(store={"a": "1"}, inputs={"text": "${{store.b}} instead", "unknown": "ignored"})
    assert calls == ["1 default", "1 2", "default instead"], calls
    try:
        await graph.manager.trigger("store", store={"b": "2"})
    except Exception as refused:
        assert "400" in str(refused) and "Missing store keys" in str(refused), refused
    else:
        raise AssertionError("a required key is missing")


async def runtimes():
    """Three runtimes, and many runs whose branches end together: every state runs once."""
    graph = Graph("runtimes", [Splits, Append], runtimes=3)
    await graph.put(
        node("Append", "first", {"text": "run"}, "splits"),
        node("Splits", "splits", {"text": "5"}, "each"),
        node("Append", "each", {"text": "${{splits.outputs.text}}"}, "joins"),
        node("Append", "joins", {"text": "joined"}, unites=UnitesModel(identifier="first")),
    )
    ended = await asyncio.gather(*(graph.run() for _ in range(10)))
    for _, found in ended:
        assert counts(found) == {"SUCCESS": 1 + 5 + 5 + 1}, found
    assert calls.count("joined") == 10 and len(calls) == 10 * (1 + 5 + 1), calls


async def invalid():
    """Every reason at once, in the words of a client's exception."""
    manager = StateManager(namespace=NAMESPACE)
    try:
        await manager.upsert_graph("invalid", [node("Unknown", "a", {}), node("Other", "b", {})], secrets={})
    except Exception as refused:
        assert "400" in str(refused) and "exactly one node" in str(refused), refused
    else:
        raise AssertionError("the graph has two roots")
    try:
        await manager.upsert_graph("invalid", [node("Unknown", "a", {}, "b"), node("Other", "b", {})], secrets={})
    except Exception as refused:
        assert "INVALID" in str(refused) and "Unknown" in str(refused) and "Other" in str(refused), refused
    else:
        raise AssertionError("the nodes are not registered")


async def cron():
    """A graph that triggers itself every second, until its trigger is removed."""
    graph = Graph("cron", [Append])
    first = node("Append", "first", {"text": "tick"})
    body = await graph.put(first, triggers=[CronTrigger(expression="* * * * * *")])
    assert body["triggers"] == [{"type": "CRON", "value": {"expression": "* * * * * *"}}], body
    deadline = time.monotonic() + TIMEOUT
    while len(calls) < 2:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    await graph.put(first)
    own = [one for one in await asyncio.to_thread(lambda: get("/runs/1/1000")["runs"]) if one["graph_name"] == "cron"]
    assert len(own) >= 2, own
    for run in own:
        await graph.ended(run["run_id"])
    assert calls == ["tick"] * len(own), (calls, own)


class Confides(Append):
    class Secrets(BaseModel):
        token: str

    async def execute(self):
        calls.append(self.secrets.token)
        return self.Outputs(text="done")


async def secrets():
    graph = Graph("secrets", [Confides])
    body = await graph.put(node("Confides", "confides", {"text": ""}), secrets={"token": "hunter2", "other": "x"})
    assert body["secrets"] == {"token": True, "other": True}, body
    await graph.run()
    assert calls == ["hunter2"], calls
    try:
        await graph.put(node("Confides", "confides", {"text": ""}))
    except Exception as refused:
        assert "Secret token" in str(refused), refused
    else:
        raise AssertionError("the node needs a secret")


def blocks():
    """The programs in the guide."""
    guide = Path(__file__).resolve().parents[4] / "docs/guides/exosphere.md"
    return [block.split("```")[0] for block in guide.read_text(encoding="utf-8").split("```python\n")[1:]]


async def document():
    """The guide's runtime, and the document's "Model-Based Configuration" as it stands there and in the guide."""
    program, example = blocks()
    known = {}
    exec(program, known)
    exec(example, known)
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            await known["create_graph_with_retry_policy"]()
            break
        except Exception:
            # The runtime may not have registered its node yet.
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)
    manager = StateManager(namespace="MyProject")
    put = await manager.get_graph("resilient-workflow")
    assert put["validation_status"] == "VALID" and put["secrets"] == {"api_key": True}, put
    assert put["retry_policy"] == {
        "max_retries": 5,
        "strategy": "EXPONENTIAL_FULL_JITTER",
        "backoff_factor": 1000,
        "exponent": 2,
        "max_delay": 30000,
    }, put
    run = (await manager.trigger("resilient-workflow"))["run_id"]
    while True:
        found = await asyncio.to_thread(get, f"/states/run/{run}/graph", "MyProject")
        if counts(found) == {"SUCCESS": 1}:
            break
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.02)
    state = found["nodes"][0]["id"]
    path = f"/graph/resilient-workflow/run/{run}/node/{state}"
    shown = await asyncio.to_thread(get, path, "MyProject")
    assert shown["outputs"] == {"data": "INITIAL"}, shown


class Held(Append):
    """Waits while the server is killed and started again."""

    gate = None
    held = 0

    async def execute(self):
        text = self.inputs.text
        calls.append(text)
        Held.held += 1
        await Held.gate.wait()
        Held.held -= 1
        if text.endswith(".3") and calls.count(text) == 1:
            raise ValueError("a failure")
        if text.startswith("split "):
            return [self.Outputs(text=f"{text.removeprefix('split ')}.{number}") for number in range(6)]
        return self.Outputs(text=text)


KILLS, RUNS = 5, 10


async def killed():
    """The server is killed again and again by the process that started this one, which is told when.

    The runtimes stay. Each has one worker, which waits in its node at that moment, so that none of them is about to
    report: the SDK ends a worker whose report meets no server.
    """
    Held.gate = asyncio.Event()
    Held.gate.set()
    graph = Graph("killed", [Held], runtimes=3, workers=1, batch_size=1)
    await graph.put(
        node("Held", "first", {"text": "none"}, "splits"),
        node("Held", "splits", {"text": "split ${{first.outputs.text}}"}, "each"),
        node("Held", "each", {"text": "${{splits.outputs.text}}"}, "joins"),
        node("Held", "joins", {"text": "joined ${{first.outputs.text}}"}, "last", unites=UnitesModel(identifier="first")),
        node("Held", "last", {"text": "last ${{joins.outputs.text}}"}),
        retry_policy=policy(retries=5),
    )
    runs = [(await graph.manager.trigger("killed", inputs={"text": f"run {number}"}))["run_id"] for number in range(RUNS)]
    deadline = time.monotonic() + 2 * TIMEOUT
    for number in range(KILLS):
        passed = len(calls)
        while len(calls) < passed + 8:
            assert time.monotonic() < deadline, calls
            await asyncio.sleep(0.005)
        Held.gate.clear()
        while Held.held < 3:
            assert time.monotonic() < deadline, (Held.held, calls)
            await asyncio.sleep(0.005)
        print("kill", flush=True)
        assert await asyncio.to_thread(sys.stdin.readline) == "alive\n"
        Held.gate.set()
    for run in runs:
        _, found = await graph.ended(run)
        assert found["execution_summary"]["SUCCESS"] == 1 + 6 + 6 + 1 + 1, found
        assert found["execution_summary"]["ERRORED"] == 0 and listed(run)["status"] == "SUCCESS", found
    expected = []
    for run in (f"run {number}" for number in range(RUNS)):
        parts = [f"{run}.{number}" for number in range(6)]
        expected += [run, f"split {run}", *parts, parts[3], f"joined {run}", f"last joined {run}"]
    assert sorted(calls) == sorted(expected), "each state ran once, and the one that fails twice"


SCENARIOS = [
    linear, strategies, exhaustion, prune, requeue, fanout, unite_done, store, runtimes, invalid, cron, secrets,
    document,
]

if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    for scenario in SCENARIOS if sys.argv[1] == "all" else [*SCENARIOS, killed]:
        if sys.argv[1] in ("all", scenario.__name__):
            calls.clear()
            started = time.monotonic()
            asyncio.run(asyncio.wait_for(scenario(), 4 * TIMEOUT))
            print(f"{scenario.__name__}: {time.monotonic() - started:.1f} s", flush=True)
