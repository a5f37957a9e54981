"""Small networks of the kinds that people bring, with random weights, in the form in which exporters write them.

NETWORKS has a function for each: it returns the model, and samples by input. Batches are symbolic where exporters leave
them so."""

import numpy as np
from onnx import TensorProto, numpy_helper

from builder import Graph, pictures


# ---- pictures ----


def resnet():
    g = Graph(1)
    x = g.unit(g.input("input", "N", 3, 32, 32), 3, 16, 7, 2)
    x = g.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for i, o, stride in ((16, 16, 1), (16, 32, 2)):
        y = g.norm(g.conv(g.unit(x, i, o, 3, stride), o, o, bias=False), o)
        skip = x if stride == 1 else g.norm(g.conv(x, i, o, 1, stride, bias=False, pads=[0] * 4), o)
        x = g.add("Relu", g.add("Add", y, skip))
    x = g.add("Flatten", g.add("GlobalAveragePool", x), axis=1)
    g.output(g.dense(x, 32, 10))
    return g.model(), {"input": pictures(g, 8, 3, 32, 32)}


def preactivation():
    """BN, ReLU, Conv as in DenseNet, with Concat; average pools between."""
    g = Graph(2)
    x = g.conv(g.input("input", "N", 3, 24, 24), 3, 12, bias=False)
    c = 12
    for _ in range(3):
        y = g.conv(g.add("Relu", g.norm(x, c)), c, 8, bias=False)
        x, c = g.add("Concat", x, y, axis=1), c + 8
    x = g.conv(g.add("Relu", g.norm(x, c)), c, 16, 1, bias=False)
    x = g.add("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = g.add("GlobalAveragePool", g.add("Relu", g.norm(x, 16)))
    g.output(g.dense(g.add("Reshape", x, g.ints(-1, 16)), 16, 10))
    return g.model(), {"input": pictures(g, 8, 3, 24, 24)}


def mobilenet_v2():
    g = Graph(3, 11)
    x = g.unit(g.input("input", "N", 3, 32, 32), 3, 16, 3, 2, act="Relu6")
    for i, o, stride, t in ((16, 8, 1, 1), (8, 12, 2, 6), (12, 12, 1, 6), (12, 16, 2, 6)):
        wide = i * t
        y = x if t == 1 else g.unit(x, i, wide, 1, act="Relu6")
        y = g.unit(y, wide, wide, 3, stride, groups=wide, act="Relu6")
        y = g.norm(g.conv(y, wide, o, 1, bias=False), o)
        x = g.add("Add", x, y) if stride == 1 and i == o else y
    x = g.unit(x, 16, 64, 1, act="Relu6")
    x = g.add("ReduceMean", x, axes=[2, 3], keepdims=0)
    g.output(g.dense(x, 64, 10))
    return g.model(), {"input": pictures(g, 8, 3, 32, 32)}


def mobilenet_v3():
    """Squeeze and excitation with HardSigmoid, HardSwish."""
    g = Graph(4, 14)
    x = g.unit(g.input("input", "N", 3, 32, 32), 3, 16, 3, 2, act="HardSwish")
    y = g.unit(g.unit(x, 16, 48, 1, act="HardSwish"), 48, 48, 5, groups=48, act="HardSwish")
    s = g.add("Relu", g.conv(g.add("GlobalAveragePool", y), 48, 12, 1))
    s = g.add("HardSigmoid", g.conv(s, 12, 48, 1), alpha=1 / 6)
    x = g.add("Add", x, g.norm(g.conv(g.add("Mul", s, y), 48, 16, 1, bias=False), 16))
    x = g.add("Flatten", g.add("GlobalAveragePool", x), axis=1)
    x = g.add("HardSwish", g.dense(x, 16, 32))
    g.output(g.dense(x, 32, 10))
    return g.model(), {"input": pictures(g, 8, 3, 32, 32)}


def shufflenet():
    g = Graph(5)
    x = g.unit(g.input("input", "N", 3, 32, 32), 3, 16, 3, 2)
    for _ in range(2):
        a, b = g.add("Split", x, g.ints(8, 8), n=2, axis=1)
        b = g.unit(b, 8, 8, 1)
        b = g.unit(g.unit(b, 8, 8, 3, groups=8, act=None), 8, 8, 1)
        x = g.add("Concat", a, b, axis=1)
        x = g.add("Reshape", x, g.ints(-1, 2, 8, 16, 16))
        x = g.add("Transpose", x, perm=[0, 2, 1, 3, 4])
        x = g.add("Reshape", x, g.ints(-1, 16, 16, 16))
    g.output(g.dense(g.add("ReduceMean", x, axes=[2, 3], keepdims=0), 16, 10))
    return g.model(), {"input": pictures(g, 8, 3, 32, 32)}


def yolo():
    """A backbone of SiLU, a neck of Resize and Concat, and a head that decodes boxes of two scales."""
    g = Graph(6, 12)
    x = g.unit(g.input("images", 1, 3, 64, 64), 3, 16, 6 - 3, 2, act="SiLU")
    fine = g.unit(x, 16, 16, 3, 2, act="SiLU")
    coarse = g.unit(fine, 16, 32, 3, 2, act="SiLU")
    pooled = [coarse]
    for _ in range(2):
        pooled.append(g.add("MaxPool", pooled[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2]))
    coarse = g.unit(g.add("Concat", *pooled, axis=1), 96, 32, 1, act="SiLU")
    up = g.add("Resize", coarse, g.constant([]), g.constant([1, 1, 2, 2]), mode="nearest",
               coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    fine = g.unit(g.add("Concat", up, fine, axis=1), 48, 32, 3, act="SiLU")
    parts = []
    for x, n, stride in ((fine, 16, 4.0), (coarse, 8, 8.0)):
        x = g.conv(x, 32, 2 * 9, 1)
        x = g.add("Reshape", x, g.ints(1, 2, 9, n, n))
        x = g.add("Sigmoid", g.add("Transpose", x, perm=[0, 1, 3, 4, 2]))
        xy, wh, rest = g.add("Split", x, n=3, axis=4, split=[2, 2, 5])
        grid = np.stack(np.meshgrid(np.arange(n), np.arange(n)), -1).reshape(1, 1, n, n, 2) - 0.5
        anchors = np.array([[10, 13], [33, 23]], np.float32).reshape(1, 2, 1, 1, 2)
        xy = g.add("Mul", g.add("Add", g.add("Mul", xy, g.constant(2.0)), g.constant(grid)), g.constant(stride))
        wh = g.add("Mul", g.add("Pow", g.add("Mul", wh, g.constant(2.0)), g.constant(2.0)), g.constant(anchors))
        parts.append(g.add("Reshape", g.add("Concat", xy, wh, rest, axis=4), g.ints(1, -1, 9)))
    g.output(g.add("Concat", *parts, axis=1), "output0")
    return g.model(), {"images": pictures(g, 8, 1, 3, 64, 64)}


def yolo_v8():
    """Slices of channels, distribution of distances by Softmax and a convolution, strides multiplied last."""
    g = Graph(7, 17)
    x = g.unit(g.input("images", 1, 3, 64, 64), 3, 16, 3, 2, act="SiLU")
    x = g.unit(x, 16, 32, 3, 2, act="SiLU")
    a = g.add("Slice", x, g.ints(0), g.ints(16), g.ints(1))
    b = g.add("Slice", x, g.ints(16), g.ints(1 << 62), g.ints(1))
    x = g.add("Concat", a, b, g.unit(b, 16, 16, act="SiLU"), axis=1)
    x = g.unit(x, 48, 32, 3, 2, act="SiLU")
    box = g.add("Reshape", g.conv(x, 32, 64, 1), g.ints(1, 64, -1))
    cls = g.add("Reshape", g.conv(x, 32, 4, 1), g.ints(1, 4, -1))
    box = g.add("Transpose", g.add("Reshape", box, g.ints(1, 4, 16, 64)), perm=[0, 2, 1, 3])
    weights = np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1)
    box = g.add("Conv", g.add("Softmax", box, axis=1), g.constant(weights), kernel_shape=[1, 1])
    box = g.add("Reshape", box, g.ints(1, 4, 64))
    lt, rb = g.add("Slice", box, g.ints(0), g.ints(2), g.ints(1)), g.add("Slice", box, g.ints(2), g.ints(4), g.ints(1))
    anchors = g.constant(np.stack(np.meshgrid(np.arange(8), np.arange(8))).reshape(1, 2, 64) + 0.5)
    low, high = g.add("Sub", anchors, lt), g.add("Add", anchors, rb)
    middle = g.add("Div", g.add("Add", low, high), g.constant(2.0))
    box = g.add("Mul", g.add("Concat", middle, g.add("Sub", high, low), axis=1), g.constant(np.full((1, 64), 8.0)))
    g.output(g.add("Concat", box, g.add("Sigmoid", cls), axis=1), "output0")
    return g.model(), {"images": pictures(g, 8, 1, 3, 64, 64)}


def ssd():
    g = Graph(8, 9)
    x = g.unit(g.input("image", 1, 3, 48, 48), 3, 16, 3, 2)
    x = g.unit(x, 16, 24, 3, 2)
    y = g.unit(x, 24, 32, 3, 2)
    boxes, scores = [], []
    for one, c in ((x, 24), (y, 32)):
        b, s = g.conv(one, c, 8), g.conv(one, c, 6)
        boxes.append(g.add("Reshape", g.add("Transpose", b, perm=[0, 2, 3, 1]), g.ints(1, -1, 4)))
        scores.append(g.add("Reshape", g.add("Transpose", s, perm=[0, 2, 3, 1]), g.ints(1, -1, 3)))
    g.output(g.add("Concat", *boxes, axis=1), "boxes")
    g.output(g.add("Softmax", g.add("Concat", *scores, axis=1), axis=2), "scores")
    return g.model(), {"image": pictures(g, 8, 1, 3, 48, 48)}


def unet():
    g = Graph(9)
    a = g.unit(g.unit(g.input("x", "batch", 1, 32, 32), 1, 8), 8, 8)
    b = g.add("MaxPool", a, kernel_shape=[2, 2], strides=[2, 2])
    b = g.unit(g.unit(b, 8, 16), 16, 16)
    c = g.add("MaxPool", b, kernel_shape=[2, 2], strides=[2, 2])
    c = g.unit(c, 16, 32)
    up = g.add("ConvTranspose", c, g.weights(32, 16, 2, 2, fan=64), g.small(16), kernel_shape=[2, 2], strides=[2, 2])
    b = g.unit(g.add("Concat", b, up, axis=1), 32, 16)
    up = g.add("ConvTranspose", b, g.weights(16, 8, 4, 4, fan=64), g.small(8), kernel_shape=[4, 4], strides=[2, 2],
               pads=[1, 1, 1, 1])  # fmt: skip
    a = g.unit(g.add("Concat", a, up, axis=1), 16, 8)
    g.output(g.add("Sigmoid", g.conv(a, 8, 1, 1)), "mask")
    return g.model(), {"x": pictures(g, 8, 1, 32, 32)}


def segmentation():
    """Dilated branches, bilinear Resize by computed sizes, and the class of each point."""
    g = Graph(10)
    image = g.input("image", 1, 3, 32, 32)
    x = g.unit(g.unit(image, 3, 16, 3, 2), 16, 16, 3, 2)
    parts = [g.conv(x, 16, 8, 1)]
    for d in (2, 3):
        parts.append(g.conv(x, 16, 8, 3, pads=[d] * 4, dilations=[d, d]))
    pooled = g.add("Relu", g.conv(g.add("GlobalAveragePool", x), 16, 8, 1))
    size = g.add("Concat", g.add("Unsqueeze", g.dim(x, 2), g.ints(0)), g.add("Unsqueeze", g.dim(x, 3), g.ints(0)), axis=0)
    sizes = g.add("Concat", g.ints(1, 8), size, axis=0)
    parts.append(g.add("Resize", pooled, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel"))
    x = g.add("Relu", g.conv(g.add("Concat", *parts, axis=1), 32, 16, 1))
    x = g.conv(x, 16, 5, 1)
    x = g.add("Resize", x, "", g.constant([1, 1, 4, 4]), mode="linear", coordinate_transformation_mode="half_pixel")
    g.output(x, "logits")
    g.output(g.add("ArgMax", x, axis=1, keepdims=0), "classes", TensorProto.INT64)
    return g.model(), {"image": pictures(g, 8, 1, 3, 32, 32)}


def super_resolution():
    g = Graph(11, 10)
    x = g.add("Relu", g.conv(g.input("input", "batch_size", 1, 20, 20), 1, 16, 5))
    x = g.add("Relu", g.conv(x, 16, 16))
    x = g.conv(x, 16, 9)
    x = g.add("Reshape", x, g.ints(-1, 1, 3, 3, 20, 20))
    x = g.add("Transpose", x, perm=[0, 1, 4, 2, 5, 3])
    g.output(g.add("Reshape", x, g.ints(-1, 1, 60, 60)))
    return g.model(), {"input": pictures(g, 8, 1, 20, 20)}


def style():
    """Pad by reflection, InstanceNormalization, Upsample, Tanh."""
    g = Graph(12, 9)
    x = g.input("input1", 1, 3, 24, 24)
    for i, o, stride in ((3, 8, 1), (8, 16, 2)):
        x = g.add("Pad", x, mode="reflect", pads=[0, 0, 1, 1, 0, 0, 1, 1])
        x = g.conv(x, i, o, 3, stride, pads=[0] * 4)
        x = g.add("Relu", g.add("InstanceNormalization", x, g.constant(g.random.uniform(0.5, 1.5, o)), g.small(o), epsilon=1e-5))
    y = g.add("InstanceNormalization", g.conv(x, 16, 16), g.constant(g.random.uniform(0.5, 1.5, 16)), g.small(16), epsilon=1e-5)
    x = g.add("Add", x, y)
    x = g.add("Upsample", x, g.constant([1, 1, 2, 2]), mode="nearest")
    g.output(g.add("Tanh", g.conv(x, 16, 3)), "output1")
    return g.model(), {"input1": pictures(g, 8, 1, 3, 24, 24)}


def tensorflow():
    """NHWC outside, a Transpose before and behind each group, SAME padding, as tf2onnx writes it."""
    g = Graph(13)
    x = g.add("Transpose", g.input("input_1", "unk__6", 28, 28, 3), perm=[0, 3, 1, 2])
    x = g.add("Conv", x, g.weights(8, 3, 3, 3), g.small(8), strides=[2, 2], auto_pad="SAME_UPPER", kernel_shape=[3, 3])
    x = g.add("Clip", x, g.constant(0.0), g.constant(6.0))
    x = g.add("Conv", x, g.weights(8, 1, 3, 3), auto_pad="SAME_UPPER", group=8, kernel_shape=[3, 3])
    x = g.add("Relu", g.norm(x, 8))
    x = g.add("Transpose", x, perm=[0, 2, 3, 1])
    x = g.add("Add", g.add("MatMul", x, g.weights(8, 16)), g.small(16))  # a 1 x 1 convolution as a Dense
    x = g.add("Transpose", g.add("Relu", x), perm=[0, 3, 1, 2])
    x = g.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER")
    x = g.add("Transpose", x, perm=[0, 2, 3, 1])
    x = g.add("Reshape", x, g.ints(-1, 7 * 7 * 16))
    x = g.add("Relu", g.add("Add", g.add("MatMul", x, g.weights(784, 32, fan=784)), g.small(32)))
    x = g.add("Add", g.add("MatMul", x, g.weights(32, 10, fan=32)), g.small(10))
    g.output(g.add("Softmax", x), "dense_2")
    return g.model(), {"input_1": pictures(g, 8, 3, 28, 28).transpose(0, 2, 3, 1).copy()}


# ---- sequences ----


def speech_lstm():
    """Convolutions over a spectrogram, two LSTMs in both directions, a class for each step."""
    g = Graph(20, 14)
    x = g.input("features", 1, 1, 40, 32)
    x = g.add("Relu", g.conv(x, 1, 8, 3, 2))
    x = g.add("Transpose", x, perm=[3, 0, 1, 2])
    x = g.add("Reshape", x, g.ints(16, 1, 160))
    for i in (160, 48):
        w, r, b = g.small(2, 96, i), g.constant(g.random.standard_normal((2, 96, 24)) * 0.2), g.small(2, 192)
        x = g.add("LSTM", x, w, r, b, n=3, hidden_size=24, direction="bidirectional")[0]
        x = g.add("Transpose", x, perm=[0, 2, 1, 3])
        x = g.add("Reshape", x, g.ints(0, 0, -1))
    x = g.linear(x, 48, 12)
    g.output(g.add("LogSoftmax", x, axis=2), "log_probs")
    return g.model(), {"features": pictures(g, 6, 1, 1, 40, 32)}


def speech_gru():
    """PyTorch's GRU: linear_before_reset, an initial state of zeros with computed shape, the last step."""
    g = Graph(21, 13)
    x = g.input("input", "batch", 20, 13)
    x = g.add("Transpose", x, perm=[1, 0, 2])
    shape = g.add("Concat", g.ints(1), g.add("Unsqueeze", g.dim(x, 1), g.ints(0)), g.ints(16), axis=0)
    h = g.add("ConstantOfShape", shape, value=numpy_helper.from_array(np.zeros(1, np.float32)))
    w, r, b = g.small(1, 48, 13), g.constant(g.random.standard_normal((1, 48, 16)) * 0.25), g.small(1, 96)
    y = g.add("GRU", x, w, r, b, "", h, n=2, hidden_size=16, linear_before_reset=1)
    x = g.add("Transpose", g.add("Squeeze", y[0], g.ints(1)), perm=[1, 0, 2])
    x = g.add("Gather", x, g.int(-1), axis=1)
    g.output(g.dense(x, 16, 6), "scores")
    return g.model(), {"input": pictures(g, 6, 20, 13)}


def keyword():
    """1-D convolutions, depthwise and dilated, as in temporal networks."""
    g = Graph(22)
    x = g.input("mfcc", "N", 20, 49)
    x = g.add("Relu", g.conv(x, 20, 24, (9,), pads=[4, 4], stride=2))
    for d in (1, 2, 4):
        y = g.add("Conv", x, g.weights(24, 1, 3), pads=[d, d], dilations=[d], group=24, kernel_shape=[3])
        y = g.add("Relu", g.norm(g.conv(y, 24, 24, (1,), pads=[0, 0], bias=False), 24))
        x = g.add("Add", x, y)
    x = g.add("Squeeze", g.add("GlobalAveragePool", x), g.ints(2))
    g.output(g.add("Softmax", g.dense(x, 24, 12), axis=-1), "probabilities")
    return g.model(), {"mfcc": pictures(g, 8, 20, 49)}


def layer_norm(g, x, d):
    """As exporters write it before opset 17."""
    less = g.add("Sub", x, g.add("ReduceMean", x, axes=[-1]))
    var = g.add("ReduceMean", g.add("Pow", less, g.constant(2.0)), axes=[-1])
    y = g.add("Div", less, g.add("Sqrt", g.add("Add", var, g.constant(1e-5))))
    return g.add("Add", g.add("Mul", y, g.constant(g.random.uniform(0.5, 1.5, d))), g.small(d))


def gelu(g, x):
    y = g.add("Erf", g.add("Div", x, g.constant(np.sqrt(2.0))))
    return g.add("Mul", g.add("Mul", x, g.add("Add", y, g.constant(1.0))), g.constant(0.5))


def attention(g, x, d, heads, computed):
    """Heads by Reshape and Transpose; `computed`: the batch by Shape, Gather and Concat, as PyTorch writes it."""
    n = g.add("Unsqueeze", g.dim(x, 0), g.ints(0)) if computed else g.ints(0)
    parts = []
    for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
        one = g.add("Reshape", g.linear(x, d, d), g.add("Concat", n, g.ints(-1, heads, d // heads), axis=0))
        parts.append(g.add("Transpose", one, perm=perm))
    scores = g.add("Div", g.add("MatMul", parts[0], parts[1]), g.constant(np.sqrt(d // heads)))
    y = g.add("MatMul", g.add("Softmax", scores, axis=-1), parts[2])
    y = g.add("Reshape", g.add("Transpose", y, perm=[0, 2, 1, 3]), g.add("Concat", n, g.ints(-1, d), axis=0))
    return g.linear(y, d, d)


def transformer():
    """Two blocks, normalized before, with Gelu; LayerNormalization written out."""
    g = Graph(23, 13)
    x = g.linear(g.input("tokens", "batch", 16, 24), 24, 32)
    x = g.add("Add", x, g.small(1, 16, 32))
    for _ in range(2):
        x = g.add("Add", x, attention(g, layer_norm(g, x, 32), 32, 4, True))
        x = g.add("Add", x, g.linear(gelu(g, g.linear(layer_norm(g, x, 32), 32, 64)), 64, 32))
    x = g.add("ReduceMean", layer_norm(g, x, 32), axes=[1], keepdims=0)
    g.output(g.dense(x, 32, 10), "logits")
    return g.model(), {"tokens": pictures(g, 8, 16, 24)}


def vision_transformer():
    """Patches by a convolution, a class token, the operator LayerNormalization, attention of one product for q, k, v."""
    g = Graph(24, 17)
    x = g.conv(g.input("pixels", "N", 3, 32, 32), 3, 32, 8, 8, pads=[0] * 4)
    x = g.add("Transpose", g.add("Reshape", x, g.ints(0, 32, -1)), perm=[0, 2, 1])
    token = g.add("Expand", g.constant(g.random.standard_normal((1, 1, 32))), g.add("Concat", g.add("Unsqueeze", g.dim(x, 0), g.ints(0)), g.ints(1, 32), axis=0))
    x = g.add("Add", g.add("Concat", token, x, axis=1), g.small(1, 17, 32))

    def norm(v):
        return g.add("LayerNormalization", v, g.constant(g.random.uniform(0.5, 1.5, 32)), g.small(32), axis=-1, epsilon=1e-6)

    y = g.add("Reshape", g.linear(norm(x), 32, 96), g.ints(0, 17, 3, 4, 8))
    q, k, v = (g.add("Gather", g.add("Transpose", y, perm=[2, 0, 3, 1, 4]), g.int(i), axis=0) for i in range(3))
    s = g.add("Mul", g.add("MatMul", q, g.add("Transpose", k, perm=[0, 1, 3, 2])), g.constant(8**-0.5))
    y = g.add("Transpose", g.add("MatMul", g.add("Softmax", s, axis=-1), v), perm=[0, 2, 1, 3])
    x = g.add("Add", x, g.linear(g.add("Reshape", y, g.ints(0, 17, 32)), 32, 32))
    x = g.add("Add", x, g.linear(gelu(g, g.linear(norm(x), 32, 64)), 64, 32))
    x = g.add("Gather", norm(x), g.int(0), axis=1)
    g.output(g.dense(x, 32, 10), "logits")
    return g.model(), {"pixels": pictures(g, 8, 3, 32, 32)}


# ---- quantized ----


def quantized():
    """As a quantizer of onnxruntime or PyTorch leaves it: int8 weights a channel, uint8 activations, any scales; the limit
    of a Relu is in a zero point."""
    g = Graph(25)

    def pair(x, scale, zero, kind):
        given = g.constant(scale), g.constant(zero, kind)
        return g.add("DequantizeLinear", g.add("QuantizeLinear", x, *given), *given)

    def weights(o, *rest):
        w = g.random.standard_normal((o, *rest)) * np.sqrt(2 / np.prod(rest))
        scale = np.abs(w).reshape(o, -1).max(1) / 127
        q = np.rint(w / scale.reshape(-1, *[1] * len(rest)))
        return g.add("DequantizeLinear", g.constant(q, np.int8), g.constant(scale), g.constant(np.zeros(o), np.int8), axis=0)

    x = pair(g.input("x", "N", 3, 24, 24), 0.031, 128, np.uint8)
    x = g.add("Conv", x, weights(16, 3, 3, 3), g.small(16), kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    x = pair(x, 0.019, 0, np.uint8)  # a Relu
    y = g.add("Conv", x, weights(16, 16, 3, 3), g.small(16), kernel_shape=[3, 3], pads=[1] * 4)
    x = pair(g.add("Add", x, pair(y, 0.043, 121, np.uint8)), 0.047, 37, np.uint8)
    x = pair(g.add("GlobalAveragePool", x), 0.013, -3, np.int8)
    x = g.add("Gemm", g.add("Flatten", x), weights(10, 16), g.small(10), transB=1)
    g.output(pair(x, 0.029, 5, np.int8), "y")
    return g.model(), {"x": pictures(g, 8, 3, 24, 24)}


NETWORKS = (
    resnet, preactivation, mobilenet_v2, mobilenet_v3, shufflenet, yolo, yolo_v8, ssd, unet, segmentation, super_resolution,
    style, tensorflow, speech_lstm, speech_gru, keyword, transformer, vision_transformer, quantized,
)  # fmt: skip
