"""A single-shot worker of Azolla's, made from the definition: it runs one task and reports its end.

usage: worker.py --task-id ID --name NAME --args JSON --kwargs JSON --shepherd-endpoint http://HOST:PORT
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import grpc
from grpc_tools import protoc

PROTO = Path(__file__).resolve().parents[3] / "azolla" / "proto"

options = argparse.ArgumentParser()
for option in ["task-id", "name", "args", "kwargs", "shepherd-endpoint"]:
    options.add_argument(f"--{option}", required=True)
task = options.parse_args()

with tempfile.TemporaryDirectory() as place:
    arguments = [f"-I{PROTO}", f"--python_out={place}", f"--grpc_python_out={place}"]
    assert protoc.main(["protoc", *arguments, "common.proto", "shepherd.proto"]) == 0
    sys.path.insert(0, place)
    import common_pb2 as common
    import shepherd_pb2 as shepherd
    import shepherd_pb2_grpc as services

result = common.TaskResult(task_id=task.task_id)
if task.name == "silent":
    sys.exit(0)
if task.name == "fatal":
    result.error.CopyFrom(common.ErrorResult(type="KeyError", message="no", data='{"code": "E1"}'))
else:
    result.success.result.json_value = json.dumps([json.loads(task.args), json.loads(task.kwargs)])
with grpc.insecure_channel(task.shepherd_endpoint.removeprefix("http://")) as channel:
    request = shepherd.ReportResultRequest(task_id=task.task_id, result=result)
    assert services.WorkerStub(channel).ReportResult(request).success
