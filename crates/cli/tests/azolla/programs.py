"""A client and a shepherd of Azolla's protocol, made from the definition, that behave as Azolla's own.

usage: programs.py ADDRESS FOLDER all | killed | shepherd | alone | any_error
       programs.py ADDRESS FOLDER nodes OTHER-ADDRESS
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from grpc_tools import protoc

ADDRESS, FOLDER, PROGRAM, *OTHER = sys.argv[1:]
PROTO = Path(__file__).resolve().parents[3] / "azolla" / "proto"


def generated():
    """The modules that gRPC's compiler makes of the definition, each process in a folder of its own."""
    place = Path(FOLDER) / f"generated-{os.getpid()}"
    place.mkdir()
    arguments = [f"-I{PROTO}", f"--python_out={place}", f"--grpc_python_out={place}"]
    assert protoc.main(["protoc", *arguments, "common.proto", "orchestrator.proto"]) == 0
    sys.path.insert(0, str(place))
    import common_pb2
    import orchestrator_pb2
    import orchestrator_pb2_grpc

    return common_pb2, orchestrator_pb2, orchestrator_pb2_grpc


common, orchestrator, services = generated()
OPTIONS = [("grpc.keepalive_time_ms", 30_000), ("grpc.max_receive_message_length", 4 << 20)]


def channel(address=ADDRESS):
    return grpc.insecure_channel(address, options=OPTIONS)


# The shepherd


class Shepherd:
    """Runs tasks as threads; each run of a task leaves a byte in a file, which outlives this process."""

    def __init__(self, most):
        self.id, self.most, self.outgoing = str(uuid.uuid4()), most, queue.Queue()

    def serve(self):
        while True:
            try:
                self.stream()
                delay = 0.0
            except grpc.RpcError:
                delay = 0.2
            time.sleep(delay)

    def stream(self):
        with channel() as opened:
            messages = queue.Queue()
            answers = services.ClusterServiceStub(opened).Stream(iter(messages.get, None))
            # It says who it is once it has the headers of the answer.
            answers.initial_metadata()
            hello = orchestrator.Hello(shepherd_uuid=self.id, max_concurrency=self.most, domain="default",
                                       shepherd_group="default")
            messages.put(orchestrator.ClientMsg(hello=hello))
            over = threading.Event()
            threading.Thread(target=self.talk, args=(messages, over), daemon=True).start()
            try:
                for answer in answers:
                    if answer.HasField("task"):
                        threading.Thread(target=self.run, args=(answer.task,), daemon=True).start()
            finally:
                over.set()
                messages.put(None)

    def talk(self, messages, over):
        """Sends heartbeats, and results in their order. What was made while there was no stream is sent by the next."""
        while not over.is_set():
            try:
                messages.put(orchestrator.ClientMsg(task_result=self.outgoing.get(timeout=0.2)))
            except queue.Empty:
                messages.put(orchestrator.ClientMsg(status=orchestrator.Status(current_load=7)))

    def run(self, task):
        runs = Path(FOLDER) / task.task_id
        with runs.open("a") as file:
            file.write("x")
        count, args = runs.stat().st_size, json.loads(task.args)
        result = common.TaskResult(task_id=task.task_id)
        if task.name == "hang" and count == 1:
            return
        if task.name == "fatal" or task.name == "fail_twice" and count <= 2:
            kind = "KeyError" if task.name == "fatal" else "ValueError"
            result.error.CopyFrom(common.ErrorResult(type=kind, message="no", data='{"code": "E1"}', retriable=True))
        elif task.name == "megabyte":
            result.success.result.string_value = "x" * 1_000_000
        else:
            result.success.result.json_value = json.dumps(args)
        self.outgoing.put(result)


# The client


def client(opened):
    return services.ClientServiceStub(opened)


def policy(most, wait=0.05, retried="ValueError"):
    made = common.RetryPolicy(version=1)
    made.stop.max_attempts = most
    made.wait.fixed.delay = wait
    made.retry.include_errors.append(retried)
    return made


def request(name, args, retry_policy=None):
    return orchestrator.CreateTaskRequest(name=name, domain="default", args=json.dumps(args), kwargs="{}",
                                          retry_policy=retry_policy)


def patient(call):
    """Repeats a call while the server is down."""
    while True:
        try:
            return call()
        except grpc.RpcError as error:
            if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
                raise
            time.sleep(0.1)


def wait(stub, task_id, timeout_ms=None):
    asked = orchestrator.WaitForTaskRequest(task_id=task_id, domain="default", timeout_ms=timeout_ms)
    return patient(lambda: stub.WaitForTask(asked, timeout=120))


def check(name, number, answer):
    """Whether a task has ended as its name and its policy say."""
    assert answer.status_code == orchestrator.WAIT_FOR_TASK_STATUS_COMPLETED, answer
    if name == "fatal":
        assert answer.error.type == "KeyError" and json.loads(answer.error.data) == {"code": "E1"}, answer
    else:
        assert json.loads(answer.success.result.json_value) == [number], answer


NAMES = ["echo", "fail_twice", "fatal", "hang"]


def all_calls():
    shepherd = Shepherd(8)
    threading.Thread(target=shepherd.serve, daemon=True).start()
    with channel() as opened, ThreadPoolExecutor(40) as pool:
        stub = client(opened)
        ids = [stub.CreateTask(request(name, [n], policy(5))).task_id for n, name in enumerate(NAMES * 10)]
        answers = pool.map(lambda task_id: wait(stub, task_id), ids)
        for n, (name, answer) in enumerate(zip(NAMES * 10, answers)):
            check(name, n, answer)
        polled(stub)
        whole = wait(stub, stub.CreateTask(request("megabyte", [])).task_id)
        assert len(whole.success.result.string_value) == 1_000_000
        refused(opened, stub)
        check("echo", 1, wait(stub, stub.CreateTask(request("echo", [1])).task_id))


def polled(stub):
    """As Azolla's Python client waits: without a time, again and again."""
    task_id = stub.CreateTask(request("fail_twice", [3], policy(3))).task_id
    while (answer := wait(stub, task_id, 0)).status_code == orchestrator.WAIT_FOR_TASK_STATUS_TIMEOUT:
        time.sleep(0.05)
    check("fail_twice", 3, answer)


def refused(opened, stub):
    """Messages that are malformed, or too long."""
    raw = opened.unary_unary("/azolla.orchestrator.ClientService/CreateTask")
    long = request("echo", ["x" * (4 << 20)]).SerializeToString()
    for message, code in [(b"\xff\xff\xff", grpc.StatusCode.INTERNAL), (long, grpc.StatusCode.OUT_OF_RANGE),
                          (request("echo", {}).SerializeToString(), grpc.StatusCode.INVALID_ARGUMENT)]:
        try:
            raw(message)
            raise SystemExit(f"accepted: {message[:20]}")
        except grpc.RpcError as error:
            assert error.code() == code, error
    stream = opened.stream_stream("/azolla.orchestrator.ClusterService/Stream")
    try:
        list(stream(iter([b"\xff\xff\xff"])))
        raise SystemExit("the stream ended without an error")
    except grpc.RpcError as error:
        assert error.code() != grpc.StatusCode.OK


def alone():
    """Tasks for workers that run without a shepherd."""
    with channel() as opened:
        stub = client(opened)
        one, two, three = (stub.CreateTask(request(name, [n], policy(1))).task_id
                           for n, name in enumerate(["Echo", "fatal", "silent"]))
        assert json.loads(wait(stub, one).success.result.json_value) == [[0], {}]
        check("fatal", 1, wait(stub, two))
        assert wait(stub, three).error.type == "exec.no_report"


def any_error():
    """Two tasks that fail twice with a ValueError: one whose policy retries any error, and one that names it."""
    threading.Thread(target=Shepherd(4).serve, daemon=True).start()
    with channel() as opened:
        stub = client(opened)
        for number, retried in enumerate(["TaskError", "ValueError"]):
            task_id = stub.CreateTask(request("fail_twice", [number], policy(5, retried=retried))).task_id
            check("fail_twice", number, wait(stub, task_id))
            print(task_id)


def nodes():
    """Tasks run on one node and are created on both; callers of both wait for each of them."""
    with channel() as opened, channel(*OTHER) as other, ThreadPoolExecutor(40) as pool:
        here, there = client(opened), client(other)
        # No shepherd is there yet, so that callers wait while the tasks run.
        names = ["echo", "echo", "fail_twice", "fail_twice", "fatal", "fatal"]
        ids = [(here, there)[n % 2].CreateTask(request(name, [n], policy(5))).task_id for n, name in enumerate(names)]
        waiters = [(name, n, pool.submit(wait, stub, task_id)) for n, (name, task_id) in enumerate(zip(names, ids))
                   for stub in (here, there)]
        assert wait(there, ids[0], 300).status_code == orchestrator.WAIT_FOR_TASK_STATUS_TIMEOUT
        threading.Thread(target=Shepherd(4).serve, daemon=True).start()
        for name, number, answer in waiters:
            check(name, number, answer.result(timeout=60))


# Everything is killed


def start_shepherd():
    return subprocess.Popen([sys.executable, __file__, ADDRESS, FOLDER, "shepherd"])


def killed():
    shepherds = [start_shepherd(), start_shepherd()]
    tasks = []
    try:
        with channel() as opened, ThreadPoolExecutor(100) as pool:
            stub = client(opened)

            def create(count):
                for _ in range(count):
                    name, number = NAMES[len(tasks) % len(NAMES)], len(tasks)
                    made = patient(lambda: stub.CreateTask(request(name, [number], policy(50))))
                    tasks.append((name, number, pool.submit(wait, stub, made.task_id)))

            create(20)
            for round_number in range(3):
                # The server is killed while tasks run, wait and are waited for; then a shepherd is.
                print("kill", flush=True)
                create(10)
                assert sys.stdin.readline().strip() == "alive"
                victim = shepherds.pop(0)
                victim.send_signal(signal.SIGKILL)
                victim.wait()
                shepherds.append(start_shepherd())
                create(10)
            for name, number, answer in tasks:
                check(name, number, answer.result(timeout=120))
    finally:
        for shepherd in shepherds:
            shepherd.kill()


PROGRAMS = {"all": all_calls, "alone": alone, "any_error": any_error, "killed": killed, "nodes": nodes,
            "shepherd": lambda: Shepherd(4).serve()}
PROGRAMS[PROGRAM]()
# Threads that run tasks for ever are no reason to stay.
sys.stdout.flush()
os._exit(0)
