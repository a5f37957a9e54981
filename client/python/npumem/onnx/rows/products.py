"""Products of matrices, and resizing, which is a product along each axis."""

from __future__ import annotations

from typing import Optional

import numpy as np

from .. import moves
from ..floats.windows import resize_plan
from ..formats import best, rounded, weight_frac
from ..lowering import Lowering, NoKernel, row
from ..model import Array, Node, Shape
from ..network import Held
from .convolutions import bias_of, relu_of
from .elementwise import operand


def weights_dtype(low: Lowering, node: Node, data: str) -> str:
    return low.formats.policy.weights(node) if data == "fx16" else "fx8"


def dense(low: Lowering, node: Node, x: Held, w: Array, b: Optional[Array], y: Held) -> Held:
    """x [R,K,1,1] times constants w [K,M], plus b [M]."""
    dtype = weights_dtype(low, node, x.dtype)
    frac = weight_frac(np.ascontiguousarray(w.T), b, x.dtype, x.frac, dtype, low.formats.method)
    if low.options.correct:
        lost = w - rounded(w, dtype, frac)
        rows = [run[node.inputs[0]] for run in low.samples.runs]
        mean = np.mean([(v.T if node.get("transA", 0) else v).reshape(-1, len(w)).mean(0) for v in rows], 0) @ lost
        b = b if b is None and not mean.any() else mean if b is None else b + mean
    weights = low.net.constant(w, (*w.shape, 1, 1), dtype, frac, low.net.near + ".weights")
    low.net.run("matmul", left=x, right=weights, bias=bias_of(low, b, dtype, frac + x.frac), out=y, relu=relu_of(node))
    return y


@row("Gemm")
def gemm(low: Lowering, node: Node) -> Held:
    y = low.out(node, (*low.shape(node.outputs[0]), 1, 1))
    x = matrix(low, node.inputs[0], y.dtype, bool(node.get("transA", 0)))
    w, c = low.constant(node.inputs[1]), low.constant(node.input(2))
    if c is not None:
        c = np.asarray(c, np.float32) * node.get("beta", 1.0)
    m = y.shape[1]
    bias = None
    if c is not None and (c.ndim == 0 or c.size == c.shape[-1]):  # one number for each column
        bias, c = np.broadcast_to(c.reshape(-1), (m,)), None
    if node.input(2) and low.constant(node.input(2)) is None:
        if w is None or node.get("beta", 1.0) != 1:
            raise NoKernel(
                "its third input is computed, with a factor or beside a computed matrix",
                "split it into MatMul, Mul and Add",
            )
        limit, node.relu = node.relu, "none"
        sums = dense(
            low,
            node,
            x,
            weights_of(node, w),
            None,
            low.net.tensor(y.shape, y.dtype, before_sum(low, node, y, node.input(2))),
        )
        added = operand(low, node.input(2), low.shape(node.outputs[0]), y.dtype, None)
        low.kernel("eltwise_add", y, in1=sums, in2=added)
        return y if limit == "none" else low.kernel("relu", low.like(y), in_=y, relu=limit)
    if w is None:
        if node.get("alpha", 1.0) != 1 or bias is not None or c is not None or node.relu != "none":
            raise NoKernel(
                "both its matrices are computed, with a factor or a third input", "split it into MatMul, Mul and Add"
            )
        right = matrix(low, node.inputs[1], y.dtype, bool(node.get("transB", 0)))
        return low.kernel("matmul", y, left=x, right=right)
    w = weights_of(node, w)
    if c is None:
        return dense(low, node, x, w, bias, y)
    limit, node.relu = node.relu, "none"
    sums = dense(low, node, x, w, None, low.net.tensor(y.shape, y.dtype, before_sum(low, node, y, node.input(2))))
    full = np.broadcast_to(c, y.shape[:2])
    added = low.net.constant(full, y.shape, y.dtype, low.const_frac(full, y.dtype))
    low.kernel("eltwise_add", y, in1=sums, in2=added)
    return y if limit == "none" else low.kernel("relu", low.like(y), in_=y, relu=limit)


def before_sum(low: Lowering, node: Node, y: Held, name: str) -> int:
    """The frac_bits of a product to which another input is added."""
    most = sum(float(max(np.abs(v).max() for v in low.seen(one))) for one in (node.outputs[0], name))
    return low.range_frac(np.array([most]), y.dtype)


def weights_of(node: Node, w: Array) -> Array:
    return np.asarray((w.T if node.get("transB", 0) else w) * node.get("alpha", 1.0))


def matrix(low: Lowering, name: str, dtype: str, turned: bool) -> Held:
    x = low.value(name, (*low.shape(name), 1, 1), dtype)
    return moves.permuted(low.net, x, (1, 0, 2, 3)) if turned else x


@row("MatMul")
def matmul(low: Lowering, node: Node) -> Held:
    """matmul has no batch: a product for each pair of matrices. A constant right side takes all rows at once."""
    a, b = low.shape(node.inputs[0]), low.shape(node.inputs[1])
    bias = low.constant(node.input(2))
    a = (1, *a) if len(a) == 1 else a
    b = (*b, 1) if len(b) == 1 else b
    rows, k, m = a[-2], a[-1], b[-1]
    w = low.constant(node.inputs[1])
    if w is not None and moves.size(b[:-2]) == 1:
        every = moves.size(a[:-1])
        y = low.out(node, (every, m, 1, 1))
        return dense(low, node, low.value(node.inputs[0], (every, k, 1, 1), y.dtype), w.reshape(k, m), bias, y)
    if bias is not None or node.relu != "none":
        raise NoKernel("a product of computed matrices has no bias and no limit")
    batch = np.broadcast_shapes(a[:-2], b[:-2])
    many = moves.size(batch)
    y = low.out(node, (many * rows, m, 1, 1))
    left = low.value(node.inputs[0], (moves.size(a[:-1]), k, 1, 1), y.dtype)
    right = low.value(node.inputs[1], (moves.size(b[:-2]) * k, m, 1, 1), y.dtype)
    of_left = np.broadcast_to(np.arange(moves.size(a[:-2])).reshape(a[:-2]), batch).reshape(-1)
    of_right = np.broadcast_to(np.arange(moves.size(b[:-2])).reshape(b[:-2]), batch).reshape(-1)
    for i in range(many):
        low.kernel(
            "matmul", part(low, y, i * rows, rows), left=part(low, left, int(of_left[i]) * rows, rows),
            right=part(low, right, int(of_right[i]) * k, k),
        )  # fmt: skip
    return y


def part(low: Lowering, x: Held, first: int, n: int) -> Held:
    return low.net.slice(x, (first, 0, 0, 0), (first + n, *x.shape[1:]))


# ---- along an axis ----


def along(low: Lowering, x: Held, shape: Shape, axis: int, w: Array, frac: int) -> Held:
    """A value of `shape` times a matrix along one axis; flat. `frac`: of the result."""
    before, extent, after = moves.size(shape[:axis]), shape[axis], moves.size(shape[axis + 1 :])
    if after > 1:
        x = moves.swapped(low.net, x, before, extent, after, 1)
    x = moves.reshaped(low.net, x, (before * after, extent, 1, 1))
    w_frac = min(best(w, x.dtype), weight_frac(np.ascontiguousarray(w.T), None, x.dtype, x.frac, x.dtype, "max"))
    weights = low.net.constant(w, (*w.shape, 1, 1), x.dtype, w_frac)
    y = low.net.tensor((before * after, w.shape[1], 1, 1), x.dtype, frac)
    low.net.run("matmul", left=x, right=weights, out=y)
    y = moves.flat(low.net, y)
    return moves.swapped(low.net, y, before, after, w.shape[1], 1) if after > 1 else y


@row("Resize", "Upsample")
def resize(low: Lowering, node: Node) -> Held:
    shape = low.shape(node.inputs[0])
    given = [low.parameter(node, i, "sizes") if name else None for i, name in enumerate(node.inputs) if i]
    new, matrices, beyond = resize_plan(node, shape, *given)
    x = low.wide(node)
    frac = low.formats.frac(node.outputs[0], x.dtype)
    now = list(shape)
    for axis, w in enumerate(matrices):
        if w.shape[0] == w.shape[1] and (w == np.eye(len(w))).all():
            continue
        if ((w == 0) | (w == 1)).all() and (w.sum(0) == 1).all():  # nearest: elements as they are
            form, dim = moves.along(low.net, x, tuple(now), axis)
            x = moves.picked(low.net, form, [int(i) for i in w.argmax(0)], dim)
        else:
            x = along(low, x, tuple(now), axis, w, frac)
        now[axis] = new[axis]
    outside = [axis for axis, rows in enumerate(beyond) if rows.any()]
    if not outside:
        return x
    fill = np.zeros(new, np.float32)
    for axis in outside:
        fill[(slice(None),) * axis + (beyond[axis],)] = node.get("extrapolation_value", 0.0)
    whole = moves.reshaped(low.net, x, moves.physical(tuple(new)))
    added = low.net.constant(fill, whole.shape, x.dtype, low.const_frac(fill, x.dtype))
    return low.kernel("eltwise_add", low.out(node, whole.shape), in1=whole, in2=added)
