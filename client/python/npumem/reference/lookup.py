"""The kernel whose function is a table of the user's."""

from __future__ import annotations

from .integers import Counts, rounded
from .tensor import Format, Tensor, made, need, need_fixed, need_same_format


def lut(in_: Tensor, table: Tensor, *, out: Format, rounding: str, counts: Counts) -> Tensor:
    """Any function of one element, by a table of yours.

        u = in + 2^(b - 1), with b = 8 if in is fx8, 16 if it is fx16          (the place among all inputs, from 0 on)
        table of 2^b entries:                     out = table[u]
        table of 2^k + 1 entries, in fx16 only:   s = 16 - k;  i = floor(u / 2^s);  t = u mod 2^s
                                                  out = table[i] + round((table[i + 1] - table[i]) * t / 2^s)

    The table's elements are read in the order N,C,H,W, whatever its shape; entry 0 is for the least input. For a
    function g of real numbers, entry i of 2^b is g((i - 2^(b - 1)) / 2^f_in) in out's format, and entry i of 2^k + 1 is
    g((i * 2^s - 32768) / 2^f_in).

    Tensors
        in     [N,C,H,W], fx8 or fx16, any frac_bits
        table  of out's type and frac_bits, any shape; 256 elements if in is fx8; 65536, or 2^k + 1 with k from 1 to
               15, if in is fx16
        out    of in's shape, fx8 or fx16, any frac_bits
    Parameters
        none but rounding, which only a table of 2^k + 1 entries needs
    Refused
        other types or shapes; another number of entries; a table in another format than out
    Counts
        none: every result is an entry, or lies between two
    Source
        npumem's own. 2^9 + 1 entries are usual: TOSA's TABLE and TensorFlow Lite have as many.
    Example
        >>> table = fx16([-400, -200, 0, 200, 400], 8)
        >>> run("lut", in_=fx16([-32768, -8192, 1, 8192, 32767], 12), table=table, out=Format("fx16", 8))
        out fx16, frac_bits 8 [1, 5, 1, 1]: [-400, -100, 0, 100, 400]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    need_fixed("in", in_)
    need_fixed("out", out)
    need_same_format("table", table, out)
    entries, bits = table.values.reshape(-1), 8 if in_.dtype == "fx8" else 16
    u = in_.values + (1 << (bits - 1))
    if entries.size == 1 << bits:
        return made(entries[u], out)
    within = next((s for s in range(1, 16) if entries.size == (1 << (16 - s)) + 1), 0)
    need(bits == 16 and within > 0, f"table has {entries.size} entries")
    i, t = u >> within, u & ((1 << within) - 1)
    return made(entries[i] + rounded((entries[i + 1] - entries[i]) * t, within, rounding), out)
