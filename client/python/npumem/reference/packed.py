"""Operations on packed integers: int8 and uint8, int16 and uint16. Each has a form with a constant, value=."""

from __future__ import annotations

from typing import Optional, Union

import numpy as np

from .integers import RANGES, Array, Counts, clipped, rounded, saturated, wrap
from .tensor import Format, Tensor, made, need, need_range, need_same_type, need_shape

PACKED = ("int8", "uint8", "int16", "uint16")
Operand = Union[Tensor, "Constant"]


class Constant:
    """value= as an operand: of value_dtype, or where that is default of the type that the kernel says."""

    def __init__(self, value: int, value_dtype: str, default: str) -> None:
        self.dtype = default if value_dtype == "default" else value_dtype
        need_range("value", value, *RANGES[self.dtype])
        self.values = np.full((1, 1, 1, 1), value, np.int64)


def width(x: Union[Operand, Format]) -> int:
    return 8 if x.dtype in ("int8", "uint8") else 16


def check(
    in1: Tensor, in2: Operand, out: Format, shifts: tuple[int, ...], rounding: Optional[str],
    acc: Optional[Tensor] = None,
) -> None:  # fmt: skip
    """The refusals that all of them have."""
    for name, x in (("in1", in1), ("in2", in2), ("acc", acc), ("out", out)):
        if x is not None:
            need(x.dtype in PACKED, f"{name} is {x.dtype}, but must be int8, uint8, int16 or uint16")
        if isinstance(x, Tensor):
            need_shape(name, x, in1.values.shape)
    for shift in shifts:
        need_range("rshift or lshift", shift, 0, 31)
    need(rounding in (None, "up"), f"rounding is {rounding}, but packed operations round up")


def need_width(name: str, x: Union[Operand, Format], bits: int) -> None:
    need(width(x) == bits, f"{name} is {x.dtype}, but must have {bits} bits")


def shifted_out(exact: Array, rshift: int, out: Format, counts: Counts) -> Tensor:
    return made(saturated(rounded(exact, rshift, "up"), out.dtype, counts), out)


def summed(
    in1: Tensor, in2: Operand, signs: tuple[int, int], rshift: int, out: Format, rounding: Optional[str], counts: Counts
) -> Tensor:
    check(in1, in2, out, (rshift,), rounding)
    need_width("in2", in2, width(in1))
    return shifted_out(signs[0] * in1.values + signs[1] * in2.values, rshift, out, counts)


def product(
    in1: Tensor, in2: Operand, rshift: int, out: Format, rounding: Optional[str], counts: Counts
) -> Tensor:
    check(in1, in2, out, (rshift,), rounding)
    need_width("in1", in1, 8)
    need_width("in2", in2, 8)
    return shifted_out(in1.values * in2.values, rshift, out, counts)


def multiply_add(
    in1: Tensor, in2: Operand, acc: Tensor, lshift: int, rshift: int, out: Format, rounding: Optional[str],
    counts: Counts,
) -> Tensor:  # fmt: skip
    check(in1, in2, out, (lshift, rshift), rounding, acc)
    for name, x, bits in (("in1", in1, 8), ("in2", in2, 8), ("acc", acc, 16), ("out", out, 16)):
        need_width(name, x, bits)
    exact = acc.values * (1 << lshift) + in1.values * in2.values
    held = wrap(exact, 32)
    counts.wrapped += int(np.count_nonzero(held != exact))
    counts.macs += in1.n
    return shifted_out(held, rshift, out, counts)


def chosen(
    in1: Tensor, in2: Operand, larger: bool, out: Format, rounding: Optional[str], counts: Counts
) -> Tensor:
    check(in1, in2, out, (), rounding)
    need(in2.dtype == in1.dtype, f"in2 is {in2.dtype}, but must be {in1.dtype}")
    need_width("out", out, width(in1))
    y = np.maximum(in1.values, in2.values) if larger else np.minimum(in1.values, in2.values)
    return shifted_out(y, 0, out, counts)


def shifted(in1: Tensor, in2: Operand, bits: Array, out: Format, rounding: Optional[str]) -> Tensor:
    """bits: in1, as the shift to the right sees them."""
    check(in1, in2, out, (), rounding)
    need_width("in1", in1, 16)
    need_width("in2", in2, 16)
    need_same_type("out", out, in1)
    amount = wrap(in2.values, 8)
    left = np.where(amount < 16, bits * (1 << clipped(amount, 0, 15)), 0)
    y = np.where(amount >= 0, left, bits >> clipped(-amount, 0, 31))
    y = wrap(y, 16)
    return made(y if in1.dtype == "int16" else y % 65536, out)


def packed_add(
    in1: Tensor, in2: Tensor, *, out: Format, rshift: int = 0, rounding: Optional[str], counts: Counts
) -> Tensor:
    """Sum of packed integers.

        out = saturate(round((in1 + in2) / 2^rshift))

    A tie rounds up. The exact result is rounded, then saturated to out's type.

    Tensors
        in1   [N,C,H,W], int8, uint8, int16 or uint16
        in2   of in1's shape and width, signed or unsigned
        out   of in1's shape, any of the four types
    Parameters
        rshift  bits by which the exact result is shifted right, rounded; 0 if not given; 0 to 31
    Refused
        other types or shapes; a rounding= other than up
        in1 and in2 of different widths
    Counts
        saturated  outputs that saturation changed
    Source
        The vendor's model of BM1684, whose packed operations have these rules.
    Example
        >>> run("packed_add", in1=tensor([100, -3], "int8"), in2=tensor([100, 0], "uint8"),
        ...     out=Format("int8"), rshift=1)
        out int8 [1, 2, 1, 1]: [100, -1]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    return summed(in1, in2, (1, 1), rshift, out, rounding, counts)

def packed_sub(
    in1: Tensor, in2: Tensor, *, out: Format, rshift: int = 0, rounding: Optional[str], counts: Counts
) -> Tensor:
    """Difference of packed integers.

        out = saturate(round((in1 - in2) / 2^rshift))

    A tie rounds up. The exact result is rounded, then saturated to out's type.

    Tensors
        in1   [N,C,H,W], int8, uint8, int16 or uint16
        in2   of in1's shape and width, signed or unsigned
        out   of in1's shape, any of the four types
    Parameters
        rshift  bits by which the exact result is shifted right, rounded; 0 if not given; 0 to 31
    Refused
        other types or shapes; a rounding= other than up
        in1 and in2 of different widths
    Counts
        saturated  outputs that saturation changed
    Source
        The vendor's model of BM1684, whose packed operations have these rules.
    Example
        >>> run("packed_sub", in1=tensor([1, 200], "uint8"), in2=tensor([5, 0], "uint8"), out=Format("int8"))
        out int8 [1, 2, 1, 1]: [-4, 127]
        saturated 1, wrapped 0, divided_by_zero 0, macs 0
    """
    return summed(in1, in2, (1, -1), rshift, out, rounding, counts)

def packed_mul(
    in1: Tensor, in2: Tensor, *, out: Format, rshift: int = 0, rounding: Optional[str], counts: Counts
) -> Tensor:
    """Product of packed integers of 8 bits.

        out = saturate(round(in1 * in2 / 2^rshift))

    A tie rounds up. The exact result is rounded, then saturated to out's type.

    Tensors
        in1   [N,C,H,W], int8 or uint8
        in2   of in1's shape, int8 or uint8
        out   of in1's shape, any of the four types
    Parameters
        rshift  bits by which the exact result is shifted right, rounded; 0 if not given; 0 to 31
    Refused
        other types or shapes; a rounding= other than up
    Counts
        saturated  outputs that saturation changed
    Source
        The vendor's model of BM1684, whose packed operations have these rules.
    Example
        >>> run("packed_mul", in1=tensor([100, -3], "int8"), in2=tensor([200, 9], "uint8"),
        ...     out=Format("int16"), rshift=1)
        out int16 [1, 2, 1, 1]: [10000, -13]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    return product(in1, in2, rshift, out, rounding, counts)

def packed_mac(
    in1: Tensor, in2: Tensor, acc: Tensor, *,
    out: Format, lshift: int = 0, rshift: int = 0, rounding: Optional[str], counts: Counts,
) -> Tensor:  # fmt: skip
    """Product of packed integers of 8 bits, added to an accumulator of 16 bits.

        out = saturate(round(wrap(acc * 2^lshift + in1 * in2) / 2^rshift))

    The sum is held in 32 bits, which wrap, before it is shifted. A tie rounds up.

    Tensors
        in1   [N,C,H,W], int8 or uint8
        in2   of in1's shape, int8 or uint8
        acc   of in1's shape, int16 or uint16
        out   of in1's shape, int16 or uint16
    Parameters
        lshift  bits by which acc is shifted left; 0 if not given; 0 to 31
        rshift  bits by which the wrapped sum is shifted right, rounded; 0 if not given; 0 to 31
    Refused
        other types or shapes; a rounding= other than up
    Counts
        saturated  outputs that saturation changed
        wrapped    sums that are outside 32 bits
        macs       outputs
    Source
        The vendor's model of BM1684, whose packed operations have these rules.
    Example
        >>> run("packed_mac", in1=tensor([10], "int8"), in2=tensor([20], "int8"), acc=tensor([3], "int16"),
        ...     out=Format("int16"), lshift=4, rshift=3)
        out int16 [1, 1, 1, 1]: [31]
        saturated 0, wrapped 0, divided_by_zero 0, macs 1
    """
    return multiply_add(in1, in2, acc, lshift, rshift, out, rounding, counts)

def packed_min(
    in1: Tensor, in2: Tensor, *, out: Format, rounding: Optional[str], counts: Counts
) -> Tensor:
    """The smaller of two packed integers.

        out = saturate(min(in1, in2))

    Both are of one type. out has their width, and may be signed or unsigned.

    Tensors
        in1   [N,C,H,W], int8, uint8, int16 or uint16
        in2   of in1's shape and type
        out   of in1's shape and width, signed or unsigned
    Parameters
        none
    Refused
        other types or shapes; a rounding= other than up
    Counts
        saturated  outputs that saturation changed: where out's sign is not in1's
    Source
        The vendor's model of BM1684, whose packed operations have these rules.
    Example
        >>> run("packed_min", in1=tensor([1, -5], "int8"), in2=tensor([0, 7], "int8"), out=Format("int8"))
        out int8 [1, 2, 1, 1]: [0, -5]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    return chosen(in1, in2, False, out, rounding, counts)

def packed_max(
    in1: Tensor, in2: Tensor, *, out: Format, rounding: Optional[str], counts: Counts
) -> Tensor:
    """The larger of two packed integers.

        out = saturate(max(in1, in2))

    Both are of one type. out has their width, and may be signed or unsigned.

    Tensors
        in1   [N,C,H,W], int8, uint8, int16 or uint16
        in2   of in1's shape and type
        out   of in1's shape and width, signed or unsigned
    Parameters
        none
    Refused
        other types or shapes; a rounding= other than up
    Counts
        saturated  outputs that saturation changed: where out's sign is not in1's
    Source
        The vendor's model of BM1684, whose packed operations have these rules.
    Example
        >>> run("packed_max", in1=tensor([1, 200], "uint8"), in2=tensor([0, 7], "uint8"), out=Format("int8"))
        out int8 [1, 2, 1, 1]: [1, 127]
        saturated 1, wrapped 0, divided_by_zero 0, macs 0
    """
    return chosen(in1, in2, True, out, rounding, counts)

def packed_arithmetic_shift(
    in1: Tensor, in2: Tensor, *, out: Format, rounding: Optional[str], counts: Counts
) -> Tensor:
    """16-bit integers shifted left, or right with their sign.

        amount >= 0: out = the low 16 bits of in1 * 2^amount
        amount <  0: out = floor(in1 / 2^-amount)

    The amount is in2 modulo 256, as a signed number of 8 bits: -128 to 127. The low 16 bits are read as a signed
    number. An amount of 16 and more gives 0, one of -16 and less 0, or -1 of a negative in1. Nothing rounds, and
    nothing saturates.

    Tensors
        in1   [N,C,H,W], int16
        in2   of in1's shape, int16 or uint16: the low 8 bits, with their sign, are the amount
        out   of in1's shape, int16
    Parameters
        none
    Refused
        other types or shapes; a rounding= other than up
    Counts
        none
    Source
        The vendor's model of BM1684.
    Example
        >>> run("packed_arithmetic_shift", in1=tensor([5, -5, -5], "int16"), in2=tensor([2, -1, -20], "int16"),
        ...     out=Format("int16"))
        out int16 [1, 3, 1, 1]: [20, -3, -1]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    need(in1.dtype == "int16", f"in1 is {in1.dtype}, but must be int16")
    return shifted(in1, in2, in1.values, out, rounding)

def packed_logical_shift(
    in1: Tensor, in2: Tensor, *, out: Format, rounding: Optional[str], counts: Counts
) -> Tensor:
    """16 bits shifted left, or right with zeros.

        amount >= 0: out = the low 16 bits of in1 * 2^amount
        amount <  0: out = floor(u / 2^-amount), u being in1's 16 bits without a sign

    The amount is in2 modulo 256, as a signed number of 8 bits: -128 to 127. The 16 bits of the result are read as a
    number of out's type. An amount of 16 and more, or of -16 and less, gives 0. Nothing rounds, and nothing saturates.

    Tensors
        in1   [N,C,H,W], int16 or uint16
        in2   of in1's shape, int16 or uint16: the low 8 bits, with their sign, are the amount
        out   of in1's shape and type
    Parameters
        none
    Refused
        other types or shapes; a rounding= other than up
    Counts
        none
    Source
        The vendor's model of BM1684.
    Example
        >>> run("packed_logical_shift", in1=tensor([5, -5, -5], "int16"), in2=tensor([2, -1, -20], "int16"),
        ...     out=Format("int16"))
        out int16 [1, 3, 1, 1]: [20, 32765, 0]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    return shifted(in1, in2, in1.values % 65536, out, rounding)

def packed_add_c(
    in1: Tensor, *,
    out: Format, value: int, value_dtype: str = "default", rshift: int = 0, rounding: Optional[str], counts: Counts,
) -> Tensor:  # fmt: skip
    """Sum of packed integers and a constant.

        out = saturate(round((in1 + value) / 2^rshift))

    A tie rounds up. The exact result is rounded, then saturated to out's type.

    Tensors
        in1   [N,C,H,W], int8, uint8, int16 or uint16
        out   of in1's shape, any of the four types
    Parameters
        value        the constant, an integer of value_dtype's range; must be given
        value_dtype  int8, uint8, int16, uint16 or default; default if not given, which is in1's type;
                     of in1's width; it does not change out's type
        rshift       bits by which the exact result is shifted right, rounded; 0 if not given; 0 to 31
    Refused
        other types or shapes; a rounding= other than up
        a value that is not of value_dtype's range
        a value_dtype of another width than in1
    Counts
        saturated  outputs that saturation changed
    Source
        The vendor's model of BM1684, whose packed operations have these rules.
    Example
        >>> run("packed_add_c", in1=tensor([100, -3], "int8"), out=Format("int8"), value=50)
        out int8 [1, 2, 1, 1]: [127, 47]
        saturated 1, wrapped 0, divided_by_zero 0, macs 0
    """
    constant = Constant(value, value_dtype, in1.dtype)
    return summed(in1, constant, (1, 1), rshift, out, rounding, counts)

def packed_sub_c(
    in1: Tensor, *,
    out: Format, value: int, value_dtype: str = "default", rshift: int = 0, rounding: Optional[str], counts: Counts,
) -> Tensor:  # fmt: skip
    """Packed integers less a constant.

        out = saturate(round((in1 - value) / 2^rshift))

    A tie rounds up. The exact result is rounded, then saturated to out's type.

    Tensors
        in1   [N,C,H,W], int8, uint8, int16 or uint16
        out   of in1's shape, any of the four types
    Parameters
        value        the constant, an integer of value_dtype's range; must be given
        value_dtype  int8, uint8, int16, uint16 or default; default if not given, which is in1's type;
                     of in1's width; it does not change out's type
        rshift       bits by which the exact result is shifted right, rounded; 0 if not given; 0 to 31
    Refused
        other types or shapes; a rounding= other than up
        a value that is not of value_dtype's range
        a value_dtype of another width than in1
    Counts
        saturated  outputs that saturation changed
    Source
        The vendor's model of BM1684, whose packed operations have these rules.
    Example
        >>> run("packed_sub_c", in1=tensor([100, 3], "uint8"), out=Format("int16"), value=50, rshift=1)
        out int16 [1, 2, 1, 1]: [25, -23]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    constant = Constant(value, value_dtype, in1.dtype)
    return summed(in1, constant, (1, -1), rshift, out, rounding, counts)

def packed_c_sub(
    in1: Tensor, *,
    out: Format, value: int, value_dtype: str = "default", rshift: int = 0, rounding: Optional[str], counts: Counts,
) -> Tensor:  # fmt: skip
    """A constant less packed integers.

        out = saturate(round((value - in1) / 2^rshift))

    A tie rounds up. The exact result is rounded, then saturated to out's type.

    Tensors
        in1   [N,C,H,W], int8, uint8, int16 or uint16
        out   of in1's shape, any of the four types
    Parameters
        value        the constant, an integer of value_dtype's range; must be given
        value_dtype  int8, uint8, int16, uint16 or default; default if not given, which is in1's type;
                     of in1's width; it does not change out's type
        rshift       bits by which the exact result is shifted right, rounded; 0 if not given; 0 to 31
    Refused
        other types or shapes; a rounding= other than up
        a value that is not of value_dtype's range
        a value_dtype of another width than in1
    Counts
        saturated  outputs that saturation changed
    Source
        The vendor's model of BM1684, whose packed operations have these rules.
    Example
        >>> run("packed_c_sub", in1=tensor([100, 3], "uint8"), out=Format("uint8"), value=50)
        out uint8 [1, 2, 1, 1]: [0, 47]
        saturated 1, wrapped 0, divided_by_zero 0, macs 0
    """
    constant = Constant(value, value_dtype, in1.dtype)
    return summed(in1, constant, (-1, 1), rshift, out, rounding, counts)

def packed_mul_c(
    in1: Tensor, *,
    out: Format, value: int, value_dtype: str = "default", rshift: int = 0, rounding: Optional[str], counts: Counts,
) -> Tensor:  # fmt: skip
    """Product of packed integers of 8 bits and a constant.

        out = saturate(round(in1 * value / 2^rshift))

    A tie rounds up. The exact result is rounded, then saturated to out's type.

    Tensors
        in1   [N,C,H,W], int8 or uint8
        out   of in1's shape, any of the four types
    Parameters
        value        the constant, an integer of value_dtype's range; must be given
        value_dtype  int8, uint8, int16, uint16 or default; default if not given, which is in1's type;
                     of 8 bits; it does not change out's type
        rshift       bits by which the exact result is shifted right, rounded; 0 if not given; 0 to 31
    Refused
        other types or shapes; a rounding= other than up
        a value that is not of value_dtype's range
        a value_dtype of 16 bits
    Counts
        saturated  outputs that saturation changed
    Source
        The vendor's model of BM1684, whose packed operations have these rules.
    Example
        >>> run("packed_mul_c", in1=tensor([100, -3], "int8"), out=Format("int16"), value=-5)
        out int16 [1, 2, 1, 1]: [-500, 15]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    constant = Constant(value, value_dtype, in1.dtype)
    return product(in1, constant, rshift, out, rounding, counts)

def packed_mac_c(
    in1: Tensor, acc: Tensor, *,
    out: Format, value: int, value_dtype: str = "default", lshift: int = 0, rshift: int = 0,
    rounding: Optional[str], counts: Counts,
) -> Tensor:  # fmt: skip
    """Product of packed integers of 8 bits and a constant, added to an accumulator of 16 bits.

        out = saturate(round(wrap(acc * 2^lshift + in1 * value) / 2^rshift))

    The sum is held in 32 bits, which wrap, before it is shifted. A tie rounds up.

    Tensors
        in1   [N,C,H,W], int8 or uint8
        acc   of in1's shape, int16 or uint16
        out   of in1's shape, int16 or uint16
    Parameters
        value        the constant, an integer of value_dtype's range; must be given
        value_dtype  int8, uint8, int16, uint16 or default; default if not given, which is in1's type;
                     of 8 bits; it does not change out's type
        lshift       bits by which acc is shifted left; 0 if not given; 0 to 31
        rshift       bits by which the wrapped sum is shifted right, rounded; 0 if not given; 0 to 31
    Refused
        other types or shapes; a rounding= other than up
        a value that is not of value_dtype's range
        a value_dtype of 16 bits
    Counts
        saturated  outputs that saturation changed
        wrapped    sums that are outside 32 bits
        macs       outputs
    Source
        The vendor's model of BM1684, whose packed operations have these rules.
    Example
        >>> run("packed_mac_c", in1=tensor([10], "int8"), acc=tensor([32767], "int16"),
        ...     out=Format("int16"), value=20, lshift=20)
        out int16 [1, 1, 1, 1]: [-32768]
        saturated 1, wrapped 1, divided_by_zero 0, macs 1
    """
    constant = Constant(value, value_dtype, in1.dtype)
    return multiply_add(in1, constant, acc, lshift, rshift, out, rounding, counts)

def packed_min_c(
    in1: Tensor, *, out: Format, value: int, value_dtype: str = "default", rounding: Optional[str], counts: Counts
) -> Tensor:
    """The smaller of packed integers and a constant.

        out = saturate(min(in1, value))

    value is of in1's type. out has in1's width, and may be signed or unsigned.

    Tensors
        in1   [N,C,H,W], int8, uint8, int16 or uint16
        out   of in1's shape and width, signed or unsigned
    Parameters
        value        the constant, an integer of value_dtype's range; must be given
        value_dtype  int8, uint8, int16, uint16 or default; default if not given, which is in1's type;
                     in1's type alone; it does not change out's type
    Refused
        other types or shapes; a rounding= other than up
        a value that is not of value_dtype's range
        a value_dtype other than in1's type
    Counts
        saturated  outputs that saturation changed: where out's sign is not in1's
    Source
        The vendor's model of BM1684, whose packed operations have these rules.
    Example
        >>> run("packed_min_c", in1=tensor([1, 200], "uint8"), out=Format("uint8"), value=100)
        out uint8 [1, 2, 1, 1]: [1, 100]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    constant = Constant(value, value_dtype, in1.dtype)
    return chosen(in1, constant, False, out, rounding, counts)

def packed_max_c(
    in1: Tensor, *, out: Format, value: int, value_dtype: str = "default", rounding: Optional[str], counts: Counts
) -> Tensor:
    """The larger of packed integers and a constant.

        out = saturate(max(in1, value))

    value is of in1's type. out has in1's width, and may be signed or unsigned.

    Tensors
        in1   [N,C,H,W], int8, uint8, int16 or uint16
        out   of in1's shape and width, signed or unsigned
    Parameters
        value        the constant, an integer of value_dtype's range; must be given
        value_dtype  int8, uint8, int16, uint16 or default; default if not given, which is in1's type;
                     in1's type alone; it does not change out's type
    Refused
        other types or shapes; a rounding= other than up
        a value that is not of value_dtype's range
        a value_dtype other than in1's type
    Counts
        saturated  outputs that saturation changed: where out's sign is not in1's
    Source
        The vendor's model of BM1684, whose packed operations have these rules.
    Example
        >>> run("packed_max_c", in1=tensor([-1, -50], "int8"), out=Format("uint8"), value=-5)
        out uint8 [1, 2, 1, 1]: [0, 0]
        saturated 2, wrapped 0, divided_by_zero 0, macs 0
    """
    constant = Constant(value, value_dtype, in1.dtype)
    return chosen(in1, constant, True, out, rounding, counts)

def packed_arithmetic_shift_c(
    in1: Tensor, *, out: Format, value: int, value_dtype: str = "default", rounding: Optional[str], counts: Counts
) -> Tensor:
    """16-bit integers shifted left, or right with their sign, by a constant.

        amount >= 0: out = the low 16 bits of in1 * 2^amount
        amount <  0: out = floor(in1 / 2^-amount)

    The amount is value modulo 256, as a signed number of 8 bits: -128 to 127. The low 16 bits are read as a signed
    number. An amount of 16 and more gives 0, one of -16 and less 0, or -1 of a negative in1. Nothing rounds, and
    nothing saturates.

    Tensors
        in1   [N,C,H,W], int16
        out   of in1's shape, int16
    Parameters
        value        the constant, an integer of value_dtype's range; must be given
        value_dtype  int8, uint8, int16, uint16 or default; default if not given, which is int16;
                     of 16 bits
    Refused
        other types or shapes; a rounding= other than up
        a value that is not of value_dtype's range
        a value_dtype of 8 bits
    Counts
        none
    Source
        The vendor's model of BM1684 has the form without a constant; it stops at this one.
    Example
        >>> run("packed_arithmetic_shift_c", in1=tensor([5, -5], "int16"), out=Format("int16"), value=-1)
        out int16 [1, 2, 1, 1]: [2, -3]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    constant = Constant(value, value_dtype, "int16")
    need(in1.dtype == "int16", f"in1 is {in1.dtype}, but must be int16")
    return shifted(in1, constant, in1.values, out, rounding)

def packed_logical_shift_c(
    in1: Tensor, *, out: Format, value: int, value_dtype: str = "default", rounding: Optional[str], counts: Counts
) -> Tensor:
    """16 bits shifted left, or right with zeros, by a constant.

        amount >= 0: out = the low 16 bits of in1 * 2^amount
        amount <  0: out = floor(u / 2^-amount), u being in1's 16 bits without a sign

    The amount is value modulo 256, as a signed number of 8 bits: -128 to 127. The 16 bits of the result are read as a
    number of out's type. An amount of 16 and more, or of -16 and less, gives 0. Nothing rounds, and nothing saturates.

    Tensors
        in1   [N,C,H,W], int16 or uint16
        out   of in1's shape and type
    Parameters
        value        the constant, an integer of value_dtype's range; must be given
        value_dtype  int8, uint8, int16, uint16 or default; default if not given, which is int16;
                     of 16 bits
    Refused
        other types or shapes; a rounding= other than up
        a value that is not of value_dtype's range
        a value_dtype of 8 bits
    Counts
        none
    Source
        The vendor's model of BM1684 has the form without a constant; it stops at this one.
    Example
        >>> run("packed_logical_shift_c", in1=tensor([5, -5], "int16"), out=Format("int16"), value=-1)
        out int16 [1, 2, 1, 1]: [2, 32765]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    constant = Constant(value, value_dtype, "int16")
    return shifted(in1, constant, in1.values % 65536, out, rounding)
