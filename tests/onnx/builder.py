"""Models under construction, with random weights, in the form in which exporters write them."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """A model under construction: nodes in order, constants, names as an exporter numbers them."""

    def __init__(self, seed, opset=13):
        self.random, self.opset = np.random.default_rng(seed), opset
        self.nodes, self.constants, self.inputs, self.outputs, self.fresh = [], [], [], [], 0

    def input(self, name, *shape):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def output(self, value, name="output", kind=TensorProto.FLOAT):
        self.nodes.append(helper.make_node("Identity", [value], [name], name=f"out_{name}"))
        self.outputs.append(helper.make_tensor_value_info(name, kind, None))

    def constant(self, value, kind=np.float32):
        name = f"onnx::c_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def ints(self, *values):
        return self.constant(values, np.int64)

    def int(self, value):
        return self.constant(value, np.int64)

    def weights(self, *shape, fan=None):
        n = fan or int(np.prod(shape[1:]))
        return self.constant(self.random.standard_normal(shape) * np.sqrt(2 / n))

    def small(self, *shape):
        return self.constant(self.random.standard_normal(shape) * 0.1)

    def add(self, op, *inputs, n=1, **attributes):
        self.fresh += 1
        outs = [f"/{op}_{self.fresh}_output_{i}" for i in range(n)]
        self.nodes.append(helper.make_node(op, list(inputs), outs, name=f"/{op}_{self.fresh}", **attributes))
        return outs[0] if n == 1 else outs

    def conv(self, x, i, o, k=3, stride=1, groups=1, bias=True, pads=None, **more):
        k = k if isinstance(k, tuple) else (k, k)
        sides = [e // 2 for e in k] * 2 if pads is None else pads
        more = {"kernel_shape": list(k), "strides": [stride] * len(k), "pads": sides, "group": groups, **more}
        return self.add("Conv", x, self.weights(o, i // groups, *k), *([self.small(o)] if bias else []), **more)

    def norm(self, x, c, gain=1.0):
        r = self.random
        given = (gain * r.uniform(0.5, 1.5, c), r.standard_normal(c) * 0.2, r.standard_normal(c) * 0.2, r.uniform(0.3, 2, c))
        return self.add("BatchNormalization", x, *(self.constant(v) for v in given), epsilon=1e-5, momentum=0.9)

    def unit(self, x, i, o, k=3, stride=1, groups=1, act="Relu"):
        """Convolution, normalization, and what is computed of it."""
        x = self.norm(self.conv(x, i, o, k, stride, groups, bias=False), o)
        if act == "Relu6":
            return self.add("Clip", x, self.constant(0.0), self.constant(6.0))
        if act == "SiLU":
            return self.add("Mul", x, self.add("Sigmoid", x))
        if act == "HardSwish":
            return self.add("HardSwish", x)
        return x if act is None else self.add(act, x)

    def dense(self, x, i, o):
        return self.add("Gemm", x, self.weights(o, i), self.small(o), transB=1, alpha=1.0, beta=1.0)

    def linear(self, x, i, o):
        """As PyTorch writes a Linear of three dimensions."""
        return self.add("Add", self.small(o), self.add("MatMul", x, self.weights(i, o, fan=2 * i)))

    def dim(self, x, axis):
        """Shape, Gather: a dimension as a number that the model computes."""
        return self.add("Gather", self.add("Shape", x), self.int(axis), axis=0)

    def model(self):
        graph = helper.make_graph(self.nodes, "main_graph", self.inputs, self.outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8, producer_name="test")


def pictures(g, n, *shape):
    """Smooth, as pictures are, and of mean 0."""
    x = g.random.standard_normal((n, *shape))
    for axis in (-1, -2):
        x = x + np.roll(x, 1, axis) + np.roll(x, 2, axis)
    return (x / x.std()).astype(np.float32)
