"""One warm run of an imported model, as a kept list, beside onnxruntime's fp32 on one thread in the same run.

usage: kept.py MODEL.onnx SAMPLES.npy       with PYTHONPATH=build/python, NPUMEMD=build/daemon/npumemd
onnxruntime-node of the npm registry is looked for by node: in NODE_PATH, or beside onnxruntime.js; it needs no install
script (npm install --ignore-scripts onnxruntime-node)."""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

import npumem
import npumem.onnx
from npumem import npumem_pb2 as pb
from npumem.formats import quantize_counted
from npumem.onnx import run

ROUNDS = 5
GOALS = {"fx8": (0.35, 0.45), "fx16": (0.8, 0.9)}  # of onnxruntime's time: the daemon's, and from Python


def keep(device, session, whole, tensor, values):
    """The network as a list: the input from shared memory, the outputs to it."""
    shared = device.empty(tensor.shape, tensor.dtype)
    shared[...] = values
    reads = {}
    with device.keep() as kept:
        kept.write(tensor, shared)
        for one in whole["operations"]:
            if "run" in one:
                kept.run(one["run"], rounding=whole["rounding"], **session.given(one))
            elif "copy" in one:
                kept.copy(session.tensors[one["copy"]], session.tensors[one["from"]])
            elif "fill" in one:
                kept.fill(session.tensors[one["fill"]], one["value"])
            elif "read" in one:
                read = session.tensors[one["read"]]
                reads[one["file"]] = (read, kept.read(read, out=device.empty(read.shape, read.dtype)))
    return kept, reads


def least(call, n=20):
    """In ms."""
    times = []
    for _ in range(n):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times) * 1e3


class Case:
    def __init__(self, model, x, dtype):
        imported = npumem.onnx.load(model, x[:6], dtype=dtype)
        whole, report = imported.network.document(), imported.report
        self.device = npumem.spawn("--npu-bytes", str(run.per_npu(whole)))
        self.session = run.Session(self.device, whole, report, imported.network.arrays.__getitem__)
        (name, one), = report["inputs"].items()
        tensor = self.session.tensors[one["tensor"]]
        want = self.session.run({name: x[:1].reshape(one["shape"])})
        values, _ = quantize_counted(x[:1].reshape(tensor.shape), tensor.dtype, tensor.frac_bits, whole["rounding"])
        self.kept, reads = keep(self.device, self.session, whole, tensor, values)
        self.kept.submit()
        for name, one in report["outputs"].items():
            read, result = reads[one["file"]]
            assert np.array_equal(result.value.reshape(-1) / 2.0**read.frac_bits, want[name].reshape(-1)), name

    def ask(self):
        """The message alone, without what Python makes of the answer."""
        request = pb.SubmitRequest(list=1)
        return self.device.finish(self.device.send_raw("submit", request, lambda answer: answer))

    def operations(self):
        return sum(done.end_ns - done.start_ns for done in self.ask().submitted.done) / 1e6


def onnxruntime(model, x, folder):
    path = os.path.join(folder, "input.f32")
    x[:1].astype("<f4").tofile(path)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "onnxruntime.js")
    command = ["node", script, model, path, json.dumps(list(x[:1].shape))]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)


def main():
    warnings.simplefilter("ignore")
    model, x = sys.argv[1], np.load(sys.argv[2]).astype(np.float32)
    cases = {dtype: Case(model, x, dtype) for dtype in GOALS}
    times = {(dtype, way): [] for dtype in GOALS for way in ("operations", "message", "Python")}
    peer = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            peer.append(onnxruntime(model, x, folder))
            for dtype, case in cases.items():
                times[dtype, "operations"].append(min(case.operations() for _ in range(20)))
                times[dtype, "message"].append(least(case.ask))
                times[dtype, "Python"].append(least(case.kept.submit))
    fp32 = min(peer)
    print(f"onnxruntime fp32, one thread: {fp32:.2f} ms")
    for (dtype, way), each in times.items():
        goal = {"message": GOALS[dtype][0], "Python": GOALS[dtype][1]}.get(way)
        print(f"{dtype:5} {way:10} {min(each):6.2f} ms  {min(each) / fp32:5.2f}" + (f"  goal {goal}" if goal else ""))


if __name__ == "__main__":
    main()
