"""Networks of the size that people run, with random weights: each function returns a model and two samples.

`extent`: of the pictures, 224 but for a run that only shows that everything works."""

import os
import sys

import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "onnx"))

from builder import Graph, pictures  # noqa: E402

N_SAMPLES = 2
STEPS, FEATURES, HIDDEN = 128, 128, 256  # of the LSTM


def head(g, x, channels):
    x = g.add("Flatten", g.add("GlobalAveragePool", x), axis=1)
    g.output(g.dense(x, channels, 1000), "logits")


def resnet18(extent):
    g = Graph(1)
    x = g.unit(g.input("x", 1, 3, extent, extent), 3, 64, 7, 2)
    x = g.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for i, o, stride in ((64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)):
        y = g.norm(g.conv(g.unit(x, i, o, 3, stride), o, o, bias=False), o, gain=0.5)
        skip = x if stride == 1 else g.norm(g.conv(x, i, o, 1, stride, bias=False, pads=[0] * 4), o)
        x = g.add("Relu", g.add("Add", y, skip))
    head(g, x, 512)
    return g.model(), pictures(g, N_SAMPLES, 3, extent, extent)


def mobilenet_v1(extent):
    g = Graph(2)
    x = g.unit(g.input("x", 1, 3, extent, extent), 3, 32, 3, 2)
    pairs = [(32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2)]
    for i, o, stride in [*pairs, *[(512, 512, 1)] * 5, (512, 1024, 2), (1024, 1024, 1)]:
        x = g.unit(g.unit(x, i, i, 3, stride, groups=i), i, o, 1)
    head(g, x, 1024)
    return g.model(), pictures(g, N_SAMPLES, 3, extent, extent)


def mobilenet_v2(extent):
    g = Graph(3)
    x = g.unit(g.input("x", 1, 3, extent, extent), 3, 32, 3, 2, act="Relu6")
    i = 32
    for t, o, n, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for at in range(n):
            wide, stride = i * t, 1 if at else first
            y = x if t == 1 else g.unit(x, i, wide, 1, act="Relu6")
            y = g.unit(g.unit(y, wide, wide, 3, stride, groups=wide, act="Relu6"), wide, o, 1, act=None)
            x = g.add("Add", x, y) if at else y
            i = o
    head(g, g.unit(x, i, 1280, 1, act="Relu6"), 1280)
    return g.model(), pictures(g, N_SAMPLES, 3, extent, extent)


def lstm(_):
    """One layer, 128 features, 256 hidden."""
    g = Graph(4, 14)
    r = g.random
    given = (r.standard_normal((1, 4 * HIDDEN, n)) / np.sqrt(n) for n in (FEATURES, HIDDEN))
    x = g.add("LSTM", g.input("x", STEPS, 1, FEATURES), *map(g.constant, given), g.small(1, 8 * HIDDEN), n=3, hidden_size=HIDDEN)
    g.output(x[0], "y")
    return g.model(), r.standard_normal((N_SAMPLES, STEPS, 1, FEATURES)).astype(np.float32)


MODELS = {"resnet-18": resnet18, "mobilenet-v1": mobilenet_v1, "mobilenet-v2": mobilenet_v2, "lstm-128": lstm}
