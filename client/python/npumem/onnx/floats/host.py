"""Operators that no kernel does, in NumPy: for folding, and for what runs on the host."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from ..model import Array, ImportRefused, Node


def hardmax(node: Node, x: Array) -> Array:
    axis = node.get("axis", -1 if node.opset >= 13 else 1) % x.ndim
    flat = x if node.opset >= 13 else x.reshape(int(np.prod(x.shape[:axis])), -1)
    along = axis if node.opset >= 13 else 1
    found = np.arange(flat.shape[along]).reshape([-1 if i == along else 1 for i in range(flat.ndim)])
    return np.asarray(found == flat.argmax(along, keepdims=True), x.dtype).reshape(x.shape)


def arg(node: Node, x: Array) -> Array:
    """ArgMax and ArgMin."""
    axis, by = node.get("axis", 0), np.argmax if node.op == "ArgMax" else np.argmin
    if node.get("select_last_index", 0):
        found = x.shape[axis] - 1 - by(np.flip(x, axis), axis, keepdims=bool(node.get("keepdims", 1)))
    else:
        found = by(x, axis, keepdims=bool(node.get("keepdims", 1)))
    return np.asarray(found, np.int64)


def top_k(node: Node, x: Array, k: Optional[Array] = None) -> list[Array]:
    """The first of equal elements first."""
    axis, n = node.get("axis", -1), int(node.get("k") if k is None else k.reshape(-1)[0])
    order = np.argsort(-x if node.get("largest", 1) else x, axis, kind="stable")
    indices = np.take(order, range(n), axis)
    return [np.take_along_axis(x, indices, axis), indices.astype(np.int64)]


def one_hot(node: Node, indices: Array, depth: Array, values: Array) -> Array:
    n, axis = int(depth.reshape(-1)[0]), node.get("axis", -1)
    axis += indices.ndim + 1 if axis < 0 else 0
    found = np.expand_dims(np.mod(indices.astype(np.int64), n), axis)
    numbers = np.arange(n).reshape([-1 if i == axis else 1 for i in range(indices.ndim + 1)])
    return np.where(found == numbers, values[1], values[0]).astype(values.dtype)


def trilu(node: Node, x: Array, k: Optional[Array] = None) -> Array:
    return (np.triu if node.get("upper", 1) else np.tril)(x, 0 if k is None else int(k.reshape(-1)[0]))


def modulo(node: Node, a: Array, b: Array) -> Array:
    return np.fmod(a, b) if node.get("fmod", 0) else np.mod(a, b)


def scatter_elements(node: Node, x: Array, indices: Array, updates: Array) -> Array:
    axis, y = node.get("axis", 0) % x.ndim, x.copy()
    places: list[Array] = list(np.indices(indices.shape))
    places[axis] = indices % x.shape[axis]
    return scattered(node, y, tuple(places), updates)


def scatter_nd(node: Node, x: Array, indices: Array, updates: Array) -> Array:
    return scattered(node, x.copy(), tuple(np.moveaxis(indices, -1, 0)), updates)


def scattered(node: Node, y: Array, places: tuple[Array, ...], updates: Array) -> Array:
    how = node.get("reduction", "none")
    by: Any = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}.get(how)
    if by is None and how != "none":
        raise ImportRefused(f"{node}: reduction is {how}, which is not known")
    if by is None:
        y[places] = updates
    else:
        by.at(y, places, updates)
    return y


def cumulative(node: Node, x: Array, axis: Array) -> Array:
    along = int(axis.reshape(-1)[0])
    x = np.flip(x, along) if node.get("reverse", 0) else x
    y = np.cumsum(x, along).astype(x.dtype)
    y = y - x if node.get("exclusive", 0) else y
    return np.flip(y, along) if node.get("reverse", 0) else y


def overlap(a: Array, b: Array, center: bool) -> Any:
    """Intersection over union of two boxes."""
    if center:
        a, b = (np.concatenate([box[:2] - box[2:] / 2, box[:2] + box[2:] / 2]) for box in (a, b))
    low, high = (np.minimum(box[:2], box[2:]) for box in (a, b)), (np.maximum(box[:2], box[2:]) for box in (a, b))
    low_a, low_b, high_a, high_b = *low, *high
    both = np.prod(np.maximum(np.minimum(high_a, high_b) - np.maximum(low_a, low_b), 0))
    return both / max(np.prod(high_a - low_a) + np.prod(high_b - low_b) - both, 1e-30)


def suppression(
    node: Node, boxes: Array, scores: Array, most: Optional[Array] = None, iou: Optional[Array] = None,
    least: Optional[Array] = None,
) -> Array:  # fmt: skip
    """NonMaxSuppression: [batch, class, box] of what stays, the best of each class first."""
    n = 0 if most is None else int(most.reshape(-1)[0])
    limit = 0.0 if iou is None else float(iou.reshape(-1)[0])
    kept = []
    for batch, classes in enumerate(scores):
        for c, each in enumerate(classes):
            chosen: list[int] = []
            for i in np.argsort(-each, kind="stable"):
                if len(chosen) == n or (least is not None and each[i] <= least.reshape(-1)[0]):
                    break
                center = bool(node.get("center_point_box", 0))
                if all(overlap(boxes[batch, i], boxes[batch, j], center) <= limit for j in chosen):
                    chosen.append(int(i))
            kept += [[batch, c, i] for i in chosen]
    return np.array(kept, np.int64).reshape(-1, 3)


EVALUATE: dict[str, Any] = {
    "ArgMax": arg, "ArgMin": arg, "CumSum": cumulative, "Det": lambda node, x: np.linalg.det(x),
    "Einsum": lambda node, *x: np.einsum(node.get("equation").replace(" ", ""), *x), "Trilu": trilu,
    "GreaterOrEqual": lambda node, x, y: x >= y, "Hardmax": hardmax,
    "IsInf": lambda node, x: np.isinf(x), "IsNaN": lambda node, x: np.isnan(x),
    "LessOrEqual": lambda node, x, y: x <= y, "Mod": modulo, "NonMaxSuppression": suppression,
    "NonZero": lambda node, x: np.array(np.nonzero(x), np.int64), "OneHot": one_hot, "Scatter": scatter_elements,
    "ScatterElements": scatter_elements, "ScatterND": scatter_nd, "TopK": top_k,
    "Xor": lambda node, x, y: np.logical_xor(x, y),
}  # fmt: skip
