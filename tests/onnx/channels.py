"""What a format for each output channel of weights would gain: channels.py MODEL.onnx SAMPLES.npy

The first 6 samples give the formats; S/N of the outputs is that of the others. Data are fx16. Weights are rounded to fx8
with a format for each tensor and with one for each output channel, and both are held in fx16, as are the biases, so that
the rounding of weights is all that differs. Plain, and with --equalize."""

import sys
import warnings

import numpy as np

import npumem
import npumem.onnx
from npumem.onnx import floats, run
from npumem.onnx.formats import best, noise_db, rounded
from npumem.onnx.model import read
from npumem.onnx.rows import convolutions
from npumem.onnx.samples import feeds_of

N_CALIBRATE = 6


def a_tensor(low, node, w, dtype, frac):
    return rounded(w, "fx8", best(w, "fx8"))


def a_channel(low, node, w, dtype, frac):
    return np.stack([rounded(one, "fx8", best(one, "fx8")) for one in w])


def main():
    warnings.simplefilter("ignore")
    path, x = sys.argv[1], np.load(sys.argv[2]).astype(np.float32)
    graph = read(path)
    feeds = feeds_of(graph.declared, x)
    want = [floats.run(graph, feed) for feed in feeds[N_CALIBRATE:]]
    for equalize in (False, True):
        for way in (a_tensor, a_channel):
            convolutions.rounded_weights = way
            imported = npumem.onnx.load(path, x[:N_CALIBRATE], equalize=equalize)
            whole = imported.network.document()
            with npumem.spawn("--npu-bytes", str(run.per_npu(whole))) as device:
                with run.Session(device, whole, imported.report, imported.network.arrays.__getitem__) as session:
                    got = [session.run(feed) for feed in feeds[N_CALIBRATE:]]
            db = {name: noise_db(*(np.stack([one[name] for one in runs]) for runs in (want, got))) for name in graph.outputs}
            words = ", ".join(f"{name} {value:.1f} dB" for name, value in db.items())
            print(f"{'--equalize' if equalize else '          '} {way.__name__}: {words}", flush=True)


if __name__ == "__main__":
    main()
