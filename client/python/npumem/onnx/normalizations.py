"""A layer normalization as exporters write it below opset 17, as one LayerNormalization: its kernels hold squares that no
format of a value does.

    d = x - ReduceMean(x); d / Sqrt(ReduceMean(d^2) + epsilon) * scale + bias"""

from __future__ import annotations

from typing import Optional

import numpy as np

from .floats.arithmetic import reduce_axes
from .model import Graph, Node

Mean = tuple[str, int]  # a value, and the first of the axes, up to the last, whose mean is taken


def made_by(graph: Graph, name: str, *operators: str) -> Optional[Node]:
    maker = graph.maker(name)
    return maker if maker is not None and maker.op in operators else None


def mean_of(graph: Graph, name: str) -> Optional[Mean]:
    node = made_by(graph, name, "ReduceMean")
    if node is None or not node.get("keepdims", 1):
        return None
    rank = len(graph.shapes[node.inputs[0]])
    axes = tuple(sorted(reduce_axes(node, rank, graph.constant(node.input(1)))))
    return (node.inputs[0], axes[0]) if axes and axes == tuple(range(axes[0], rank)) else None


def centred(graph: Graph, name: str) -> Optional[Mean]:
    """What the value is, less its mean."""
    node = made_by(graph, name, "Sub")
    mean = mean_of(graph, node.inputs[1]) if node is not None else None
    return mean if node is not None and mean is not None and mean[0] == node.inputs[0] else None


def root_of_squares(graph: Graph, name: str) -> Optional[tuple[Mean, float]]:
    """What is squared below the root, and what is added to the mean of the squares."""
    root = made_by(graph, name, "Sqrt")
    total = made_by(graph, root.inputs[0], "Add") if root is not None else None
    numbers = [one for one in total.inputs if one in graph.constants and graph.constants[one].size == 1] if total else []
    mean = mean_of(graph, next(one for one in total.inputs if one != numbers[0])) if total and numbers else None
    square = made_by(graph, mean[0], "Pow", "Mul") if mean is not None else None
    if square is None or mean is None:
        return None
    power = graph.constant(square.inputs[1])
    twice = power is not None and power.size == 1 and float(power.reshape(-1)[0]) == 2
    if not (twice if square.op == "Pow" else square.inputs[0] == square.inputs[1]):
        return None
    return (square.inputs[0], mean[1]), float(graph.constants[numbers[0]].reshape(-1)[0])


def take_factor(graph: Graph, node: Node, op: str) -> Optional[str]:
    """The constant of a Mul or Add that alone uses the node's output, of the shape of its axes; that node is dropped."""
    users = graph.users(node.outputs[0])
    if len(users) != 1 or users[0].op != op or node.outputs[0] in graph.outputs:
        return None
    fixed = [name for name in users[0].inputs if name in graph.constants]
    inner = graph.shapes[node.inputs[0]][node.get("axis") :]
    if not fixed or graph.constants[fixed[0]].ndim > len(inner) or graph.shapes[users[0].outputs[0]] != graph.shapes[node.inputs[0]]:
        return None
    node.outputs = users[0].outputs
    graph.nodes.remove(users[0])
    return graph.add_constant(node.outputs[0], np.broadcast_to(graph.constants[fixed[0]], inner))


def fold(graph: Graph) -> None:
    """What is left unused stays in place."""
    for node in [one for one in graph.nodes if one.op == "Div"]:
        found, of = root_of_squares(graph, node.inputs[1]), centred(graph, node.inputs[0])
        if found is None or of is None or centred(graph, found[0][0]) != of or found[0][1] != of[1]:
            continue
        node.op, node.inputs, node.attributes = "LayerNormalization", [of[0]], {"axis": of[1], "epsilon": found[1]}
        scale = take_factor(graph, node, "Mul")
        inner = graph.shapes[of[0]][of[1] :]
        node.inputs.append(scale or graph.add_constant(node.outputs[0], np.ones(inner)))
        bias = take_factor(graph, node, "Add")
        node.inputs += [bias] if bias else []
