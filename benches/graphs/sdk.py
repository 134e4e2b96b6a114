"""Runs of a graph by one runtime of Exosphere's SDK: sdk.py GRAPH RUNS STATES. Prints how long they took."""
import asyncio, json, logging, sys, time

from exospherehost import BaseNode, Runtime, StateManager
from pydantic import BaseModel

left = 0


class Copy(BaseNode):
    class Inputs(BaseModel):
        text: str

    class Outputs(BaseModel):
        text: str

    class Secrets(BaseModel):
        pass

    async def execute(self):
        global left
        left -= 1
        return self.Outputs(text=self.inputs.text)


class Split(Copy):
    async def execute(self):
        global left
        left -= 1
        return [self.Outputs(text=str(number)) for number in range(int(self.inputs.text))]


async def main(graph, runs, states):
    global left
    left = states
    # Without these it would take 16 states a second: it polls once in a second, and runs four at once.
    runtime = Runtime(namespace="bench", name="sdk", nodes=[Copy, Split], poll_interval=0.01, workers=16)
    manager = StateManager(namespace="bench")
    await asyncio.gather(*(manager.trigger(graph) for _ in range(runs)))
    begun, used = time.perf_counter(), time.process_time()
    task = runtime.start()
    while left > 0:
        assert not task.done(), task
        await asyncio.sleep(0.005)
    seconds = time.perf_counter() - begun
    percent = round(100 * (time.process_time() - used) / seconds)
    print(json.dumps({"seconds": round(seconds, 3), "runtimes_percent": percent}))


logging.disable(logging.CRITICAL)
asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
