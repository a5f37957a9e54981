"""Kernels whose outputs depend on several elements along axes: softmax, l2_normalize, sums, maxima, places."""

from __future__ import annotations

from typing import Callable, Optional

import numpy as np

from .elementwise import need_unit
from .integers import FIXED, RANGES, Array, Counts, accumulated, accumulator_bits, rounded, saturated
from .tables import function_of, lookup
from .tensor import PRODUCTS_MAX, Format, Tensor, made, need, need_fixed, need_range, need_same_type, only


def by_group(in_: Tensor, axis: Optional[str], of_group: Callable[[Array], Array]) -> Array:
    """of_group for each group of elements: all of the tensor, or those that differ in their index along axis alone."""
    x = in_.values
    need(axis is not None or x.shape[0] == 1, "axis must be given for N > 1")
    only("axis", axis, (None, "none", "c", "h", "w"))
    if axis in (None, "none"):
        return of_group(x.reshape(-1)).reshape(x.shape)
    return np.apply_along_axis(of_group, "nchw".index(str(axis)), x)


def bits_of(x: int) -> int:
    return x.bit_length()


def softmax(
    in_: Tensor, *, out: Format, axis: Optional[str] = None, lut: str = "mli2_0", rounding: str, counts: Counts
) -> Tensor:
    """e^x over the sum of e^x, of a group of elements.

        for each group x:
        fx16: e = lookup(exp, x - max(x), f_in)                                      (TABLES; Q.15)
        fx8:  if min(x) - max(x) < -128: x = floor(x / 2), f = f_in - 1; else f = f_in
              e = saturate(round(lookup(exp, x - max(x), f) / 2^8))                  (Q.7)
        S     = sum of e;  b = the number of bits of S, so that 2^(b-1) <= S < 2^b
        mant  = min(round(S / 2^(b - 15)), 32767);  rec = min(floor(2^29 / mant), 32767)
        out   = saturate(round(e * rec / 2^(b - 1)))      for fx16
        out   = saturate(round(e * rec / 2^(b + 7)))      for fx8

    If x is halved, max(x) is the maximum of the halved x. f may be -1. A group is the elements along axis, at one index of each other
    dimension; without an axis, the whole tensor.

    Tensors
        in   [N,C,H,W], fx8 or fx16, any frac_bits
        out  of in's shape and type; frac_bits 7 (fx8) or 15 (fx16)
    Parameters
        axis  none, c, h or w; n is refused; none if not given and N = 1. If N > 1, axis must be named; axis=none then
              makes the whole batch one group
        lut   mli2_0 or mli1_1: the set of tables; mli2_0 if not given
    Refused
        other types or shapes; out with other frac_bits; N > 1 without axis
    Counts
        saturated  outputs that saturation changed; e does not count
    Source
        embARC MLI: fx16 of release 2.0, fx8 of release 1.1. The fx8 softmax of release 2.0 gives zeros, and is
        not followed. Release 1.1 halves fx16 inputs too, where their spread exceeds 16 bits, and has no axis.
    Example
        >>> run("softmax", in_=fx16([4096, 0, -4096], 12), out=Format("fx16", 15), axis="c")
        out fx16, frac_bits 15 [1, 3, 1, 1]: [21798, 8020, 2950]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    need_fixed("in", in_)
    need_same_type("out", out, in_)
    need_unit(out)
    narrow = in_.dtype == "fx8"

    def of_group(x: Array) -> Array:
        halved = int(narrow and x.min() - x.max() < -128)
        e = function_of((x >> halved) - (x.max() >> halved), "exp", lut, in_.dtype, in_.f - halved, rounding)
        total = e.sum()
        bits = bits_of(int(total))
        mantissa = min(int(rounded(total, bits - 15, rounding)), 32767)
        factor = min((1 << 29) // mantissa, 32767)
        return saturated(rounded(e * factor, bits + 7 if narrow else bits - 1, rounding), out.dtype, counts)

    return made(by_group(in_, axis, of_group), out)


def l2_normalize(
    in_: Tensor, *, out: Format, axis: Optional[str] = None, rounding: str, counts: Counts
) -> Tensor:
    """x over the root of the sum of squares, of a group of elements.

        for each group x:
        S     = sum of x * x;  b = the number of bits of S (0 for S = 0)
        shift = b - 15, or b - 14 where b - 15 is odd                          (always even)
        mant  = min(round(S / 2^shift), 32767)                                 (read as Q.8)
        r     = lookup(invsqrt, mant, 8)                                       (TABLES; Q.17)
        out   = saturate(round(x * r / 2^(2 + (shift + 8) / 2)))

    No epsilon is added: a group of zeros gives zeros. The result does not depend on in's frac_bits. A negative shift
    multiplies. A group is the elements along axis, at one index of each other dimension; without an axis, the whole
    tensor.

    Tensors
        in   [N,C,H,W], fx16, any frac_bits
        out  of in's shape, fx16, frac_bits 15
    Parameters
        axis  none, c, h or w; n is refused; none if not given and N = 1. If N > 1, axis must be named; axis=none then
              makes the whole batch one group
    Refused
        fx8; other types or shapes; out with other frac_bits; N > 1 without axis; groups of more than 2^32 elements
    Counts
        saturated  outputs that saturation changed
        macs       elements of in
    Source
        embARC MLI, release 2.0; release 1.1 has no such kernel.
    Example
        >>> run("l2_normalize", in_=fx16([300, 400], 8), out=Format("fx16", 15))
        out fx16, frac_bits 15 [1, 2, 1, 1]: [19661, 26214]
        saturated 0, wrapped 0, divided_by_zero 0, macs 2
    """
    need(in_.dtype == "fx16", f"in is {in_.dtype}, but must be fx16")
    need_same_type("out", out, in_)
    need_unit(out)

    def of_group(x: Array) -> Array:
        need(x.size <= PRODUCTS_MAX, "a group sums too many squares")
        total = (x * x).sum()
        shift = bits_of(int(total)) - 15
        shift += shift % 2
        mantissa = np.minimum(rounded(total, shift, rounding), 32767)
        factor = lookup(mantissa, "invsqrt", "mli2_0", 8, rounding)
        return saturated(rounded(x * factor, 2 + (shift + 8) // 2, rounding), out.dtype, counts)

    counts.macs += in_.n
    return made(by_group(in_, axis, of_group), out)


def reduced(in_: Tensor, out: Format, axes: Optional[tuple[str, ...]]) -> tuple[int, ...]:
    need_fixed("in", in_)
    need_same_type("out", out, in_)
    names = tuple("nchw") if axes is None else axes
    need(len(set(names)) == len(names), "axes names one twice")
    return tuple("nchw".index(name) for name in names)


def reduce_sum(
    in_: Tensor, *, out: Format, axes: Optional[tuple[str, ...]] = None, rounding: str, counts: Counts
) -> Tensor:
    """Sums along axes.

        out = saturate(round(wrap(sum of in along axes) / 2^(f_in - f_out)))

    Tensors
        in   [N,C,H,W], fx8 or fx16
        out  in's shape with 1 along axes; of in's type, any frac_bits
    Parameters
        axes  one to four of n, c, h, w; all if not given
    Refused
        other types or shapes; an axis that is named twice
    Counts
        saturated  outputs that saturation changed
        wrapped    sums that are outside the accumulator, of 32 bits for fx8 and 40 bits for fx16, possible
                   only for more than 2^24 terms
    Source
        Arithmetic chapter: "Accumulation". npumem's own; embARC MLI has no such kernel.
    Example
        >>> run("reduce_sum", in_=fx8([[[[1, 2], [3, 4]]]], 4), out=Format("fx8", 3), axes=("w",))
        out fx8, frac_bits 3 [1, 1, 2, 1]: [2, 4]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    total = in_.values.sum(axis=reduced(in_, out, axes), keepdims=True)
    held = accumulated(total, accumulator_bits(in_.dtype), counts)
    return made(saturated(rounded(held, in_.f - out.f, rounding), out.dtype, counts), out)


def reduce_max(
    in_: Tensor, *, out: Format, axes: Optional[tuple[str, ...]] = None, rounding: str, counts: Counts
) -> Tensor:
    """Maxima along axes.

        out = saturate(round((maximum of in along axes) / 2^(f_in - f_out)))

    Tensors
        in   [N,C,H,W], fx8 or fx16
        out  in's shape with 1 along axes; of in's type, any frac_bits
    Parameters
        axes  one to four of n, c, h, w; all if not given
    Refused
        other types or shapes; an axis that is named twice
    Counts
        saturated  outputs that saturation changed: none where f_out = f_in
    Source
        npumem's own; embARC MLI has no such kernel.
    Example
        >>> run("reduce_max", in_=fx8([[[[1, 2], [3, 4]]]], 4), out=Format("fx8", 4), axes=("h", "w"))
        out fx8, frac_bits 4 [1, 1, 1, 1]: [4]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    most = in_.values.max(axis=reduced(in_, out, axes), keepdims=True)
    return made(saturated(rounded(most, in_.f - out.f, rounding), out.dtype, counts), out)


def argmax(
    in_: Tensor, *, out: Format, axis: str = "none", topk: int = 1, rounding: str, counts: Counts
) -> Tensor:
    """Indices of the largest elements: of all, or for each index along one axis.

        without an axis: out[0,k,0,0] = index of the k-th largest element of in
        with an axis:    out[0,a,0,k] = index of the k-th largest of the elements of in that have index a along axis

    axis is the dimension that is kept; all others are searched. NumPy's axis is the opposite. Example: axis=c finds for
    each channel the largest element of its N, H and W. With an axis, out's dimension C has the indices a, also for axis
    n, h and w. The index of an element is ((n*C + c)*H + h)*W + w for every axis. k counts from 0. The largest element
    comes first; of equal elements, the one with the lower index comes first.

    Tensors
        in   [N,C,H,W], fx8, fx16 or an integer type; at most 2^31 elements
        out  int32; [1,topk,1,1], or with an axis [1,A,1,topk], A being in's extent along axis
    Parameters
        axis  none, n, c, h or w; none if not given
        topk  a number; 1 if not given; 1 to the number of elements that are compared: all, or those of one index along
              axis
    Refused
        fp32; other types or shapes; topk beyond its limits
    Counts
        none
    Source
        embARC MLI, release 2.0, where the order of equal elements is not defined.
    Example
        >>> x = fx8([[[[5, 9]], [[9, 1]]]], 0)
        >>> run("argmax", in_=x, out=Format("int32"), axis="w")
        out int32 [1, 2, 1, 1]: [2, 1]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    x = in_.values
    need(in_.dtype != "fp32", "in is fp32")
    need(out.dtype == "int32", f"out is {out.dtype}, but must be int32")
    need(in_.n <= 2**31, "in has more elements than int32 counts")
    indices = np.arange(in_.n).reshape(x.shape)
    if axis == "none":
        groups = [indices.reshape(-1)]
    else:
        groups = list(np.moveaxis(indices, "nchw".index(axis), 0).reshape(x.shape["nchw".index(axis)], -1))
    need_range("topk", topk, 1, groups[0].size)
    values = x.reshape(-1)
    best = np.array([sorted(group, key=lambda i: (-values[i], i))[:topk] for group in groups], np.int64)
    return made(best.reshape(1, topk, 1, 1) if axis == "none" else best[None, :, None, :], out)


# ---- the order of elements ----


def need_same(out: Format, in_: Format) -> None:
    need_same_type("out", out, in_)
    need(out.f == in_.f, f"out has {out.f} frac_bits, but must have {in_.f}")


def permute(in_: Tensor, *, out: Format, perm: tuple[int, ...], rounding: str, counts: Counts) -> Tensor:
    """Dimensions in another order.

        extent of out along dimension k = extent of in along dimension perm[k]
        out[j_0, j_1, j_2, j_3] = in[i_0, i_1, i_2, i_3]

    Dimension k of out is dimension perm[k] of in: the index of in along dimension perm[k] is j_k. perm = 0,2,3,1 makes
    [N,H,W,C] of [N,C,H,W]: out[n,h,w,c] = in[n,c,h,w].

    Tensors
        in   [N,C,H,W], any type
        out  the permuted shape, of in's type and frac_bits
    Parameters
        perm  four numbers, each of 0 (N), 1 (C), 2 (H), 3 (W) once; or three, each of 0 (C), 1 (H), 2 (W) once, where N
              stays; must be given
    Refused
        other types, shapes or formats; a dimension that is named twice
    Counts
        none
    Source
        embARC MLI, releases 1.1 and 2.0, which permute C,H,W.
    Example
        >>> run("permute", in_=fx8([[[[1, 2]], [[3, 4]]]], 0), out=Format("fx8", 0), perm=(0, 3, 2, 1))
        out fx8, frac_bits 0 [1, 2, 1, 2]: [1, 3, 2, 4]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    need(sorted(perm) == list(range(len(perm))), "perm does not name each dimension once")
    need_same(out, in_)
    whole = perm if len(perm) == 4 else (0, *(d + 1 for d in perm))
    return made(in_.values.transpose(whole).copy(), out)


def moved(x: Tensor, out: Format, rounding: str, counts: Counts) -> Array:
    """The elements of x in out's format."""
    if x.dtype not in FIXED:
        need_same_type("out", out, x)
        return x.values
    need_fixed("out", out)
    return saturated(rounded(x.values, x.f - out.f, rounding), out.dtype, counts)


def concat(in_: list[Tensor], *, out: Format, axis: str = "none", rounding: str, counts: Counts) -> Tensor:
    """Several tensors, one behind the other along an axis.

        index a of out along axis is index a of in0 for a < A0, index a - A0 of in1 for A0 <= a < A0 + A1, …
        out[…, a, …] = saturate(round(in_k[…, a - (A0 + … + A(k-1)), …] / 2^(f_k - f_out)))

    A0, A1, … are the inputs' extents along axis. f_k and f_out are frac_bits, and 0 for types that have none.

    Tensors
        in0, in1, …  any type; all of one type. Exception: fx8 and fx16 may be mixed, each with any frac_bits. The shapes
                     are equal except along axis
        out          of the inputs' type; of fixed-point inputs fx8 or fx16 with any frac_bits. Along axis its extent is
                     the sum of theirs
    Parameters
        axis  n, c, h or w; must be given; none is refused
    Refused
        other types or shapes; no axis
    Counts
        saturated  outputs that saturation changed; an input in out's format has none
    Source
        embARC MLI, release 1.1, which has one format; release 2.0 has no such kernel.
    Example
        >>> run("concat", in_=[fx8([1, 2], 0), fx8([3], 1)], out=Format("fx8", 0), axis="c")
        out fx8, frac_bits 0 [1, 3, 1, 1]: [1, 2, 2]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    only("axis", axis, ("n", "c", "h", "w"))
    at = "nchw".index(axis)
    for x in in_:
        others = [tuple(np.delete(t.values.shape, at)) for t in (x, in_[0])]
        need(others[0] == others[1], f"shapes {others} differ beside axis {axis}")
    return made(np.concatenate([moved(x, out, rounding, counts) for x in in_], at), out)


def pad2d(
    in_: Tensor, *, out: Format, padding: tuple[int, int, int, int] = (0, 0, 0, 0), value: int = 0, rounding: str,
    counts: Counts,
) -> Tensor:  # fmt: skip
    """Elements of one value around H and W.

        out[n,c,y,x] = saturate(round(in[n, c, y - top, x - left] / 2^(f_in - f_out)))   where that exists
        out[n,c,y,x] = value                                                             elsewhere

    f_in and f_out are frac_bits, and 0 for types that have none.

    Tensors
        in   [N,C,H,W], any type
        out  [N, C, top + H + bottom, left + W + right], of in's type or, where that is fx8 or fx16, either of them with any
             frac_bits
    Parameters
        padding  top,bottom,left,right in elements; 0,0,0,0 if not given; 0 to 2^31 - 1
        value    an integer of out's container, of fp32 a whole number; 0 if not given; the container's range, of fp32
                 -2^24 to 2^24
    Refused
        other types or shapes; a value that is out of range
    Counts
        saturated  outputs that saturation changed, none where f_out = f_in
    Source
        embARC MLI, release 1.1, which pads with zeros; release 2.0 has no such kernel.
    Example
        >>> run("pad2d", in_=fx8([[[[1, 2]]]], 0), out=Format("fx8", 0), padding=(1, 0, 0, 1), value=-1)
        out fx8, frac_bits 0 [1, 1, 2, 3]: [-1, -1, -1, 1, 2, -1]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    for side in padding:
        need_range("padding", side, 0, 2**31 - 1)
    need_range("value", value, *RANGES.get(out.dtype, (-(2**24), 2**24)))
    top, bottom, left, right = padding
    return made(np.pad(moved(in_, out, rounding, counts), ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=value), out)
