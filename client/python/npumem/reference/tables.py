"""The tables of sigmoid, tanh, exp and 1 / sqrt, the rule that makes them, and how a table is read."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import cached_property
from typing import Callable, Optional

import numpy as np

from .integers import Array, Counts, clipped, rounded, saturated

FUNCTIONS: dict[str, Callable[[Decimal], Decimal]] = {
    "sigmoid": lambda x: 1 / (1 + (-x).exp()),
    "tanh": lambda x: (x.exp() - (-x).exp()) / (x.exp() + (-x).exp()),
    "exp": lambda x: min(x, Decimal(0)).exp(),  # of arguments that are not positive
    "invsqrt": lambda x: 1 / x.sqrt(),
}


@dataclass(frozen=True)
class Table:
    """entries[i] = f((i - offset) / 2^q) * 2^out_frac_bits, rounded half away from zero and kept in 16 bits."""

    function: str
    n: int
    q: int
    offset: int
    out_frac_bits: int

    @cached_property
    def entries(self) -> Array:
        """In decimal arithmetic of 60 digits: no mathematics library of a host decides on a bit."""
        entries = []
        with localcontext() as context:
            context.prec = 60
            for i in range(self.n):
                y = FUNCTIONS[self.function](Decimal(i - self.offset) / 2**self.q) * 2**self.out_frac_bits
                entries.append(max(-32768, min(32767, int(y.quantize(Decimal(1), ROUND_HALF_UP)))))
        return np.array(entries, np.int64)


TABLES = {
    ("sigmoid", "mli2_0"): Table("sigmoid", 320, 4, 160, 15),
    ("sigmoid", "mli1_1"): Table("sigmoid", 180, 3, 90, 15),
    ("tanh", "mli2_0"): Table("tanh", 344, 5, 172, 15),
    ("tanh", "mli1_1"): Table("tanh", 178, 4, 89, 15),
    ("exp", "mli2_0"): Table("exp", 358, 5, 356, 15),
    ("exp", "mli1_1"): Table("exp", 181, 4, 179, 15),
    ("invsqrt", "mli2_0"): Table("invsqrt", 97, 0, -32, 17),
}


def lookup(x: Array, function: str, lut: str, frac_bits: int, rounding: str) -> Array:
    """f(x / 2^frac_bits) in the table's format (Q.15; 1 / sqrt: Q.17).

    With d = frac_bits - q, the bits that x has beyond the table's steps:
    d <= 0: the entry x * 2^-d + offset, the nearest end's where there is none.
    d > 0:  between entries i = floor(x / 2^d) + offset and i + 1, at the place that the low d bits of x say:
            entries[i] - round((entries[i] - entries[i + 1]) * (x mod 2^d) / 2^d)
    At most 15 bits place x between two entries: where d is larger, x loses its lowest d - 15 bits first (at most 15
    of them), and d is 15. Beyond the table's ends i is the end's, and the low bits still count."""
    table = TABLES[function, lut]
    entries, d = table.entries, frac_bits - table.q
    last = len(entries) - 1
    if d <= 0:
        return entries[clipped(x * (1 << -d) + table.offset, 0, last)]
    x = x >> min(max(d - 15, 0), 15)
    d = min(d, 15)
    i = clipped((x >> d) + table.offset, 0, last - 1)
    return entries[i] - rounded((entries[i] - entries[i + 1]) * (x & ((1 << d) - 1)), d, rounding)


def into_container(y: Array, dtype: str, rounding: str) -> Array:
    """Of a table's Q.15 the fx16 itself, and Q.7 for fx8: one more rounding, before saturation."""
    return y if dtype == "fx16" else rounded(y, 8, rounding)


def unit_frac_bits(dtype: str) -> int:
    """frac_bits of a table's results in a container: 7 for fx8, 15 for fx16."""
    return 7 if dtype == "fx8" else 15


def function_of(
    x: Array, function: str, lut: str, dtype: str, frac_bits: int, rounding: str, counts: Optional[Counts] = None
) -> Array:
    """lookup, rounded and saturated into the container."""
    return saturated(into_container(lookup(x, function, lut, frac_bits, rounding), dtype, rounding), dtype, counts)
