"""Functions of one element, by the kernel lut and a table."""

from __future__ import annotations

import numpy as np

from .. import floats
from ..floats.functions import FUNCTIONS
from ..formats import BITS, integers
from ..lowering import Lowering, NoKernel, row
from ..model import Array, Node
from ..network import Held

STEP = 128  # inputs between two of the 2^9 + 1 entries of the shorter table for fx16


def values_at(low: Lowering, node: Node, name: str, reals: Array) -> Array:
    """What the node makes of these numbers. What is no number becomes 0, an infinity the end of a format."""
    with np.errstate(all="ignore"):
        made = floats.evaluate(node, {**low.graph.constants, name: reals})[0]
    return np.nan_to_num(np.asarray(made, np.float64).reshape(reals.shape), posinf=1e30, neginf=-1e30)


def entries(low: Lowering, node: Node, name: str, x: Held, y: Held) -> Held:
    """The table from x's format to y's: an entry for each input, or 2^9 + 1 where no number between the least and the
    largest that the samples have is off by more than one unit."""
    half = 1 << (BITS[x.dtype] - 1)
    whole = np.arange(-half, half)
    values = values_at(low, node, name, whole / 2.0**x.frac)
    if x.dtype == "fx8":
        return low.net.constant(values, (1, 1, 1, 2 * half), y.dtype, y.frac)
    few = values_at(low, node, name, np.arange(-half, half + 1, STEP) / 2.0**x.frac)
    between = np.interp(whole, np.arange(-half, half + 1, STEP), integers(few, y.dtype, y.frac))
    seen = integers(low.samples.of(name), x.dtype, x.frac)
    used = slice(int(seen.min()) + half, int(seen.max()) + half + 1)
    if np.abs(np.rint(between) - integers(values, y.dtype, y.frac))[used].max() <= 1:
        return low.net.constant(few, (1, 1, 1, few.size), y.dtype, y.frac)
    return low.net.constant(values, (1, 64, 32, 32), y.dtype, y.frac)


@row(*FUNCTIONS, "Function", "Pow")
def function(low: Lowering, node: Node) -> Held:
    moving = [name for name in node.inputs if name and name not in low.graph.constants]
    fixed = [low.graph.constants[name] for name in node.inputs if name in low.graph.constants]
    same = low.shape(moving[0]) == low.shape(node.outputs[0])
    if len(moving) > 1 or not same or any(value.size != 1 for value in fixed):
        raise NoKernel("it has two operands that are no single number, and lut has a table of one")
    x = low.value(moving[0])
    y = low.out(node, x.shape)
    return low.kernel("lut", y, in_=x, table=entries(low, node, moving[0], x, y))
