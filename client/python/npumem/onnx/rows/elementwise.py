"""Operators that work element by element.

The kernels spread a scalar, a number a channel or a plane over the other operand. In other forms a constant is
broadcast before it is written, and a computed value is repeated by concat."""

from __future__ import annotations

from typing import Optional

import numpy as np

from .. import moves
from ..floats.arithmetic import clip_ends, slope_for
from ..formats import BITS, FRAC_BITS_MAX, best
from ..lowering import Lowering, NoKernel, row
from ..model import Array, ImportRefused, Node, Shape
from ..moves import physical
from ..network import Held

ONE = (1, 1, 1, 1)
SAME_FORMAT = ("eltwise_max", "eltwise_min")  # kernels whose two inputs must have one format
KERNELS = {
    "Add": "eltwise_add", "Sub": "eltwise_sub", "Mul": "eltwise_mul", "Div": "eltwise_div",
    "Max": "eltwise_max", "Min": "eltwise_min", "Sum": "eltwise_add", "Mean": "eltwise_add",
}  # fmt: skip


def spreads(form: Shape, whole: Shape) -> bool:
    """The kernels take it beside `whole`: N and C as there or 1, H and W as there or both 1."""
    return all(a in (1, b) for a, b in zip(form, whole)) and form[2:] in ((1, 1), whole[2:])


def operand(low: Lowering, name: str, shape: Shape, dtype: str, frac: Optional[int]) -> Held:
    """An input beside an output of `shape`: of that shape, or one that the kernels spread over it."""
    own, whole, v = low.shape(name), physical(shape), low.constant(name)
    form = physical((1,) * (len(shape) - len(own)) + own) if len(shape) <= 4 else ()
    form = whole if own == shape else ONE if moves.size(own) == 1 else form
    if v is not None:
        wanted = low.const_frac(v, dtype) if frac is None else frac
        if not form or not spreads(form, whole):
            v, form = np.broadcast_to(v, shape), whole
        return low.net.constant(v, form, dtype, wanted, name)
    if not form:
        raise NoKernel(f"it broadcasts {list(own)} to {list(shape)}, of more than four dimensions")
    x = low.value(name, form, dtype, frac)
    return x if spreads(form, whole) else moves.widened(low.net, x, whole)


def common(low: Lowering, names: list[str], dtype: str, most: int) -> int:
    """frac_bits that no input saturates with, for kernels that want one format."""
    held = [low.held[name] for name in names if name not in low.graph.constants]
    constants = [low.const_frac(low.graph.constants[name], dtype) for name in names if name in low.graph.constants]
    own = [x.frac if x.dtype == dtype else most for x in held]
    return max(0, min([*own, *constants, BITS[dtype] + most]))


def two(low: Lowering, kernel: str, a: str, b: str, shape: Shape, y: Held) -> Held:
    """kernel(a, b) in y, of a value of `shape`."""
    frac = common(low, [a, b], y.dtype, y.frac) if kernel in SAME_FORMAT else None
    in1, in2 = operand(low, a, shape, y.dtype, frac), operand(low, b, shape, y.dtype, frac)
    if in1.shape != y.shape and in2.shape != y.shape:
        in1 = moves.widened(low.net, in1, y.shape)
    return low.kernel(kernel, y, in1=in1, in2=in2)


@row("Add", "Sub", "Mul", "Div")
def binary(low: Lowering, node: Node) -> Held:
    whole = scaled(low, node)
    if whole:
        return whole
    return two(low, KERNELS[node.op], node.inputs[0], node.inputs[1], low.shape(node.outputs[0]), low.out(node))


def scaled(low: Lowering, node: Node) -> Optional[Held]:
    """A product with, or a quotient by, one power of two: the same elements, exactly."""
    places = {"Mul": (1, 0), "Div": (1,)}.get(node.op, ())
    factor = next((i for i in places if low.constant(node.inputs[i]) is not None), None)
    if factor is None or low.shape(node.inputs[1 - factor]) != low.shape(node.outputs[0]):
        return None
    v, x = low.parameter(node, factor, "factor"), low.of(node, 1 - factor)
    mantissa, exponent = np.frexp(v.reshape(-1)[0])
    frac = x.frac - (int(exponent) - 1) * (1 if node.op == "Mul" else -1)
    return low.net.formatted(x, frac) if v.size == 1 and mantissa == 0.5 and 0 <= frac <= FRAC_BITS_MAX else None


@row("Max", "Min", "Sum", "Mean")
def several(low: Lowering, node: Node) -> Held:
    if len(node.inputs) == 1:
        return low.of(node)
    shape, n, dtype = low.shape(node.outputs[0]), len(node.inputs), low.dtype(node)
    most = sum(float(max(np.abs(v).max() for v in low.seen(name))) for name in node.inputs)
    whole = low.range_frac(np.array([most]), dtype)
    last = low.formats.frac(node.outputs[0], dtype)
    sums = KERNELS[node.op] == "eltwise_add"
    before = node.inputs[0]
    for i, name in enumerate(node.inputs[1:], 2):
        # The last sum has the format of the output; those before it hold whatever the inputs add up to.
        frac = last if i == n and node.op != "Mean" else whole if sums else last
        y = two(low, KERNELS[node.op], before, name, shape, low.net.tensor(physical(shape), dtype, frac))
        before = f"{node.outputs[0]} of {i}"
        low.held[before], low.graph.shapes[before] = y, shape
    return by_scalar(low, "eltwise_mul", y, 1 / n, last) if node.op == "Mean" else y


# ---- with a number ----


def by_scalar(low: Lowering, kernel: str, x: Held, value: float, frac: int, swap: bool = False) -> Held:
    """kernel(x, value), or with swap kernel(value, x), with `frac` in the result."""
    y, s = low.like(x, frac), low.scalar(value, x.dtype, x.frac if kernel in SAME_FORMAT else None)
    return low.kernel(kernel, y, in1=s if swap else x, in2=x if swap else s)


def negative(low: Lowering, x: Held) -> Held:
    return by_scalar(low, "eltwise_sub", x, 0.0, x.frac, swap=True)


def magnitude(low: Lowering, x: Held) -> Held:
    return low.kernel("eltwise_max", low.like(x), in1=x, in2=negative(low, x))


def positive(low: Lowering, x: Held) -> Held:
    return low.kernel("relu", low.like(x), in_=x, relu="gen")


def frac_out(low: Lowering, node: Node, x: Held) -> int:
    return low.formats.frac(node.outputs[0], x.dtype)


@row("Neg")
def neg(low: Lowering, node: Node) -> Held:
    return negative(low, low.of(node))


@row("Abs")
def absolute(low: Lowering, node: Node) -> Held:
    return magnitude(low, low.of(node))


@row("Identity", "Dropout", "Cast")
def same(low: Lowering, node: Node) -> Held:
    if len([name for name in node.outputs if name]) > 1:
        raise ImportRefused("its mask is used, and no kernel makes one; export the model for inference")
    if node.op == "Dropout" and low.constant(node.input(2)) is not None and bool(low.constant(node.input(2))):
        raise ImportRefused("it is in training mode; export the model for inference")
    changes = node.op == "Cast" and [run[node.inputs[0]] != run[node.outputs[0]] for run in low.samples.runs]
    if changes and any(one.any() for one in changes):
        raise NoKernel("it cuts fractions, or makes numbers truths, and no kernel does")
    return low.of(node)


@row("Quantized")
def quantized(low: Lowering, node: Node) -> Held:
    return low.converted(low.of(node), "fx8", int(node.get("frac_bits")))


@row("Relu")
def relu(low: Lowering, node: Node) -> Held:
    """In the format of what is left, which may be smaller than the input."""
    x = low.wide(node)
    return low.kernel("relu", low.like(x, frac_out(low, node, x)), in_=x, relu="gen")


@row("Clip")
def clip(low: Lowering, node: Node) -> Held:
    for i in (1, 2):
        if node.input(i):
            low.parameter(node, i, "limit")
    least, most = clip_ends(node, *[low.constant(name) for name in node.inputs[1:]])
    if node.get("as_seen"):  # of a quantizer: what the samples do not reach, the format ends near
        seen = low.samples.of(node.inputs[0])
        least = least if seen.min() < least else -np.inf
        most = most if seen.max() > most else np.inf
    return clipped(low, low.of(node), least, most)


def clipped(low: Lowering, x: Held, least: float, most: float) -> Held:
    """x within limits; a limit beyond what the format holds changes nothing."""
    top = 2.0 ** (BITS[x.dtype] - 1 - x.frac)
    for kernel, value in (("eltwise_max", least), ("eltwise_min", most)):
        if -top < value < top:
            x = by_scalar(low, kernel, x, value, x.frac)
    return x


@row("LeakyRelu")
def leaky_relu(low: Lowering, node: Node) -> Held:
    x = low.wide(node)
    return low.kernel("leaky_relu", low.like(x), in_=x, slope=low.scalar(node.get("alpha", 0.01), x.dtype))


@row("PRelu")
def prelu(low: Lowering, node: Node) -> Held:
    shape = low.shape(node.inputs[0])
    slope = slope_for(low.parameter(node, 1, "slope"), shape)
    full = physical((1,) * (len(shape) - slope.ndim) + slope.shape)
    axes = [i for i, extent in enumerate(full) if extent > 1]
    x = low.value(node.inputs[0], physical(shape))
    if not axes:
        return low.kernel("leaky_relu", low.like(x), in_=x, slope=low.scalar(float(slope.reshape(-1)[0]), x.dtype))
    if len(axes) > 1 or axes[0] == 0:  # max(x, 0) + slope * min(x, 0)
        wide = np.broadcast_to(slope, shape)
        slopes = low.net.constant(wide, physical(shape), x.dtype, low.const_frac(wide, x.dtype))
        down = low.kernel("eltwise_mul", low.like(x), in1=clipped(low, x, -np.inf, 0.0), in2=slopes)
        return low.kernel("eltwise_add", low.out(node, x.shape), in1=positive(low, x), in2=down)
    slopes = low.net.constant(slope, full, x.dtype, best(slope, x.dtype))
    return low.kernel("prelu", low.like(x), in_=x, slope=slopes, axis="nchw"[axes[0]])


# ---- tables, and what is made of them ----


def table(low: Lowering, kernel: str, x: Held) -> Held:
    return low.kernel(kernel, low.like(x, low.unit(x.dtype)), in_=x)


@row("Sigmoid")
def sigmoid(low: Lowering, node: Node) -> Held:
    return table(low, "sigmoid", low.wide(node))


@row("Tanh")
def tanh(low: Lowering, node: Node) -> Held:
    return table(low, "tanh", low.wide(node))


def x_of(low: Lowering, node: Node) -> Array:
    return (
        low.samples.of(node.inputs[0])
        if node.inputs[0] not in low.graph.constants
        else low.graph.constants[node.inputs[0]]
    )
