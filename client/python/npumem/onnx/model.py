"""An ONNX file as a graph of nodes. Owns the checks of the file: its form, opset, shapes and types.

Invariant: the nodes of a Graph are in the order in which they can run, their attributes are Python values, and every
input has a fixed shape. Weights in other files are refused: only the file that the caller named is read."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import onnx
from google.protobuf.message import DecodeError
from onnx import helper, numpy_helper, version_converter

from . import opsets

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

OLDEST_OPSET = 7  # an older model is converted to it
DOMAINS = ("", "ai.onnx")
FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)
WHOLE = {
    2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 12: "uint32", 13: "uint64",
}  # fmt: skip


class ImportRefused(Exception):
    """The model cannot be imported. The text says why, and what to do."""


def printable(text: str) -> str:
    """Text of a model as a terminal, a report or a network may have it: what is not printable is escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


@dataclass
class Node:
    """An operation of the model. `inputs` has "" where an optional input is left out.

    relu  a limit that was folded into the node: none, gen, 1 or 6"""

    op: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    opset: int
    relu: str = "none"

    def get(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def input(self, index: int) -> str:
        """The name of an input; "": it is left out."""
        return self.inputs[index] if index < len(self.inputs) else ""

    def __str__(self) -> str:
        return f'node "{self.name}" ({self.op})'


@dataclass
class Graph:
    """A model.

    inputs, outputs  names of values; an input is what each sample gives
    constants        values that no sample changes
    declared         the shapes of the inputs, as the file has them
    whole            NumPy's type of each input that has whole numbers, and of what is the same numbers
    kinds            NumPy's kind of each value ("f", "i", …), when the graph ran once
    shapes           the shapes of all values, when the graph ran once
    open_batches     inputs whose first extent the samples gave
    n_limits         pairs of QuantizeLinear and DequantizeLinear of which only the limits are kept"""

    nodes: list[Node]
    inputs: list[str]
    outputs: list[str]
    constants: dict[str, Array]
    declared: dict[str, Shape]
    opset: int
    shapes: dict[str, Shape] = field(default_factory=dict)
    whole: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    open_batches: list[str] = field(default_factory=list)
    n_limits: int = 0

    def users(self, name: str) -> list[Node]:
        return [node for node in self.nodes if name in node.inputs]

    def maker(self, name: str) -> Optional[Node]:
        return next((node for node in self.nodes if name in node.outputs), None) if name else None

    def constant(self, name: str) -> Optional[Array]:
        return self.constants.get(name) if name else None

    def add_constant(self, near: str, value: npt.ArrayLike) -> str:
        """Names a new float constant after the value that it is for."""
        name, n = f"{near}.constant", 0
        while name in self.constants:
            n += 1
            name = f"{near}.constant{n}"
        self.constants[name] = np.asarray(value, np.float32)
        self.shapes[name] = self.constants[name].shape
        return name


# ---- reading ----


def parsed(path: str) -> onnx.ModelProto:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as problem:
        raise ImportRefused(f"{path}: {problem.strerror}") from None
    model = onnx.ModelProto()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # protobuf's, of data that are no message
            model.ParseFromString(data)
    except (DecodeError, ValueError):
        model.Clear()
    if not model.HasField("graph") or not model.graph.output or not model.opset_import:
        raise ImportRefused(
            f"{path}: the file is not an ONNX model, or it was cut off ({len(data)} bytes); fetch or export it again"
        )
    return model


def names_of(model: onnx.ModelProto) -> list[Any]:
    """All names of nodes and values; one that is no UTF-8 comes as bytes."""
    graphs = list(opsets.all_graphs(model.graph))
    named = [one.name for graph in graphs for one in (*graph.input, *graph.output, *graph.initializer, *graph.node)]
    nodes = opsets.all_nodes(model.graph)
    return named + [name for node in nodes for name in (node.op_type, *node.input, *node.output)]


def outside_files(model: onnx.ModelProto) -> list[str]:
    """Constants whose data are in other files: what reads them would open any file below the current folder."""
    of_nodes = [one.t for node in opsets.all_nodes(model.graph) for one in node.attribute if one.HasField("t")]
    all_of_them = [*of_nodes, *(t for graph in opsets.all_graphs(model.graph) for t in graph.initializer)]
    return [t.name for t in all_of_them if t.data_location == onnx.TensorProto.EXTERNAL]


def opset_of(model: onnx.ModelProto, path: str) -> int:
    opset, newest = next((one.version for one in model.opset_import if one.domain in DOMAINS), 0), opsets.newest()
    if opset < 1:
        raise ImportRefused(f"{path}: the model names no opset of ONNX itself; export it again")
    if opset > newest:
        raise ImportRefused(
            f"{path}: opset {opset}, but npumem-import reads up to {newest}; export the model with opset {newest}"
        )
    return int(opset)


def converted(model: onnx.ModelProto, opset: int, path: str) -> onnx.ModelProto:
    """The model in an opset that this package reads."""
    if opset >= OLDEST_OPSET:
        return model
    try:
        return version_converter.convert_version(model, OLDEST_OPSET)
    except Exception as problem:  # the converter raises whatever its C++ part threw
        text = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        raise ImportRefused(
            f"{path}: opset {opset} cannot be converted to {OLDEST_OPSET} ({text}); export the model with opset 13"
        ) from None


def checked(model: onnx.ModelProto, opset: int, path: str) -> None:
    known = onnx.defs.onnx_opset_version()
    remedy = "export it again" if opset <= known else f"it has opset {opset}: export it with opset {known}"
    refused = opsets.hide(model, opset)
    if refused:
        raise ImportRefused(f"{path}: {refused[0]}, which no rule here does; export the model with opset {known}")
    # The checker wants shapes of inputs and outputs, which many exporters leave out; the converter wants no wrong ones.
    values = (*[v for v in model.graph.input if v.type.WhichOneof("value") == "tensor_type"], *model.graph.output)
    without = [v.type.tensor_type for v in values if not v.type.tensor_type.HasField("shape")]
    for kind in without:
        kind.shape.SetInParent()
    try:
        onnx.checker.check_model(model)
    except Exception as problem:  # onnx has several types for what its checker finds
        lines = [line for line in str(problem).splitlines() if line.strip()] or [type(problem).__name__]
        raise ImportRefused(f"{path}: the model breaks a rule of ONNX: {lines[0]}; {remedy}") from None
    opsets.show(model, opset)
    for kind in without:
        kind.ClearField("shape")


def attribute(one: onnx.AttributeProto, opset: int, path: str) -> Any:
    value = helper.get_attribute_value(one)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, onnx.TensorProto):
        return array_of(value, path)
    if isinstance(value, onnx.GraphProto):  # a branch or a body: it reads values of the graph around it by their names
        nodes = [node_of(proto, i, opset, path) for i, proto in enumerate(value.node)]
        held = {t.name: array_of(t, path) for t in value.initializer}
        return Graph(nodes, [v.name for v in value.input], [v.name for v in value.output], held, {}, opset)
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], bytes):
        return [item.decode("utf-8", "replace") for item in value]
    return value


def array_of(tensor: onnx.TensorProto, path: str) -> Array:
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise ImportRefused(
            f'{path}: the constant "{tensor.name}" does not hold what it says ({problem}); fetch or export it again'
        ) from None


def fixed_shape(value: onnx.ValueInfoProto, given: Optional[Sequence[int]], path: str, samples: Shape = ()) -> Shape:
    """The shape of an input. A dimension without a number must be given; the refusal proposes that of `samples`, an
    array's shape. The first one alone is the batch, which `samples` give, too."""
    if not value.type.tensor_type.HasField("shape"):
        if given is None:
            example = ",".join(str(n) for n in (1, *samples[1:]))
            raise ImportRefused(f"{path}: input {value.name} has no shape; say which it has: --shape {value.name}={example}")
        return tuple(given)
    dims = value.type.tensor_type.shape.dim
    said = [d.dim_value if d.HasField("dim_value") and d.dim_value > 0 else d.dim_param or "?" for d in dims]
    if given is not None:
        if len(given) != len(said) or any(isinstance(s, int) and s != g for s, g in zip(said, given)):
            raise ImportRefused(f"{path}: input {value.name} is {said} in the model, which {list(given)} does not fit")
        return tuple(given)
    if not all(isinstance(one, int) for one in said):
        # Samples lie along an axis of their own, or along the first one of the input.
        likely = next((one for one in (samples[1:], (1, *samples[1:])) if len(one) == len(said)), (1,) * len(said))
        if all(isinstance(one, int) for one in said[1:]) and len(said) > 1:
            return (likely[0], *said[1:])
        example = ",".join(str(s if isinstance(s, int) else n) for s, n in zip(said, likely))
        words = ", ".join(str(one) for one in said)
        raise ImportRefused(
            f"{path}: input {value.name} is [{words}], and a dimension without a number has no place in memory; say "
            f"which shape it has: --shape {value.name}={example}"
        )
    return tuple(int(one) for one in said)


def checked_input(value: onnx.ValueInfoProto, path: str) -> None:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        raise ImportRefused(f"{path}: input {value.name} is a {kind}, and only tensors can be given to a network")
    element = value.type.tensor_type.elem_type
    if element not in FLOATS and element not in WHOLE:
        name = onnx.TensorProto.DataType.Name(element).lower()
        raise ImportRefused(
            f"{path}: input {value.name} is {name}, and samples are floats or integers; if the model always has the "
            f"same values there, give them: --constant {value.name}=FILE.npy"
        )


def node_of(proto: onnx.NodeProto, index: int, opset: int, path: str) -> Node:
    node = Node(
        proto.op_type,
        proto.name or f"{proto.op_type}_{index}",
        list(proto.input),
        list(proto.output),
        {one.name: attribute(one, opset, path) for one in proto.attribute},
        opset,
    )
    if proto.domain not in DOMAINS:
        raise ImportRefused(
            f'{path}: {node} is of the domain "{proto.domain}", whose operators no kernel has; export the model with '
            f"the operators of ONNX"
        )
    return node


def read(
    path: str, shapes: Optional[Mapping[str, Sequence[int]]] = None, constants: Optional[Mapping[str, Array]] = None,
    samples: Optional[Mapping[Optional[str], Shape]] = None,
) -> Graph:  # fmt: skip
    """The model in a file. `shapes`: of inputs that have dimensions without a number; `samples`: the shapes of
    their arrays, of None for any input. `constants`: values of inputs that are not to be given by samples."""
    path, given, samples = os.fspath(path), dict(constants or {}), samples or {}
    model = parsed(path)
    if not all(isinstance(name, str) for name in names_of(model)):
        raise ImportRefused(f"{path}: a name in the model is not text; fetch or export it again")
    elsewhere = outside_files(model)
    if elsewhere:
        raise ImportRefused(
            f"{path}: {len(elsewhere)} constants are in other files ({elsewhere[0]}); save the model as one file: "
            f"onnx.save_model(onnx.load(...), ...)"
        )
    opset = opset_of(model, path)
    checked(model, opset, path)
    model = converted(model, opset, path)
    opset = max(opset, OLDEST_OPSET)
    values = {t.name: array_of(t, path) for t in model.graph.initializer}
    declared, whole, opened = {}, {}, []
    for value in model.graph.input:
        if value.name in given:
            values[value.name] = np.asarray(given.pop(value.name))
        elif value.name not in values:
            checked_input(value, path)
            if value.type.tensor_type.elem_type in WHOLE:
                whole[value.name] = WHOLE[value.type.tensor_type.elem_type]
            declared[value.name] = fixed_shape(value, (shapes or {}).get(value.name), path, samples.get(value.name, samples.get(None, ())))
            if value.name not in (shapes or {}) and any(d.dim_value < 1 for d in value.type.tensor_type.shape.dim):
                opened.append(value.name)
    if given:
        raise ImportRefused(f"{path}: the model has no input {', '.join(given)}")
    nodes = [node_of(proto, i, opset, path) for i, proto in enumerate(model.graph.node)]
    outputs = [one.name for one in model.graph.output]
    return Graph(nodes, list(declared), outputs, values, declared, opset, whole=whole, open_batches=opened)
