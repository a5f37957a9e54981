"""ONNX's own node and pytorch tests through the importer and a private daemon, in fx16.

    suite.py [--data DIR] [--only PART] [--table FILE] [--host]

Taken are the tests with float32 in and out and at most four dimensions. A test passes where the S/N against its stored
outputs is at least 40 dB. Each other test has its reason in reasons.txt, a line each: NAME: WHY. The exit status is 1
where a test and the table disagree. --table writes the table that is true now. Inputs that are parameters of a network
(weights, indices) are constants."""

import argparse
import collections
import glob
import os
import sys
import warnings

import numpy as np

LEAST_DB = 40.0
DATA = "/usr/lib/python3/dist-packages/onnx/backend/test/data"
KINDS = ("node", "pytorch-operator", "pytorch-converted")
# Inputs from this one on are parameters, and constants here.
PARAMETERS_FROM = {
    "BatchNormalization": 1, "Clip": 1, "Compress": 1, "Conv": 1, "ConvTranspose": 1, "Expand": 1, "GRU": 1, "Gather": 1,
    "GatherElements": 1, "GatherND": 1, "Gemm": 1, "InstanceNormalization": 1, "LSTM": 1, "LayerNormalization": 1, "PRelu": 1,
    "NegativeLogLikelihoodLoss": 2, "Pad": 1, "Pow": 1, "RNN": 1, "Resize": 1, "SoftmaxCrossEntropyLoss": 2, "Upsample": 1,
}  # fmt: skip


def tensor_of(path):
    import onnx
    from onnx import numpy_helper

    with open(path, "rb") as file:
        return numpy_helper.to_array(onnx.TensorProto.FromString(file.read()))


def taken(folder):
    """The model's graph, where the test is one of those that count."""
    import onnx

    graph = onnx.load(os.path.join(folder, "model.onnx")).graph
    stored = {t.name for t in graph.initializer}
    inputs = [value for value in graph.input if value.name not in stored]
    values = [*inputs, *graph.output]
    if not inputs or any(value.type.WhichOneof("value") != "tensor_type" for value in values):
        return None
    floats = all(value.type.tensor_type.elem_type == 1 for value in (inputs[0], *graph.output))
    ranks = [len(value.type.tensor_type.shape.dim) for value in values]
    return (graph, [value.name for value in inputs]) if floats and max(ranks) <= 4 else None


def constants_of(graph, given):
    """The inputs that are parameters: those that are no floats, and what the table above says."""
    names = {name for name, value in given.items() if value.dtype != np.float32}
    for node in graph.node:
        names.update(node.input[PARAMETERS_FROM.get(node.op_type, len(node.input)) :])
    return {name: value for name, value in given.items() if name in names}


class Below(Exception):
    """The S/N is below what passes."""


def one(device, folder, graph, inputs, host):
    """The least S/N of the outputs, and the number of operations."""
    import npumem.onnx
    from npumem.onnx import run
    from npumem.onnx.formats import noise_db

    data = os.path.join(folder, "test_data_set_0")
    given = {
        name: tensor_of(f"{data}/input_{i}.pb")
        for i, name in enumerate(inputs)
        if os.path.exists(f"{data}/input_{i}.pb")
    }
    constants = constants_of(graph, given)
    feeds = {name: value for name, value in given.items() if name not in constants}
    shapes = {name: value.shape for name, value in feeds.items()}
    path = os.path.join(folder, "model.onnx")
    samples = {name: value[None] for name, value in feeds.items()}
    imported = npumem.onnx.load(path, samples, shapes=shapes, constants=constants, host=host)
    whole = imported.network.document()
    with run.Session(device, whole, imported.report, imported.network.arrays.__getitem__) as session:
        got = session.run(feeds)
    least = 200.0
    for i, output in enumerate(graph.output):
        want = tensor_of(f"{data}/output_{i}.pb")
        if got[output.name].shape != want.shape:
            raise Below(f"{output.name} is {list(got[output.name].shape)}, and must be {list(want.shape)}")
        least = min(least, noise_db(want, got[output.name]))
    if least < LEAST_DB:
        raise Below(f"{least:.0f} dB, below {LEAST_DB:.0f}")
    return least, sum(imported.report["operations"].values())


def short(problem):
    """Why a test is not done, without the names of its nodes and values."""
    text = str(problem)
    why = text.split("): ", 1)[1] if text.startswith("node ") and "): " in text else text.split(".onnx: ")[-1]
    return why.split(";")[0].strip()


def table(path):
    with open(path, encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(": ", 1) for line in file if line.strip() and not line.startswith("#"))


def tests(data, only):
    for kind in KINDS:
        for folder in sorted(glob.glob(f"{data}/{kind}/test_*")):
            if only in folder and os.path.exists(os.path.join(folder, "model.onnx")):
                found = taken(folder)
                if found:
                    yield os.path.basename(folder), folder, found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=DATA)
    parser.add_argument("--only", default="")
    parser.add_argument("--table")
    parser.add_argument("--least", type=int, default=0, help="fails where fewer tests pass")
    parser.add_argument("--host", action="store_true", help="what no kernel does runs on the host; no table is compared")
    options = parser.parse_args()
    try:
        import onnx  # noqa: F401
    except ImportError:
        print("skipped: python3-onnx is not installed")
        return 77
    if not os.path.isdir(options.data):
        print(f"skipped: no {options.data}; libonnx-testdata is not installed")
        return 77
    import npumem
    import npumem.onnx

    warnings.simplefilter("ignore")
    passed, reasons = {}, {}
    with npumem.spawn("--npu-bytes", "4M") as device:
        for name, folder, (graph, inputs) in tests(options.data, options.only):
            try:
                passed[name] = one(device, folder, graph, inputs, options.host)
            except (npumem.onnx.ImportRefused, Below) as problem:
                reasons[name] = short(problem)
            except Exception as problem:  # our own bug, told as such
                reasons[name] = f"FAILED: {type(problem).__name__}: {str(problem)[:120]}"
                if options.only:
                    raise
    return told(options, passed, reasons)


def told(options, passed, reasons):
    n_without = sum(not n for _, n in passed.values())
    print(
        f"{len(passed)} of {len(passed) + len(reasons)} tests pass at {LEAST_DB:.0f} dB ({n_without} without an operation)"
    )
    for why, n in collections.Counter(reasons.values()).most_common():
        names = [name[5:] for name, reason in sorted(reasons.items()) if reason == why]
        print(f"{n:4} {why}: {' '.join(names[:5])}{' …' if n > 5 else ''}")
    if options.table:
        with open(options.table, "w", encoding="utf-8") as file:
            file.write(
                "# Tests of ONNX that are not done, and why. Written by suite.py --table; checked by suite.py.\n"
            )
            file.writelines(f"{name}: {why}\n" for name, why in sorted(reasons.items()))
        return 0
    known = table(os.path.join(os.path.dirname(os.path.abspath(__file__)), "reasons.txt"))
    known = {name: why for name, why in known.items() if name in reasons or name in passed}
    wrong = [] if options.host else [name for name in sorted({*known, *reasons}) if known.get(name) != reasons.get(name)]
    for name in wrong:
        print(
            f"DIFFERS {name}: the table says {known.get(name, 'that it passes')!r}; it is {reasons.get(name, 'passed')!r}"
        )
    if len(passed) < options.least:
        print(f"{len(passed)} tests pass, fewer than {options.least}")
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
