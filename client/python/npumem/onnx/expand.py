"""Nodes that are several others: each operator here becomes nodes that kernels do, with formats of their own.

    @expansion("LogSoftmax")    ->  x - max(x) - log(sum(e^(x - max(x))))

Invariant: the last of the nodes makes the output of the node that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import numpy as np

from .floats.arithmetic import loss_factors, reduce_axes, softmax_axes
from .floats.host import trilu
from .model import Array, Graph, Node

OPSET = 17  # of the nodes that are made


class Parts:
    """The nodes that one node becomes."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph, self.node, self.nodes = graph, node, list[Node]()

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """A node; returns the name of its output."""
        name = f"{self.node.outputs[0]}.{len(self.nodes)}"
        self.nodes.append(Node(op, self.node.name, list(inputs), [name], attributes, OPSET))
        return name

    def constant(self, value: Any) -> str:
        return self.graph.add_constant(self.node.outputs[0], value)

    def axes(self, values: tuple[int, ...]) -> str:
        name = self.graph.add_constant(self.node.outputs[0], 0)
        self.graph.constants[name] = np.array(values, np.int64)
        return name


Expansion = Callable[[Parts, Node], Optional[str]]
EXPANSIONS: dict[str, Expansion] = {}


def expansion(*operators: str) -> Callable[[Expansion], Expansion]:
    """Registers the function that adds the nodes and returns the value that is the output; None: the node stays."""

    def register(function: Expansion) -> Expansion:
        EXPANSIONS.update(dict.fromkeys(operators, function))
        return function

    return register


def expand(graph: Graph) -> bool:
    """Whether there was any."""
    made, before = list[Node](), len(graph.nodes)
    for node in graph.nodes:
        parts = Parts(graph, node)
        if node.op in EXPANSIONS and EXPANSIONS[node.op](parts, node):
            parts.nodes[-1].outputs = node.outputs[:1]
            made += parts.nodes
        else:
            made.append(node)
    graph.nodes = made
    return len(made) > before


def log_sum(parts: Parts, x: str, axes: tuple[int, ...], keep: bool) -> str:
    total = parts.add("ReduceSum", parts.add("Exp", x), parts.axes(axes), keepdims=int(keep))
    return parts.add("Log", total)


def log_probabilities(parts: Parts, x: str, axes: tuple[int, ...]) -> str:
    less = parts.add("Sub", x, parts.add("ReduceMax", x, axes=list(axes)))
    return parts.add("Sub", less, log_sum(parts, less, axes, True))


@expansion("LogSoftmax")
def log_softmax(parts: Parts, node: Node) -> str:
    axes = softmax_axes(node, len(parts.graph.shapes[node.inputs[0]]))
    return log_probabilities(parts, node.inputs[0], axes)


@expansion("ReduceLogSum", "ReduceLogSumExp")
def reduce_log_sum(parts: Parts, node: Node) -> Optional[str]:
    given = parts.graph.constant(node.input(1))
    axes, keep = reduce_axes(node, len(parts.graph.shapes[node.inputs[0]]), given), node.get("keepdims", 1)
    if (node.input(1) and given is None) or not axes:
        return None
    if node.op == "ReduceLogSum":
        return parts.add("Log", parts.add("ReduceSum", node.inputs[0], parts.axes(axes), keepdims=keep))
    most = parts.add("ReduceMax", node.inputs[0], axes=list(axes))
    total = log_sum(parts, parts.add("Sub", node.inputs[0], most), axes, bool(keep))
    if not keep:
        most = parts.add("Squeeze", most, parts.axes(axes))
    return parts.add("Add", total, most)


@expansion("Pow")
def power(parts: Parts, node: Node) -> Optional[str]:
    """e^(y * log(x)), where neither of the two is a single number. A base of 0 or less is refused: it has no log."""
    held = [parts.graph.constant(name) for name in node.inputs]
    if any(one is not None and one.size == 1 for one in held):
        return None
    return parts.add("Exp", parts.add("Mul", parts.add("Log", node.inputs[0]), node.inputs[1]))


@expansion("LRN")
def local_response(parts: Parts, node: Node) -> Optional[str]:
    """x * (bias + a / size * the sum of the squares of `size` channels)^-beta; the sum is a convolution."""
    shape, size = parts.graph.shapes[node.inputs[0]], int(node.get("size"))
    if len(shape) != 4:
        return None
    band = np.zeros((shape[1], shape[1], 1, 1), np.float32)
    for c in range(shape[1]):
        band[c, max(0, c - (size - 1) // 2) : c + size // 2 + 1] = node.get("alpha", 1e-4) / size
    bias = np.full(shape[1], node.get("bias", 1.0), np.float32)
    squares = parts.add("Mul", node.inputs[0], node.inputs[0])
    total = parts.add("Conv", squares, parts.constant(band), parts.constant(bias))
    factor = parts.add("Pow", total, parts.constant(-node.get("beta", 0.75)))
    return parts.add("Mul", node.inputs[0], factor)


@expansion("Where")
def where(parts: Parts, node: Node) -> Optional[str]:
    """Of a constant condition: one of the two, times 1, and the other times 0, added."""
    condition = parts.graph.constant(node.inputs[0])
    if condition is None:
        return None

    def where_true(name: str, chosen: Array) -> str:
        value = parts.graph.constant(name)  # which may be infinite, and 0 times that is no number
        if value is not None and value.dtype.kind == "f":
            return parts.constant(np.where(chosen, value, 0))
        return parts.add("Mul", name, parts.constant(chosen))

    first = where_true(node.inputs[1], condition)
    return parts.add("Add", first, where_true(node.inputs[2], np.logical_not(condition)))


@expansion("Clip")
def clip(parts: Parts, node: Node) -> Optional[str]:
    """With a computed limit: Max and Min."""
    low, high = node.input(1), node.input(2)
    if all(parts.graph.constant(name) is not None for name in (low, high) if name):
        return None
    y = parts.add("Max", node.inputs[0], low) if low else node.inputs[0]
    return parts.add("Min", y, high) if high else y


@expansion("Trilu")
def triangle(parts: Parts, node: Node) -> Optional[str]:
    """Times a constant of 1 and 0."""
    shape = parts.graph.shapes[node.inputs[0]]
    if node.input(1) and parts.graph.constant(node.input(1)) is None:
        return None
    kept = trilu(node, np.ones(shape[-2:]), parts.graph.constant(node.input(1)))
    return parts.add("Mul", node.inputs[0], parts.constant(kept))


@expansion("Einsum")
def einsum(parts: Parts, node: Node) -> Optional[str]:
    """Of two operands: each as (batch, its own, summed), a MatMul, and back."""
    left, arrow, out = str(node.get("equation")).replace(" ", "").partition("->")
    names = left.split(",")
    if not arrow or len(names) != 2 or "." in left or any(len(set(one)) < len(one) for one in (*names, out)):
        return None
    a, b = names
    extents = {c: n for one, name in zip(names, node.inputs) for c, n in zip(one, parts.graph.shapes[name])}
    batch, summed = [c for c in out if c in a and c in b], [c for c in a if c in b and c not in out]
    own_a, own_b = [c for c in a if c not in b], [c for c in b if c not in a]
    if not {*own_a, *own_b} <= {*out}:
        return None

    def as_matrices(name: str, labels: str, *groups: list[str]) -> str:
        order = [labels.index(c) for group in groups for c in group]
        shape = tuple(int(np.prod([extents[c] for c in group])) for group in groups)
        return parts.add("Reshape", parts.add("Transpose", name, perm=order), parts.axes(shape))

    first, second = as_matrices(node.inputs[0], a, batch, own_a, summed), as_matrices(node.inputs[1], b, batch, summed, own_b)
    y = parts.add("MatMul", first, second)
    made = [*batch, *own_a, *own_b]
    y = parts.add("Reshape", y, parts.axes(tuple(extents[c] for c in made)))
    return parts.add("Transpose", y, perm=[made.index(c) for c in out])


@expansion("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(parts: Parts, node: Node) -> Optional[str]:
    """Of constant labels: the sum of the products with a constant that picks and weighs elements."""
    labels, weights = parts.graph.constant(node.input(1)), parts.graph.constant(node.input(2))
    x = node.inputs[0]
    if labels is None or (node.input(2) and weights is None):
        return None
    if node.op == "SoftmaxCrossEntropyLoss":
        x = log_probabilities(parts, x, (1,))
        if len(node.outputs) > 1 and node.outputs[1]:
            x = parts.nodes[-1].outputs[0] = node.outputs[1]
    factors, axes = loss_factors(node, parts.graph.shapes[node.inputs[0]], labels, weights)
    return parts.add("ReduceSum", parts.add("Mul", x, parts.constant(factors)), parts.axes(axes), keepdims=0)
