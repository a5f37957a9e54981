"""Whole networks of the importer, each a kept list that a daemon runs, beside onnxruntime's fp32 and int8 in one run.

usage: bench_networks [--json] [--quick] [--rounds N] [--threads N]... [--time] [--dtypes T,...] [--model MODEL.onnx SAMPLES.npy]... [part of a network's name ...]

Networks are ResNet-18, MobileNet V1 and V2 with random weights at 224 x 224, an LSTM of 128 steps, and those of --model,
in fx8, fx16 and mixed. All take turns, and a time is the least of a contender's runs. With one thread it is the processor
time of the daemon, or of onnxruntime's process, so that other load counts little, and each has one and the same processor.
With two it is the clock: of npumem from the request to its answer, with the input and the outputs in shared memory. --time
adds where npumem's time goes, by kernels. onnxruntime-node of the npm registry is looked for in NODE_PATH; it needs no
install script (npm install --ignore-scripts onnxruntime-node). Without it there are no rows beside it, and it says so."""

import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(HERE)
DTYPES = ("fx8", "fx16", "mixed")
GOALS = {("fx8", "fp32"): 0.33, ("fx8", "int8"): 0.8, ("fx16", "fp32"): 0.8}  # of the peer's time
MISSING = "onnxruntime-node: not there, and no rows beside it (npm install --ignore-scripts onnxruntime-node; NODE_PATH)"
SLICE_MS = 120  # of one contender in one round, about
SPIN_S = 0.1  # threads of onnxruntime keep a processor busy for 40 ms after a run


class on_processors:
    """Child processes that start within have only so many processors: the last ones."""

    def __init__(self, n):
        self.all = os.sched_getaffinity(0)
        self.some = set(sorted(self.all)[-n:])

    def __enter__(self):
        os.sched_setaffinity(0, self.some)

    def __exit__(self, *_):
        os.sched_setaffinity(0, self.all)


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


def children():
    """Processes that were started, in order."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(word) for word in file.read().split()]


class Npumem:
    """An imported network on a daemon of its own. What the list gives is compared with what single operations give."""

    def __init__(self, imported, x, n_threads):
        import npumem
        import numpy as np
        from npumem import npumem_pb2 as pb
        from npumem.formats import quantize_counted
        from npumem.onnx import run

        whole, report = imported.network.document(), imported.report
        with on_processors(n_threads):
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
        self.kinds = ["write", *(one.get("run", next(iter(one))) for one in whole["operations"] if "view" not in one)]
        self.request = pb.SubmitRequest(list=1)
        daemon = children().pop()
        self.clock = (~daemon << 3) | 2 if n_threads == 1 else time.CLOCK_MONOTONIC  # clock_getcpuclockid(3)

    def ask(self):
        """The request alone, without what Python makes of the answer."""
        return self.device.finish(self.device.send_raw("submit", self.request, lambda answer: answer))

    def least(self, n):
        times = []
        for _ in range(n):
            begin = time.clock_gettime(self.clock)
            self.ask()
            times.append(time.clock_gettime(self.clock) - begin)
        return min(times) * 1e3

    def by_kernel(self, n):
        """ms by kernel, each operation's least, and how many operations each has."""
        runs = [[done.end_ns - done.start_ns for done in self.ask().submitted.done] for _ in range(n)]
        found = collections.Counter()
        for kind, times in zip(self.kinds, zip(*runs)):
            found[kind] += min(times) / 1e6
        return found, collections.Counter(self.kinds)

    def close(self):
        self.session.close()
        self.device.close()


def node(*arguments, **more):
    return subprocess.Popen(["node", os.path.join(HERE, "onnxruntime.js"), *arguments], text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE, **more)


class Onnxruntime:
    def __init__(self, model, x, shape, folder, n_threads):
        path = os.path.join(folder, "input.f32")
        x[:1].astype("<f4").tofile(path)
        with on_processors(n_threads):
            self.process = node(model, path, json.dumps([int(e) for e in shape]), str(n_threads), stdin=subprocess.PIPE)
        self.answer("ready")

    def answer(self, word=None):
        line = self.process.stdout.readline().strip()
        if not line or word not in (None, line):
            raise SystemExit(f"onnxruntime: {self.process.stderr.read().strip()}")
        return line

    def least(self, n):
        self.process.stdin.write(f"{n}\n")
        self.process.stdin.flush()
        return float(self.answer())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---- a network ----


class Model:
    """A model in each type, and where onnxruntime has it in fp32 and int8."""

    def __init__(self, name, path, x, folder, dtypes, has_peer):
        import npumem.onnx

        self.name, self.x, self.folder, self.peers = name, x, folder, {}
        self.imported = {dtype: npumem.onnx.load(path, x, dtype=dtype) for dtype in dtypes}
        one = self.imported[dtypes[0]]
        (given,) = one.report["inputs"].values()
        self.shape = [int(extent) for extent in given["shape"]]
        if has_peer:
            self.peers = {"fp32": path, "int8": self.int8(path, one.samples.runs[0])}

    def int8(self, path, values):
        import onnx
        from qdq import quantized

        basic, made = os.path.join(self.folder, "basic.onnx"), os.path.join(self.folder, "int8.onnx")
        node(path, "", "[]", "1", basic).wait()
        onnx.save_model(quantized(onnx.load(basic), values), made)
        return made

    def contenders(self, n_threads):
        made = {dtype: Npumem(one, self.x, n_threads) for dtype, one in self.imported.items()}
        for key, path in self.peers.items():
            made[key] = Onnxruntime(path, self.x, self.shape, self.folder, n_threads)
        return made


def measured(contenders, rounds, quick):
    """The least ms of each; they take turns."""
    n = {key: 1 if quick else max(1, min(40, int(SLICE_MS / one.least(1)))) for key, one in contenders.items()}
    times = {key: [] for key in contenders}
    for _ in range(rounds):
        for key, one in contenders.items():
            time.sleep(0 if quick else SPIN_S)
            times[key].append(one.least(n[key]))
    return {key: min(each) for key, each in times.items()}


# ---- what is told ----


def rows_of(network, n_threads, times):
    threads = "one thread" if n_threads == 1 else f"{n_threads} threads"
    for dtype in [key for key in times if key in DTYPES]:
        for peer in ("fp32", "int8"):
            row = {"bench": "networks", "case": f"{network} {dtype}, {threads}", "value": times[dtype], "unit": "ms"}
            if peer in times:
                ratio, goal = times[dtype] / times[peer], GOALS.get((dtype, peer))
                row.update(peer=f"onnxruntime {peer}", peer_value=times[peer], ratio=round(ratio, 4))
                if goal:
                    row.update(goal=goal, goal_is="ratio at most", met=ratio <= goal)
            if peer in times or peer == "fp32":
                yield row


def tell(row):
    peer = f"{row['peer']:20} {row['peer_value']:9.2f} | {row['ratio']:7.3f}" if "peer" in row else ""
    goal = f" <= {row['goal']}{'' if row['met'] else ' !'}" if "goal" in row else ""
    print(f"{row['case']:40} {row['value']:9.2f} ms | {peer}{goal}", flush=True)


def tell_time(network, dtype, contender):
    found, count = contender.by_kernel(20)
    total, whole = sum(found.values()), contender.least(20)
    print(f"  {network} {dtype}: {whole:.2f} ms, {total:.2f} of them in {sum(count.values())} operations")
    for kind, ms in found.most_common():
        if ms > 0.005 * total:
            print(f"    {kind:20} {count[kind]:4} {ms:9.3f} ms {ms / total:6.1%}")


# ---- the bench ----


def options():
    parser = argparse.ArgumentParser(prog="bench_networks", usage=__doc__.partition("usage: ")[2].partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, action="append")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--model", nargs=2, action="append", default=[], metavar=("MODEL.onnx", "SAMPLES.npy"))
    parser.add_argument("words", nargs="*")
    return parser.parse_args()


def has_onnxruntime():
    command = ["node", "-e", "require('onnxruntime-node')"]
    return bool(shutil.which("node")) and not subprocess.run(command, cwd=HERE, capture_output=True).returncode


def models(given, folder):
    """(name, path, samples) of each that is wanted."""
    import numpy as np
    import onnx
    from models import MODELS

    for path, samples in given.model:
        yield os.path.splitext(os.path.basename(path))[0], path, np.load(samples)[:6].astype(np.float32)
    for name, make in MODELS.items():
        if not given.words or any(word in name for word in given.words):
            path = os.path.join(folder, f"{name}.onnx")
            model, x = make(32 if given.quick else 224)
            onnx.save_model(model, path)
            yield name, path, x


def main():
    given = options()
    try:
        import onnx  # noqa: F401
    except ImportError as problem:
        print(f"skipped: {problem}; tests/packages.sh installs python3-onnx")
        return 77
    warnings.simplefilter("ignore")
    has_peer, rows, dtypes = has_onnxruntime(), [], given.dtypes.split(",")
    rounds = 1 if given.quick else given.rounds
    all_threads = given.threads or sorted({1, 1 if given.quick else min(2, len(os.sched_getaffinity(0)))})
    with tempfile.TemporaryDirectory() as folder:
        for name, path, x in models(given, folder):
            model = Model(name, path, x, folder, dtypes, has_peer)
            for n_threads in all_threads:
                contenders = model.contenders(n_threads)
                for row in rows_of(name, n_threads, measured(contenders, rounds, given.quick)):
                    rows.append(row)
                    tell(row)
                for dtype in dtypes if given.time else ():
                    tell_time(name, dtype, contenders[dtype])
                for one in contenders.values():
                    one.close()
    goals = [row for row in rows if "goal" in row]
    if not has_peer:
        print(MISSING)
    quick = " (--quick: figures mean nothing)" if given.quick else ""
    print(f"networks: {len(rows)} rows, {sum(row['met'] for row in goals)} of {len(goals)} goals met{quick}")
    for row in rows if given.json else ():
        print(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
