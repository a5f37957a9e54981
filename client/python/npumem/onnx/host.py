"""Nodes that no kernel does, on the host: a step between two lists of operations.

A step reads tensors as real numbers, computes in NumPy, and writes what kernels need of its results, rounded to their
formats. Results that no kernel needs stay as they are: integers, shapes that depend on the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import floats
from .model import Array, Node
from .moves import physical
from .network import Held, plain

if TYPE_CHECKING:
    from .lowering import Lowering

Json = dict[str, Any]


def step(low: Lowering, node: Node) -> Json:
    """The node as an operation of the network; its constants go into files of their own types."""
    constants = {}
    for name in node.inputs:
        if name in low.graph.constants:
            constants[name] = f"host/{len(low.net.arrays)}.{plain(name)}.npy"
            low.net.arrays[constants[name]] = low.graph.constants[name]
    reads = []
    for name in dict.fromkeys(node.inputs):
        if name and name not in constants and name not in low.hosted:
            kind = str(np.asarray(low.samples.runs[0][name]).dtype)
            held = low.held[name]
            reads.append({"value": name, "tensor": held.name, "shape": list(low.shape(name)), "dtype": kind})
    attributes = {key: value.tolist() if hasattr(value, "tolist") else value for key, value in node.attributes.items()}
    return {
        "host": node.op, "name": node.name, "opset": node.opset, "inputs": node.inputs, "outputs": node.outputs,
        "attributes": attributes, "constants": constants, "reads": reads, "writes": [],
    }  # fmt: skip


def bring(low: Lowering, name: str) -> Held:
    """A tensor for a result of a step that a kernel needs."""
    dtype = low.formats.dtype(name)
    low.net.near = name
    held = low.net.tensor(physical(low.shape(name)), dtype, low.formats.frac(name, dtype))
    low.hosted[name]["writes"].append({"value": name, "tensor": held.name})
    return held


def has_one_shape(low: Lowering, name: str) -> bool:
    """The samples give the value the same shape each."""
    return len({np.shape(run[name]) for run in low.samples.runs}) == 1


def run(one: Json, values: Mapping[str, Array]) -> dict[str, Array]:
    """The results of a step by name. `values`: its inputs and constants."""
    node = Node(one["host"], one["name"], one["inputs"], one["outputs"], one["attributes"], one["opset"])
    with np.errstate(all="ignore"):
        return dict(zip(node.outputs, floats.evaluate(node, values)))
