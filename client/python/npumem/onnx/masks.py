"""Masks of a Softmax: -10000, -1e9 or -inf where an element is to become 0. A format that holds them has no bits left for
the others, so such a constant is raised until its elements only just become 0.

    scores + mask, scores + (1 - m) * -10000, Where(mask, scores, -inf)

An input that is such a mask gets a format in which -10000 saturates, to a number that does as well.

Invariant: a constant is raised only if nothing but a Softmax sees it, and no result of one changes by more than e^-20."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .floats.arithmetic import softmax_axes
from .formats import MOVES, Samples
from .model import Array, Graph, Node

BELOW = {"fx8": 10.0}  # the largest element of a line: e to the minus this is 0 in the type
BELOW_ELSE = 20.0
MASKED = -1000.0  # the largest element of a line that is masked as a whole


def floor_of_softmax(node: Node, samples: Samples, below: float) -> float:
    """What is lower than this makes a result of 0, in each line."""
    least = np.inf
    for run in samples.runs:
        x = run[node.inputs[0]]
        most = x.max(softmax_axes(node, x.ndim))
        least = min(least, float(most[most > MASKED].min(initial=np.inf)))
    return least - below


def floors_of(graph: Graph, node: Node, floor: float, samples: Samples) -> dict[str, float]:
    """By input: what is lower makes no difference, where what is below `floor` in the output makes none."""

    def seen(name: str) -> Array:
        return graph.constants[name].reshape(-1) if name in graph.constants else samples.of(name)

    if node.op in MOVES:
        return dict.fromkeys(node.inputs if node.op == "Concat" else node.inputs[:1], floor)
    if node.op == "Max":
        return dict.fromkeys(node.inputs, floor)
    if node.op == "Add":
        a, b = node.inputs
        return {a: floor - float(seen(b).max()), b: floor - float(seen(a).max())}
    fixed = [name for name in node.inputs if name in graph.constants and graph.constants[name].size == 1]
    if node.op not in ("Mul", "Div") or len(fixed) != 1 or (node.op == "Div" and fixed != node.inputs[1:]):
        return {}
    other = node.inputs[1 - node.inputs.index(fixed[0])]
    k, x = float(seen(fixed[0])[0]), seen(other)
    if k > 0:
        return {other: floor * k if node.op == "Div" else floor / k}
    # The other has elements of 0, and those of a mask: with a smaller factor these are still below the floor.
    least = float(x[x > 0].min(initial=np.inf))
    return {fixed[0]: floor / least} if node.op == "Mul" and x.min() >= 0 and k * least < floor else {}


def raised(graph: Graph, feeds: Sequence[dict[str, Array]], samples: Samples, dtype: str) -> bool:
    """Raises the constants of masks, and inputs that are masks; whether there was one."""
    given: dict[str, list[float]] = {}
    found = False
    for node in reversed(graph.nodes):
        floors = given.get(node.outputs[0], [])
        if node.op == "Softmax":
            mine = {node.inputs[0]: floor_of_softmax(node, samples, BELOW.get(dtype, BELOW_ELSE))}
        elif len(floors) == len(graph.users(node.outputs[0])) and floors and node.outputs[0] not in graph.outputs:
            mine = floors_of(graph, node, min(floors), samples)
        else:
            continue
        for name, floor in mine.items():
            given.setdefault(name, []).append(floor)
    for name, floors in given.items():
        for values in [graph.constants] if name in graph.constants else feeds if name in graph.inputs else []:
            if len(floors) == len(graph.users(name)) and values[name].min(initial=0) < min(floors) < 0:
                values[name], found = np.maximum(values[name], np.float32(min(floors))), True
    return found
