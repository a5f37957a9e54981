"""Operators that move elements, or say shapes, without arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from ..model import Array, ImportRefused, Node, Shape

ELEMENTS_MAX = 1 << 28  # of one constant that a few bytes of a model ask for
CASTS = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
    10: np.float32, 11: np.float32, 12: np.uint32, 13: np.uint64,
}  # fmt: skip


def integers(values: Any) -> list[int]:
    return [int(v) for v in np.asarray(values).reshape(-1)]


def bounded(node: Node, shape: Sequence[int]) -> tuple[int, ...]:
    total = 1
    for extent in shape:
        total *= max(int(extent), 0)
    if total > ELEMENTS_MAX:
        raise ImportRefused(f"{node} makes {total} elements, more than {ELEMENTS_MAX}: no device has room for them")
    return tuple(int(extent) for extent in shape)


def reshape(node: Node, x: Array, shape: Array) -> Array:
    wanted = integers(shape)
    if not node.get("allowzero", 0):
        wanted = [x.shape[i] if s == 0 else s for i, s in enumerate(wanted)]
    return x.reshape(wanted)


def flatten(node: Node, x: Array) -> Array:
    axis = node.get("axis", 1)
    axis += x.ndim if axis < 0 else 0
    return x.reshape(int(np.prod(x.shape[:axis], dtype=int)), -1)


def slices(
    node: Node, shape: Shape, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None
) -> list[range]:
    """The indices that a Slice takes of each axis."""
    starts = integers(node.get("starts") if starts is None else starts)
    ends = integers(node.get("ends") if ends is None else ends)
    axes = node.get("axes") if axes is None else axes
    axes = list(range(len(starts))) if axes is None else integers(axes)
    by = [1] * len(starts) if steps is None else integers(steps)
    taken = [range(extent) for extent in shape]
    for start, end, axis, step in zip(starts, ends, axes, by):
        extent = shape[axis]
        taken[axis] = range(*slice(start, end, step).indices(extent))
    return taken


def sliced(node: Node, x: Array, *given: Optional[Array]) -> Array:
    return x[np.ix_(*[np.array(list(one), int) for one in slices(node, x.shape, *given)])] if x.ndim else x


def axes_of(node: Node, given: Optional[Array]) -> Optional[tuple[int, ...]]:
    axes = node.get("axes") if given is None else given
    return None if axes is None else tuple(integers(axes))


def unsqueeze(node: Node, x: Array, axes: Optional[Array] = None) -> Array:
    return np.expand_dims(x, axes_of(node, axes) or ())


def squeeze(node: Node, x: Array, axes: Optional[Array] = None) -> Array:
    return np.squeeze(x, axes_of(node, axes))


def axes_within(rank: int, values: Any) -> list[int]:
    """Axes from 0 on. The checker of an older onnx does not see those that are inputs."""
    axes = [a % rank for a in integers(values) if -rank <= a < rank]
    if len(set(axes)) < len(integers(values)):
        raise ValueError(f"{integers(values)} are no axes of {rank} dimensions, each once")
    return axes


def pad_sides(node: Node, rank: int, pads: Optional[Array], axes: Optional[Array] = None) -> list[tuple[int, int]]:
    """What is added at the begin and the end of each axis."""
    sides, made = integers(node.get("pads") if pads is None else pads), [(0, 0)] * rank
    padded = list(range(rank)) if axes is None else axes_within(rank, axes)
    if len(sides) != 2 * len(padded):
        raise ValueError(f"{len(sides)} pads for {len(padded)} axes")
    for axis, *side in zip(padded, sides, sides[len(padded) :]):
        made[axis] = (side[0], side[1])
    return made


def pad(
    node: Node, x: Array, pads: Optional[Array] = None, value: Optional[Array] = None, axes: Optional[Array] = None
) -> Array:
    sides, mode = pad_sides(node, x.ndim, pads, axes), node.get("mode", "constant")
    for axis, (begin, end) in enumerate(sides):  # less than 0 cuts
        cut = slice(max(-begin, 0), x.shape[axis] - max(-end, 0))
        x = x[(slice(None),) * axis + (cut,)]
    sides = [(max(b, 0), max(e, 0)) for b, e in sides]
    bounded(node, [s + b + e for s, (b, e) in zip(x.shape, sides)])
    if mode == "constant":
        filled = node.get("value", 0.0) if value is None else value
        return np.pad(x, sides, constant_values=float(np.asarray(filled).reshape(-1)[0]))
    modes: dict[str, Any] = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}
    return np.asarray(np.pad(x, sides, mode=modes[mode]))


def split(node: Node, x: Array, parts: Optional[Array] = None) -> list[Array]:
    axis, n = node.get("axis", 0), len(node.outputs)
    sizes = node.get("split") if parts is None else integers(parts)
    if node.get("num_outputs", n) != n:
        raise ValueError(f"num_outputs is {node.get('num_outputs')}, and it has {n} outputs")
    if sizes is None:
        each = -(-x.shape[axis] // n)
        sizes = [each] * (n - 1) + [x.shape[axis] - each * (n - 1)]
    return list(np.split(x, np.cumsum(sizes)[:-1].astype(int), axis))


def expand(node: Node, x: Array, shape: Array) -> Array:
    wide = np.broadcast_shapes(x.shape, tuple(integers(shape)))
    return np.broadcast_to(x, bounded(node, wide))


def tile(node: Node, x: Array, repeats: Array) -> Array:
    bounded(node, [s * r for s, r in zip(x.shape, integers(repeats))])
    return np.tile(x, integers(repeats))


def constant(node: Node) -> Array:
    for name, value in node.attributes.items():
        if name == "value":
            return np.asarray(value)
        if name in ("value_float", "value_floats"):
            return np.asarray(value, np.float32)
        if name in ("value_int", "value_ints"):
            return np.asarray(value, np.int64)
    raise ImportRefused(f"{node} has no value that is a tensor, a float or an integer")


def constant_of_shape(node: Node, shape: Array) -> Array:
    value = np.asarray(node.get("value", np.zeros(1, np.float32))).reshape(-1)[0]
    return np.full(bounded(node, integers(shape)), value)


def depth_to_space(node: Node, x: Array) -> Array:
    n, c, h, w = x.shape
    b = node.get("blocksize")
    if node.get("mode", "DCR") == "DCR":
        return x.reshape(n, b, b, c // b // b, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, -1, h * b, w * b)
    return x.reshape(n, c // b // b, b, b, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, -1, h * b, w * b)


def space_to_depth(node: Node, x: Array) -> Array:
    n, c, h, w = x.shape
    b = node.get("blocksize")
    return x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4).reshape(n, -1, h // b, w // b)


def compress(node: Node, x: Array, condition: Array) -> Array:
    return np.compress(condition.astype(bool), x, node.get("axis"))


def gather_elements(node: Node, x: Array, indices: Array) -> Array:
    axis = node.get("axis", 0)
    return np.take_along_axis(x, np.where(indices < 0, indices + x.shape[axis], indices), axis)


def gather_nd(node: Node, x: Array, indices: Array) -> Array:
    if node.get("batch_dims", 0):
        raise ImportRefused(f"{node}: batch_dims above 0 is not taken; export the model without it")
    return x[tuple(np.moveaxis(indices, -1, 0))]


def shape_of(node: Node, x: Array) -> Array:
    return np.array(x.shape[slice(node.get("start"), node.get("end"))], np.int64)


def cast(node: Node, x: Array) -> Array:
    to = node.get("to")
    if to not in CASTS:
        raise ImportRefused(f"{node}: a cast to type {to} of ONNX is not taken; only numbers are")
    return x.astype(CASTS[to])


def dropout(node: Node, x: Array, ratio: Optional[Array] = None, training: Optional[Array] = None) -> list[Array]:
    return [x, np.ones(x.shape, bool)][: max(len(node.outputs), 1)]


def reverse_sequence(node: Node, x: Array, lengths: Array) -> Array:
    time, batch = node.get("time_axis", 0), node.get("batch_axis", 1)
    moved = np.moveaxis(x, (batch, time), (0, 1)).copy()
    for i, n in enumerate(integers(lengths)):
        moved[i, :n] = moved[i, :n][::-1]
    return np.moveaxis(moved, (0, 1), (batch, time))


def range_of(node: Node, start: Array, limit: Array, delta: Array) -> Array:
    bounded(node, [int(np.ceil((float(limit) - float(start)) / float(delta)))])
    return np.arange(start, limit, delta, dtype=start.dtype)


EVALUATE: dict[str, Any] = {
    "Cast": cast,
    "Compress": compress,
    "Concat": lambda node, *x: np.concatenate(x, node.get("axis", 1)),
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "DepthToSpace": depth_to_space,
    "Dropout": dropout,
    "Expand": expand,
    "Flatten": flatten,
    "Gather": lambda node, x, i: np.take(x, i.astype(np.int64), node.get("axis", 0)),
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Identity": lambda node, x: x,
    "Pad": pad,
    "Range": range_of,
    "Reshape": reshape,
    "ReverseSequence": reverse_sequence,
    "Shape": shape_of,
    "Size": lambda node, x: np.array(x.size, np.int64),
    "Slice": sliced,
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": lambda node, x: x.transpose(node.get("perm", list(range(x.ndim))[::-1])),
    "Unsqueeze": unsqueeze,
}
