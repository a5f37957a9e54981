"""Kernels that make each output of one element of each input: arithmetic, limits, tables, and types."""

from __future__ import annotations

from typing import Optional

import numpy as np

from .convolutions import relu_limits
from .integers import RANGES, Array, Counts, clipped, divided, rounded, saturated, times
from .tables import function_of, unit_frac_bits
from .tensor import (
    Format,
    Tensor,
    made,
    need,
    need_fixed,
    need_same_format,
    need_same_type,
    need_shape,
    only,
    quantized,
    real,
)


def spread(name: str, x: Tensor, shape: tuple[int, ...]) -> Array:
    """A tensor in a larger shape: N and C as there or 1, H and W as there or both 1."""
    n, c, h, w = x.values.shape
    whole = (shape[0] if n != 1 else 1, shape[1] if c != 1 else 1, *((1, 1) if h == w == 1 else shape[2:]))
    need_shape(name, x, whole)
    return np.broadcast_to(x.values, shape)


def both(in1: Tensor, in2: Tensor, out: Format) -> tuple[Array, Array]:
    """The operands of an element-wise kernel in one shape: the smaller is spread over the larger."""
    need_fixed("in1", in1)
    need_same_type("in2", in2, in1)
    need_same_type("out", out, in1)
    shape = in2.values.shape if in2.n > in1.n else in1.values.shape
    return spread("in1", in1, shape), spread("in2", in2, shape)


def summed(in1: Tensor, in2: Tensor, sign: int, out: Format, rounding: str, counts: Counts) -> Tensor:
    a, b = both(in1, in2, out)
    f = max(in1.f, in2.f)
    total = times(a, f - in1.f) + sign * times(b, f - in2.f)
    return made(saturated(rounded(total, f - out.f, rounding), out.dtype, counts), out)


def eltwise_add(in1: Tensor, in2: Tensor, *, out: Format, rounding: str, counts: Counts) -> Tensor:
    """Sum of two tensors.

        f   = max(f_1, f_2)
        out = saturate(round((in1 * 2^(f - f_1) + in2 * 2^(f - f_2)) / 2^(f - f_out)))

    Tensors
        in1  [N,C,H,W], fx8 or fx16
        in2  of in1's type, any frac_bits; of in1's shape, or one of the two is spread over the other
        out  of the larger shape and of in1's type, any frac_bits
    Parameters
        none but rounding
    Refused
        other types or shapes
    Counts
        saturated  outputs that saturation changed
    Source
        Arithmetic chapter: "Addition and Subtraction". embARC MLI, release 2.0; release 1.1 has equal frac_bits
        only.
    Example
        >>> run("eltwise_add", in1=fx8([1, 100, -100], 4), in2=fx8([3, 60, -60], 5), out=Format("fx8", 4))
        out fx8, frac_bits 4 [1, 3, 1, 1]: [2, 127, -128]
        saturated 2, wrapped 0, divided_by_zero 0, macs 0
    """
    return summed(in1, in2, 1, out, rounding, counts)


def eltwise_sub(in1: Tensor, in2: Tensor, *, out: Format, rounding: str, counts: Counts) -> Tensor:
    """Difference of two tensors.

        f   = max(f_1, f_2)
        out = saturate(round((in1 * 2^(f - f_1) - in2 * 2^(f - f_2)) / 2^(f - f_out)))

    Tensors
        in1  [N,C,H,W], fx8 or fx16
        in2  of in1's type, any frac_bits; of in1's shape, or one of the two is spread over the other
        out  of the larger shape and of in1's type, any frac_bits
    Parameters
        none but rounding
    Refused
        other types or shapes
    Counts
        saturated  outputs that saturation changed
    Source
        Arithmetic chapter: "Addition and Subtraction". embARC MLI, release 2.0; release 1.1 has equal frac_bits
        only.
    Example
        >>> run("eltwise_sub", in1=fx8([10], 4), in2=fx8([1, 2, 3], 4), out=Format("fx8", 3))
        out fx8, frac_bits 3 [1, 3, 1, 1]: [4, 4, 4]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    return summed(in1, in2, -1, out, rounding, counts)


def eltwise_mul(in1: Tensor, in2: Tensor, *, out: Format, rounding: str, counts: Counts) -> Tensor:
    """Product of two tensors, element by element.

        out = saturate(round(in1 * in2 / 2^(f_1 + f_2 - f_out)))

    Tensors
        in1  [N,C,H,W], fx8 or fx16
        in2  of in1's type, any frac_bits; of in1's shape, or one of the two is spread over the other
        out  of the larger shape and of in1's type, any frac_bits
    Parameters
        none but rounding
    Refused
        other types or shapes
    Counts
        saturated  outputs that saturation changed
    Source
        Arithmetic chapter: "Multiplication". embARC MLI, releases 1.1 and 2.0, which shift by at most 15
        (fx8) or 31 (fx16) bits.
    Example
        >>> run("eltwise_mul", in1=fx8([3, -3, 100], 4), in2=fx8([8], 4), out=Format("fx8", 4))
        out fx8, frac_bits 4 [1, 3, 1, 1]: [2, -2, 50]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    a, b = both(in1, in2, out)
    return made(saturated(rounded(a * b, in1.f + in2.f - out.f, rounding), out.dtype, counts), out)


def eltwise_div(in1: Tensor, in2: Tensor, *, out: Format, rounding: str, counts: Counts) -> Tensor:
    """Quotient of two tensors, element by element.

        in2 != 0: out = saturate(round(in1 * 2^(f_out - f_1 + f_2) / in2))
        in2 = 0:  out = 0 if in1 = 0; the container's largest number if in1 > 0, its least number if in1 < 0

    Tensors
        in1  [N,C,H,W], fx8 or fx16
        in2  of in1's type, any frac_bits; of in1's shape, or one of the two is spread over the other
        out  of the larger shape and of in1's type, any frac_bits
    Parameters
        none but rounding
    Refused
        other types or shapes
    Counts
        saturated        outputs that saturation changed; a division by 0 does not count here
        divided_by_zero  outputs with in2 = 0, also those with in1 = 0
    Source
        Arithmetic chapter: "Division". npumem's own; embARC MLI has no such kernel.
    Example
        >>> run("eltwise_div", in1=fx8([7, -7, 7, 0], 4), in2=fx8([2, 2, 0, 0], 0), out=Format("fx8", 4))
        out fx8, frac_bits 4 [1, 4, 1, 1]: [4, -4, 127, 0]
        saturated 0, wrapped 0, divided_by_zero 2, macs 0
    """
    a, b = both(in1, in2, out)
    shift, zero = out.f - in1.f + in2.f, b == 0
    dividend = times(np.where(b < 0, -a, a), max(shift, 0)).astype(object)
    divisor = times(np.where(zero, 1, abs(b)), max(-shift, 0)).astype(object)
    quotient = divided(dividend, divisor, rounding)
    low, high = RANGES[out.dtype]
    by_zero = np.where(a < 0, low, np.where(a > 0, high, 0))
    counts.divided_by_zero += int(np.count_nonzero(zero))
    return made(saturated(np.where(zero, by_zero, quotient), out.dtype, counts), out)


def mac(in1: Tensor, in2: Tensor, acc: Tensor, *, out: Format, rounding: str, counts: Counts) -> Tensor:
    """Product added to a tensor.

        f   = max(f_acc, f_1 + f_2)
        out = saturate(round((acc * 2^(f - f_acc) + in1 * in2 * 2^(f - f_1 - f_2)) / 2^(f - f_out)))

    The product is not rounded before the sum.

    Tensors
        in1  [N,C,H,W] as out, or spread over it; fx8 or fx16 whatever the others are, any frac_bits
        in2  [N,C,H,W] as out, or spread over it; fx8 or fx16 whatever the others are, any frac_bits
        acc  [N,C,H,W], fx8 or fx16, any frac_bits
        out  of acc's shape, type and frac_bits
    Parameters
        none but rounding
    Refused
        other types, shapes or formats
    Counts
        saturated  outputs that saturation changed
        macs       outputs
    Source
        Arithmetic chapter: "Accumulation". npumem's own; embARC MLI has no such kernel.
    Example
        >>> run("mac", in1=fx8([3, 5], 4), in2=fx8([8, 8], 4), acc=fx8([1, 1], 4), out=Format("fx8", 4))
        out fx8, frac_bits 4 [1, 2, 1, 1]: [2, 4]
        saturated 0, wrapped 0, divided_by_zero 0, macs 2
    """
    for name, x in (("in1", in1), ("in2", in2), ("acc", acc)):
        need_fixed(name, x)
    need_same_format("out", out, acc)
    product, f_product = spread("in1", in1, acc.values.shape) * spread("in2", in2, acc.values.shape), in1.f + in2.f
    f = max(acc.f, f_product)
    total = times(acc.values, f - acc.f) + times(product, f - f_product)
    counts.macs += acc.n
    return made(saturated(rounded(total, f - out.f, rounding), out.dtype, counts), out)


def chosen(in1: Tensor, in2: Tensor, larger: bool, out: Format, rounding: str, counts: Counts) -> Tensor:
    a, b = both(in1, in2, out)
    need_same_format("in2", in2, in1)
    y = np.maximum(a, b) if larger else np.minimum(a, b)
    return made(saturated(rounded(y, in1.f - out.f, rounding), out.dtype, counts), out)


def eltwise_max(in1: Tensor, in2: Tensor, *, out: Format, rounding: str, counts: Counts) -> Tensor:
    """The larger of two tensors, element by element.

        out = saturate(round(max(in1, in2) / 2^(f_1 - f_out)))

    Tensors
        in1  [N,C,H,W], fx8 or fx16
        in2  of in1's type and frac_bits; of in1's shape, or one of the two is spread over the other
        out  of the larger shape and of in1's type, any frac_bits
    Parameters
        none but rounding
    Refused
        other types or shapes; in2 with other frac_bits than in1
    Counts
        saturated  outputs that saturation changed: none where f_out = f_1
    Source
        embARC MLI, release 2.0; release 1.1 has f_out = f_1 only. Release 2.0 rounds in a register of the
        container's width and shifts by at most 7 or 15 bits; here the rounding is exact.
    Example
        >>> run("eltwise_max", in1=fx8([1, -5, 127], 4), in2=fx8([0], 4), out=Format("fx8", 3))
        out fx8, frac_bits 3 [1, 3, 1, 1]: [0, 0, 64]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    return chosen(in1, in2, True, out, rounding, counts)


def eltwise_min(in1: Tensor, in2: Tensor, *, out: Format, rounding: str, counts: Counts) -> Tensor:
    """The smaller of two tensors, element by element.

        out = saturate(round(min(in1, in2) / 2^(f_1 - f_out)))

    Tensors
        in1  [N,C,H,W], fx8 or fx16
        in2  of in1's type and frac_bits; of in1's shape, or one of the two is spread over the other
        out  of the larger shape and of in1's type, any frac_bits
    Parameters
        none but rounding
    Refused
        other types or shapes; in2 with other frac_bits than in1
    Counts
        saturated  outputs that saturation changed: none where f_out = f_1
    Source
        embARC MLI, release 2.0; release 1.1 has f_out = f_1 only. Release 2.0 rounds in a register of the
        container's width and shifts by at most 7 or 15 bits; here the rounding is exact.
    Example
        >>> run("eltwise_min", in1=fx8([1, -5, 127], 4), in2=fx8([0], 4), out=Format("fx8", 6))
        out fx8, frac_bits 6 [1, 3, 1, 1]: [0, -20, 0]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    return chosen(in1, in2, False, out, rounding, counts)


# ---- limits and slopes ----


def relu(in_: Tensor, *, out: Format, relu: str = "none", rounding: str, counts: Counts) -> Tensor:
    """Every element kept within the limits of relu=.

        out = min(max(saturate(round(in / 2^(f_in - f_out))), low), high)

    low and high are those of RELU for out's frac_bits.

    Tensors
        in   [N,C,H,W], fx8 or fx16
        out  of in's shape and type, any frac_bits
    Parameters
        relu  none, gen, 1 or 6 (RELU); none if not given, which only changes the format
    Refused
        other types or shapes
    Counts
        saturated  outputs that saturation changed, none where f_out = f_in; a change by relu= does not count
    Source
        embARC MLI, releases 1.1 and 2.0, which have f_out = f_in only.
    Example
        >>> run("relu", in_=fx8([-20, -16, 5, 20], 4), out=Format("fx8", 4), relu="1")
        out fx8, frac_bits 4 [1, 4, 1, 1]: [-16, -16, 5, 16]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    need_fixed("in", in_)
    need_same_type("out", out, in_)
    y = saturated(rounded(in_.values, in_.f - out.f, rounding), out.dtype, counts)
    return made(clipped(y, *relu_limits(relu, out.dtype, out.f)), out)


def sloped(in_: Tensor, slope: Tensor, out: Format, rounding: str, counts: Counts) -> Tensor:
    x = in_.values
    down = saturated(rounded(np.minimum(x, 0) * slope.values, slope.f, rounding), out.dtype, counts)
    return made(np.where(x < 0, down, x), out)


def leaky_relu(in_: Tensor, slope: Tensor, *, out: Format, rounding: str, counts: Counts) -> Tensor:
    """Negative elements times a slope.

        out = in                                           where in >= 0
        out = saturate(round(in * slope / 2^f_slope))      where in < 0

    slope may be negative, or above 1.0; the rule is the same.

    Tensors
        in     [N,C,H,W], fx8 or fx16
        slope  [1,1,1,1], of in's type, any frac_bits
        out    of in's shape, type and frac_bits
    Parameters
        none but rounding
    Refused
        other types, shapes or formats
    Counts
        saturated  negative elements whose product saturation changed
    Source
        embARC MLI, release 2.0. Release 1.1 computes max(x, s*x), or min(x, s*x) for a slope of 1.0 and above. That is
        the same except for fx16 slopes with 15 frac_bits: there release 1.1 scales the positive elements, and npumem
        does not follow it.
    Example
        >>> run("leaky_relu", in_=fx8([10, -10, -128], 4), slope=fx8([96], 6), out=Format("fx8", 4))
        out fx8, frac_bits 4 [1, 3, 1, 1]: [10, -15, -128]
        saturated 1, wrapped 0, divided_by_zero 0, macs 0
    """
    need_shape("slope", slope, (1, 1, 1, 1))
    return prelu(in_, slope, out=out, axis=None, rounding=rounding, counts=counts)


def prelu(
    in_: Tensor, slope: Tensor, *, out: Format, axis: Optional[str] = "c", rounding: str, counts: Counts
) -> Tensor:
    """Negative elements times the slope of their place along an axis.

        out = in                                                  where in >= 0
        out = saturate(round(in * slope[axis] / 2^f_slope))       where in < 0

    slope[axis] is the slope that has the element's index along axis.

    Tensors
        in     [N,C,H,W], fx8 or fx16
        slope  [1,C,1,1], [1,1,H,1] or [1,1,1,W] by axis; of in's type, any frac_bits
        out    of in's shape, type and frac_bits
    Parameters
        axis  c, h or w; c if not given; none and n are refused
    Refused
        other types, shapes, formats or axes
    Counts
        saturated  negative elements whose product saturation changed
    Source
        embARC MLI, release 2.0; release 1.1 has no such kernel.
    Example
        >>> x = fx8([[[[-8, 8]], [[-8, 8]]]], 4)
        >>> run("prelu", in_=x, slope=fx8([32, -64], 6), out=Format("fx8", 4))
        out fx8, frac_bits 4 [1, 2, 1, 2]: [-4, 8, 8, 8]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    need_fixed("in", in_)
    need_same_type("slope", slope, in_)
    need_same_format("out", out, in_)
    if axis is not None:
        only("axis", axis, ("c", "h", "w"))
        shape = tuple(extent if "nchw"[i] == axis else 1 for i, extent in enumerate(in_.values.shape))
        need_shape("slope", slope, shape)
    return sloped(in_, slope, out, rounding, counts)


# ---- tables ----


def through_table(
    in_: Tensor, function: str, lut: str, out: Format, rounding: str, counts: Counts
) -> Tensor:
    need_fixed("in", in_)
    need_same_type("out", out, in_)
    need_unit(out)
    return made(function_of(in_.values, function, lut, in_.dtype, in_.f, rounding, counts), out)


def need_unit(out: Format) -> None:
    unit = unit_frac_bits(out.dtype)
    need(out.f == unit, f"out has {out.f} frac_bits, but must have {unit}")


def sigmoid(in_: Tensor, *, out: Format, lut: str = "mli2_0", rounding: str, counts: Counts) -> Tensor:
    """1 / (1 + e^-x) by a table.

        y   = lookup(sigmoid, in, f_in)              (TABLES; Q.15)
        out = y                        for fx16
        out = saturate(round(y / 2^8)) for fx8

    Tensors
        in   [N,C,H,W], fx8 or fx16, any frac_bits
        out  of in's shape and type; frac_bits 7 (fx8) or 15 (fx16)
    Parameters
        lut  mli2_0 or mli1_1: the set of tables; mli2_0 if not given
    Refused
        other types or shapes; out with other frac_bits
    Counts
        saturated  fx8 outputs that are 128 before saturation, and so 127 after it
    Source
        embARC MLI: tables of release 2.0 (mli2_0) and of release 1.1 (mli1_1), read in the same way.
    Example
        >>> run("sigmoid", in_=fx16([0, 1000, -4096, 32767], 12), out=Format("fx16", 15))
        out fx16, frac_bits 15 [1, 4, 1, 1]: [16384, 18374, 8813, 32757]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    return through_table(in_, "sigmoid", lut, out, rounding, counts)


def tanh(in_: Tensor, *, out: Format, lut: str = "mli2_0", rounding: str, counts: Counts) -> Tensor:
    """The hyperbolic tangent by a table.

        y   = lookup(tanh, in, f_in)                 (TABLES; Q.15)
        out = y                        for fx16
        out = saturate(round(y / 2^8)) for fx8

    Tensors
        in   [N,C,H,W], fx8 or fx16, any frac_bits
        out  of in's shape and type; frac_bits 7 (fx8) or 15 (fx16)
    Parameters
        lut  mli2_0 or mli1_1: the set of tables; mli2_0 if not given
    Refused
        other types or shapes; out with other frac_bits
    Counts
        saturated  fx8 outputs that are 128 before saturation, and so 127 after it
    Source
        embARC MLI: tables of release 2.0 (mli2_0) and of release 1.1 (mli1_1), read in the same way.
    Example
        >>> run("tanh", in_=fx8([0, 8, -16, 127], 4), out=Format("fx8", 7))
        out fx8, frac_bits 7 [1, 4, 1, 1]: [0, 59, -97, 127]
        saturated 1, wrapped 0, divided_by_zero 0, macs 0
    """
    return through_table(in_, "tanh", lut, out, rounding, counts)


# ---- types ----


def convert_tensor(in_: Tensor, *, out: Format, rounding: str, counts: Counts) -> Tensor:
    """Another element type or another format.

        out = saturate(round(in / 2^(f_in - f_out)))      between integers and fixed point
        out = saturate(round(in * 2^f_out))               from fp32
        out = in / 2^f_in                                 to fp32, rounded to 24 bits
        out = in                                          from fp32 to fp32

    Integers have f = 0. An infinity saturates. An integer of more than 24 bits has no exact fp32: it is rounded to 24
    bits by rounding=.

    Tensors
        in   [N,C,H,W], any type
        out  of in's shape, any type and frac_bits
    Parameters
        none but rounding
    Refused
        other shapes; a NaN in in, for every type of out; the refusal has its position
    Counts
        saturated  outputs that saturation changed
    Source
        Arithmetic chapter: "Data Format Conversion". embARC MLI, releases 1.1 and 2.0, for fx8 and fx16.
    Example
        >>> run("convert_tensor", in_=fx16([100, -100, 5000], 8), out=Format("fx8", 5))
        out fx8, frac_bits 5 [1, 3, 1, 1]: [12, -12, 127]
        saturated 1, wrapped 0, divided_by_zero 0, macs 0
    """
    x = in_.values
    need(in_.dtype != "fp32" or not np.isnan(x).any(), "in is NaN")
    if out.dtype == "fp32":
        return made(x if in_.dtype == "fp32" else real(x, in_.f, rounding), out)
    y = quantized(x, out.f, rounding) if in_.dtype == "fp32" else rounded(x, in_.f - out.f, rounding)
    return made(saturated(y, out.dtype, counts), out)
