"""The operators of ONNX in NumPy: for folding, for the formats that samples give, and to compare with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..model import Array, Graph, ImportRefused, Node
from . import arithmetic, functions, host, recurrent, shapes, windows

EVALUATE: dict[str, Any] = {
    **arithmetic.EVALUATE, **functions.FUNCTIONS, **host.EVALUATE, **recurrent.EVALUATE, **shapes.EVALUATE,
    **windows.EVALUATE,
}  # fmt: skip


def fused(node: Node, y: Array) -> Array:
    """A limit that was folded into the node."""
    limits = {"none": (-np.inf, np.inf), "gen": (0.0, np.inf), "1": (-1.0, 1.0), "6": (0.0, 6.0)}[node.relu]
    return np.clip(y, *limits) if node.relu != "none" else y


def evaluate(node: Node, values: Mapping[str, Array]) -> list[Array]:
    """The outputs of one node."""
    if node.op not in EVALUATE:
        integer = node.op.startswith("QLinear") or node.op.endswith("Integer") or node.op == "DynamicQuantizeLinear"
        remedy = (
            "import the model before it was quantized: the samples give the formats"
            if integer
            else "replace it in the model, or cut the model before it and do the rest on the host"
        )
        raise ImportRefused(f"{node}: no kernel does {node.op}, and no rule for it on the host is here; {remedy}")
    unknown = [name for name in node.inputs if name and name not in values]
    if unknown:
        raise ImportRefused(
            f"{node}: its input {unknown[0]} is not computed by any node before it; export the model again"
        )
    inputs = [values[name] if name else None for name in node.inputs]
    while inputs and inputs[-1] is None:
        inputs.pop()
    # A product with a folded bias has it as a third input.
    bias = inputs.pop() if node.op == "MatMul" and len(inputs) > 2 else None
    try:
        result = EVALUATE[node.op](node, *inputs)
    except ImportRefused:
        raise
    except MemoryError:
        raise ImportRefused(f"{node}: this machine has no memory for its outputs") from None
    except Exception as problem:  # NumPy has many types for shapes and attributes that do not fit
        text = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        shapes = ", ".join(
            f"{name} {list(np.shape(one))}" for name, one in zip(node.inputs, inputs) if one is not None
        )
        raise ImportRefused(
            f"{node} cannot be computed of {shapes}: {text}; the model's shapes or attributes are wrong"
        ) from None
    outputs = list(result) if isinstance(result, (list, tuple)) else [result]
    outputs = [fused(node, np.asarray(one if bias is None else one + bias)) for one in outputs]
    return [one.astype(np.float32) if one.dtype == np.float64 else one for one in outputs]


def chained(node: Node, x: Array) -> Array:
    """Nodes that were folded into one (chains.py)."""
    values: dict[str, Array] = {**node.get("constants"), node.inputs[0]: x}
    for one in node.get("nodes"):
        values[one.outputs[0]] = evaluate(one, values)[0]
    return values[node.outputs[0]]


EVALUATE["Function"] = chained


def run(graph: Graph, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Every value of the graph for one sample."""
    values: dict[str, Array] = {**graph.constants, **feeds}
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            for name, value in zip(node.outputs, evaluate(node, values)):
                values[name] = value
    return values
