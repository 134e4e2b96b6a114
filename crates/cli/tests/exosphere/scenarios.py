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


def get(path):
    """A call of the dashboard."""
    base = os.environ["EXOSPHERE_STATE_MANAGER_URI"] + "/v0/namespace/" + NAMESPACE.replace(" ", "%20")
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

    def __init__(self, name, nodes, runtimes=1):
        self.name, self.manager = name, StateManager(namespace=NAMESPACE)
        started = [
            Runtime(namespace=NAMESPACE, name=f"runtime-{number}", nodes=nodes, poll_interval=0.02)
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


class ResilientNode(BaseNode):
    class Inputs(BaseModel):
        data: str

    class Outputs(BaseModel):
        data: str

    class Secrets(BaseModel):
        api_key: str

    async def execute(self):
        calls.append((self.inputs.data, self.secrets.api_key))
        return self.Outputs(data="done")


async def document():
    """The document's "Model-Based Configuration", with its names and values."""
    retry_policy = RetryPolicyModel(
        max_retries=5,
        strategy=RetryStrategyEnum.EXPONENTIAL_FULL_JITTER,
        backoff_factor=1000,
        exponent=2,
        max_delay=30000,
    )
    runtime = Runtime(namespace="MyProject", name="runtime", nodes=[ResilientNode], poll_interval=0.02)
    task = asyncio.create_task(runtime._start())
    await asyncio.sleep(0)
    manager = StateManager(namespace="MyProject")
    graph_nodes = [
        GraphNodeModel(
            node_name="ResilientNode",
            namespace="MyProject",
            identifier="resilient_node",
            inputs={"data": "initial"},
            next_nodes=[],
        )
    ]
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            result = await manager.upsert_graph(
                graph_name="resilient-workflow",
                graph_nodes=graph_nodes,
                secrets={"api_key": "your-key"},
                retry_policy=retry_policy,
            )
            break
        except Exception:
            # The runtime may not have registered its node yet.
            assert time.monotonic() < deadline and not task.done()
            await asyncio.sleep(0.02)
    assert result["retry_policy"]["max_delay"] == 30000, result
    await manager.trigger("resilient-workflow")
    while not calls:
        assert time.monotonic() < deadline and not task.done()
        await asyncio.sleep(0.02)
    assert calls == [("initial", "your-key")], calls


SCENARIOS = [
    linear, strategies, exhaustion, prune, requeue, fanout, unite_done, store, runtimes, invalid, cron, secrets,
    document,
]

if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    for scenario in SCENARIOS:
        if sys.argv[1] in ("all", scenario.__name__):
            calls.clear()
            started = time.monotonic()
            asyncio.run(asyncio.wait_for(scenario(), 4 * TIMEOUT))
            print(f"{scenario.__name__}: {time.monotonic() - started:.1f} s", flush=True)
