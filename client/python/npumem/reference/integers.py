"""How the device rounds, saturates and accumulates: on arrays of exact integers (int64, or Python's integers in an
array of objects where 64 bits do not hold the result). Every kernel is written with these functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# The containers of the element types: the least and the largest integer. fp32 has none.
RANGES = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "fx8": (-128, 127),
    "fx16": (-32768, 32767),
}
FIXED = ("fx8", "fx16")
EXACT_BITS = 60  # sums of two such numbers fit int64


@dataclass
class Counts:
    """The counters of a run; a kernel adds to them."""

    saturated: int = 0
    wrapped: int = 0
    divided_by_zero: int = 0
    macs: int = 0


def times(x: Array, n: int) -> Array:
    """x * 2^n, exactly, n >= 0."""
    most = max((abs(int(x.max())), abs(int(x.min())))) if x.size else 0
    if most.bit_length() + n > EXACT_BITS:
        x = x.astype(object)
    return x * (1 << n)


def divided(a: Array, b: Any, rounding: str) -> Array:
    """a / b for b > 0, rounded to an integer. Of a tie, `up` takes the larger integer, `convergent` the even one,
    `nearest` the one further from zero."""
    whole = a // b
    rest = (a - whole * b) * 2
    if rounding == "up":
        tie = np.ones(a.shape, bool)
    elif rounding == "convergent":
        tie = whole % 2 == 1
    elif rounding == "nearest":
        tie = a >= 0
    else:
        raise ValueError(f"there is no rounding {rounding!r}")
    up: Array = (rest > b) | ((rest == b) & tie)
    return np.asarray(whole + up.astype(int))


def rounded(x: Array, shift: int, rounding: str) -> Array:
    """x / 2^shift, rounded to an integer; of a negative shift exactly x * 2^-shift."""
    if shift <= 0:
        return times(x, -shift)
    if shift > EXACT_BITS:
        x = x.astype(object)
    return divided(x, 1 << shift, rounding)


def clipped(x: Array, low: int, high: int) -> Array:
    """Into [low, high]."""
    return np.where(x < low, low, np.where(x > high, high, x)).astype(np.int64)


def outside(x: Array, low: int, high: int) -> Array:
    """Where x is not in [low, high]."""
    return ((x < low) | (x > high)).astype(bool)


def saturated(x: Array, dtype: str, counts: Optional[Counts] = None) -> Array:
    """Into the container of dtype; every element that changes counts."""
    low, high = RANGES[dtype]
    if counts is not None:
        counts.saturated += int(np.count_nonzero(outside(x, low, high)))
    return clipped(x, low, high)


def accumulator_bits(data_dtype: str) -> int:
    """32 for fx8 data, 40 for fx16 data, whatever its weights are."""
    return 32 if data_dtype == "fx8" else 40


def wrap(x: Array, bits: int) -> Array:
    """The low bits of x, in two's complement."""
    half = 1 << (bits - 1)
    return ((x + half) % (1 << bits) - half).astype(np.int64)


def accumulated(total: Array, bits: int, counts: Counts) -> Array:
    """An exact sum in the accumulator: it wraps, and each sum that is out of range counts."""
    held = wrap(total, bits)
    counts.wrapped += int(np.count_nonzero(held != total))
    return held
