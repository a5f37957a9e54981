"""Networks of the kinds that people bring (networks.py), in each type: what a private daemon gives, beside the floats.

    kinds.py [NAME…]

Each must be imported whole, without a step on the host, run without a sum that wraps, and keep the S/N that LEAST has for
its outputs."""

import sys
import warnings

import numpy as np

LEAST = {"fx16": 55, "mixed": 27, "fx8": 23}
LESS = {"quantized": {"fx16": 40}}  # its floats are rounded to 8 bits
CLASSES = {"segmentation": "classes"}  # outputs that are indices: how many are the same counts, at least
SAME = {"fx16": 0.995, "mixed": 0.9, "fx8": 0.85}


def agrees(name, output, dtype, want, got):
    """What is told, and whether it is enough."""
    from npumem.onnx.formats import noise_db

    if CLASSES.get(name) == output:
        same = float((want == got).mean())
        return f"{output} {same:.1%} the same", same >= SAME[dtype]
    db = noise_db(want, got)
    return f"{output} {db:.1f} dB", db >= LESS.get(name, {}).get(dtype, LEAST[dtype])


def one(device, path, made, samples, dtype):
    """Runs a network: its outputs, and those of the floats, by name."""
    import npumem.onnx
    from npumem.onnx import floats, run
    from npumem.onnx.model import read

    [(name, x)] = samples.items()
    dims = made.graph.input[0].type.tensor_type.shape.dim
    shapes = {name: (1, *x.shape[1:])} if dims[0].dim_param else None
    imported = npumem.onnx.load(path, samples, dtype=dtype, shapes=shapes)
    graph = read(path, shapes)
    feeds = [{name: v.reshape(graph.declared[name])} for v in x]
    with run.Session(device, imported.network.document(), imported.report, imported.network.arrays.__getitem__) as session:
        got = [session.run(feed) for feed in feeds]
        wrapped = session.wrapped
    want = [floats.run(graph, feed) for feed in feeds]
    return wrapped, {
        output: (np.stack([v[output] for v in want]), np.stack([v[output] for v in got])) for output in graph.outputs
    }


def main():
    try:
        import onnx
        from networks import NETWORKS
    except ImportError as problem:
        print(f"skipped: {problem}; tests/packages.sh installs python3-onnx")
        return 77
    import os
    import tempfile

    import npumem

    warnings.simplefilter("ignore")
    failed = 0
    with npumem.spawn("--npu-bytes", "1M") as device, tempfile.TemporaryDirectory() as folder:
        for network in NETWORKS:
            name, path = network.__name__, os.path.join(folder, "model.onnx")
            if sys.argv[1:] and name not in sys.argv[1:]:
                continue
            made, samples = network()
            onnx.save_model(made, path)
            for dtype in LEAST:
                wrapped, outputs = one(device, path, made, samples, dtype)
                told = [agrees(name, output, dtype, *pair) for output, pair in outputs.items()]
                good = not wrapped and not device.tensors() and all(enough for _, enough in told)
                failed += not good
                print(f"{'ok  ' if good else 'FAIL'} {name} {dtype}: {', '.join(text for text, _ in told)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
