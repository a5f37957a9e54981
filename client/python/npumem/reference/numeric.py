"""Formats Qm.n, the formats of sums, products and quotients, and the range of an accumulator.

A number of the format Qm.n has a sign, m integer bits and n fractional bits: it is an integer x with -2^(m+n) <= x <
2^(m+n), and means x / 2^n. fx8 with frac_bits f is Q(7-f).f, fx16 is Q(15-f).f; either may be negative."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

from .integers import RANGES, accumulator_bits
from .tensor import need, need_range

BITS_MAX = 1023


class Q(NamedTuple):
    """A format Qm.n."""

    m: int
    n: int

    def __str__(self) -> str:
        return f"Q{self.m}.{self.n}"

    @property
    def significant_bits(self) -> int:
        return self.m + self.n


def parse(text: str) -> Q:
    """The format of a text like "Q4.3" or "Q4.-4"."""
    match = re.fullmatch(r"Q(-?\d{1,9})\.(-?\d{1,9})", text)
    need(match is not None, f"{text!r} is not a format like Q4.3")
    assert match is not None
    return checked(Q(int(match[1]), int(match[2])))


def checked(x: Q) -> Q:
    need_range("integer bits", x.m, -BITS_MAX, BITS_MAX)
    need_range("fractional bits", x.n, -BITS_MAX, BITS_MAX)
    need(x.significant_bits >= 0, f"{x} has fewer than 0 bits")
    return x


def of(dtype: str, frac_bits: int) -> Q:
    """The format of fx8 or fx16 with frac_bits."""
    return Q({"fx8": 7, "fx16": 15}[dtype] - frac_bits, frac_bits)


def add(x: Q, y: Q) -> Q:
    """The format of x + y and x - y: Q(max(m1, m2) + 1).max(n1, n2). The operand with the smaller n is shifted left."""
    return Q(max(x.m, y.m) + 1, max(x.n, y.n))


def mul(x: Q, y: Q) -> Q:
    """The format of x * y: Q(m1+m2).(n1+n2). Only the product of the two least numbers is out of its range, one step
    above the largest. Q(m1+m2+1).(n1+n2) holds every product."""
    return Q(x.m + y.m, x.n + y.n)


def div(x: Q, y: Q) -> Q:
    """The format of x / y by division of the integers: Q(m1-m2).(n1-n2). It is right for divisors near the ends of their
    range. Q(m1+n2+1).(n1-n2) holds every quotient. If m + n of the result is 0 or less, no precision is left; then
    shift the dividend left first."""
    return Q(x.m - y.m, x.n - y.n)


def extra_bits(n: int) -> int:
    """ceil(log2 n): the integer bits that a sum of n values needs in addition to those of one value."""
    return max(n - 1, 0).bit_length()


def total(x: Q, n: int) -> Q:
    """The format of the sum of n values of the format x."""
    need(n >= 1, "a sum of no values")
    return Q(x.m + extra_bits(n), x.n)


class Bound(NamedTuple):
    """The range of one accumulator, and the extremes of its total.

    accumulator_bits  32 or 40
    low, high         the range
    safe              the largest number of products (or values) whose total with the bias is in range for all operands;
                      -1: the bias alone can be out of range
    least, most       the exact extremes of the total
    can_overflow      whether they are out of range"""

    accumulator_bits: int
    low: int
    high: int
    safe: int
    least: int
    most: int
    can_overflow: bool


def bound(
    data: str, weights: Optional[str], n: int, data_frac_bits: int = 0, weights_frac_bits: int = 0,
    bias_frac_bits: Optional[int] = None,
) -> Bound:  # fmt: skip
    """The Bound of n products of data and weights and a bias of the weights' type. data and weights are types; without
    weights (None) n values of data are added. Without bias_frac_bits there is no bias.

        least, most = n * (extremes of one product) + (extremes of the bias) * 2^(f_data + f_weights - f_bias)

    The accumulator has 32 bits for fx8 data and 40 bits for fx16 data: [-2^31, 2^31) or [-2^39, 2^39). Because
    -128 * -128 is 2^14, the largest numbers of products that never overflow are 131071 for fx8, 511 for fx16 and 131071
    for fx16 data with fx8 weights; of values without weights 2^24, of either type."""
    bits = accumulator_bits(data)
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    d, w = RANGES[data], RANGES[weights] if weights else (1, 1)
    one = [a * b for a in d for b in w]
    bias = (0, 0)
    if bias_frac_bits is not None and weights:
        need(bias_frac_bits <= data_frac_bits + weights_frac_bits, "the bias has too many frac_bits")
        bias = tuple(x << (data_frac_bits + weights_frac_bits - bias_frac_bits) for x in w)  # type: ignore[assignment]
    above, below = high - bias[1], bias[0] - low
    safe = min(above // max(one) if above >= 0 else -1, below // -min(one) if below >= 0 else -1)
    least, most = n * min(one) + bias[0], n * max(one) + bias[1]
    return Bound(bits, low, high, safe, least, most, least < low or most > high)
