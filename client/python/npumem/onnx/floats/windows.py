"""Convolutions, pools and resizes in floats: what slides over, or maps, the spatial dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..model import Array, ImportRefused, Node, Shape
from .shapes import axes_within, bounded


def same_padding(node: Node, spatial: Shape, reach: Sequence[int], stride: Sequence[int]) -> list[int]:
    """The padding of a node: all begins, then all ends, as ONNX has them."""
    n, auto = len(spatial), node.get("auto_pad", "NOTSET")
    pads = [int(p) for p in node.get("pads", [0] * 2 * n)]
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        return pads if auto == "NOTSET" else [0] * 2 * n
    for i in range(n):
        total = max(0, (-(-spatial[i] // stride[i]) - 1) * stride[i] + reach[i] - spatial[i])
        less, more = total // 2, total - total // 2
        pads[i], pads[n + i] = (less, more) if auto == "SAME_UPPER" else (more, less)
    return pads


class Window:
    """Where a window of a node stands on an input of `spatial` extents.

    pads   begins, then ends
    extra  what ceil_mode adds to each end"""

    def __init__(self, node: Node, spatial: Shape, kernel: Sequence[int]) -> None:
        n = len(kernel)
        self.kernel = [int(k) for k in kernel]
        self.stride = [int(s) for s in node.get("strides", [1] * n)]
        self.dilation = [int(d) for d in node.get("dilations", [1] * n)]
        self.reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation)]
        self.pads = same_padding(node, spatial, self.reach, self.stride)
        if min(*self.kernel, *self.stride, *self.dilation) < 1 or min(self.pads) < 0:
            raise ImportRefused(f"{node}: its kernel, strides, dilations or pads are below what they can be")
        sizes = [s + p + q for s, p, q in zip(spatial, self.pads[:n], self.pads[n:])]
        bounded(node, [x + r for x, r in zip(sizes, self.reach)])
        self.extra = [0] * n
        if node.get("ceil_mode", 0):
            for i in range(n):
                size = spatial[i] + self.pads[i] + self.pads[n + i]
                steps = -(-(size - self.reach[i]) // self.stride[i])
                # A window that begins in the padding at the end does not count.
                while steps and steps * self.stride[i] >= spatial[i] + self.pads[i]:
                    steps -= 1
                self.extra[i] = max(0, steps * self.stride[i] + self.reach[i] - size)

    def padded(self, x: Array, value: float) -> Array:
        n = len(self.kernel)
        ends = [p + e for p, e in zip(self.pads[n:], self.extra)]
        wide = [(0, 0)] * (x.ndim - n) + list(zip(self.pads[:n], ends))
        return np.pad(x, wide, constant_values=value) if any(map(any, wide)) else x

    def taps(self, x: Array) -> Array:
        """x [..., spatial], padded, as [..., out spatial, kernel]."""
        n = len(self.kernel)
        view: Any = sliding_window_view
        views = view(x, self.reach, axis=tuple(range(x.ndim - n, x.ndim)))
        lead = (slice(None),) * (x.ndim - n)
        by = [slice(None, None, step) for step in (*self.stride, *self.dilation)]
        return views[(*lead, *by)]


def spread(values: Array, n: int) -> Array:
    """[C] beside [N,C,spatial]."""
    return values.reshape((1, -1) + (1,) * n)


def conv(node: Node, x: Array, w: Array, b: Optional[Array] = None) -> Array:
    n, groups = w.ndim - 2, int(node.get("group", 1))
    window = Window(node, x.shape[2:], w.shape[2:])
    x = window.padded(x, 0.0)
    each_in, each_out = x.shape[1] // groups, w.shape[0] // groups
    if each_in == 1:
        v, wide = window.taps(x), w.reshape(w.shape[0], -1)
        v = v.reshape(*v.shape[: 2 + n], -1)
        out = np.zeros((x.shape[0], w.shape[0], *v.shape[2:-1]), np.float32)
        for tap in range(wide.shape[1]):
            out += np.repeat(v[..., tap], each_out, 1) * spread(wide[:, tap], n)
    else:
        parts = []
        for g in range(groups):
            v = window.taps(x[:, g * each_in : (g + 1) * each_in])
            axes = [1] + list(range(2 + n, 2 + 2 * n))
            r = np.tensordot(w[g * each_out : (g + 1) * each_out], v, axes=(list(range(1, 2 + n)), axes))
            parts.append(np.moveaxis(r, 0, 1))
        out = np.concatenate(parts, 1)
    return out if b is None else out + spread(b, n)


class Transposed:
    """The geometry of a ConvTranspose: crops of the full output, and what is added behind it.

    crop   of the full output, begins, then ends
    extra  zeros behind each end of the full output"""

    def __init__(self, node: Node, spatial: Shape, kernel: Sequence[int]) -> None:
        n = len(kernel)
        self.stride = [int(s) for s in node.get("strides", [1] * n)]
        self.dilation = [int(d) for d in node.get("dilations", [1] * n)]
        self.extra = [int(e) for e in node.get("output_padding", [0] * n)]
        self.full = [(s - 1) * t + (k - 1) * d + 1 for s, t, k, d in zip(spatial, self.stride, kernel, self.dilation)]
        pads = [int(p) for p in node.get("pads", [0] * 2 * n)]
        auto, wanted = node.get("auto_pad", "NOTSET"), node.get("output_shape")
        if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
            wanted = [s * t for s, t in zip(spatial, self.stride)]
        if wanted is not None:
            for i in range(n):
                total = self.full[i] + self.extra[i] - int(wanted[-n:][i])
                if total < 0:
                    self.extra[i] -= total
                    total = 0
                less, more = total // 2, total - total // 2
                pads[i], pads[n + i] = (less, more) if auto == "SAME_UPPER" else (more, less)
        if min(self.extra) < 0 or min(pads) < 0:
            raise ImportRefused(f"{node}: its pads or output_padding are below 0, which no kernel does")
        bounded(node, [f + e for f, e in zip(self.full, self.extra)])
        self.crop = pads
        self.out = [f + e - p - q for f, e, p, q in zip(self.full, self.extra, pads[:n], pads[n:])]


def conv_transpose(node: Node, x: Array, w: Array, b: Optional[Array] = None) -> Array:
    n, groups = w.ndim - 2, int(node.get("group", 1))
    at_all = Transposed(node, x.shape[2:], w.shape[2:])
    each_in, each_out = x.shape[1] // groups, w.shape[1]
    full = [f + e for f, e in zip(at_all.full, at_all.extra)]
    out = np.zeros((x.shape[0], each_out * groups, *full), np.float32)
    for g in range(groups):
        own, to = slice(g * each_in, (g + 1) * each_in), slice(g * each_out, (g + 1) * each_out)
        for at in np.ndindex(*w.shape[2:]):
            part = np.einsum("ni...,io->no...", x[:, own], w[(own, slice(None)) + at])
            where = tuple(
                slice(a * d, a * d + (s - 1) * t + 1, t)
                for a, s, t, d in zip(at, x.shape[2:], at_all.stride, at_all.dilation)
            )
            out[(slice(None), to) + where] += part
    cut = tuple(slice(p, p + o) for p, o in zip(at_all.crop[:n], at_all.out))
    out = out[(slice(None), slice(None)) + cut]
    return out if b is None else out + spread(b, n)


def max_pool(node: Node, x: Array) -> Array:
    window = Window(node, x.shape[2:], node.get("kernel_shape"))
    values: Array = window.taps(window.padded(x, -np.inf)).max(tuple(range(-len(window.kernel), 0)))
    return values


def average_pool(node: Node, x: Array) -> Array:
    window = Window(node, x.shape[2:], node.get("kernel_shape"))
    axes = tuple(range(-len(window.kernel), 0))
    sums = window.taps(window.padded(x, 0.0)).sum(axes)
    return sums / window_counts(node, window, x.shape[2:])


def window_counts(node: Node, window: Window, spatial: Shape) -> Array:
    """How many points each window divides by: those on the input; with count_include_pad also those on the padding."""
    ones = np.ones((1, 1, *spatial), np.float32)
    if node.get("count_include_pad", 0):
        n = len(spatial)
        ones = np.pad(ones, [(0, 0)] * 2 + list(zip(window.pads[:n], window.pads[n:])), constant_values=1.0)
        ones = np.pad(ones, [(0, 0)] * 2 + [(0, e) for e in window.extra])
    else:
        ones = window.padded(ones, 0.0)
    counts: Array = window.taps(ones).sum(tuple(range(-len(window.kernel), 0)))
    return counts


def batch_normalization(node: Node, x: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> Array:
    if node.get("training_mode", 0):
        axes = (0, *range(2, x.ndim))
        mean, variance = x.mean(axes), x.var(axes)
    k = scale / np.sqrt(variance + node.get("epsilon", 1e-5))
    return x * spread(k, x.ndim - 2) + spread(bias - mean * k, x.ndim - 2)


# ---- resizing: a matrix for each axis ----


def source(i: int, scale: float, size: int, out: int, mode: str, roi: tuple[float, float]) -> float:
    """Where output i of `out` lies on an axis of `size`."""
    if mode == "align_corners":
        return i * (size - 1) / (size * scale - 1) if out > 1 else 0.0
    if mode == "asymmetric":
        return i / scale
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if mode == "tf_crop_and_resize":
        start, end = roi
        if out == 1:
            return 0.5 * (start + end) * (size - 1)
        return start * (size - 1) + i * (end - start) * (size - 1) / (out - 1)
    if mode == "pytorch_half_pixel" and out == 1:
        return 0.0
    if mode == "half_pixel_symmetric":
        return (i + 0.5) / scale - 0.5 + size / 2 * (1 - out / (scale * size))
    return (i + 0.5) / scale - 0.5


def nearest(at: float, rule: str) -> int:
    if rule == "round_prefer_ceil":
        return math.floor(at + 0.5)
    if rule == "floor":
        return math.floor(at)
    if rule == "ceil":
        return math.ceil(at)
    return math.ceil(at - 0.5)


def cubic(t: float, a: float) -> list[float]:
    near = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (t, 1 - t)]
    far = [((a * d - 5 * a) * d + 8 * a) * d - 4 * a for d in (1 + t, 2 - t)]
    return [far[0], *near, far[1]]


def contributions(node: Node, at: float, size: int) -> list[tuple[int, float]]:
    """The inputs, and their weights, that an output at a place of the axis is made of."""
    kind, outside = node.get("mode", "nearest"), bool(node.get("exclude_outside", 0))
    if kind == "nearest":
        rule = "floor" if node.op == "Upsample" or node.opset < 11 else "round_prefer_floor"
        return [(nearest(at, node.get("nearest_mode", rule)), 1.0)]
    low = math.floor(at)
    if kind == "cubic":
        weights = list(zip(range(low - 1, low + 3), cubic(at - low, node.get("cubic_coeff_a", -0.75))))
    else:
        weights = [(low, 1 - (at - low)), (low + 1, at - low)]
    if outside:
        weights = [(i, w if 0 <= i < size else 0.0) for i, w in weights]
        total = sum(w for _, w in weights)
        weights = [(i, w / total) for i, w in weights]
    return weights


def resize_axis(
    node: Node, size: int, out: int, scale: float, roi: tuple[float, float] = (0.0, 1.0)
) -> tuple[Array, Array]:
    """The matrix [size, out] of an axis, and for which outputs the place is outside the axis (tf_crop_and_resize)."""
    mode = node.get("coordinate_transformation_mode", "half_pixel" if node.opset >= 11 else "asymmetric")
    if node.op == "Upsample":
        mode = "asymmetric"
    matrix, beyond = np.zeros((size, out), np.float64), np.zeros(out, bool)
    for i in range(out):
        at = source(i, scale, size, out, mode, roi)
        if mode == "tf_crop_and_resize" and not 0 <= at <= size - 1:
            beyond[i] = True
            continue
        for k, weight in contributions(node, at, size):
            matrix[min(max(k, 0), size - 1), i] += weight
    return matrix.astype(np.float32), beyond


def every(axes: Sequence[int], given: Any, other: list[Any]) -> Any:
    """Numbers of some axes, and other ones for the rest."""
    for axis, one in zip(axes, () if given is None else given):
        other[axis] = one
    return None if given is None else other


def resize_plan(node: Node, shape: Shape, *inputs: Optional[Array]) -> tuple[list[int], list[Array], list[Array]]:
    """Per axis: the new extent, the matrix, and the outputs that are outside."""
    given = [one if one is not None and one.size else None for one in inputs]
    if node.op == "Upsample":
        roi, scales, sizes = None, given[0] if given else np.asarray(node.get("scales")), None
    elif node.opset < 11:
        roi, scales, sizes = None, given[0], None
    else:
        roi, scales, sizes = (given + [None] * 3)[:3]
    if node.get("axes") is not None:  # since opset 18: the others stay as they are
        axes, n = axes_within(len(shape), node.get("axes")), len(node.get("axes"))
        sizes, scales = every(axes, sizes, list(shape)), every(axes, scales, [1.0] * len(shape))
        if roi is not None:
            roi = every(axes, roi[:n], [0.0] * len(shape)) + every(axes, roi[n:], [1.0] * len(shape))
    if sizes is not None:
        new = [int(s) for s in sizes]
        factors = [n / s for n, s in zip(new, shape)]
    else:
        assert scales is not None
        factors = [float(s) for s in scales]
        new = [int(math.floor(s * f)) for s, f in zip(shape, factors)]
    bounded(node, new)
    for size, out in zip(shape, new):
        bounded(node, (size, out))
    matrices, beyond, rank = [], [], len(shape)
    for i, (size, out) in enumerate(zip(shape, new)):
        part = (float(roi[i]), float(roi[rank + i])) if roi is not None else (0.0, 1.0)
        matrix, outside = resize_axis(node, size, out, factors[i], part)
        if size == out and factors[i] == 1 and node.get("coordinate_transformation_mode") != "tf_crop_and_resize":
            matrix, outside = np.eye(size, dtype=np.float32), np.zeros(out, bool)
        matrices.append(matrix)
        beyond.append(outside)
    return new, matrices, beyond


def resize(node: Node, x: Array, *inputs: Optional[Array]) -> Array:
    _, matrices, beyond = resize_plan(node, x.shape, *inputs)
    for axis, matrix in enumerate(matrices):
        if matrix.shape[0] != matrix.shape[1] or not (matrix == np.eye(len(matrix))).all():
            x = np.moveaxis(np.tensordot(x, matrix, axes=(axis, 0)), -1, axis)
    for axis, outside in enumerate(beyond):
        if outside.any():
            x[(slice(None),) * axis + (outside,)] = node.get("extrapolation_value", 0.0)
    return x.astype(np.float32)


EVALUATE: dict[str, Any] = {
    "AveragePool": average_pool,
    "BatchNormalization": batch_normalization,
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "MaxPool": max_pool,
    "Resize": resize,
    "Upsample": resize,
}
