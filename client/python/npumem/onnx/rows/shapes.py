"""Operators that move elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import moves
from ..floats import EVALUATE
from ..floats.shapes import pad_sides, slices
from ..formats import integers
from ..lowering import Lowering, NoKernel, row
from ..model import Array, Node, Shape
from ..network import Held


@row("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def reshape(low: Lowering, node: Node) -> Held:
    """The elements stay in order; the operation that reads them asks for the shape it needs."""
    return low.of(node)


@row("Transpose")
def transpose(low: Lowering, node: Node) -> Held:
    shape = low.shape(node.inputs[0])
    perm = list(node.get("perm", list(range(len(shape)))[::-1]))
    x = low.of(node)
    if len(shape) <= 4:
        x = low.value(node.inputs[0], (1,) * (4 - len(shape)) + tuple(shape))
    return moves.transposed(low.net, x, shape, perm)


@row("Concat")
def concat(low: Lowering, node: Node) -> Held:
    shape = low.shape(node.outputs[0])
    axis = node.get("axis", 1) % len(shape)
    dtype = low.dtype(node)
    frac = low.formats.frac(node.outputs[0], dtype)
    names = [name for name in node.inputs if low.shape(name)[axis]]
    if len(shape) <= 4 and all(is_natural(low, name) for name in names):
        natural = [part(low, name, moves.physical(low.shape(name)), dtype, frac) for name in names]
        return moves.joined(low.net, natural, moves.first_dim(len(shape)) + axis, (dtype, frac))
    outer, inner = moves.size(shape[:axis]), moves.size(shape[axis + 1 :])
    parts = [part(low, name, (outer, 1, low.shape(name)[axis], inner), dtype, frac) for name in names]
    return moves.joined(low.net, parts, 2, (dtype, frac))


def part(low: Lowering, name: str, shape: Shape, dtype: str, frac: int) -> Held:
    """The kernel takes a computed one in its own format."""
    return low.value(name, shape, dtype, frac) if name in low.graph.constants else low.value(name, shape)


def is_natural(low: Lowering, name: str) -> bool:
    return name in low.graph.constants or low.held[name].shape == moves.physical(low.shape(name))


@row("Slice")
def slice_(low: Lowering, node: Node) -> Held:
    shape = low.shape(node.inputs[0])
    given = [low.parameter(node, i, "range") if node.input(i) else None for i in range(1, len(node.inputs))]
    x, now = low.of(node), list(shape)
    for axis, taken in enumerate(slices(node, shape, *given)):
        if taken != range(shape[axis]):
            form, dim = moves.along(low.net, x, tuple(now), axis)
            x = moves.picked(low.net, form, list(taken), dim)
            now[axis] = len(taken)
    return x


@row("Split")
def split(low: Lowering, node: Node) -> dict[str, Held]:
    shape = low.shape(node.inputs[0])
    axis = node.get("axis", 0) % len(shape)
    (x, dim), at = moves.along(low.net, low.of(node), shape, axis), 0
    made = {}
    for name in node.outputs:
        extent = low.shape(name)[axis]
        if extent == 0 and low.graph.users(name):
            raise NoKernel(f"{name} has no elements")
        made[name] = moves.picked(low.net, x, list(range(at, at + extent)), dim)
        at += extent
    return made


@row("Gather")
def gather(low: Lowering, node: Node) -> Held:
    shape = low.shape(node.inputs[0])
    axis = node.get("axis", 0) % len(shape)
    if low.constant(node.inputs[1]) is None:
        raise NoKernel(
            "its indices are computed, and no kernel looks elements up",
            "run it on the host: --host; or cut the model behind it, so that its output is an input",
        )
    indices = low.parameter(node, 1, "indices").astype(int).reshape(-1)
    x, dim = moves.along(low.net, low.of(node), shape, axis)
    return moves.picked(low.net, x, [int(i) % shape[axis] for i in indices], dim)


@row("Compress", "GatherElements", "GatherND", "ReverseSequence")
def selection(low: Lowering, node: Node) -> Held:
    """Elements chosen by constants: where the operator takes each from is asked of its own rule, on numbers that
    are the places."""
    shape = low.shape(node.inputs[0])
    low.parameter(node, 1, "indices")
    places = np.arange(moves.size(shape)).reshape(shape)
    rule = EVALUATE[node.op]
    taken = rule(node, places, *[low.parameter(node, i, "indices") for i in range(1, len(node.inputs))])
    return moves.picked(low.net, whole(low, low.of(node)), [int(i) for i in np.asarray(taken).reshape(-1)])


def whole(low: Lowering, x: Held) -> Held:
    """The value as one line along H."""
    return moves.reshaped(low.net, x, (1, 1, moves.size(x.shape), 1))


@row("DepthToSpace", "SpaceToDepth")
def blocks(low: Lowering, node: Node) -> Held:
    n, c, h, w = low.shape(node.inputs[0])
    b = int(node.get("blocksize"))
    if node.op == "SpaceToDepth":
        shape, perm = (n, c, h // b, b, w // b, b), (0, 3, 5, 1, 2, 4)
    elif node.get("mode", "DCR") == "DCR":
        shape, perm = (n, b, b, c // b // b, h, w), (0, 3, 4, 1, 5, 2)
    else:
        shape, perm = (n, c // b // b, b, b, h, w), (0, 1, 4, 2, 5, 3)
    return moves.transposed(low.net, low.of(node), shape, perm)


@row("Pad")
def pad(low: Lowering, node: Node) -> Held:
    shape = low.shape(node.inputs[0])
    pads = low.parameter(node, 1, "padding") if node.input(1) else None
    axes = low.parameter(node, 3, "axes") if node.input(3) else None
    sides, mode = pad_sides(node, len(shape), pads, axes), node.get("mode", "constant")
    if mode == "constant" and all(begin >= 0 and end >= 0 for begin, end in sides):
        return framed(low, node, sides)
    if mode == "constant":
        raise NoKernel("it pads with a number and cuts at once", "split it into Slice and Pad")
    x, now = low.of(node), list(shape)
    rules: dict[str, Any] = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}
    if mode not in rules:
        raise NoKernel(f"its mode is {mode}")
    for axis, side in enumerate(sides):
        if any(side):
            taken: Array = np.pad(np.arange(shape[axis]), side, mode=rules[mode])
            form, dim = moves.along(low.net, x, tuple(now), axis)
            x = moves.picked(low.net, form, [int(i) for i in taken], dim)
            now[axis] = len(taken)
    return x


def framed(low: Lowering, node: Node, sides: list[tuple[int, int]]) -> Held:
    """A number around the value: a filled tensor, and the value copied into it."""
    shape = low.shape(node.inputs[0])
    value = low.parameter(node, 2, "number") if node.input(2) else np.asarray(node.get("value", 0.0))
    if len(shape) > 4:
        raise NoKernel("it pads more than four dimensions")
    x = low.of(node)
    frac = low.formats.frac(node.outputs[0], x.dtype)
    x = low.value(node.inputs[0], moves.physical(shape), None, frac)
    y = low.net.tensor(moves.physical(low.shape(node.outputs[0])), x.dtype, frac)
    low.net.fill(y, int(integers(value.reshape(-1)[:1], x.dtype, frac)[0]))
    start = [0] * 4
    for i, (begin, _) in enumerate(sides):
        start[moves.first_dim(len(shape)) + i] = begin
    low.net.copy(low.net.slice(y, start, [s + extent for s, extent in zip(start, x.shape)]), x)
    return y


@row("Expand")
def expand(low: Lowering, node: Node) -> Held:
    own, wide = low.shape(node.inputs[0]), low.shape(node.outputs[0])
    if len(wide) > 4:
        raise NoKernel("it broadcasts to more than four dimensions")
    x = low.value(node.inputs[0], moves.physical((1,) * (len(wide) - len(own)) + own))
    return moves.widened(low.net, x, moves.physical(wide))


@row("Tile")
def tile(low: Lowering, node: Node) -> Held:
    own, wide = low.shape(node.inputs[0]), low.shape(node.outputs[0])
    x, now = low.of(node), list(own)
    for axis, (have, want) in enumerate(zip(own, wide)):
        if have != want:
            form, dim = moves.along(low.net, x, tuple(now), axis)
            x = moves.widened(low.net, form, [want if i == dim else extent for i, extent in enumerate(form.shape)])
            now[axis] = want
    return x
