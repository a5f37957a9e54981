"""An int8 form of a float model for onnxruntime: pairs of QuantizeLinear and DequantizeLinear, which it makes kernels of.

Activations are uint8 with a zero point, weights int8 with a scale for each output, biases int32: what onnxruntime's own
quantizer gives for x86. An LSTM becomes onnxruntime's DynamicQuantizeLSTM, as that quantizer makes it."""

import numpy as np
from onnx import helper, numpy_helper, version_converter

OPSET = 13  # from which on weights have a scale for each output
OPERATORS = (
    "Add", "AveragePool", "Clip", "Concat", "Conv", "Flatten", "Gemm", "GlobalAveragePool", "MatMul", "MaxPool", "Relu",
    "Reshape", "Softmax", "Transpose",
)  # fmt: skip


class Quantizer:
    """`values`: what a sample gives for each name, in floats."""

    def __init__(self, model, values):
        self.graph, self.values = model.graph, values
        self.constants = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
        self.nodes, self.done, self.fresh = [], {}, 0

    def constant(self, value):
        self.fresh += 1
        self.graph.initializer.append(numpy_helper.from_array(value, f"q_{self.fresh}"))
        return f"q_{self.fresh}"

    def users(self, name):
        return [node for node in self.graph.node if name in node.input]

    def scale(self, name):
        """Scale and zero point of an activation."""
        seen = self.values[name]
        low, high = min(0.0, float(seen.min())), max(0.0, float(seen.max()), 1e-6)
        scale = (high - low) / 255
        return np.float32(scale), np.uint8(np.clip(round(-low / scale), 0, 255))

    def has_pair(self, name):
        """A value before a Relu has none: the pair behind it has the limit."""
        limited = [node for node in self.users(name) if node.op_type in ("Relu", "Clip")]
        return name in self.values and not (limited and len(self.users(name)) == 1)

    def pair(self, name, out=None):
        """The value, rounded; one pair for each."""
        if name not in self.done:
            given = [self.constant(np.array(one)) for one in self.scale(name)]
            self.done[name] = out or name + "_dq"
            source = name + "_raw" if out else name
            self.nodes.append(helper.make_node("QuantizeLinear", [source, *given], [name + "_q"]))
            self.nodes.append(helper.make_node("DequantizeLinear", [name + "_q", *given], [self.done[name]]))
        return self.done[name]

    def weights(self, name, axis):
        """int8, with a scale for each index of the axis; None: with one."""
        w = self.constants[name].astype(np.float32)
        most = np.abs(w).max() if axis is None else np.abs(w).max(tuple(i for i in range(w.ndim) if i != axis))
        scale = np.maximum(most / 127, 1e-9).astype(np.float32)
        spread = scale if axis is None else scale.reshape([-1 if i == axis else 1 for i in range(w.ndim)])
        given = [self.constant(np.rint(w / spread).astype(np.int8)), self.constant(np.array(scale)), self.constant(np.zeros(scale.shape, np.int8))]
        more = {} if axis is None else {"axis": axis}
        self.nodes.append(helper.make_node("DequantizeLinear", given, [given[0] + "_dq"], **more))
        return given[0] + "_dq", scale

    def bias(self, name, scale):
        b = np.rint(self.constants[name] / scale).astype(np.int32)
        given = [self.constant(b), self.constant(np.array(scale, np.float32)), self.constant(np.zeros(np.shape(scale), np.int32))]
        more = {"axis": 0} if np.ndim(scale) else {}
        self.nodes.append(helper.make_node("DequantizeLinear", given, [given[0] + "_dq"], **more))
        return given[0] + "_dq"

    def node(self, node):
        outputs = {one.name for one in self.graph.output}
        if node.op_type in OPERATORS:
            first = node.input[0]
            for i, name in enumerate(node.input):
                weighted = node.op_type in ("Conv", "Gemm", "MatMul")
                if name in self.constants and weighted and i == 1:
                    node.input[i], scale = self.weights(name, 0 if node.op_type == "Conv" else None)
                elif name in self.constants and weighted and i == 2:
                    node.input[i] = self.bias(name, scale * self.scale(first)[0])
                elif name not in self.constants and self.has_pair(name):
                    node.input[i] = self.pair(name)
        self.nodes.append(node)
        for i, name in enumerate(node.output):
            if name in outputs and node.op_type in OPERATORS and name in self.values:
                node.output[i] = name + "_raw"
                self.pair(name, name)


def recurrent(node, constants, constant):
    """DynamicQuantizeLSTM: weights with one scale, transposed; activations are quantized as it runs."""
    given = []
    for name in node.input[1:3]:
        w = constants[name]
        scale = np.float32(np.abs(w).max() / 127)
        q = np.rint(w / scale).astype(np.int8).transpose(0, 2, 1)
        given.append((constant(np.ascontiguousarray(q)), constant(np.array([scale])), constant(np.zeros(1, np.int8))))
    inputs = [*node.input, *[""] * (8 - len(node.input))]
    inputs[1:3] = given[0][0], given[1][0]
    made = helper.make_node("DynamicQuantizeLSTM", [*inputs, *given[0][1:], *given[1][1:]], list(node.output), domain="com.microsoft")
    made.attribute.extend(one for one in node.attribute if one.name != "layout")
    return made


def quantized(model, values):
    """The model, which is changed, with such pairs. `model`: after onnxruntime's basic optimizations, which fold
    normalizations."""
    if model.opset_import[0].version < OPSET:
        model = version_converter.convert_version(model, OPSET)
    made = Quantizer(model, values)
    for node in list(model.graph.node):
        if node.op_type == "LSTM":
            made.nodes.append(recurrent(node, made.constants, made.constant))
            model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        else:
            made.node(node)
    del model.graph.node[:]
    model.graph.node.extend(made.nodes)
    del model.graph.value_info[:]
    return model
