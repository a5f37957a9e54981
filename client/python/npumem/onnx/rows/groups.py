"""Operators along axes: sums, maxima, softmax, normalizations."""

from __future__ import annotations

import numpy as np

from .. import moves
from ..floats.arithmetic import reduce_axes, softmax_axes
from ..lowering import Lowering, NoKernel, row
from ..model import Array, ImportRefused, Node, Shape
from ..network import Held
from .convolutions import affine
from .elementwise import by_scalar, frac_out, magnitude, negative, x_of

Axes = tuple[int, ...]


def is_together(axes: Axes) -> bool:
    return list(axes) == list(range(axes[0], axes[0] + len(axes)))


def grouped(low: Lowering, x: Held, shape: Shape, axes: Axes) -> tuple[Held, Shape]:
    """The value as (groups, 1, extent, inner), with the axes together as H; and how what is left is shaped."""
    kept = [i for i in range(len(shape)) if i not in axes]
    if not is_together(axes):  # the axes last
        order = [*kept, *axes]
        x = moves.transposed(low.net, x, shape, order)
        outer, inner = moves.size([shape[i] for i in kept]), 1
    else:
        outer, inner = moves.size(shape[: axes[0]]), moves.size(shape[axes[-1] + 1 :])
    extent = moves.size([shape[i] for i in axes])
    return moves.reshaped(low.net, x, (outer, 1, extent, inner)), (outer, 1, 1, inner)


def natural_dims(x: Held, shape: Shape, axes: Axes) -> Axes:
    """Which of N, C, H, W the axes are, where the value is in its natural form; else none."""
    if len(shape) > 4 or x.shape != moves.physical(shape):
        return ()
    return tuple(moves.first_dim(len(shape)) + axis for axis in axes)


def kept_axes(low: Lowering, node: Node) -> Axes:
    given = low.parameter(node, 1, "axes") if node.input(1) else None
    return reduce_axes(node, len(low.shape(node.inputs[0])), given)


def over(low: Lowering, kernel: str, x: Held, shape: Shape, axes: Axes, frac: int) -> Held:
    """A reduction of a value of `shape`; the result has its elements in order."""
    frac, dims = max(0, min(frac, 127)), natural_dims(x, shape, axes)
    if dims:
        kept = [1 if i in dims else extent for i, extent in enumerate(x.shape)]
        return low.kernel(kernel, low.net.tensor(kept, x.dtype, frac), in_=x, axes=["nchw"[i] for i in dims])
    lines, left = grouped(low, x, shape, axes)
    return low.kernel(kernel, low.net.tensor(left, x.dtype, frac), in_=lines, axes=["h"])


@row("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceSumSquare", "ReduceL2", "ReduceProd")
def reduction(low: Lowering, node: Node) -> Held:
    x, shape, axes = low.wide(node), low.shape(node.inputs[0]), kept_axes(low, node)
    if not axes:
        return x
    return REDUCTIONS[node.op](low, node, x, shape, axes, frac_out(low, node, x))


def total(low: Lowering, node: Node, x: Held, shape: Shape, axes: Axes, frac: int) -> Held:
    return over(low, "reduce_sum", x, shape, axes, frac)


def largest(low: Lowering, node: Node, x: Held, shape: Shape, axes: Axes, frac: int) -> Held:
    return over(low, "reduce_max", x, shape, axes, frac)


def smallest(low: Lowering, node: Node, x: Held, shape: Shape, axes: Axes, frac: int) -> Held:
    return negative(low, over(low, "reduce_max", negative(low, x), shape, axes, frac))


def mean(low: Lowering, node: Node, x: Held, shape: Shape, axes: Axes, frac: int) -> Held:
    dims = natural_dims(x, shape, axes)
    if dims and min(dims) >= 2:
        return averaged(low, x, frac, dims)
    return averaged(low, grouped(low, x, shape, axes)[0], frac)


def averaged(low: Lowering, x: Held, frac: int, dims: Axes = (2,)) -> Held:
    """The mean along H, W or both, rounded once: a pool over all of it."""
    kernel = [x.shape[i] if i in dims else 1 for i in (2, 3)]
    y = low.net.tensor([1 if i in dims else extent for i, extent in enumerate(x.shape)], x.dtype, frac)
    return low.kernel("avepool", y, in_=x, kernel=kernel, exact=1)


def magnitudes(low: Lowering, node: Node, x: Held, shape: Shape, axes: Axes, frac: int) -> Held:
    return over(low, "reduce_sum", magnitude(low, x), shape, axes, frac)


def squares(low: Lowering, node: Node, x: Held, shape: Shape, axes: Axes, frac: int) -> Held:
    y = low.like(x, low.range_frac(x_of(low, node) ** 2, x.dtype))
    return over(low, "reduce_sum", low.kernel("eltwise_mul", y, in1=x, in2=x), shape, axes, frac)


def length(low: Lowering, node: Node, x: Held, shape: Shape, axes: Axes, frac: int) -> Held:
    """The sum of x * (x / |x|), as there is no square root."""
    lines, left = grouped(low, in_fx16(low, node), shape, axes)
    products = low.kernel("eltwise_mul", low.like(lines), in1=lines, in2=normalized(low, lines))
    total_frac = low.formats.frac(node.outputs[0], lines.dtype)
    return low.kernel("reduce_sum", low.net.tensor(left, lines.dtype, total_frac), in_=products, axes=["h"])


def product(low: Lowering, node: Node, x: Held, shape: Shape, axes: Axes, frac: int) -> Held:
    """The elements of a group, one after the other."""
    lines, left = grouped(low, x, shape, axes)
    n = lines.shape[2]
    if n > 64:
        raise NoKernel(f"it multiplies {n} numbers, and no kernel multiplies more than two; 64 are taken")
    parts = [low.net.slice(lines, (0, 0, i, 0), (left[0], 1, i + 1, left[3])) for i in range(n)]
    y = parts[0]
    for i, one in enumerate(parts[1:], 2):
        y = low.kernel(
            "eltwise_mul",
            low.net.tensor(left, x.dtype, product_frac(low, node, shape, axes, i, frac, n)),
            in1=y,
            in2=one,
        )
    return y


def product_frac(low: Lowering, node: Node, shape: Shape, axes: Axes, n: int, last: int, of: int) -> int:
    """The frac_bits for the products of the first n elements of each group."""
    if n == of:
        return last
    kept = [i for i in range(len(shape)) if i not in axes]
    seen = [
        v.transpose([*kept, *axes]).reshape(*[shape[i] for i in kept], -1)[..., :n].prod(-1)
        for v in low.seen(node.inputs[0])
    ]
    return low.range_frac(np.concatenate([v.reshape(-1) for v in seen]), low.dtype(node))


REDUCTIONS = {
    "ReduceSum": total, "ReduceMax": largest, "ReduceMin": smallest, "ReduceMean": mean, "ReduceL1": magnitudes,
    "ReduceSumSquare": squares, "ReduceL2": length, "ReduceProd": product,
}  # fmt: skip


@row("Softmax")
def softmax(low: Lowering, node: Node) -> Held:
    shape = low.shape(node.inputs[0])
    x, axes = low.wide(node), softmax_axes(node, len(shape))
    dims = natural_dims(x, shape, axes)
    if len(dims) == 1 and dims[0] > 0:
        return low.kernel("softmax", low.like(x, low.unit(x.dtype)), in_=x, axis="nchw"[dims[0]])
    lines, _ = grouped(low, x, shape, axes)
    return low.kernel("softmax", low.like(lines, low.unit(lines.dtype)), in_=lines, axis="h")


INDICES_MAX = 1 << 15  # that fx16 without frac_bits holds


@row("ArgMax", "ArgMin")
def arg_max(low: Lowering, node: Node) -> Held:
    """The kernel gives the place of a group's largest element among the elements of all groups: less the place where
    the group begins it is the index. So many groups at a time as fx16 counts the elements of."""
    shape, x = low.shape(node.inputs[0]), low.of(node)
    axis = node.get("axis", 0) % len(shape)
    outer, extent, inner = moves.size(shape[:axis]), shape[axis], moves.size(shape[axis + 1 :])
    if node.get("select_last_index", 0):
        raise NoKernel("select_last_index is 1, and of equal elements argmax gives the first")
    if extent > INDICES_MAX:
        raise NoKernel(f"it has {extent} indices, and {INDICES_MAX} are the most")
    x = negative(low, x) if node.op == "ArgMin" else x
    x = moves.swapped(low.net, x, outer, extent, inner, 1) if inner > 1 else x
    groups, most = outer * inner, INDICES_MAX // extent
    x = moves.reshaped(low.net, x, (1, groups, extent, 1))
    y = low.net.tensor((1, groups, 1, 1), "fx16", 0)
    for begin in range(0, groups, most):
        n = min(most, groups - begin)
        places = low.kernel(
            "argmax", low.net.tensor((1, n, 1, 1), "int32", 0), axis="c",
            in_=low.net.slice(x, (0, begin, 0, 0), (1, begin + n, extent, 1)),
        )  # fmt: skip
        low.kernel("convert_tensor", low.net.slice(y, (0, begin, 0, 0), (1, begin + n, 1, 1)), in_=places)
    if groups == 1:
        return y
    starts = np.arange(groups) % most * extent
    first = low.net.constant(starts, y.shape, "fx16", 0)
    return low.kernel("eltwise_sub", low.net.tensor(y.shape, "fx16", 0), in1=y, in2=first)


# ---- normalizations ----


def normalized(low: Lowering, lines: Held) -> Held:
    """Each line, of fx16, over the root of the sum of its squares."""
    return low.kernel("l2_normalize", low.like(lines, 15), in_=lines, axis="h")


def in_fx16(low: Lowering, node: Node) -> Held:
    """The input in fx16: l2_normalize has no other type."""
    return low.value(node.inputs[0], None, "fx16")


def frac_of(low: Lowering, values: list[Array], dtype: str) -> int:
    return low.range_frac(np.concatenate([v.reshape(-1) for v in values]), dtype)


def repeated(low: Lowering, x: Held, lines: Held) -> Held:
    return moves.widened(low.net, x, lines.shape)


class Statistics:
    """Lines of a value less their means, and over the root of their mean square plus epsilon.

    The kernel adds no epsilon, so each line gets one more element whose square is extent * epsilon."""

    def __init__(self, low: Lowering, node: Node, lines: Held, axes: Axes, epsilon: float) -> None:
        n = lines.shape[2]
        seen = low.seen(node.inputs[0])
        means = [v.mean(axes, keepdims=True) for v in seen]
        inner = [v - m for v, m in zip(seen, means)]
        frac = frac_of(low, means, lines.dtype)
        self.mean = averaged(low, lines, frac)
        centred = low.like(lines, frac_of(low, inner, lines.dtype))
        self.centred = low.kernel("eltwise_sub", centred, in1=lines, in2=repeated(low, self.mean, lines))
        last = float(np.sqrt(n * epsilon))
        if round(last * 2.0**self.centred.frac):
            ends = np.full((lines.shape[0], 1, 1, lines.shape[3]), last)
            more = low.net.constant(ends, ends.shape, lines.dtype, self.centred.frac)
            longer = normalized(low, moves.joined(low.net, [self.centred, more], 2))
            self.unit = low.net.slice(longer, (0, 0, 0, 0), (longer.shape[0], 1, n, longer.shape[3]))
        else:
            self.unit = normalized(low, self.centred)
        self.n = n

    def scaled(self, low: Lowering, frac: int) -> Held:
        """Lines of mean 0 and mean square 1."""
        return by_scalar(low, "eltwise_mul", self.unit, float(np.sqrt(self.n)), frac)

    def inverse(self, low: Lowering, inner: list[Array], axes: Axes, frac: int) -> Held:
        """1 / sqrt(mean square): the sum of what scaled() gives times the lines, over the sum of their squares."""
        left = (self.unit.shape[0], 1, 1, self.unit.shape[3])
        sums = []
        for other, bits in (
            (self.unit, frac_of(low, [np.sqrt((v * v).sum(axes)) for v in inner], "fx16")),
            (self.centred, frac_of(low, [(v * v).sum(axes) for v in inner], "fx16")),
        ):
            each = low.kernel("eltwise_mul", low.like(self.centred, bits), in1=self.centred, in2=other)
            sums.append(low.kernel("reduce_sum", low.net.tensor(left, "fx16", bits), in_=each, axes=["h"]))
        ratio = low.kernel(
            "eltwise_div",
            low.net.tensor(left, "fx16", max(0, frac + (self.n - 1).bit_length() // 2 - 1)),
            in1=sums[0],
            in2=sums[1],
        )
        return by_scalar(low, "eltwise_mul", ratio, float(np.sqrt(self.n)), frac)


def inner_of(low: Lowering, node: Node, axes: Axes) -> list[Array]:
    return [v - v.mean(axes, keepdims=True) for v in low.seen(node.inputs[0])]


def standard(low: Lowering, node: Node, axes: Axes, epsilon: float) -> list[Array]:
    """What the samples have after mean 0 and variance 1."""
    return [v / np.sqrt((v * v).mean(axes, keepdims=True) + epsilon) for v in inner_of(low, node, axes)]


@row("LayerNormalization")
def layer_normalization(low: Lowering, node: Node) -> dict[str, Held]:
    shape, epsilon = low.shape(node.inputs[0]), node.get("epsilon", 1e-5)
    axes = tuple(range(node.get("axis", -1) % len(shape), len(shape)))
    lines, _ = grouped(low, in_fx16(low, node), shape, axes)
    parts = Statistics(low, node, lines, axes, epsilon)
    seen = standard(low, node, axes, epsilon)
    y = parts.scaled(low, frac_of(low, seen, lines.dtype))
    for index, kernel in ((1, "eltwise_mul"), (2, "eltwise_add")):
        if node.input(index):
            seen = [v * low.parameter(node, index, "scale") for v in seen] if index == 1 else seen
            frac = frac_of(low, seen, lines.dtype) if index == 1 else low.formats.frac(node.outputs[0], lines.dtype)
            v = np.broadcast_to(low.parameter(node, index, "scale"), [shape[i] for i in axes]).reshape(-1)
            every = np.broadcast_to(v, (lines.shape[0], v.size))
            each = low.net.constant(every, lines.shape, lines.dtype, low.const_frac(every, lines.dtype))
            y = low.kernel(kernel, low.like(lines, frac), in1=y, in2=each)
    made = {node.outputs[0]: y}
    if len(node.outputs) > 1 and node.outputs[1]:
        made[node.outputs[1]] = parts.mean
    if len(node.outputs) > 2 and node.outputs[2]:
        frac = low.formats.frac(node.outputs[2], lines.dtype)
        made[node.outputs[2]] = parts.inverse(low, inner_of(low, node, axes), axes, frac)
    return made


@row("InstanceNormalization")
def instance_normalization(low: Lowering, node: Node) -> Held:
    shape, epsilon = low.shape(node.inputs[0]), node.get("epsilon", 1e-5)
    axes = tuple(range(2, len(shape)))
    lines, _ = grouped(low, in_fx16(low, node), shape, axes)
    parts = Statistics(low, node, lines, axes, epsilon)
    y = parts.scaled(low, frac_of(low, standard(low, node, axes, epsilon), lines.dtype))
    n, c, rest = shape[0], shape[1], moves.size(shape[2:])
    x = moves.reshaped(low.net, y, (n, c, 1, rest))
    k, shift = low.parameter(node, 1, "scale"), low.parameter(node, 2, "bias")
    out = low.net.tensor(x.shape, x.dtype, low.formats.frac(node.outputs[0], x.dtype))
    return affine(low, x, out, k, shift)


@row("MeanVarianceNormalization")
def mean_variance(low: Lowering, node: Node) -> Held:
    shape, axes = low.shape(node.inputs[0]), tuple(sorted(node.get("axes", (0, 2, 3))))
    kept = [i for i in range(len(shape)) if i not in axes]
    lines, _ = grouped(low, in_fx16(low, node), shape, axes)
    y = Statistics(low, node, lines, axes, 0.0).scaled(low, low.formats.frac(node.outputs[0], lines.dtype))
    order = [*kept, *axes]
    if is_together(axes):
        return y
    return moves.transposed(low.net, y, tuple(shape[i] for i in order), [order.index(i) for i in range(len(shape))])


@row("LpNormalization")
def lp_normalization(low: Lowering, node: Node) -> Held:
    if node.get("p", 2) != 2:
        raise NoKernel("p is 1, and l2_normalize has 2")
    shape = low.shape(node.inputs[0])
    lines, _ = grouped(low, in_fx16(low, node), shape, (node.get("axis", -1) % len(shape),))
    return normalized(low, lines)


@row("BatchNormalization")
def batch_normalization(low: Lowering, node: Node) -> Held:
    """One that could not be folded."""
    if node.get("training_mode", 0):
        raise ImportRefused("it is in training mode; export the model for inference")
    raise NoKernel("its parameters are computed")
